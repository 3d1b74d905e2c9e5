/* Runs before their jobs: asked for, planned, refused, stopped early. */
#include "tests/unit/coord_fixture.h"
#include "tests/unit/coord_suites.h"

static struct fx f;

static void begin(int reloads)
{
    fx_init(&f, reloads);
}

static void end(void)
{
    fx_fini(&f);
}

static int64_t count(const char *run, const char *key)
{
    json_t *v = fx_metadata(&f, run);
    int64_t n = json_int(v, key, -1);
    json_decref(v);
    return n;
}

START_TEST(second_run_of_a_unit_is_refused_with_the_first_ones_id)
{
    begin(0);
    uint64_t unit = fx_unit(&f, "p1");
    uint8_t request[16] = {1};
    struct coord_run_new n = {.unit = unit, .trigger = "ON_DEMAND", .request_id = request};
    const char *run = fx_create_with(&f, &n);
    char id[24];
    struct err e = {0};
    ck_assert_int_eq(coord_run_create(f.c, f.now, &n, id, &f.o, &e), 0); /* the same request */
    ck_assert_str_eq(id, run);
    n.request_id = NULL;
    ck_assert_int_eq(coord_run_create(f.c, f.now, &n, id, &f.o, &e), ERR_RUN_ACTIVE);
    ck_assert_ptr_nonnull(strstr(err_text(&e), "already has an active materialization"));
    ck_assert_ptr_nonnull(strstr(err_text(&e), run));
    n.unit = 99;
    ck_assert_int_eq(coord_run_create(f.c, f.now, &n, id, &f.o, &e), ERR_NOT_FOUND);
    ck_assert_uint_eq(f.o.rows.n, 0);
    end();
}
END_TEST

START_TEST(run_ids_sort_by_time_even_when_the_clock_goes_back)
{
    begin(0);
    char before[24] = "";
    for (int i = 0; i < 5; i++) {
        char name[8] = {'p', (char)('1' + i), '\0'};
        uint64_t unit = fx_unit(&f, name);
        const char *run = fx_create(&f, unit);
        ck_assert_int_gt(strcmp(run, before), 0);
        memcpy(before, run, 24);
        f.now.unix_us -= i * 5000000;
    }
    end();
}
END_TEST

START_TEST(refusals_fail_a_run_only_when_all_authored_or_a_named_one_is_refused)
{
    begin(_i);
    uint64_t unit = fx_unit(&f, "p1");
    for (int named = 0; named < 2; named++) {
        const char *run = fx_create(&f, unit);
        struct fx_plan p;
        fx_plan_init(&p);
        p.refusals[0] = (struct plan_refusal){"r@m", "r", "m", "colocated", "x", "bind it", true};
        p.refusals[1] = (struct plan_refusal){"q@m", "q", "m", "colocated", "x", "name it", true};
        p.p.n_refusals = 2;
        p.p.n_authored = 2;
        if (named) {
            fx_plan_add(&p, PLAN_BUILD, "a", "a", "ba");
            p.p.named_refused = true;
        }
        fx_planned(&f, run, &p);
        ck_assert_int_eq(fx_run_state(&f, run), RUN_FAILED);
        ck_assert_str_eq(memory_run(f.store, run)->error, "r: bind it; q: name it");
        ck_assert_int_eq(count(run, "sourcesRefused"), 2);
    }
    /* a refused rollup, and nothing else: ready */
    const char *run = fx_create(&f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    p.refusals[0] = (struct plan_refusal){"r@m", "r", "m", "preaggregate", "x", "no", false};
    p.p.n_refusals = 1;
    fx_planned(&f, run, &p);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    end();
}
END_TEST

START_TEST(dropped_shapes_and_broken_plans_fail_the_run)
{
    begin(_i);
    uint64_t unit = fx_unit(&f, "p1");
    const char *run = fx_create(&f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    p.p.fail = "source 'x' was not recognized as a materializable source";
    fx_planned(&f, run, &p);
    ck_assert_str_eq(memory_run(f.store, run)->error, p.p.fail);

    run = fx_create(&f, unit);
    ck_assert_int_eq(coord_run_plan_failed(f.c, f.now, run, "the warehouse is away", &f.o), 0);
    fx_commit(&f);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_FAILED);
    ck_assert_str_eq(memory_run(f.store, run)->error, "the warehouse is away");
    ck_assert_int_eq(coord_run_plan_failed(f.c, f.now, "1-x", "", &f.o), ERR_NOT_FOUND);
    end();
}
END_TEST

START_TEST(plan_that_is_out_of_date_sends_the_run_back_to_planning)
{
    begin(0);
    uint64_t unit = fx_unit(&f, "p1");
    fx_baked(&f, unit, "a", "a", "ba");
    const char *run = fx_create(&f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_carry(&f, &p, "a", "a", "ba");
    p.p.load = 2;
    ck_assert_int_eq(coord_run_planned(f.c, f.now, run, &p.p, &f.o), ERR_STORE_MOVED);
    ck_assert_str_eq(coord_run_to_plan(f.c), run);
    ck_assert_int_eq(coord_run_planning(f.c, f.now, run, &f.o), 0);
    ck_assert_int_eq(coord_run_planning(f.c, f.now, run, &f.o), ERR_RUN_STATE);
    ck_assert_int_eq(coord_run_planning(f.c, f.now, "1-x", &f.o), ERR_NOT_FOUND);

    p.p.load = 1;
    coord_broken(f.c, f.now, unit, p.t[0].generation.id, "table_missing", &f.o);
    fx_commit(&f);
    ck_assert_int_eq(coord_run_planned(f.c, f.now, run, &p.p, &f.o), ERR_STORE_MOVED);
    ck_assert_uint_eq(f.o.rows.n, 0);

    ck_assert_int_eq(coord_run_planning(f.c, f.now, run, &f.o), 0);
    fx_plan_init(&p);
    fx_planned(&f, run, &p);
    ck_assert_int_eq(coord_run_planned(f.c, f.now, run, &p.p, &f.o), ERR_RUN_STATE);
    end();
}
END_TEST

START_TEST(plan_that_is_broken_in_itself_fails_the_run)
{
    begin(_i);
    uint64_t unit = fx_unit(&f, "p1");
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_add(&p, PLAN_BUILD, "a", "a", "ba");
    fx_plan_add(&p, PLAN_BUILD, "b", "a", "bb"); /* one place */
    const char *run = fx_create(&f, unit);
    fx_planned(&f, run, &p);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_FAILED);
    fx_plan_init(&p);
    fx_plan_add(&p, PLAN_BUILD, "a", "a", "ba");
    fx_plan_parent(&p, 0, 0);
    run = fx_create(&f, unit);
    fx_planned(&f, run, &p);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_FAILED);
    end();
}
END_TEST

