/* Gateways: when a run counts as bound, who is waited for, what a report changes. */
#include "tests/unit/coord_fixture.h"
#include "tests/unit/coord_suites.h"

static struct fx f;
static uint64_t unit;

/* Plans a run of one build and leases its job. */
static struct coord_lease plan_one(const char *run, const char *build)
{
    fx_plan_one(&f, run, build);
    return fx_pull_one(&f, "b1");
}

/* A run whose only job is published while the named gateways are live; binding. */
static const char *begin(const char *one, const char *two)
{
    fx_init(&f, 0);
    unit = fx_unit(&f, "p1");
    const char *run = fx_create(&f, unit);
    struct coord_lease l = plan_one(run, "ba");
    fx_report(&f, one, unit, 1, false);
    fx_report(&f, two, unit, 1, false);
    fx_build(&f, &l);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_BINDING);
    return run;
}

static uint64_t epoch(void)
{
    return memory_unit(f.store, unit)->epoch;
}

static const char *unbound(const char *run)
{
    json_t *v = fx_metadata(&f, run);
    const json_t *list = json_object_get(v, "unbound");
    char *text = list ? arena_strdup(&f.mem, json_string_value(json_array_get(list, 0))) : NULL;
    json_decref(v);
    return text;
}

START_TEST(run_is_ready_when_every_live_gateway_has_applied_its_set)
{
    const char *run = begin("g1", "g2");
    ck_assert(!coord_unit_reported(f.c, f.now, unit, epoch()));
    fx_report(&f, "g1", unit, epoch(), false);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_BINDING);
    ck_assert(!fx_noted(&f, NOTE_UNIT_REPORTED));
    fx_report(&f, "g2", unit, epoch(), false);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    ck_assert(fx_noted(&f, NOTE_UNIT_REPORTED));
    ck_assert(coord_unit_reported(f.c, f.now, unit, epoch()));
    ck_assert_ptr_null(unbound(run));
    ck_assert_uint_eq(coord_live_gateways(f.c, f.now), 2);
    ck_assert_uint_eq(coord_live_builders(f.c, f.now), 1);
    fx_fini(&f);
}
END_TEST

START_TEST(silent_gateway_is_not_waited_for)
{
    const char *run = begin("g1", "g2");
    for (int s = 0; s < 5; s++) {
        ck_assert_int_eq(fx_run_state(&f, run), RUN_BINDING);
        fx_report(&f, "g1", unit, epoch(), false);
        fx_wait(&f, 1000);
    }
    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    ck_assert_uint_eq(coord_live_gateways(f.c, f.now), 1);
    fx_fini(&f);
}
END_TEST

START_TEST(gateway_that_only_lags_is_waited_for_ten_seconds)
{
    const char *run = begin("g1", "g2");
    for (int s = 0; s < 11; s++) {
        fx_report(&f, "g1", unit, epoch(), false);
        fx_report(&f, "g2", unit, 1, false);
        ck_assert_int_eq(fx_run_state(&f, run), s < 10 ? RUN_BINDING : RUN_READY);
        fx_wait(&f, 1000);
    }
    ck_assert_str_eq(unbound(run), "g2");
    fx_fini(&f);
}
END_TEST

START_TEST(gateway_that_loads_is_waited_for_ten_minutes)
{
    const char *run = begin("g1", "g2");
    for (int s = 0; s < 598; s++) {
        fx_report(&f, "g1", unit, epoch(), false);
        fx_report(&f, "g2", unit, 1, true);
        ck_assert_int_eq(fx_run_state(&f, run), RUN_BINDING);
        fx_wait(&f, 1000);
    }
    ck_assert_int_ge(coord_next_due(f.c).v, f.now.mono.v);
    fx_report(&f, "g2", unit, 1, true);
    fx_wait(&f, 4000);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    ck_assert_str_eq(unbound(run), "g2");
    fx_fini(&f);
}
END_TEST

