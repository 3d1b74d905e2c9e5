/* Grants, reports and resolves: what a granted job may become, and how often a report may be said.
 */
#include "tests/unit/coord_fixture.h"
#include "tests/unit/coord_suites.h"

static struct fx f;
static const char *run;
static uint64_t unit;

static struct coord_lease begin(int reloads)
{
    fx_init(&f, reloads);
    unit = fx_unit(&f, "p1");
    run = fx_create(&f, unit);
    fx_plan_one(&f, run, "ba");
    return fx_pull_one(&f, "b1");
}

static void end(void)
{
    fx_fini(&f);
}

START_TEST(grant_and_report_may_be_asked_again_and_answer_alike)
{
    struct coord_lease l = begin(_i);
    ck_assert_int_eq(fx_grant(&f, l.token, 7), 0);
    ck_assert_int_eq(fx_grant(&f, l.token, 7), 0);
    ck_assert_int_eq(fx_job_state(&f, l.job), JOB_PUBLISHING);
    ck_assert(memory_job(f.store, l.job)->granted_ever);
    ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_OK, 0, NULL), 0);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_OK, 0, NULL), 0);
    ck_assert_int_eq(fx_grant(&f, l.token, 7), ERR_LEASE_LOST);
    ck_assert_int_eq(fx_finish(&f, 12345, OUTCOME_OK, 0, NULL), ERR_LEASE_LOST);
    ck_assert_int_eq(fx_grant(&f, 12345, 7), ERR_LEASE_LOST);
    end();
}
END_TEST

START_TEST(granted_job_whose_builder_is_lost_is_resolved_and_found_published)
{
    struct coord_lease l = begin(_i);
    ck_assert_int_eq(fx_grant(&f, l.token, 7), 0);
    fx_wait(&f, 10001);
    ck_assert_int_eq(fx_job_state(&f, l.job), JOB_RESOLVING);
    ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_OK, 0, NULL), ERR_LEASE_LOST);
    struct coord_lease r = fx_pull_one(&f, "b2");
    ck_assert_int_eq(r.kind, KIND_RESOLVE);
    ck_assert_uint_eq(r.job, l.job);
    ck_assert_str_eq(r.generation, l.generation);
    ck_assert_uint_gt(r.token, l.token);
    ck_assert_int_eq(fx_grant(&f, r.token, 1), ERR_LEASE_LOST);
    ck_assert_int_eq(fx_resolved(&f, r.token, l.token, true), 0);

    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    ck_assert_str_eq(fx_bound(&f, unit, "a")->generation.id, l.generation);
    ck_assert_int_eq(fx_bound(&f, unit, "a")->generation.rows, 7);
    ck_assert_int_eq(memory_attempt(f.store, l.token)->state, ATTEMPT_SUCCEEDED);
    ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_OK, 0, NULL), 0); /* the builder was right */
    json_t *m = fx_manifest(&f, run);
    const json_t *e = json_object_get(json_object_get(m, "entries"), "ba");
    ck_assert(json_is_null(json_object_get(e, "buildDurationMs")));
    json_decref(m);
    end();
}
END_TEST

START_TEST(resolve_is_repeated_until_the_warehouse_answers)
{
    struct coord_lease l = begin(_i);
    ck_assert_int_eq(fx_grant(&f, l.token, 7), 0);
    ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_UNKNOWN_, 0, NULL), 0);
    ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_UNKNOWN_, 0, NULL), 0);
    for (int n = 0; n < 8; n++) {
        ck_assert_int_eq(fx_job_state(&f, l.job), JOB_RESOLVING);
        struct coord_lease r = fx_pull_one(&f, "b2");
        ck_assert_int_eq(r.kind, KIND_RESOLVE);
        if (n % 2) {
            fx_wait(&f, 10001); /* lost itself: at once again */
        } else {
            ck_assert_int_eq(fx_finish(&f, r.token, OUTCOME_ERROR, ERR_WH_CONNECT, "away"), 0);
            struct coord_lease none;
            ck_assert_uint_eq(fx_pull(&f, "b2", 1, &none), 0);
            fx_wait(&f, 31000);
        }
    }
    struct coord_lease r = fx_pull_one(&f, "b2");
    ck_assert_int_eq(fx_finish(&f, r.token, OUTCOME_OK, 0, NULL), 0); /* no fence: no answer */
    fx_wait(&f, 31000);
    r = fx_pull_one(&f, "b2");
    ck_assert_int_eq(fx_resolved(&f, r.token, 0, false), 0);
    ck_assert_int_eq(fx_job_state(&f, l.job), JOB_READY); /* built once only: it is tried again */
    ck_assert_int_eq(memory_attempt(f.store, l.token)->state, ATTEMPT_LOST);
    fx_wait(&f, 31000);
    struct coord_lease again = fx_pull_one(&f, "b2");
    ck_assert_int_eq(again.kind, KIND_BUILD);
    fx_build(&f, &again);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    end();
}
END_TEST

