/* Jobs and leases: who gets what, when it ends by the clock, who waits for whom. */
#include "tests/unit/coord_fixture.h"
#include "tests/unit/coord_suites.h"

static struct fx f;

/* One unit with one run that builds source `a`; the run's id. */
static const char *begin(int reloads, bool force)
{
    fx_init(&f, reloads);
    uint64_t unit = fx_unit(&f, "p1");
    const char *run = fx_create_with(
        &f, &(struct coord_run_new){.unit = unit, .trigger = "ON_DEMAND", .force_refresh = force});
    fx_plan_one(&f, run, "ba");
    return run;
}

static void end(void)
{
    fx_fini(&f);
}

static struct coord_builder builder(const char *name, char boot, uint8_t request)
{
    struct coord_builder b = {.instance = name, .boot = {{(uint8_t)boot}}, .request_id = {request}};
    return b;
}

static void renew(const struct coord_builder *b, uint64_t token, size_t *cancel, size_t *lost)
{
    struct coord_progress p = {token, 10, 100, "build", 0.5};
    uint64_t cancelled[1], gone[1];
    coord_renew(f.c, f.now, b, &p, 1, cancelled, cancel, gone, lost, &f.o);
    fx_commit(&f);
    ck_assert(*cancel == 0 || cancelled[0] == token);
    ck_assert(*lost == 0 || gone[0] == token);
}

START_TEST(same_pull_gets_the_same_lease_and_a_late_copy_nothing_new)
{
    begin(_i, false);
    struct coord_builder b = builder("b1", '1', 5);
    struct coord_lease one, two;
    ck_assert_uint_eq(coord_pull(f.c, f.now, &b, 1, &one, &f.o), 1);
    fx_commit(&f);
    ck_assert_uint_eq(coord_pull(f.c, f.now, &b, 1, &two, &f.o), 1);
    fx_commit(&f);
    ck_assert_uint_eq(one.token, two.token);
    ck_assert_str_eq(one.generation, two.generation);
    ck_assert_str_eq(one.spec, two.spec);
    uint64_t live[2];
    ck_assert_uint_eq(coord_live_tokens(f.c, live, 2), 1);
    ck_assert_uint_eq(live[0], one.token);
    fx_build(&f, &one);
    ck_assert_uint_eq(coord_pull(f.c, f.now, &b, 1, &two, &f.o), 0);
    b.request_id[0] = 6;
    coord_pull_over(f.c, b.request_id);
    ck_assert_uint_eq(coord_pull(f.c, f.now, &b, 1, &two, &f.o), 0);
    end();
}
END_TEST

START_TEST(lost_lease_is_tried_again_after_a_while_and_fails_the_third_time)
{
    const char *run = begin(_i, false);
    static const int64_t waits[] = {1000, 5000};
    struct coord_lease l = {0};
    for (int n = 1; n <= 3; n++) {
        struct coord_lease next = fx_pull_one(&f, "b1");
        ck_assert_uint_eq(next.n_earlier, (size_t)n - 1);
        ck_assert(n == 1 || next.earlier[n - 2] == l.token);
        ck_assert_uint_gt(next.token, l.token);
        l = next;
        fx_wait(&f, 9000);
        ck_assert_int_eq(fx_job_state(&f, l.job), JOB_LEASED);
        fx_wait(&f, _i ? 10001 : 1001); /* a new planner gives every lease a full term */
        ck_assert_int_eq(fx_job_state(&f, l.job), n < 3 ? JOB_READY : JOB_FAILED);
        ck_assert_int_eq(fx_grant(&f, l.token, 1), ERR_LEASE_LOST);
        ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_OK, 0, NULL), ERR_LEASE_LOST);
        if (n < 3) {
            ck_assert_uint_eq(fx_pull(&f, "b2", 1, &next), 0); /* not before retry_at */
            fx_wait(&f, waits[n - 1] * 12 / 10 + 100);
            ck_assert(fx_noted(&f, NOTE_JOBS));
        }
    }
    ck_assert_int_eq(fx_run_state(&f, run), RUN_FAILED);
    ck_assert_str_eq(memory_run(f.store, run)->error,
                     "a: the builder was not heard for one lease term");
    end();
}
END_TEST

