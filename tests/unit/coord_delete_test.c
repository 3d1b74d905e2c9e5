/* Deleting runs: bindings go back to the newest remaining one, tables are dropped unless somebody
 * needs them. */
#include "tests/unit/coord_fixture.h"
#include "tests/unit/coord_suites.h"

static struct fx f;

static size_t delete_run(const char *run, bool drop, uint64_t *job)
{
    const uint64_t *jobs;
    size_t n;
    struct err e = {0};
    const struct row_run *row = memory_run(f.store, run);
    ck_assert_ptr_nonnull(row);
    coord_load_run(f.c, row); /* ended ones are not held for ever */
    ck_assert_int_eq(coord_run_delete(f.c, f.now, run, drop, &jobs, &n, &f.o, &e), 0);
    if (n) {
        *job = jobs[0];
    }
    fx_commit(&f);
    ck_assert_ptr_null(memory_run(f.store, run));
    return n;
}

START_TEST(deleting_the_run_in_force_goes_back_to_the_one_before)
{
    fx_init(&f, _i);
    uint64_t unit = fx_unit(&f, "p1"), job = 0;
    const char *one = fx_baked(&f, unit, "a", "a", "ba");
    const char *run = fx_create(&f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_carry(&f, &p, "a", "a", "ba");
    fx_plan_add(&p, PLAN_BUILD, "b", "b", "bb");
    fx_planned(&f, run, &p);
    struct coord_lease l = fx_pull_one(&f, "b1");
    fx_build(&f, &l);

    ck_assert_uint_eq(delete_run(run, false, &job), 0);
    ck_assert_ptr_nonnull(fx_bound(&f, unit, "a"));
    ck_assert_ptr_null(fx_bound(&f, unit, "b"));
    ck_assert_str_eq(fx_unbaked(&f, unit, "b"), "run_deleted");
    ck_assert_str_eq(memory_set(f.store, unit)->run, one);
    ck_assert_uint_eq(delete_run(one, false, &job), 0);
    ck_assert_uint_eq(memory_set(f.store, unit)->n, 0);
    ck_assert_ptr_null(memory_set(f.store, unit)->run);
    fx_fini(&f);
}
END_TEST

START_TEST(deleting_an_older_run_leaves_the_bindings_alone)
{
    fx_init(&f, _i);
    uint64_t unit = fx_unit(&f, "p1"), job = 0;
    const char *one = fx_baked(&f, unit, "a", "a", "ba");
    const char *run = fx_create(&f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_carry(&f, &p, "a", "a", "ba");
    fx_planned(&f, run, &p);
    uint64_t epoch = memory_unit(f.store, unit)->epoch;
    ck_assert_uint_eq(delete_run(one, true, &job), 0); /* the newer run names the table */
    ck_assert_uint_eq(memory_unit(f.store, unit)->epoch, epoch);
    fx_fini(&f);
}
END_TEST

START_TEST(tables_are_dropped_once_the_gateways_let_go)
{
    fx_init(&f, _i);
    uint64_t unit = fx_unit(&f, "p1"), job = 0;
    const char *run = fx_baked(&f, unit, "a", "a", "ba");
    char generation[27];
    memcpy(generation, fx_bound(&f, unit, "a")->generation.id, 27);
    fx_report(&f, "g1", unit, memory_unit(f.store, unit)->epoch, false);
    ck_assert_uint_eq(delete_run(run, true, &job), 1);
    ck_assert_int_eq(fx_generation_state(&f, generation), GENERATION_DROPPING);
    struct coord_lease l = {0};
    ck_assert_uint_eq(fx_pull(&f, "b1", 1, &l), 0);
    fx_report(&f, "g1", unit, memory_unit(f.store, unit)->epoch, false);
    ck_assert(fx_noted(&f, NOTE_UNIT_REPORTED));
    l = fx_pull_one(&f, "b1");
    ck_assert_int_eq(l.kind, KIND_DROP);
    ck_assert_uint_eq(l.job, job);
    ck_assert_str_eq(l.generation, generation);
    ck_assert_str_eq(l.target->connection, "pg");
    ck_assert_ptr_null(l.run);
    ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_OK, 0, NULL), 0);
    ck_assert(_i || fx_noted(&f, NOTE_JOB_ENDED));
    ck_assert_int_eq(fx_generation_state(&f, generation), GENERATION_DROPPED);
    ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_OK, 0, NULL), 0);
    fx_fini(&f);
}
END_TEST

