/* Units and their sets: loads, reloads, tables taken over by another build. */
#include "tests/unit/coord_fixture.h"
#include "tests/unit/coord_suites.h"

static struct fx f;

START_TEST(new_unit_has_an_empty_set_so_that_gateways_learn_of_it)
{
    fx_init(&f, _i);
    uint64_t unit = fx_unit(&f, "p1");
    const struct core_binding_set *set = coord_unit_set(f.c, unit);
    ck_assert_uint_eq(set->n, 0);
    ck_assert_uint_eq(set->load, 1);
    ck_assert_str_eq(set->cause, "publish");
    ck_assert(fx_noted(&f, NOTE_BIND));
    ck_assert_ptr_null(coord_unit_set(f.c, 99));
    struct coord_unit_row row;
    ck_assert(coord_unit_get(f.c, unit, &row) && !coord_unit_get(f.c, 99, &row));
    ck_assert_str_eq(row.name, "p1");
    fx_fini(&f);
}
END_TEST

START_TEST(publish_keeps_the_bindings_of_builds_that_are_still_planned)
{
    fx_init(&f, _i);
    uint64_t unit = fx_unit(&f, "p1");
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
    uint64_t epoch = memory_unit(f.store, unit)->epoch;

    const char *keep[] = {"bx", "bb"};
    fx_publish(&f, unit, 2, "publish", keep, 2);
    ck_assert_uint_gt(memory_unit(f.store, unit)->epoch, epoch);
    ck_assert_ptr_null(fx_bound(&f, unit, "a"));
    ck_assert_str_eq(fx_unbaked(&f, unit, "a"), "unbound_by_publish");
    ck_assert_ptr_nonnull(fx_bound(&f, unit, "b"));
    ck_assert_uint_eq(memory_set(f.store, unit)->load, 2);
    fx_fini(&f);
}
END_TEST

