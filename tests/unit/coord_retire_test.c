/* By-binding results out of force: who keeps them, when they are dropped (protocol.md 6). */
#include "tests/unit/coord_fixture.h"
#include "tests/unit/coord_suites.h"

static struct fx f;
static uint64_t unit;
static uint64_t reading; /* the oldest epoch that gateway g1 reads; 0: there is no gateway */

static uint64_t epoch(void)
{
    struct coord_unit_row row;
    ck_assert(coord_unit_get(f.c, unit, &row));
    return row.epoch;
}

static void report(uint64_t oldest)
{
    reading = oldest;
    struct coord_gateway_unit u = {unit, epoch(), 0, oldest, false};
    struct uuid boot = {{9}};
    coord_gateway_report(f.c, f.now, "g1", &boot, &u, 1, &f.o);
    fx_commit(&f);
}

/* A run that bakes `build`; the new result's id. */
static const char *bake(const char *build, bool force)
{
    const char *run = fx_create_with(
        &f, &(struct coord_run_new){.unit = unit, .trigger = "ON_DEMAND", .force_refresh = force});
    struct fx_plan p;
    fx_plan_init(&p);
    struct coord_unit_row row;
    ck_assert(coord_unit_get(f.c, unit, &row));
    p.p.load = row.load;
    fx_plan_add(&p, PLAN_BUILD, "a", "a", build)->target.in_place = false;
    fx_planned(&f, run, &p);
    struct coord_lease l = fx_pull_one(&f, "b1");
    ck_assert_int_eq(l.kind, KIND_BUILD);
    ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_OK, 0, NULL), 0);
    if (reading) {
        report(reading);
    }
    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    const char *id = fx_bound(&f, unit, "a")->generation.id;
    return arena_strdup(&f.mem, id);
}

static void begin(int reloads)
{
    fx_init(&f, reloads);
    reading = 0;
    unit = fx_unit(&f, "p1");
}

static void end(void)
{
    fx_fini(&f);
}

/* The one drop job there is; NULL: none. */
static const char *dropped(void)
{
    struct coord_lease l[2];
    size_t n = fx_pull(&f, "b1", 2, l);
    ck_assert_uint_le(n, 1);
    if (n == 0) {
        return NULL;
    }
    ck_assert_int_eq(l[0].kind, KIND_DROP);
    ck_assert_int_eq(fx_finish(&f, l[0].token, OUTCOME_OK, 0, NULL), 0);
    return l[0].generation;
}

START_TEST(result_is_dropped_a_minute_after_the_set_behind_the_next_one)
{
    begin(0);
    const char *first = bake("ba", false);
    const char *second = bake("ba", true);
    fx_wait(&f, 120000);
    ck_assert_ptr_null(dropped()); /* the predecessor of the set in force */
    (void)bake("ba", true);
    ck_assert_str_eq(dropped(), first);
    ck_assert_ptr_null(dropped());
    ck_assert_int_eq(fx_generation_state(&f, second), GENERATION_RETIRED);
    end();
}
END_TEST

START_TEST(planner_that_has_just_started_waits_for_a_minute_and_another_set)
{
    begin(0);
    const char *first = bake("ba", false);
    (void)bake("ba", true);
    (void)bake("ba", true);
    fx_reload(&f);
    fx_wait(&f, 60000);
    ck_assert_ptr_null(dropped());
    (void)bake("ba", true);
    ck_assert_str_eq(dropped(), first);
    end();
}
END_TEST

START_TEST(result_stays_for_a_minute)
{
    begin(0);
    const char *first = bake("ba", false);
    (void)bake("ba", true);
    (void)bake("ba", true);
    fx_wait(&f, 59000);
    ck_assert_ptr_null(dropped());
    ck_assert_int_le(coord_next_due(f.c).v, f.now.mono.v + 1000);
    fx_wait(&f, 1000);
    ck_assert_str_eq(dropped(), first);
    end();
}
END_TEST