START_TEST(runs_that_wait_for_planning_say_what_was_asked)
{
    begin(0);
    uint64_t one = fx_unit(&f, "p1"), two = fx_unit(&f, "p2");
    const char *names[] = {"daily"};
    char first[24], second[24];
    struct err e = {0};
    struct coord_run_new n = {.unit = one, .trigger = "ON_DEMAND"}, asked;
    ck_assert_int_eq(coord_run_create(f.c, f.now, &n, first, &f.o, &e), 0);
    n = (struct coord_run_new){.unit = two,
                               .event = 4,
                               .trigger = "PUBLISH",
                               .force_refresh = true,
                               .has_names = true,
                               .names = names,
                               .n_names = 1};
    ck_assert_int_eq(coord_run_create(f.c, f.now, &n, second, &f.o, &e), 0);
    fx_commit(&f);
    ck_assert_str_eq(coord_run_next_to_plan(f.c, NULL), first);
    ck_assert_str_eq(coord_run_next_to_plan(f.c, first), second);
    ck_assert_ptr_null(coord_run_next_to_plan(f.c, second));
    ck_assert(coord_run_request(f.c, second, &asked));
    ck_assert(asked.force_refresh && asked.event == 4 && asked.n_names == 1);
    ck_assert_str_eq(asked.names[0], "daily");
    ck_assert_uint_eq(coord_run_unit(f.c, second), two);
    ck_assert_uint_eq(coord_run_unit(f.c, "1-x"), 0);
    ck_assert(!coord_run_request(f.c, "1-x", &asked));
    end();
}
END_TEST

START_TEST(stop_before_and_while_planning_cancels)
{
    begin(_i);
    uint64_t unit = fx_unit(&f, "p1");
    char id[24];
    struct err e = {0};
    struct coord_run_new n = {.unit = unit, .trigger = "ON_DEMAND"};
    ck_assert_int_eq(coord_run_create(f.c, f.now, &n, id, &f.o, &e), 0);
    fx_commit(&f);
    ck_assert_int_eq(coord_run_stop(f.c, f.now, id, &f.o, &e), 0);
    fx_commit(&f);
    ck_assert_int_eq(fx_run_state(&f, id), RUN_CANCELLED);
    ck_assert_str_eq(memory_run(f.store, id)->error, "Cancelled");

    const char *run = fx_create(&f, unit);
    ck_assert_int_eq(coord_run_stop(f.c, f.now, run, &f.o, &e), 0);
    fx_commit(&f);
    if (_i) { /* the planner that started since has no flow that would answer: it is over at once */
        ck_assert_int_eq(fx_run_state(&f, run), RUN_CANCELLED);
    } else {
        ck_assert_int_eq(fx_run_state(&f, run), RUN_PLANNING);
        struct fx_plan p;
        fx_plan_init(&p);
        fx_planned(&f, run, &p);
        ck_assert_int_eq(fx_run_state(&f, run), RUN_CANCELLED);
        ck_assert_int_eq(coord_run_stop(f.c, f.now, run, &f.o, &e), ERR_RUN_STATE);
        run = fx_create(&f, unit);
        ck_assert_int_eq(coord_run_stop(f.c, f.now, run, &f.o, &e), 0);
        ck_assert_int_eq(coord_run_plan_failed(f.c, f.now, run, "x", &f.o), 0);
        fx_commit(&f);
        ck_assert_int_eq(fx_run_state(&f, run), RUN_CANCELLED);
    }
    ck_assert_int_eq(coord_run_stop(f.c, f.now, "1-x", &f.o, &e), ERR_NOT_FOUND);
    end();
}
END_TEST

TCase *coord_plan_tests(void)
{
    TCase *tc = tcase_create("plans");
    tcase_add_test(tc, second_run_of_a_unit_is_refused_with_the_first_ones_id);
    tcase_add_test(tc, run_ids_sort_by_time_even_when_the_clock_goes_back);
    tcase_add_loop_test(tc, refusals_fail_a_run_only_when_all_authored_or_a_named_one_is_refused, 0,
                        2);
    tcase_add_loop_test(tc, dropped_shapes_and_broken_plans_fail_the_run, 0, 2);
    tcase_add_test(tc, plan_that_is_out_of_date_sends_the_run_back_to_planning);
    tcase_add_loop_test(tc, plan_that_is_broken_in_itself_fails_the_run, 0, 2);
    tcase_add_test(tc, runs_that_wait_for_planning_say_what_was_asked);
    tcase_add_loop_test(tc, stop_before_and_while_planning_cancels, 0, 2);
    return tc;
}