START_TEST(retries_are_spread_by_twenty_per_cent)
{
    int64_t least = INT64_MAX, most = 0;
    for (int r = 0; r < 64; r++) {
        begin(0, false);
        fx_wait(&f, 1); /* no gateway is there to be waited for */
        f.now.random[0] = (uint8_t)(r * 4);
        struct coord_lease l = fx_pull_one(&f, "b1");
        ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_ERROR, ERR_WH_TRANSIENT, "busy"), 0);
        int64_t wait = coord_next_due(f.c).v - f.now.mono.v + 1;
        least = wait < least ? wait : least;
        most = wait > most ? wait : most;
        end();
    }
    ck_assert_int_ge(least, 800);
    ck_assert_int_le(most, 1200);
    ck_assert_int_ge(most - least, 300);
}
END_TEST

START_TEST(renewal_keeps_a_lease_and_writes_its_row_only_when_it_grows_short)
{
    begin(0, false);
    struct coord_builder b = builder("b1", '1', 5);
    struct coord_lease l;
    ck_assert_uint_eq(coord_pull(f.c, f.now, &b, 1, &l, &f.o), 1);
    fx_commit(&f);
    size_t cancel, lost, written = 0;
    for (int s = 0; s < 30; s++) {
        fx_wait(&f, 1000);
        const char *before = memory_attempt(f.store, l.token)->progress;
        renew(&b, l.token, &cancel, &lost);
        ck_assert_uint_eq(cancel + lost, 0);
        written += memory_attempt(f.store, l.token)->progress != before;
    }
    ck_assert_uint_ge(written, 4);
    ck_assert_uint_le(written, 8);
    ck_assert_int_eq(fx_job_state(&f, l.job), JOB_LEASED);
    ck_assert_str_eq(memory_attempt(f.store, l.token)->progress,
                     "{\"stage\":\"build\",\"rows\":10,\"bytes\":100}");
    fx_wait(&f, 10000);
    renew(&b, l.token, &cancel, &lost);
    ck_assert_uint_eq(lost, 1);
    end();
}
END_TEST

START_TEST(new_boot_of_a_builder_ends_its_old_leases_at_once)
{
    begin(_i, false);
    struct coord_builder old = builder("b1", '1', 5), fresh = builder("b1", '2', 6);
    struct coord_lease l;
    ck_assert_uint_eq(coord_pull(f.c, f.now, &old, 1, &l, &f.o), 1);
    fx_commit(&f);
    coord_instance(f.c, f.now, "b1", "builder", &fresh.boot, "1.0", 0, &f.o);
    fx_commit(&f);
    ck_assert_int_eq(fx_job_state(&f, l.job), JOB_READY);
    size_t cancel, lost;
    renew(&old, l.token, &cancel, &lost);
    ck_assert_uint_eq(lost, 1);
    fx_wait(&f, 2000);
    if (!_i) { /* only the process that saw the change of boots knows which one is old */
        ck_assert_uint_eq(coord_pull(f.c, f.now, &old, 1, &l, &f.o), 0);
    }
    ck_assert_uint_eq(coord_pull(f.c, f.now, &fresh, 1, &l, &f.o), 1);
    fx_commit(&f);
    renew(&fresh, l.token, &cancel, &lost);
    ck_assert_uint_eq(cancel + lost, 0);
    end();
}
END_TEST

START_TEST(boot_taken_for_a_former_one_by_mistake_is_heard_again_after_a_lease_term)
{
    begin(0, false);
    struct coord_builder alive = builder("b1", '2', 5), late = builder("b1", '1', 6);
    struct coord_lease l;
    ck_assert_uint_eq(coord_pull(f.c, f.now, &alive, 1, &l, &f.o), 1);
    fx_commit(&f);
    size_t cancel, lost;
    renew(&late, l.token, &cancel, &lost); /* a message of the dead one that was long under way */
    ck_assert_int_eq(fx_job_state(&f, l.job), JOB_READY);
    fx_wait(&f, 2000);
    alive.request_id[0] = 7;
    ck_assert_uint_eq(coord_pull(f.c, f.now, &alive, 1, &l, &f.o), 0);
    fx_wait(&f, 8000);
    ck_assert_uint_eq(coord_pull(f.c, f.now, &alive, 1, &l, &f.o), 1);
    fx_commit(&f);
    renew(&alive, l.token, &cancel, &lost);
    ck_assert_uint_eq(cancel + lost, 0);
    end();
}
END_TEST