START_TEST(result_stays_while_a_gateway_reads_it)
{
    begin(0);
    const char *first = bake("ba", false);
    uint64_t its = epoch();
    report(its);
    (void)bake("ba", true);
    (void)bake("ba", true);
    fx_wait(&f, 59000);
    report(its);
    fx_wait(&f, 30000);
    ck_assert_ptr_null(dropped());
    report(epoch());
    ck_assert_str_eq(dropped(), first);
    end();
}
END_TEST

START_TEST(gateway_that_was_not_heard_for_a_minute_keeps_nothing)
{
    begin(0);
    const char *first = bake("ba", false);
    report(epoch());
    (void)bake("ba", true);
    (void)bake("ba", true);
    reading = 0;
    fx_wait(&f, 60000);
    ck_assert_str_eq(dropped(), first);
    end();
}
END_TEST

START_TEST(result_that_a_restart_would_rebind_stays_over_reloads)
{
    begin(0);
    const char *first = bake("ba", false);
    for (uint64_t load = 2; load < 5; load++) {
        fx_publish(&f, unit, load, "reload", NULL, 0);
        fx_wait(&f, 61000);
    }
    ck_assert_ptr_null(fx_bound(&f, unit, "a"));
    ck_assert_ptr_null(dropped());
    ck_assert_int_eq(fx_generation_state(&f, first), GENERATION_RETIRED);
    end();
}
END_TEST

START_TEST(result_that_a_run_in_progress_carries_stays)
{
    begin(0);
    const char *first = bake("ba", false);
    for (uint64_t load = 2; load < 4; load++) {
        fx_publish(&f, unit, load, "reload", NULL, 0);
    }
    const char *run = fx_create(&f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    p.p.load = 3;
    fx_plan_add(&p, PLAN_BUILD, "b", "b", "bb")->target.in_place = false;
    struct plan_target *a = fx_plan_add(&p, PLAN_CARRY, "a", "a", "ba");
    a->target.in_place = false;
    const struct core_generation *g = coord_current_generation(f.c, &a->target);
    ck_assert_str_eq(g->id, first);
    a->generation = *g;
    a->generation.id = arena_strdup(&f.mem, g->id);
    a->generation.columns = (struct core_columns){0};
    fx_planned(&f, run, &p);
    struct coord_lease l = fx_pull_one(&f, "b1");
    ck_assert_int_eq(l.kind, KIND_BUILD);
    fx_wait(&f, 9000);
    ck_assert_int_eq(fx_finish(&f, l.token, OUTCOME_OK, 0, NULL), 0);
    ck_assert_int_eq(fx_generation_state(&f, first), GENERATION_BOUND);
    end();
}
END_TEST

START_TEST(results_of_a_deleted_package_are_dropped)
{
    begin(_i);
    const char *first = bake("ba", false);
    struct err e = {0};
    ck_assert_int_eq(coord_unit_delete(f.c, f.now, unit, &f.o, &e), 0);
    fx_commit(&f);
    fx_wait(&f, 60000);
    ck_assert_str_eq(dropped(), first);
    end();
}
END_TEST

TCase *coord_retire_tests(void)
{
    TCase *tc = tcase_create("retire");
    tcase_add_test(tc, result_is_dropped_a_minute_after_the_set_behind_the_next_one);
    tcase_add_test(tc, planner_that_has_just_started_waits_for_a_minute_and_another_set);
    tcase_add_test(tc, result_stays_for_a_minute);
    tcase_add_test(tc, result_stays_while_a_gateway_reads_it);
    tcase_add_test(tc, gateway_that_was_not_heard_for_a_minute_keeps_nothing);
    tcase_add_test(tc, result_that_a_restart_would_rebind_stays_over_reloads);
    tcase_add_test(tc, result_that_a_run_in_progress_carries_stays);
    tcase_add_loop_test(tc, results_of_a_deleted_package_are_dropped, 0, 2);
    return tc;
}
