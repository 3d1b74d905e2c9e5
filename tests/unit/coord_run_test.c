/* Runs: asked for, planned, built, ended; what they write about themselves. */
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

START_TEST(run_that_builds_two_sources_ends_ready_and_bound)
{
    begin(_i);
    uint64_t unit = fx_unit(&f, "p1");
    const char *run = fx_create(&f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_add(&p, PLAN_BUILD, "daily", "d", "b1");
    fx_plan_add(&p, PLAN_BUILD, "monthly", "m", "b2");
    fx_plan_parent(&p, 1, 0);
    p.t[1].upstream_reuse = "reused";
    p.t[1].window_s = 60;
    p.t[1].fallback = 1;
    fx_planned(&f, run, &p);

    struct coord_lease l[2];
    ck_assert_uint_eq(fx_pull(&f, "b1", 2, l), 1); /* the child waits */
    ck_assert_str_eq(l[0].target->table, "d");
    ck_assert_ptr_nonnull(strstr(l[0].spec, "\"sql\":\"SELECT 1\""));
    fx_build(&f, &l[0]);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_BUILDING);
    ck_assert_ptr_null(fx_bound(&f, unit, "daily"));
    l[1] = fx_pull_one(&f, "b2");
    fx_build(&f, &l[1]);

    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    ck_assert_str_eq(fx_bound(&f, unit, "daily")->generation.id, l[0].generation);
    const struct core_binding *b = fx_bound(&f, unit, "monthly");
    ck_assert_uint_eq(b->window_s, 60);
    ck_assert_int_eq(b->generation.rows, 7);
    ck_assert_uint_eq(b->generation.columns.n, 1);
    ck_assert_int_eq(fx_generation_state(&f, l[1].generation), GENERATION_BOUND);
    ck_assert_str_eq(memory_entry(f.store, run, "b2")->outcome, "built");
    end();
}
END_TEST

START_TEST(manifest_and_metadata_say_what_was_built)
{
    begin(_i);
    uint64_t unit = fx_unit(&f, "p1");
    const char *names[] = {"daily"};
    const char *run = fx_create_with(&f, &(struct coord_run_new){.unit = unit,
                                                                 .trigger = "SCHEDULER",
                                                                 .force_refresh = true,
                                                                 .reseed = true,
                                                                 .has_names = true,
                                                                 .names = names,
                                                                 .n_names = 1});
    json_t *first = fx_metadata(&f, run);
    ck_assert_str_eq(json_str(first, "mode", ""), "auto");
    ck_assert_ptr_null(json_object_get(first, "sourcesBuilt"));
    json_decref(first);
    struct fx_plan p;
    fx_plan_init(&p);
    struct plan_target *x = fx_plan_add(&p, PLAN_BUILD, "daily", "d", "b1");
    p.ids[0][1] = "daily_ext@m.malloy";
    p.names[0][1] = "daily_ext";
    p.models[0][1] = "m.malloy";
    x->n_sources = 2;
    x->window_s = 3600;
    x->upstream_reuse = "recomputed";
    x->upstream_recompute_reason = "reads a live source";
    p.refusals[0] = (struct plan_refusal){
        "r@m", "r", "m.malloy", "colocated", "free_parameter", "bind it", false};
    p.p.n_refusals = 1;
    fx_planned(&f, run, &p);
    struct coord_lease l = fx_pull_one(&f, "b1");
    fx_build(&f, &l);

    json_t *m = fx_manifest(&f, run);
    ck_assert_str_eq(json_str(m, "builtAt", ""), "2025-12-17T22:59:05.684Z");
    ck_assert(!json_flag(m, "strict", true));
    ck_assert_ptr_null(json_object_get(m, "failures"));
    const json_t *e = json_object_get(json_object_get(m, "entries"), "b1");
    ck_assert_str_eq(json_str(e, "sourceName", ""), "daily");
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(e, "sharedBy"), 0)),
                     "daily_ext");
    ck_assert_int_eq(json_int(e, "rowCount", -1), 7);
    ck_assert_int_eq(json_int(e, "buildDurationMs", -1), 12);
    ck_assert_str_eq(json_str(e, "materializedTableId", ""), l.generation);
    ck_assert_str_eq(json_str(e, "physicalTableName", ""), "\"s\".\"d\"");
    ck_assert_str_eq(json_str(e, "dataAsOf", ""), "2025-12-17T22:59:05.000Z");
    ck_assert_str_eq(json_str(e, "freshnessFallback", ""), "live");
    ck_assert_str_eq(json_str(e, "upstreamReuse", ""), "recomputed");
    ck_assert_str_eq(json_str(e, "upstreamRecomputeReason", ""), "reads a live source");
    json_decref(m);

    json_t *v = fx_metadata(&f, run);
    ck_assert(json_flag(v, "forceRefresh", false) && json_flag(v, "reseed", false));
    ck_assert_str_eq(json_str(v, "trigger", ""), "SCHEDULER");
    ck_assert_uint_eq(json_array_size(json_object_get(v, "sourceNames")), 1);
    ck_assert_int_eq(json_int(v, "sourcesBuilt", -1), 1);
    ck_assert_int_eq(json_int(v, "sourcesRefused", -1), 1);
    const json_t *refused = json_object_get(json_object_get(v, "refusedSources"), "r@m");
    ck_assert_str_eq(json_str(refused, "reason", ""), "free_parameter");
    ck_assert_int_ge(json_int(v, "durationMs", -1), 0);
    ck_assert_ptr_null(json_object_get(v, "unbound"));
    json_decref(v);
    ck_assert_str_eq(fx_bound(&f, unit, "daily_ext")->shared_by[0], "daily");
    ck_assert_str_eq(fx_unbaked(&f, unit, "r"), "refused");
    end();
}
END_TEST