START_TEST(place_serves_one_job_at_a_time_and_another_runs_job_is_carried)
{
    const char *run = begin(_i, false);
    uint64_t other = fx_unit(&f, "p2");
    const char *waiting = fx_create(&f, other);
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_add(&p, PLAN_BUILD, "a", "a", "ba"); /* the same table, the same result */
    fx_plan_add(&p, PLAN_BUILD, "c", "c", "bc");
    fx_plan_parent(&p, 1, 0);
    fx_planned(&f, waiting, &p);
    struct coord_lease l[2];
    ck_assert_uint_eq(fx_pull(&f, "b1", 2, l), 1);
    ck_assert_uint_eq(fx_pull(&f, "b2", 2, &l[1]), 0);
    fx_build(&f, &l[0]);

    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    ck_assert_str_eq(memory_entry(f.store, waiting, "ba")->outcome, "carried");
    ck_assert_str_eq(memory_entry(f.store, waiting, "ba")->generation, l[0].generation);
    l[1] = fx_pull_one(&f, "b2"); /* the child is ready by that */
    ck_assert_str_eq(l[1].target->table, "c");
    fx_build(&f, &l[1]);
    ck_assert_int_eq(fx_run_state(&f, waiting), RUN_READY);
    ck_assert_str_eq(fx_bound(&f, other, "a")->generation.id, l[0].generation);
    end();
}
END_TEST

START_TEST(forced_run_builds_what_another_run_has_just_made)
{
    begin(_i, false);
    uint64_t other = fx_unit(&f, "p2");
    const char *waiting = fx_create_with(
        &f, &(struct coord_run_new){.unit = other, .trigger = "ON_DEMAND", .force_refresh = true});
    fx_plan_one(&f, waiting, "ba");
    struct coord_lease l = fx_pull_one(&f, "b1");
    fx_build(&f, &l);
    ck_assert(fx_noted(&f, NOTE_JOBS));
    struct coord_lease again = fx_pull_one(&f, "b1");
    fx_build(&f, &again);
    ck_assert_int_eq(fx_generation_state(&f, l.generation), GENERATION_OVERWRITTEN);
    ck_assert_int_eq(fx_generation_state(&f, again.generation), GENERATION_BOUND);
    /* the first unit's binding reads the newer result of the same build at its table */
    ck_assert_ptr_nonnull(fx_bound(&f, 1, "a"));
    end();
}
END_TEST

START_TEST(stop_cancels_what_waits_and_asks_the_builder_for_the_rest)
{
    fx_init(&f, _i);
    uint64_t unit = fx_unit(&f, "p1");
    const char *run = fx_create(&f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_add(&p, PLAN_BUILD, "a", "a", "ba");
    fx_plan_add(&p, PLAN_BUILD, "b", "b", "bb");
    fx_plan_add(&p, PLAN_BUILD, "c", "c", "bc");
    fx_plan_parent(&p, 2, 0);
    fx_planned(&f, run, &p);
    struct coord_lease l = fx_pull_one(&f, "b1");
    struct err e = {0};
    ck_assert_int_eq(coord_run_stop(f.c, f.now, run, &f.o, &e), 0);
    ck_assert(fx_noted(&f, NOTE_CANCEL));
    fx_commit(&f);
    ck_assert_int_eq(coord_run_stop(f.c, f.now, run, &f.o, &e), 0);
    ck_assert_uint_eq(f.o.rows.n, 0);
    ck_assert_int_eq(fx_job_state(&f, l.job + 1), JOB_CANCELLED);
    ck_assert_int_eq(fx_job_state(&f, l.job + 2), JOB_CANCELLED);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_BUILDING);

    struct coord_builder b = builder("b1", '1', 0);
    size_t cancel, lost;
    renew(&b, l.token, &cancel, &lost);
    ck_assert_uint_eq(cancel, 1);
    ck_assert_int_eq(fx_grant(&f, l.token, 1), ERR_STOPPED);
    ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_STOPPED, 0, NULL), 0);
    ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_STOPPED, 0, NULL), 0);
    ck_assert_int_eq(fx_job_state(&f, l.job), JOB_CANCELLED);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_CANCELLED);
    ck_assert_str_eq(memory_run(f.store, run)->error, "Cancelled");
    end();
}
END_TEST