START_TEST(swap_that_failed_for_good_fails_the_job_once_resolved)
{
    struct coord_lease l = begin(_i);
    ck_assert_int_eq(fx_grant(&f, l.token, 7), 0);
    ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_ERROR, ERR_WH_DEPENDENTS, "view public.v"), 0);
    ck_assert_int_eq(fx_job_state(&f, l.job), JOB_RESOLVING);
    struct coord_lease r = fx_pull_one(&f, "b1");
    ck_assert_int_eq(fx_resolved(&f, r.token, 0, false), 0);
    ck_assert_int_eq(fx_job_state(&f, l.job), JOB_FAILED);
    ck_assert_str_eq(memory_run(f.store, run)->error, "a: view public.v");
    end();
}
END_TEST

START_TEST(fenced_builder_is_resolved_and_the_counter_passes_the_claim)
{
    struct coord_lease l = begin(_i);
    ck_assert_int_eq(fx_grant(&f, l.token, 7), 0);
    struct coord_finish end_ = {.token = l.token,
                                .outcome = OUTCOME_FENCED_,
                                .has_fence = true,
                                .fence_claim = l.token + 1000000000000};
    struct err e = {0};
    ck_assert_int_eq(coord_finish(f.c, f.now, &end_, &f.o, &e), 0);
    fx_commit(&f);
    struct coord_lease r = fx_pull_one(&f, "b1");
    if (!_i) {
        ck_assert_uint_gt(r.token, l.token + 1000000000000);
    }
    ck_assert_int_eq(fx_resolved(&f, r.token, 0, false), 0);
    ck_assert_int_eq(fx_job_state(&f, l.job), JOB_READY);
    end();
}
END_TEST

START_TEST(published_table_that_is_gone_again_is_built_once_more)
{
    struct coord_lease l = begin(_i);
    ck_assert_int_eq(fx_grant(&f, l.token, 7), 0);
    fx_wait(&f, 10001);
    struct coord_lease r = fx_pull_one(&f, "b1");
    ck_assert_int_eq(fx_resolved(&f, r.token, l.token, false), 0);
    ck_assert_int_eq(fx_job_state(&f, l.job), JOB_READY);
    end();
}
END_TEST

START_TEST(resolve_that_finds_another_table_gives_the_old_result_up)
{
    fx_init(&f, _i);
    unit = fx_unit(&f, "p1");
    fx_baked(&f, unit, "a", "a", "ba");
    const char *old = fx_bound(&f, unit, "a")->generation.id;
    run = fx_create_with(
        &f, &(struct coord_run_new){.unit = unit, .trigger = "ON_DEMAND", .force_refresh = true});
    fx_plan_one(&f, run, "ba");
    struct coord_lease l = fx_pull_one(&f, "b1");
    ck_assert_int_eq(fx_grant(&f, l.token, 7), 0);
    fx_wait(&f, 10001);
    struct coord_lease r = fx_pull_one(&f, "b1");
    ck_assert_int_eq(fx_resolved(&f, r.token, 0, false), 0);
    ck_assert_int_eq(fx_generation_state(&f, old), GENERATION_LOST);
    end();
}
END_TEST

START_TEST(publishing_job_of_a_stopped_run_is_finished_or_resolved_first)
{
    for (int published = 0; published < 2; published++) {
        struct coord_lease l = begin(_i);
        struct err e = {0};
        ck_assert_int_eq(fx_grant(&f, l.token, 7), 0);
        ck_assert_int_eq(coord_run_stop(f.c, f.now, run, &f.o, &e), 0);
        fx_commit(&f);
        ck_assert_int_eq(fx_grant(&f, l.token, 7), 0); /* the same answer */
        fx_wait(&f, 10001);
        ck_assert_int_eq(fx_job_state(&f, l.job), JOB_RESOLVING);
        struct coord_lease r = fx_pull_one(&f, "b1");
        ck_assert_int_eq(fx_resolved(&f, r.token, published ? l.token : 0, published), 0);
        ck_assert_int_eq(fx_job_state(&f, l.job), published ? JOB_DONE : JOB_CANCELLED);
        ck_assert_int_eq(fx_run_state(&f, run), RUN_CANCELLED);
        ck_assert_ptr_null(fx_bound(&f, unit, "a"));
        if (published) { /* recorded: the next run takes it over */
            ck_assert_int_eq(fx_generation_state(&f, l.generation), GENERATION_RECORDED);
            run = fx_create(&f, unit);
            struct fx_plan p;
            fx_plan_init(&p);
            fx_plan_carry(&f, &p, "a", "a", "ba");
            fx_planned(&f, run, &p);
            ck_assert_str_eq(fx_bound(&f, unit, "a")->generation.id, l.generation);
        }
        end();
    }
}
END_TEST