START_TEST(gateway_that_failed_to_apply_does_not_hold_the_run)
{
    const char *run = begin("g1", "g2");
    fx_report(&f, "g1", unit, epoch(), false);
    struct uuid boot = {{9}};
    struct coord_gateway_unit u = {.unit = unit, .applied = 1, .failed_epoch = epoch()};
    coord_gateway_report(f.c, f.now, "g2", &boot, &u, 1, &f.o);
    fx_commit(&f);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    ck_assert_str_eq(unbound(run), "g2");
    fx_fini(&f);
}
END_TEST

START_TEST(gateway_that_does_not_reach_the_root_has_applied_the_set_and_is_named)
{
    const char *run = begin("g1", "g2");
    fx_report(&f, "g1", unit, epoch(), false);
    struct uuid boot = {{9}};
    struct coord_gateway_unit u = {.unit = unit, .applied = epoch(), .failed_epoch = epoch()};
    coord_gateway_report(f.c, f.now, "g2", &boot, &u, 1, &f.o);
    fx_commit(&f);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    ck_assert_str_eq(unbound(run), "g2");
    fx_fini(&f);
}
END_TEST

START_TEST(stop_comes_too_late_while_binding)
{
    const char *run = begin("g1", "g2");
    struct err e = {0};
    ck_assert_int_eq(coord_run_stop(f.c, f.now, run, &f.o, &e), 0);
    ck_assert_uint_eq(f.o.rows.n, 0);
    fx_report(&f, "g1", unit, epoch(), false);
    fx_report(&f, "g2", unit, epoch(), false);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    fx_fini(&f);
}
END_TEST

START_TEST(planner_that_starts_anew_goes_on_waiting_for_gateways_it_has_not_heard_yet)
{
    const char *run = begin("g1", "g2");
    fx_reload(&f);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_BINDING);
    fx_wait(&f, 1000);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_BINDING);
    fx_report(&f, "g1", unit, epoch(), false);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY); /* heard, and nobody else */
    fx_fini(&f);

    run = begin("g1", "g2");
    fx_reload(&f);
    ck_assert_int_le(coord_next_due(f.c).v, f.now.mono.v + 5000);
    fx_wait(&f, 5000);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    fx_fini(&f);
}
END_TEST

/* The run was not binding yet when its planner died: the next one has heard nobody when it binds.
 */
START_TEST(planner_that_takes_over_waits_for_the_gateways_of_the_first_one)
{
    fx_init(&f, 0);
    unit = fx_unit(&f, "p1");
    const char *run = fx_create(&f, unit);
    struct coord_lease l = plan_one(run, "ba");
    fx_report(&f, "g1", unit, 1, false);
    fx_reload(&f);
    fx_build(&f, &l);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_BINDING);
    ck_assert(!coord_unit_reported(f.c, f.now, unit, epoch()));
    ck_assert_int_le(coord_next_due(f.c).v, f.now.mono.v + 5000);
    fx_wait(&f, 1000);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_BINDING);
    fx_report(&f, "g1", unit, epoch(), false);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);

    const char *next = fx_create(&f, unit); /* and what it begins itself */
    fx_reload(&f);
    l = plan_one(next, "bb");
    fx_build(&f, &l);
    ck_assert_int_eq(fx_run_state(&f, next), RUN_BINDING);
    fx_wait(&f, 5000); /* nobody came */
    ck_assert_int_eq(fx_run_state(&f, next), RUN_READY);
    fx_fini(&f);
}
END_TEST

START_TEST(new_boot_of_a_gateway_has_applied_nothing)
{
    const char *run = begin("g1", "g2");
    fx_report(&f, "g1", unit, epoch(), false);
    coord_instance(f.c, f.now, "g1", "gateway", &(struct uuid){{10}}, "1.0", 0, &f.o);
    fx_commit(&f);
    fx_report(&f, "g2", unit, epoch(), false);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_BINDING);
    fx_fini(&f);
}
END_TEST