START_TEST(stopped_job_whose_builder_is_lost_is_cancelled_not_retried)
{
    const char *run = begin(_i, false);
    struct coord_lease l = fx_pull_one(&f, "b1");
    struct err e = {0};
    ck_assert_int_eq(coord_run_stop(f.c, f.now, run, &f.o, &e), 0);
    fx_commit(&f);
    fx_wait(&f, 10001);
    ck_assert_int_eq(fx_job_state(&f, l.job), JOB_CANCELLED);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_CANCELLED);
    end();
}
END_TEST

START_TEST(no_more_jobs_are_out_than_the_cap_allows)
{
    fx_init(&f, 0);
    coord_free(f.c);
    static const struct uuid installation;
    struct coord_limits limits = {.lease = {10000}, .attempts = 3, .max_leased = 1};
    f.c = coord_new(&installation, &limits);
    coord_started(f.c, f.now, &f.o);
    uint64_t unit = fx_unit(&f, "p1");
    const char *run = fx_create(&f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_add(&p, PLAN_BUILD, "a", "a", "ba");
    fx_plan_add(&p, PLAN_BUILD, "b", "b", "bb");
    fx_planned(&f, run, &p);
    struct coord_lease l[2];
    ck_assert_uint_eq(fx_pull(&f, "b1", 2, l), 1);
    fx_build(&f, &l[0]);
    ck_assert_uint_eq(fx_pull(&f, "b1", 2, l), 1);
    end();
}
END_TEST

static size_t pull_reaching(const char *name, const char *const *connections, size_t n,
                            struct coord_lease *out)
{
    struct coord_builder b = builder(name, name[1], (uint8_t)++f.pulls);
    b.reach = (struct coord_reach){connections, n, false};
    size_t got = coord_pull(f.c, f.now, &b, 1, out, &f.o);
    fx_commit(&f);
    return got;
}

START_TEST(job_goes_only_to_a_builder_that_reaches_its_connection)
{
    begin(_i, false); /* dev, pg */
    static const char *const others[][2] = {
        {"wh", "dev/lake"}, {"test/pg", "pg2"}, {"dev", "de/pg"}};
    static const char *const its[] = {"pg", "dev/pg"};
    struct coord_lease l;
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        ck_assert_uint_eq(pull_reaching("b1", others[i], 2, &l), 0);
    }
    ck_assert_uint_eq(pull_reaching("b2", &its[_i], 1, &l), 1);
    end();
}
END_TEST