START_TEST(unchanged_run_carries_and_makes_no_new_set)
{
    begin(_i);
    uint64_t unit = fx_unit(&f, "p1");
    fx_baked(&f, unit, "daily", "d", "b1");
    uint64_t epoch = memory_unit(f.store, unit)->epoch;
    const char *run = fx_create(&f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_carry(&f, &p, "daily", "d", "b1");
    fx_planned(&f, run, &p);

    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    ck_assert_uint_eq(memory_unit(f.store, unit)->epoch, epoch);
    ck_assert_int_eq(count(run, "sourcesReused"), 1);
    ck_assert_int_eq(count(run, "sourcesBuilt"), 0);
    ck_assert_str_eq(memory_entry(f.store, run, "b1")->outcome, "carried");
    end();
}
END_TEST

START_TEST(run_without_sources_is_ready_with_no_entries)
{
    begin(_i);
    uint64_t unit = fx_unit(&f, "p1");
    const char *run = fx_create(&f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    fx_planned(&f, run, &p);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    json_t *m = fx_manifest(&f, run);
    ck_assert_uint_eq(json_object_size(json_object_get(m, "entries")), 0);
    json_decref(m);
    end();
}
END_TEST

START_TEST(failed_source_skips_its_dependants_and_the_run_goes_on)
{
    begin(_i);
    uint64_t unit = fx_unit(&f, "p1");
    const char *run = fx_create(&f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_add(&p, PLAN_BUILD, "a", "a", "ba");
    fx_plan_add(&p, PLAN_BUILD, "b", "b", "bb");
    fx_plan_add(&p, PLAN_BUILD, "c", "c", "bc");
    fx_plan_add(&p, PLAN_BUILD, "d", "d", "bd");
    fx_plan_parent(&p, 1, 0);
    fx_plan_parent(&p, 2, 1);
    fx_planned(&f, run, &p);
    struct coord_lease l[2];
    ck_assert_uint_eq(fx_pull(&f, "b1", 2, l), 2);
    ck_assert_int_eq(fx_finish(&f, l[0].token, OUTCOME_ERROR, ERR_WH_SQL, "division by zero"), 0);
    fx_build(&f, &l[1]);

    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    json_t *m = fx_manifest(&f, run);
    const json_t *failures = json_object_get(m, "failures");
    ck_assert_str_eq(json_str(json_object_get(failures, "ba"), "reason", ""), "division by zero");
    ck_assert_str_eq(json_str(json_object_get(failures, "bb"), "reason", ""),
                     "not built because its upstream 'a' failed");
    ck_assert_str_eq(json_str(json_object_get(failures, "bc"), "reason", ""),
                     "not built because its upstream 'a' failed");
    ck_assert_uint_eq(json_object_size(json_object_get(m, "entries")), 1);
    json_decref(m);
    ck_assert_int_eq(count(run, "sourcesFailed"), 3);
    ck_assert_str_eq(fx_unbaked(&f, unit, "b"), "build_failed");
    ck_assert_ptr_nonnull(fx_bound(&f, unit, "d"));
    end();
}
END_TEST

START_TEST(run_fails_with_every_reason_when_nothing_is_built_or_carried)
{
    begin(_i);
    uint64_t unit = fx_unit(&f, "p1");
    const char *run = fx_create(&f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    struct plan_target *x = fx_plan_add(&p, PLAN_FAIL, "a", "a", "ba");
    x->fail_text = "target has dependents: view public.v";
    x->fail_code = ERR_WH_DEPENDENTS;
    fx_plan_add(&p, PLAN_BUILD, "b", "b", "bb");
    fx_plan_add(&p, PLAN_BUILD, "c", "c", "bc");
    fx_plan_parent(&p, 1, 0);
    fx_plan_parent(&p, 2, 1);
    fx_planned(&f, run, &p);

    ck_assert_int_eq(fx_run_state(&f, run), RUN_FAILED);
    ck_assert_str_eq(memory_run(f.store, run)->error,
                     "a: target has dependents: view public.v; b: not built because its upstream "
                     "'a' failed; c: not built because its upstream 'a' failed");
    ck_assert_int_eq(count(run, "sourcesFailed"), 3);
    ck_assert_str_eq(memory_entry(f.store, run, "bb")->outcome, "failed");
    enum run_state s;
    ck_assert(coord_run_state(f.c, run, &s) != (_i == 1));
    end();
}
END_TEST

START_TEST(failed_source_keeps_its_old_binding_while_the_table_stands)
{
    begin(_i);
    uint64_t unit = fx_unit(&f, "p1");
    fx_baked(&f, unit, "daily", "d", "b1");
    const char *run = fx_create_with(
        &f, &(struct coord_run_new){.unit = unit, .trigger = "ON_DEMAND", .force_refresh = true});
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_add(&p, PLAN_BUILD, "daily", "d", "b1");
    fx_plan_add(&p, PLAN_BUILD, "other", "o", "b2");
    fx_planned(&f, run, &p);
    struct coord_lease l[2];
    ck_assert_uint_eq(fx_pull(&f, "b1", 2, l), 2);
    ck_assert_int_eq(fx_finish(&f, l[0].token, OUTCOME_ERROR, ERR_WH_SQL, "no"), 0);
    fx_build(&f, &l[1]);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_READY);
    ck_assert_ptr_nonnull(fx_bound(&f, unit, "daily"));
    ck_assert_ptr_null(fx_unbaked(&f, unit, "daily"));

    /* gone from the warehouse, it is not kept */
    const char *gone = fx_bound(&f, unit, "daily")->generation.id;
    coord_broken(f.c, f.now, unit, gone, "table_missing", &f.o);
    fx_commit(&f);
    ck_assert_int_eq(fx_generation_state(&f, gone), GENERATION_LOST);
    run = fx_create(&f, unit);
    fx_plan_init(&p);
    fx_plan_add(&p, PLAN_FAIL, "daily", "d", "b1")->fail_text = "no";
    fx_plan_carry(&f, &p, "other", "o", "b2");
    fx_planned(&f, run, &p);
    ck_assert_ptr_null(fx_bound(&f, unit, "daily"));
    ck_assert_str_eq(fx_unbaked(&f, unit, "daily"), "build_failed");
    end();
}
END_TEST

START_TEST(partial_run_leaves_the_others_as_they_were)
{
    begin(_i);
    uint64_t unit = fx_unit(&f, "p1");
    const char *run = fx_create(&f, unit);
    struct fx_plan p;
    fx_plan_init(&p);
    fx_plan_add(&p, PLAN_BUILD, "a", "a", "ba");
    fx_plan_add(&p, PLAN_BUILD, "b", "b", "bb");
    fx_plan_add(&p, PLAN_FAIL, "c", "c", "bc")->fail_text = "no";
    fx_plan_add(&p, PLAN_BUILD, "d", "d", "bd");
    fx_planned(&f, run, &p);
    struct coord_lease l[3];
    ck_assert_uint_eq(fx_pull(&f, "b1", 3, l), 3);
    for (int i = 0; i < 3; i++) {
        fx_build(&f, &l[i]);
    }
    coord_broken(f.c, f.now, unit, l[2].generation, "table_missing", &f.o);
    fx_commit(&f);
    const char *names[] = {"a"};
    run = fx_create_with(&f, &(struct coord_run_new){.unit = unit,
                                                     .trigger = "ON_DEMAND",
                                                     .force_refresh = true,
                                                     .has_names = true,
                                                     .names = names,
                                                     .n_names = 1});
    fx_plan_init(&p);
    fx_plan_add(&p, PLAN_BUILD, "a", "a", "ba");
    fx_planned(&f, run, &p);
    struct coord_lease again = fx_pull_one(&f, "b1");
    fx_build(&f, &again);

    ck_assert_str_eq(fx_bound(&f, unit, "a")->generation.id, again.generation);
    ck_assert_str_eq(fx_bound(&f, unit, "b")->generation.id, l[1].generation);
    ck_assert_str_eq(fx_unbaked(&f, unit, "c"), "build_failed");
    ck_assert_str_eq(fx_unbaked(&f, unit, "d"), "table_missing");
    ck_assert_int_eq(fx_generation_state(&f, l[0].generation), GENERATION_OVERWRITTEN);
    json_t *m = fx_manifest(&f, run);
    ck_assert_uint_eq(json_object_size(json_object_get(m, "entries")), 2);
    json_decref(m);
    ck_assert_int_eq(count(run, "sourcesBuilt"), 1);
    ck_assert_int_eq(count(run, "sourcesReused"), 0);
    end();
}
END_TEST

START_TEST(progress_counts_targets_and_rows)
{
    begin(0);
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
    struct coord_builder b = {.instance = "b1", .boot = {{'1'}}};
    struct coord_progress progress = {l[1].token, 5, 50, "build", 0.5};
    uint64_t cancel[1], lost[1];
    size_t n_cancel, n_lost;
    coord_renew(f.c, f.now, &b, &progress, 1, cancel, &n_cancel, lost, &n_lost, &f.o);
    ck_assert_uint_eq(n_cancel + n_lost, 0);
    ck_assert_str_eq(coord_run_progress(f.c, run, &f.mem),
                     "{\"targets\":2,\"done\":1,\"rows\":12,\"stage\":\"building\"}");
    fx_report(&f, "g1", unit, 0, false);
    fx_build(&f, &l[1]);
    ck_assert_int_eq(fx_run_state(&f, run), RUN_BINDING);
    ck_assert_str_eq(coord_run_progress(f.c, run, &f.mem),
                     "{\"targets\":2,\"done\":2,\"rows\":14,\"stage\":\"binding\"}");
    fx_wait(&f, 20000);
    ck_assert_ptr_null(coord_run_progress(f.c, run, &f.mem));
    end();
}
END_TEST

TCase *coord_run_tests(void)
{
    TCase *tc = tcase_create("runs");
    tcase_add_loop_test(tc, run_that_builds_two_sources_ends_ready_and_bound, 0, 2);
    tcase_add_loop_test(tc, manifest_and_metadata_say_what_was_built, 0, 2);
    tcase_add_loop_test(tc, unchanged_run_carries_and_makes_no_new_set, 0, 2);
    tcase_add_loop_test(tc, run_without_sources_is_ready_with_no_entries, 0, 2);
    tcase_add_loop_test(tc, failed_source_skips_its_dependants_and_the_run_goes_on, 0, 2);
    tcase_add_loop_test(tc, run_fails_with_every_reason_when_nothing_is_built_or_carried, 0, 2);
    tcase_add_loop_test(tc, failed_source_keeps_its_old_binding_while_the_table_stands, 0, 2);
    tcase_add_loop_test(tc, partial_run_leaves_the_others_as_they_were, 0, 2);
    tcase_add_test(tc, progress_counts_targets_and_rows);
    return tc;
}