START_TEST(transient_errors_are_retried_and_permanent_ones_are_not)
{
    static const struct {
        int code;
        enum coord_outcome outcome;
        enum job_state then;
    } cases[] = {
        {ERR_WH_TRANSIENT, OUTCOME_ERROR, JOB_READY},
        {ERR_WH_LOST, OUTCOME_ERROR, JOB_READY},
        {ERR_WH_SQL, OUTCOME_ERROR, JOB_FAILED},
        {0, OUTCOME_ERROR, JOB_FAILED},
        {0, OUTCOME_UNKNOWN_, JOB_READY},
        {0, OUTCOME_STOPPED, JOB_READY},
        {0, OUTCOME_FENCED_, JOB_READY},
        {0, OUTCOME_OK, JOB_FAILED},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct coord_lease l = begin(_i);
        ck_assert_int_eq(fx_finish(&f, l.token, cases[i].outcome, cases[i].code, NULL), 0);
        ck_assert_int_eq(fx_job_state(&f, l.job), cases[i].then);
        ck_assert_int_eq(fx_finish(&f, l.token, cases[i].outcome, cases[i].code, NULL), 0);
        end();
    }
}
END_TEST

START_TEST(result_published_by_binding_needs_no_grant_and_retires_the_one_before)
{
    fx_init(&f, _i);
    unit = fx_unit(&f, "p1");
    struct coord_lease l[3];
    struct fx_plan p;
    for (int n = 0; n < 3; n++) {
        run = fx_create_with(&f, &(struct coord_run_new){
                                     .unit = unit, .trigger = "ON_DEMAND", .force_refresh = true});
        fx_plan_init(&p);
        fx_plan_add(&p, PLAN_BUILD, "a", "a", "ba")->target.in_place = false;
        fx_planned(&f, run, &p);
        l[n] = fx_pull_one(&f, "b1");
        ck_assert_int_eq(fx_grant(&f, l[n].token, 1), ERR_ARG);
        struct err e = {0};
        if (n == 1) {
            ck_assert_int_eq(coord_run_stop(f.c, f.now, run, &f.o, &e), 0);
            fx_commit(&f);
        }
        ck_assert_int_eq(fx_finish(&f, l[n].token, OUTCOME_OK, 0, NULL), 0);
        ck_assert_int_eq(fx_job_state(&f, l[n].job), n == 1 ? JOB_CANCELLED : JOB_DONE);
    }
    ck_assert_int_eq(fx_generation_state(&f, l[0].generation), GENERATION_RETIRED);
    ck_assert_int_eq(fx_generation_state(&f, l[2].generation), GENERATION_BOUND);
    ck_assert_int_eq(coord_unbind(f.c, f.now, unit, "patch", false, &f.o), 0);
    fx_commit(&f);
    ck_assert_int_eq(fx_generation_state(&f, l[2].generation), GENERATION_RETIRED);
    run = fx_create(&f, unit);
    fx_plan_init(&p);
    fx_plan_carry(&f, &p, "a", "a", "ba");
    p.t[0].target.in_place = false;
    fx_planned(&f, run, &p);
    ck_assert_int_eq(fx_generation_state(&f, l[2].generation), GENERATION_BOUND);
    end();
}
END_TEST

TCase *coord_finish_tests(void)
{
    TCase *tc = tcase_create("finish");
    tcase_add_loop_test(tc, grant_and_report_may_be_asked_again_and_answer_alike, 0, 2);
    tcase_add_loop_test(tc, granted_job_whose_builder_is_lost_is_resolved_and_found_published, 0,
                        2);
    tcase_add_loop_test(tc, resolve_is_repeated_until_the_warehouse_answers, 0, 2);
    tcase_add_loop_test(tc, swap_that_failed_for_good_fails_the_job_once_resolved, 0, 2);
    tcase_add_loop_test(tc, fenced_builder_is_resolved_and_the_counter_passes_the_claim, 0, 2);
    tcase_add_loop_test(tc, published_table_that_is_gone_again_is_built_once_more, 0, 2);
    tcase_add_loop_test(tc, resolve_that_finds_another_table_gives_the_old_result_up, 0, 2);
    tcase_add_loop_test(tc, publishing_job_of_a_stopped_run_is_finished_or_resolved_first, 0, 2);
    tcase_add_loop_test(tc, transient_errors_are_retried_and_permanent_ones_are_not, 0, 2);
    tcase_add_loop_test(tc, result_published_by_binding_needs_no_grant_and_retires_the_one_before,
                        0, 2);
    return tc;
}