START_TEST(by_binding_job_goes_only_to_a_builder_with_a_generation_root)
{
    fx_init(&f, _i);
    uint64_t unit = fx_unit(&f, "p1");
    const char *run = fx_create(&f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_add(&p, PLAN_BUILD, "a", "a", "ba")->target.in_place = false;
    fx_planned(&f, run, &p);
    struct coord_lease l;
    ck_assert_uint_eq(pull_reaching("b1", NULL, 0, &l), 0);
    ck_assert_uint_eq(fx_pull(&f, "b2", 1, &l), 1);
    ck_assert_uint_eq(l.load, 1);
    ck_assert_uint_eq(l.n_inputs, 0);
    end();
}
END_TEST

START_TEST(by_binding_child_is_told_its_parents_results)
{
    fx_init(&f, _i);
    uint64_t unit = fx_unit(&f, "p1");
    const char *run = fx_create(&f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_add(&p, PLAN_BUILD, "a", "a", "ba")->target.in_place = false;
    fx_plan_add(&p, PLAN_BUILD, "b", "b", "bb")->target.in_place = false;
    fx_plan_parent(&p, 1, 0);
    fx_planned(&f, run, &p);
    struct coord_lease parent = fx_pull_one(&f, "b1"), child;
    ck_assert_uint_eq(fx_pull(&f, "b2", 1, &child), 0);
    ck_assert_int_eq(fx_finish(&f, parent.token, OUTCOME_OK, 0, NULL), 0);
    child = fx_pull_one(&f, "b2");
    ck_assert_uint_eq(child.n_inputs, 1);
    ck_assert_str_eq(child.inputs[0].table, "a");
    ck_assert_str_eq(child.inputs[0].generation, parent.generation);
    ck_assert_str_eq(child.inputs[0].build_id, "ba");
    const char *const *all;
    ck_assert_uint_eq(coord_live_generations(f.c, &f.mem, &all), 2); /* made, and in the making */
    end();
}
END_TEST

START_TEST(run_tells_after_half_a_minute_that_no_builder_reaches_its_connection)
{
    static const char *const other = "elsewhere";
    const char *run = begin(0, false);
    struct coord_lease l;
    ck_assert_uint_eq(pull_reaching("b1", &other, 1, &l), 0);
    fx_wait(&f, 0); /* there are no gateways to wait for */
    ck_assert_int_gt(coord_next_due(f.c).v, f.now.mono.v + 29900);
    fx_wait(&f, 29000);
    ck_assert(!fx_noted(&f, NOTE_NOBODY));
    ck_assert(!strstr(coord_run_progress(f.c, run, &f.mem), "warning"));
    fx_wait(&f, 1000);
    ck_assert(fx_noted(&f, NOTE_NOBODY));
    ck_assert_str_eq(f.o.notes[0].connection, "pg");
    ck_assert_str_eq(f.o.notes[0].run, run);
    ck_assert(strstr(coord_run_progress(f.c, run, &f.mem), "no_capable_builder") != NULL);
    fx_wait(&f, 1000);
    ck_assert(!fx_noted(&f, NOTE_NOBODY)); /* told once */
    ck_assert_uint_eq(pull_reaching("b2", NULL, 0, &l), 1);
    ck_assert(!strstr(coord_run_progress(f.c, run, &f.mem), "warning"));
    end();
}
END_TEST

START_TEST(builder_that_has_gone_reaches_nothing_any_more)
{
    fx_init(&f, 0);
    struct coord_lease l;
    ck_assert_uint_eq(pull_reaching("b1", NULL, 0, &l), 0);
    uint64_t unit = fx_unit(&f, "p1");
    const char *run = fx_create(&f, unit);
    fx_plan_one(&f, run, "ba");
    fx_wait(&f, 0);
    ck_assert_int_gt(coord_next_due(f.c).v, f.now.mono.v + 19900); /* it counts as gone then */
    ck_assert_int_le(coord_next_due(f.c).v, f.now.mono.v + 20000);
    fx_wait(&f, 20000);
    ck_assert_int_gt(coord_next_due(f.c).v, f.now.mono.v + 29900);
    fx_wait(&f, 30000);
    ck_assert(fx_noted(&f, NOTE_NOBODY));
    ck_assert_int_eq(coord_next_due(f.c).v, MS_NONE.v);
    end();
}
END_TEST

TCase *coord_job_tests(void)
{
    TCase *tc = tcase_create("jobs");
    tcase_add_loop_test(tc, same_pull_gets_the_same_lease_and_a_late_copy_nothing_new, 0, 2);
    tcase_add_loop_test(tc, lost_lease_is_tried_again_after_a_while_and_fails_the_third_time, 0, 2);
    tcase_add_test(tc, retries_are_spread_by_twenty_per_cent);
    tcase_add_test(tc, renewal_keeps_a_lease_and_writes_its_row_only_when_it_grows_short);
    tcase_add_loop_test(tc, new_boot_of_a_builder_ends_its_old_leases_at_once, 0, 2);
    tcase_add_test(tc, boot_taken_for_a_former_one_by_mistake_is_heard_again_after_a_lease_term);
    tcase_add_loop_test(tc, place_serves_one_job_at_a_time_and_another_runs_job_is_carried, 0, 2);
    tcase_add_loop_test(tc, forced_run_builds_what_another_run_has_just_made, 0, 2);
    tcase_add_loop_test(tc, stop_cancels_what_waits_and_asks_the_builder_for_the_rest, 0, 2);
    tcase_add_loop_test(tc, stopped_job_whose_builder_is_lost_is_cancelled_not_retried, 0, 2);
    tcase_add_test(tc, no_more_jobs_are_out_than_the_cap_allows);
    tcase_add_loop_test(tc, job_goes_only_to_a_builder_that_reaches_its_connection, 0, 2);
    tcase_add_loop_test(tc, by_binding_job_goes_only_to_a_builder_with_a_generation_root, 0, 2);
    tcase_add_loop_test(tc, by_binding_child_is_told_its_parents_results, 0, 2);
    tcase_add_test(tc, run_tells_after_half_a_minute_that_no_builder_reaches_its_connection);
    tcase_add_test(tc, builder_that_has_gone_reaches_nothing_any_more);
    return tc;
}