START_TEST(drop_waits_five_seconds_at_most_and_is_retried)
{
    fx_init(&f, _i);
    uint64_t unit = fx_unit(&f, "p1"), job = 0;
    const char *run = fx_baked(&f, unit, "a", "a", "ba");
    char generation[27];
    memcpy(generation, fx_bound(&f, unit, "a")->generation.id, 27);
    fx_report(&f, "g1", unit, 1, false);
    ck_assert_uint_eq(delete_run(run, true, &job), 1);
    fx_wait(&f, 2000);
    fx_report(&f, "g1", unit, 1, false);
    fx_wait(&f, 2000);
    struct coord_lease l = {0};
    ck_assert_uint_eq(fx_pull(&f, "b1", 1, &l), 0);
    fx_wait(&f, 1100);
    for (int n = 0; n < 3; n++) {
        l = fx_pull_one(&f, "b1");
        ck_assert_int_eq(l.kind, KIND_DROP);
        if (n == 1) {
            fx_wait(&f, 10001);
        } else {
            ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_ERROR, ERR_WH_CONNECT, "away"), 0);
        }
        fx_wait(&f, 7000);
    }
    ck_assert_int_eq(fx_job_state(&f, job), JOB_FAILED);
    ck_assert_int_eq(fx_generation_state(&f, generation), GENERATION_LOST);
    fx_fini(&f);
}
END_TEST

START_TEST(table_that_another_unit_reads_or_an_active_run_made_is_not_dropped)
{
    fx_init(&f, _i);
    uint64_t one = fx_unit(&f, "p1"), two = fx_unit(&f, "p2"), job = 0;
    const char *run = fx_baked(&f, one, "a", "a", "ba");
    const char *other = fx_create(&f, two);
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_carry(&f, &p, "a", "a", "ba");
    fx_plan_add(&p, PLAN_BUILD, "b", "b", "bb");
    fx_planned(&f, other, &p);
    ck_assert_uint_eq(delete_run(run, true, &job), 0); /* the run that carries it goes on */
    struct coord_lease l = fx_pull_one(&f, "b1");
    fx_build(&f, &l);
    ck_assert_ptr_nonnull(fx_bound(&f, two, "a"));
    run = fx_baked(&f, one, "c", "c", "bc");
    ck_assert_uint_eq(delete_run(run, true, &job), 1); /* only the own one */
    fx_fini(&f);
}
END_TEST

START_TEST(drop_whose_table_was_built_anew_ends_without_work)
{
    fx_init(&f, _i);
    uint64_t one = fx_unit(&f, "p1"), two = fx_unit(&f, "p2"), job = 0;
    const char *run = fx_baked(&f, one, "a", "a", "ba");
    char generation[27];
    memcpy(generation, fx_bound(&f, one, "a")->generation.id, 27);
    const char *other = fx_create_with(
        &f, &(struct coord_run_new){.unit = two, .trigger = "ON_DEMAND", .force_refresh = true});
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_add(&p, PLAN_BUILD, "a", "a", "ba");
    fx_planned(&f, other, &p);
    struct coord_lease l = fx_pull_one(&f, "b1");
    ck_assert_uint_eq(delete_run(run, true, &job), 1);
    fx_wait(&f, 6000);
    struct coord_lease none;
    ck_assert_uint_eq(fx_pull(&f, "b2", 1, &none), 0); /* the place is held */
    struct plan_target probe = p.t[0];
    ck_assert_ptr_null(coord_current_generation(f.c, &probe.target)); /* nothing to carry */
    fx_build(&f, &l);
    ck_assert_int_eq(fx_job_state(&f, job), JOB_CANCELLED);
    ck_assert_int_eq(fx_generation_state(&f, generation), GENERATION_OVERWRITTEN);
    ck_assert_int_eq(fx_generation_state(&f, l.generation), GENERATION_BOUND);
    fx_fini(&f);
}
END_TEST

START_TEST(carried_plan_of_a_table_that_is_being_dropped_is_out_of_date)
{
    fx_init(&f, 0);
    uint64_t one = fx_unit(&f, "p1"), two = fx_unit(&f, "p2"), job = 0;
    const char *run = fx_baked(&f, one, "a", "a", "ba");
    const char *other = fx_create(&f, two);
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_carry(&f, &p, "a", "a", "ba");
    ck_assert_uint_eq(delete_run(run, true, &job), 1);
    ck_assert_int_eq(coord_run_planned(f.c, f.now, other, &p.p, &f.o), ERR_STORE_MOVED);
    fx_fini(&f);
}
END_TEST