START_TEST(reload_unbinds_a_run_reuses_and_a_restart_rebinds)
{
    fx_init(&f, 0);
    uint64_t unit = fx_unit(&f, "p1");
    fx_baked(&f, unit, "a", "a", "ba");
    fx_publish(&f, unit, 2, "reload", NULL, 0);
    ck_assert_ptr_null(fx_bound(&f, unit, "a"));
    ck_assert_str_eq(fx_unbaked(&f, unit, "a"), "unbound_by_reload");
    ck_assert(memory_unit(f.store, unit)->reload_emptied);

    fx_reload(&f);
    ck_assert_ptr_nonnull(fx_bound(&f, unit, "a"));
    ck_assert_str_eq(memory_set(f.store, unit)->cause, "restart");
    ck_assert(!memory_unit(f.store, unit)->reload_emptied);
    ck_assert_uint_eq(memory_set(f.store, unit)->load, 2);

    fx_wait(&f, 5000); /* no gateway comes */
    fx_publish(&f, unit, 3, "reload", NULL, 0);
    const char *run = fx_create(&f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    p.p.load = 3;
    fx_plan_carry(&f, &p, "a", "a", "ba");
    fx_planned(&f, run, &p);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    ck_assert_ptr_nonnull(fx_bound(&f, unit, "a"));
    ck_assert(!memory_unit(f.store, unit)->reload_emptied);
    fx_fini(&f);
}
END_TEST

START_TEST(what_a_patch_or_a_publish_unbinds_stays_unbound_after_a_restart)
{
    fx_init(&f, 0);
    uint64_t unit = fx_unit(&f, "p1");
    fx_baked(&f, unit, "a", "a", "ba");
    ck_assert_int_eq(coord_unbind(f.c, f.now, unit, "patch", false, &f.o), 0);
    fx_commit(&f);
    ck_assert_str_eq(fx_unbaked(&f, unit, "a"), "unbound_by_patch");
    fx_reload(&f);
    ck_assert_ptr_null(fx_bound(&f, unit, "a"));
    ck_assert_int_eq(coord_unbind(f.c, f.now, 99, "patch", false, &f.o), ERR_NOT_FOUND);

    fx_wait(&f, 5000); /* no gateway comes */
    unit = fx_unit(&f, "p2");
    fx_baked(&f, unit, "b", "b", "bb");
    ck_assert_int_eq(coord_unbind(f.c, f.now, unit, "reload", true, &f.o), 0);
    fx_commit(&f);
    ck_assert(memory_unit(f.store, unit)->reload_emptied);
    fx_publish(&f, unit, 2, "publish", NULL, 0);
    fx_reload(&f);
    ck_assert_ptr_null(fx_bound(&f, unit, "b"));
    fx_fini(&f);
}
END_TEST

START_TEST(run_pinned_to_an_older_load_binds_only_what_the_newer_one_plans)
{
    fx_init(&f, _i);
    uint64_t unit = fx_unit(&f, "p1");
    const char *run = fx_create(&f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_add(&p, PLAN_BUILD, "a", "a", "ba");
    fx_plan_add(&p, PLAN_BUILD, "b", "b", "bb");
    fx_planned(&f, run, &p);
    struct coord_lease l[2];
    ck_assert_uint_eq(fx_pull(&f, "b1", 2, l), 2);
    const char *keep[] = {"bb"};
    fx_publish(&f, unit, 2, "publish", keep, 1);
    fx_publish(&f, unit, 3, "publish", keep, 1); /* nothing new to write into the run */
    fx_build(&f, &l[0]);
    fx_build(&f, &l[1]);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    ck_assert_ptr_null(fx_bound(&f, unit, "a"));
    ck_assert_str_eq(fx_bound(&f, unit, "b")->generation.id, l[1].generation);
    ck_assert_uint_eq(memory_set(f.store, unit)->load, 3);
    fx_fini(&f);
}
END_TEST

START_TEST(run_in_progress_binds_all_it_builds_after_a_reload)
{
    fx_init(&f, _i);
    uint64_t unit = fx_unit(&f, "p1");
    const char *run = fx_create(&f, unit);
    fx_plan_one(&f, run, "ba");
    struct coord_lease l = fx_pull_one(&f, "b1");
    fx_publish(&f, unit, 2, "reload", NULL, 0);
    fx_build(&f, &l);
    ck_assert_ptr_nonnull(fx_bound(&f, unit, "a"));
    fx_fini(&f);
}
END_TEST

START_TEST(another_build_at_a_table_unbinds_it_everywhere_in_the_same_rows)
{
    fx_init(&f, _i);
    uint64_t one = fx_unit(&f, "p1"), two = fx_unit(&f, "p2");
    fx_baked(&f, one, "a", "a", "ba");
    const char *old = fx_bound(&f, one, "a")->generation.id;
    fx_baked(&f, two, "z", "a", "bz"); /* the same table for another build */

    ck_assert_ptr_null(fx_bound(&f, one, "a"));
    ck_assert_str_eq(fx_unbaked(&f, one, "a"), "table_taken_over");
    ck_assert_int_eq(fx_generation_state(&f, old), GENERATION_OVERWRITTEN);
    ck_assert_ptr_nonnull(fx_bound(&f, two, "z"));
    /* the first unit builds its own again, and takes the table back */
    fx_baked(&f, one, "a", "a", "ba");
    ck_assert_ptr_null(fx_bound(&f, two, "z"));
    ck_assert_ptr_null(fx_unbaked(&f, one, "a"));
    fx_fini(&f);
}
END_TEST

START_TEST(table_taken_over_while_a_run_goes_on_is_not_bound_by_it)
{
    fx_init(&f, _i);
    uint64_t one = fx_unit(&f, "p1"), two = fx_unit(&f, "p2");
    const char *run = fx_create(&f, one);
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_add(&p, PLAN_BUILD, "a", "a", "ba");
    fx_plan_add(&p, PLAN_BUILD, "b", "b", "bb");
    fx_plan_add(&p, PLAN_BUILD, "c", "c", "bc");
    fx_planned(&f, run, &p);
    struct coord_lease l[3];
    ck_assert_uint_eq(fx_pull(&f, "b1", 3, l), 3);
    fx_build(&f, &l[0]);
    fx_build(&f, &l[2]);
    fx_baked(&f, two, "z", "a", "bz");
    coord_broken(f.c, f.now, one, l[2].generation, "table_missing", &f.o);
    fx_commit(&f);
    fx_build(&f, &l[1]);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    ck_assert_str_eq(fx_unbaked(&f, one, "a"), "table_taken_over");
    ck_assert_str_eq(fx_unbaked(&f, one, "c"), "table_missing");
    ck_assert_ptr_nonnull(fx_bound(&f, one, "b"));
    ck_assert_ptr_nonnull(fx_bound(&f, two, "z"));
    fx_fini(&f);
}
END_TEST

START_TEST(job_of_another_build_at_the_table_waits_and_then_builds)
{
    fx_init(&f, _i);
    uint64_t one = fx_unit(&f, "p1"), two = fx_unit(&f, "p2");
    const char *names[] = {"a", "z"}, *builds[] = {"ba", "bz"};
    const uint64_t units[] = {one, two};
    const char *runs[2];
    for (int i = 0; i < 2; i++) {
        runs[i] = fx_create(&f, units[i]);
        struct fx_plan p;
        fx_plan_init(&p);
        fx_plan_add(&p, PLAN_BUILD, names[i], "t", builds[i]);
        fx_planned(&f, runs[i], &p);
    }
    struct coord_lease l[2];
    ck_assert_uint_eq(fx_pull(&f, "b1", 2, l), 1);
    fx_build(&f, &l[0]);
    ck_assert_uint_eq(fx_pull(&f, "b1", 2, l), 1);
    fx_build(&f, &l[0]);
    ck_assert_int_eq(fx_run_state(&f, runs[1]), RUN_READY);
    ck_assert_str_eq(fx_unbaked(&f, one, "a"), "table_taken_over");
    fx_fini(&f);
}
END_TEST

START_TEST(unit_is_deleted_only_without_an_active_run)
{
    fx_init(&f, _i);
    uint64_t unit = fx_unit(&f, "p1");
    const char *baked = fx_baked(&f, unit, "a", "a", "ba");
    const char *run = fx_create(&f, unit);
    struct err e = {0};
    ck_assert_int_eq(coord_unit_delete(f.c, f.now, unit, &f.o, &e), ERR_RUN_ACTIVE);
    ck_assert_ptr_nonnull(strstr(err_text(&e), run));
    struct fx_plan p;
    fx_plan_init(&p);
    fx_planned(&f, run, &p);
    ck_assert_int_eq(coord_unit_delete(f.c, f.now, unit, &f.o, &e), 0);
    fx_commit(&f);
    ck_assert_ptr_null(memory_unit(f.store, unit));
    ck_assert_ptr_null(memory_run(f.store, baked));
    ck_assert_uint_eq(memory_set(f.store, unit)->n, 0);
    ck_assert_str_eq(memory_set(f.store, unit)->cause, "delete");
    ck_assert_int_eq(coord_unit_delete(f.c, f.now, unit, &f.o, &e), ERR_NOT_FOUND);
    /* its table stands, and another unit may carry it */
    uint64_t two = fx_unit(&f, "p2");
    run = fx_create(&f, two);
    fx_plan_init(&p);
    fx_plan_carry(&f, &p, "a", "a", "ba");
    fx_planned(&f, run, &p);
    ck_assert_ptr_nonnull(fx_bound(&f, two, "a"));
    fx_fini(&f);
}
END_TEST

START_TEST(tokens_and_epochs_only_grow_whatever_the_clock_says)
{
    fx_init(&f, 0);
    uint64_t before = coord_next_token(f.c, f.now);
    ck_assert_uint_eq(before, (uint64_t)f.now.unix_us);
    f.now.unix_us -= 100000000;
    ck_assert_uint_eq(coord_next_token(f.c, f.now), before + 1);
    coord_raise(f.c, before + 100);
    coord_raise(f.c, before);
    ck_assert_uint_eq(coord_next_token(f.c, f.now), before + 101);
    coord_instance(f.c, f.now, "b1", "builder", &(struct uuid){{1}}, "1.0", before + 500, &f.o);
    ck_assert_uint_eq(coord_next_token(f.c, f.now), before + 501);
    f.now.unix_us = -5;
    ck_assert_uint_eq(coord_next_token(f.c, f.now), before + 502);
    fx_fini(&f);
}
END_TEST

TCase *coord_unit_tests(void)
{
    TCase *tc = tcase_create("units");
    tcase_add_loop_test(tc, new_unit_has_an_empty_set_so_that_gateways_learn_of_it, 0, 2);
    tcase_add_loop_test(tc, publish_keeps_the_bindings_of_builds_that_are_still_planned, 0, 2);
    tcase_add_test(tc, reload_unbinds_a_run_reuses_and_a_restart_rebinds);
    tcase_add_test(tc, what_a_patch_or_a_publish_unbinds_stays_unbound_after_a_restart);
    tcase_add_loop_test(tc, run_pinned_to_an_older_load_binds_only_what_the_newer_one_plans, 0, 2);
    tcase_add_loop_test(tc, run_in_progress_binds_all_it_builds_after_a_reload, 0, 2);
    tcase_add_loop_test(tc, another_build_at_a_table_unbinds_it_everywhere_in_the_same_rows, 0, 2);
    tcase_add_loop_test(tc, table_taken_over_while_a_run_goes_on_is_not_bound_by_it, 0, 2);
    tcase_add_loop_test(tc, job_of_another_build_at_the_table_waits_and_then_builds, 0, 2);
    tcase_add_loop_test(tc, unit_is_deleted_only_without_an_active_run, 0, 2);
    tcase_add_test(tc, tokens_and_epochs_only_grow_whatever_the_clock_says);
    return tc;
}