START_TEST(gateway_that_is_ahead_gets_a_new_epoch_at_once)
{
    fx_init(&f, 0);
    unit = fx_unit(&f, "p1");
    fx_baked(&f, unit, "a", "a", "ba");
    uint64_t ahead = epoch() + 1000000000000;
    fx_report(&f, "g1", unit, ahead, false);
    ck_assert(fx_noted(&f, NOTE_BIND));
    ck_assert_uint_gt(epoch(), ahead);
    ck_assert_ptr_nonnull(fx_bound(&f, unit, "a"));
    fx_report(&f, "g1", 77, epoch() + 5,
              false); /* of a unit we do not have: only the number counts */
    ck_assert_uint_gt(coord_next_token(f.c, f.now), epoch() + 5);
    fx_fini(&f);
}
END_TEST

START_TEST(publish_is_told_when_the_gateways_caught_up)
{
    fx_init(&f, 0);
    unit = fx_unit(&f, "p1");
    fx_wait(&f, 1); /* nobody is there: at once */
    ck_assert(fx_noted(&f, NOTE_UNIT_REPORTED));
    fx_report(&f, "g1", unit, epoch(), false);
    fx_publish(&f, unit, 2, "reload", NULL, 0);
    ck_assert(!coord_unit_reported(f.c, f.now, unit, epoch()));
    fx_wait(&f, 1000);
    ck_assert(!fx_noted(&f, NOTE_UNIT_REPORTED));
    int64_t due = coord_next_due(f.c).v;
    ck_assert_int_gt(due, f.now.mono.v);
    fx_wait(&f, due - f.now.mono.v); /* given up: silent for too long */
    ck_assert(fx_noted(&f, NOTE_UNIT_REPORTED));
    for (int s = 0; s < 70; s++) {
        fx_wait(&f, 1000);
    }
    fx_report(&f, "g2", unit, epoch(), false);
    ck_assert_uint_eq(coord_live_gateways(f.c, f.now), 1);
    fx_fini(&f);
}
END_TEST

START_TEST(broken_binding_is_marked_once_and_not_carried_again)
{
    fx_init(&f, 0);
    unit = fx_unit(&f, "p1");
    fx_baked(&f, unit, "a", "a", "ba");
    const char *id = fx_bound(&f, unit, "a")->generation.id;
    struct core_target target = fx_bound(&f, unit, "a")->target;
    ck_assert_str_eq(coord_current_generation(f.c, &target)->id, id);
    coord_broken(f.c, f.now, unit, id, "table_missing", &f.o);
    fx_commit(&f);
    coord_broken(f.c, f.now, unit, id, "table_missing", &f.o);
    ck_assert_uint_eq(f.o.rows.n, 0);
    ck_assert_ptr_null(coord_current_generation(f.c, &target));
    target.physical = "\"s\".\"nowhere\"";
    ck_assert_ptr_null(coord_current_generation(f.c, &target));
    fx_fini(&f);
}
END_TEST

TCase *coord_gateway_tests(void)
{
    TCase *tc = tcase_create("gateways");
    tcase_add_test(tc, run_is_ready_when_every_live_gateway_has_applied_its_set);
    tcase_add_test(tc, silent_gateway_is_not_waited_for);
    tcase_add_test(tc, gateway_that_only_lags_is_waited_for_ten_seconds);
    tcase_add_test(tc, gateway_that_loads_is_waited_for_ten_minutes);
    tcase_add_test(tc, gateway_that_failed_to_apply_does_not_hold_the_run);
    tcase_add_test(tc, gateway_that_does_not_reach_the_root_has_applied_the_set_and_is_named);
    tcase_add_test(tc, stop_comes_too_late_while_binding);
    tcase_add_test(tc, planner_that_starts_anew_goes_on_waiting_for_gateways_it_has_not_heard_yet);
    tcase_add_test(tc, planner_that_takes_over_waits_for_the_gateways_of_the_first_one);
    tcase_add_test(tc, new_boot_of_a_gateway_has_applied_nothing);
    tcase_add_test(tc, gateway_that_is_ahead_gets_a_new_epoch_at_once);
    tcase_add_test(tc, publish_is_told_when_the_gateways_caught_up);
    tcase_add_test(tc, broken_binding_is_marked_once_and_not_carried_again);
    return tc;
}