START_TEST(cancelled_run_drops_the_tables_it_made)
{
    fx_init(&f, _i);
    uint64_t unit = fx_unit(&f, "p1"), job = 0;
    const char *run = fx_create(&f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_add(&p, PLAN_BUILD, "a", "a", "ba");
    fx_plan_add(&p, PLAN_BUILD, "b", "b", "bb");
    fx_planned(&f, run, &p);
    struct coord_lease l = fx_pull_one(&f, "b1");
    fx_build(&f, &l);
    struct err e = {0};
    ck_assert_int_eq(coord_run_stop(f.c, f.now, run, &f.o, &e), 0);
    fx_commit(&f);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_CANCELLED);
    ck_assert_int_eq(fx_generation_state(&f, l.generation), GENERATION_RECORDED);
    ck_assert_uint_eq(delete_run(run, true, &job), 1);
    ck_assert_int_eq(fx_generation_state(&f, l.generation), GENERATION_DROPPING);
    l = fx_pull_one(&f, "b1"); /* nothing was bound: nothing to wait for */
    ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_OK, 0, NULL), 0);
    fx_fini(&f);
}
END_TEST

START_TEST(active_and_unknown_runs_cannot_be_deleted)
{
    fx_init(&f, 0);
    uint64_t unit = fx_unit(&f, "p1");
    const char *run = fx_create(&f, unit);
    const uint64_t *jobs;
    size_t n;
    struct err e = {0};
    ck_assert_int_eq(coord_run_delete(f.c, f.now, run, false, &jobs, &n, &f.o, &e), ERR_RUN_STATE);
    ck_assert_int_eq(coord_run_delete(f.c, f.now, "1-x", false, &jobs, &n, &f.o, &e),
                     ERR_NOT_FOUND);
    fx_fini(&f);
}
END_TEST

START_TEST(runs_of_an_older_load_give_back_only_what_is_still_bound)
{
    fx_init(&f, _i);
    uint64_t unit = fx_unit(&f, "p1"), job = 0;
    const char *run = fx_create(&f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_add(&p, PLAN_BUILD, "a", "a", "ba");
    fx_plan_add(&p, PLAN_BUILD, "b", "b", "bb");
    fx_planned(&f, run, &p);
    struct coord_lease l[2];
    ck_assert_uint_eq(fx_pull(&f, "b1", 2, l), 2);
    fx_build(&f, &l[0]);
    fx_build(&f, &l[1]);
    const char *keep[] = {"bb"};
    fx_publish(&f, unit, 2, "publish", keep, 1);
    run = fx_create(&f, unit);
    fx_plan_init(&p);
    p.p.load = 2;
    fx_plan_carry(&f, &p, "b", "b", "bb");
    fx_plan_add(&p, PLAN_BUILD, "c", "c", "bc");
    fx_planned(&f, run, &p);
    struct coord_lease c = fx_pull_one(&f, "b1");
    fx_build(&f, &c);
    ck_assert_uint_eq(delete_run(run, false, &job), 0);
    ck_assert_ptr_nonnull(fx_bound(&f, unit, "b"));
    ck_assert_ptr_null(fx_bound(&f, unit, "a"));
    ck_assert_ptr_null(fx_bound(&f, unit, "c"));
    fx_fini(&f);
}
END_TEST

START_TEST(deleting_a_unit_gives_its_waiting_drops_up)
{
    fx_init(&f, _i);
    uint64_t unit = fx_unit(&f, "p1"), job = 0, leased = 0;
    const char *one = fx_baked(&f, unit, "a", "a", "ba");
    ck_assert_uint_eq(delete_run(one, true, &leased), 1);
    fx_wait(&f, 5100);
    struct coord_lease l = fx_pull_one(&f, "b1");
    const char *two = fx_baked(&f, unit, "b", "b", "bb");
    ck_assert_uint_eq(delete_run(two, true, &job), 1);
    uint64_t sweep = coord_sweep(f.c, f.now, unit, "{\"schemas\":[\"s\"]}", &f.o);
    fx_commit(&f);
    struct err e = {0};
    ck_assert_int_eq(coord_unit_delete(f.c, f.now, unit, &f.o, &e), 0);
    fx_commit(&f);
    ck_assert_int_eq(fx_job_state(&f, job), JOB_CANCELLED);
    ck_assert_int_eq(fx_job_state(&f, sweep), JOB_CANCELLED);
    ck_assert_int_eq(fx_job_state(&f, leased), JOB_LEASED);
    ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_OK, 0, NULL), 0);
    ck_assert_int_eq(fx_job_state(&f, leased), JOB_DONE);
    fx_fini(&f);
}
END_TEST

START_TEST(sweep_is_a_job_like_any_other)
{
    fx_init(&f, _i);
    uint64_t unit = fx_unit(&f, "p1");
    uint64_t job = coord_sweep(f.c, f.now, unit, "{\"schemas\":[\"s\"]}", &f.o);
    fx_commit(&f);
    struct coord_lease l = fx_pull_one(&f, "b1");
    ck_assert_int_eq(l.kind, KIND_SWEEP);
    ck_assert_str_eq(l.spec, "{\"schemas\":[\"s\"]}");
    ck_assert_ptr_null(l.target);
    ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_OK, 0, NULL), 0);
    ck_assert_int_eq(fx_job_state(&f, job), JOB_DONE);
    job = coord_sweep(f.c, f.now, unit, "{}", &f.o);
    fx_commit(&f);
    l = fx_pull_one(&f, "b1");
    ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_ERROR, ERR_WH_DENIED, NULL), 0);
    ck_assert_int_eq(fx_job_state(&f, job), JOB_FAILED);
    fx_fini(&f);
}
END_TEST

/* Two packages whose DuckDB results bear one name, published by binding. */
static const char *bake_by_binding(uint64_t unit, const char *build)
{
    const char *run = fx_create(&f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_add(&p, PLAN_BUILD, "a", "a", build)->target.in_place = false;
    fx_planned(&f, run, &p);
    struct coord_lease l = fx_pull_one(&f, "b1");
    ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_OK, 0, NULL), 0);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    return run;
}

START_TEST(result_by_binding_is_dropped_though_another_package_has_one_of_that_name)
{
    fx_init(&f, _i);
    uint64_t one = fx_unit(&f, "p1"), two = fx_unit(&f, "p2"), job = 0;
    const char *run = bake_by_binding(one, "ba");
    bake_by_binding(two, "bb");
    char generation[27];
    memcpy(generation, fx_bound(&f, one, "a")->generation.id, 27);
    ck_assert_uint_eq(delete_run(run, true, &job), 1);
    ck_assert_int_eq(fx_generation_state(&f, generation), GENERATION_DROPPING);
    ck_assert_int_eq(fx_generation_state(&f, fx_bound(&f, two, "a")->generation.id),
                     GENERATION_BOUND);
    fx_fini(&f);
}
END_TEST

START_TEST(result_by_binding_that_is_gone_was_not_taken_over_by_another_package)
{
    fx_init(&f, _i);
    uint64_t one = fx_unit(&f, "p1"), two = fx_unit(&f, "p2");
    bake_by_binding(one, "ba");
    bake_by_binding(two, "bb");
    const char *run = fx_create(&f, one);
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_carry(&f, &p, "a", "a", "ba");
    p.t[0].target.in_place = false;
    fx_plan_add(&p, PLAN_BUILD, "b", "b", "bc")->target.in_place = false;
    fx_planned(&f, run, &p);
    coord_broken(f.c, f.now, one, p.t[0].generation.id, "table_missing", &f.o);
    fx_commit(&f);
    struct coord_lease l = fx_pull_one(&f, "b1");
    ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_OK, 0, NULL), 0);
    ck_assert_str_eq(fx_unbaked(&f, one, "a"), "table_missing");
    ck_assert_ptr_nonnull(fx_bound(&f, two, "a"));
    fx_fini(&f);
}
END_TEST

TCase *coord_delete_tests(void)
{
    TCase *tc = tcase_create("delete");
    tcase_add_loop_test(tc, deleting_the_run_in_force_goes_back_to_the_one_before, 0, 2);
    tcase_add_loop_test(tc, deleting_an_older_run_leaves_the_bindings_alone, 0, 2);
    tcase_add_test(tc, tables_are_dropped_once_the_gateways_let_go);
    tcase_add_test(tc, drop_waits_five_seconds_at_most_and_is_retried);
    tcase_add_loop_test(tc, table_that_another_unit_reads_or_an_active_run_made_is_not_dropped, 0,
                        2);
    tcase_add_loop_test(tc, drop_whose_table_was_built_anew_ends_without_work, 0, 2);
    tcase_add_test(tc, carried_plan_of_a_table_that_is_being_dropped_is_out_of_date);
    tcase_add_loop_test(tc, cancelled_run_drops_the_tables_it_made, 0, 2);
    tcase_add_test(tc, active_and_unknown_runs_cannot_be_deleted);
    tcase_add_loop_test(tc, runs_of_an_older_load_give_back_only_what_is_still_bound, 0, 2);
    tcase_add_loop_test(tc, deleting_a_unit_gives_its_waiting_drops_up, 0, 2);
    tcase_add_loop_test(tc, sweep_is_a_job_like_any_other, 0, 2);
    tcase_add_loop_test(
        tc, result_by_binding_is_dropped_though_another_package_has_one_of_that_name, 0, 2);
    tcase_add_loop_test(tc, result_by_binding_that_is_gone_was_not_taken_over_by_another_package, 0,
                        2);
    return tc;
}
