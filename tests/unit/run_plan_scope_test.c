#include "tests/unit/run_plan_fixture.h"

/* ---- scope ---- */

START_TEST(unknown_name_is_refused_with_the_known_ones)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    pw_source(m, "daily", "t");
    pw_dropped(m, "flat");
    rp_ready();
    bool covered[1] = {true};
    int rc = run_plan_scope(&pw.a, &pw.plan, true, rp_names("nope"), 1, covered, &rp.err);
    ck_assert_int_eq(rc, ERR_INVALID);
    ck_assert(has_text(err_text(&rp.err), "no persist source named 'nope'; it has: daily, flat"));
    ck_assert_int_eq(run_plan_scope(&pw.a, &pw.plan, true, rp_names("flat"), 1, covered, &rp.err),
                     0);
    ck_assert(!covered[0]);
    rp_name_only("nope");
    rp_make();
    ck_assert(has_text(rp.run.fail, "'nope'"));
}
END_TEST

START_TEST(unknown_name_in_a_package_without_sources_says_none)
{
    rp_ready();
    ck_assert_int_eq(run_plan_scope(&pw.a, &pw.plan, true, rp_names("x"), 1, NULL, &rp.err),
                     ERR_INVALID);
    ck_assert(has_text(err_text(&rp.err), "it has: none"));
    ck_assert_ptr_nonnull(rp_make());
    ck_assert_uint_eq(rp.run.n, 0);
    ck_assert_ptr_null(rp.run.fail);
}
END_TEST

START_TEST(name_of_an_extension_covers_the_shared_table)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    Kiln__Mc__Source *base = pw_source(m, "base", "t");
    pw_extend(m, "ext", base);
    pw_source(m, "other", "u");
    rp_ready();
    rp_name_only("ext");

    const struct plan_target *t = rp_make();

    ck_assert_uint_eq(rp.run.n, 1);
    ck_assert_str_eq(t->source_name, "base");
    ck_assert_uint_eq(t->n_sources, 2);
    ck_assert_str_eq(t->source_names[0], "base");
    ck_assert_str_eq(t->source_names[1], "ext");
    ck_assert_str_eq(t->source_ids[1], "ext@mpkg://sales/a.malloy");
    ck_assert_str_eq(t->source_models[1], "a.malloy");
    ck_assert_uint_eq(rp.run.n_authored, 1);
}
END_TEST

START_TEST(dropped_shape_fails_every_run_that_covers_it_and_no_other)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    pw_source(m, "daily", "t");
    pw_dropped(m, "flat");
    pw_dropped(m, "low");
    rp_ready();
    rp_make();
    ck_assert(has_text(rp.run.fail, "annotated '#@ persist' but were not recognized as a "
                                    "materializable source: flat (a.malloy), low (a.malloy)"));
    rp_name_only("daily");
    rp_make();
    ck_assert_ptr_null(rp.run.fail);
    ck_assert_uint_eq(rp.run.n, 1);
}
END_TEST

START_TEST(refusals_in_scope_are_reported_and_skipped_sources_do_not_count)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    pw_source(m, "fine", "t");
    pw_source(m, "bad", "u")->given_in_query = true;
    pw_source(m, "clash", "t");
    pw_tag(pw_source(m, "stored", "v"), "storage", "lake");
    rp_ready();

    rp_make();
    ck_assert_uint_eq(rp.run.n, 1);
    ck_assert_uint_eq(rp.run.n_refusals, 2);
    ck_assert_uint_eq(rp.run.n_authored, 3);
    ck_assert(!rp.run.named_refused);

    rp_name_only("bad");
    rp_make();
    ck_assert_uint_eq(rp.run.n, 0);
    ck_assert_uint_eq(rp.run.n_refusals, 1);
    ck_assert_uint_eq(rp.run.n_authored, 1);
    ck_assert(rp.run.named_refused);

    rp_name_only("fine");
    rp_make();
    ck_assert_uint_eq(rp.run.n_refusals, 0);
    ck_assert(!rp.run.named_refused);
}
END_TEST

/* ---- chains ---- */

static void chain(void)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    Kiln__Mc__Source *child = pw_source(m, "child", "child");
    Kiln__Mc__Source *parent = pw_source(m, "parent", "parent");
    pw_depends(child, parent);
}

START_TEST(child_reads_the_parent_of_the_same_run)
{
    chain();
    rp_ready();
    rp_make();
    ck_assert_str_eq(rp.run.targets[0].source_name, "parent");
    ck_assert_uint_eq(rp.run.targets[1].n_parents, 1);
    ck_assert_uint_eq(rp.run.targets[1].parents[0], 0);
    ck_assert_str_eq(rp.run.targets[1].upstream_reuse, "reused");
    ck_assert_ptr_null(rp.run.targets[1].upstream_recompute_reason);
}
END_TEST

START_TEST(named_child_reads_an_unnamed_parent_only_while_it_is_proven_or_bound)
{
    chain();
    rp_ready();
    rp_name_only("child");
    const struct plan_target *t = rp_make();
    ck_assert_uint_eq(rp.run.n, 1);
    ck_assert_uint_eq(t->n_parents, 0);
    ck_assert_str_eq(t->upstream_reuse, "recomputed");
    ck_assert(
        has_text(t->upstream_recompute_reason, "'parent' is not in this run and was not built"));

    rp_stands(0);
    ck_assert_str_eq(rp_make()->upstream_reuse, "reused");
    rp.states[0].still_there = false;
    ck_assert(has_text(rp_make()->upstream_recompute_reason, "its table is not the recorded one"));
    rp.states[0].asked = false; /* not asked: bound is all that is known */
    ck_assert_str_eq(rp_make()->upstream_reuse, "reused");
}
END_TEST

START_TEST(upstreams_that_are_not_stored_are_recomputed_with_a_reason)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    Kiln__Mc__Source *child = pw_source(m, "child", "child");
    Kiln__Mc__Source *stored = pw_source(m, "stored", "t");
    Kiln__Mc__Source *bad = pw_source(m, "bad", "a.b.c");
    pw_tag(stored, "storage", "lake");
    pw_tag(stored, "partition", "day");
    pw_depends(child, stored);
    pw_depends(child, bad);
    child->depends_on = pw_list(child->depends_on, &child->n_depends_on, "build-unseen");
    rp_ready();

    const struct plan_target *t = rp_make();

    ck_assert_uint_eq(rp.run.n, 1);
    ck_assert_str_eq(t->upstream_reuse, "recomputed");
    ck_assert_str_eq(t->upstream_recompute_reason,
                     "upstream 'stored' is not stored: its storage= is ignored; upstream 'bad' is "
                     "refused; a persisted upstream is not part of this plan");
}
END_TEST

/* ---- freshness and tag ---- */

static const struct {
    const char *w1, *f1, *w2, *f2;
    uint32_t window;
    int fallback; /* 0 live, 1 stale_ok, 2 fail */
} folds[] = {
    {NULL, NULL, NULL, NULL, 0, 0},
    {"2h", "stale_ok", "1h", "stale_ok", 3600, 1},
    {"2h", "stale_ok", NULL, NULL, 7200, 1},
    {"2h", "stale_ok", "3h", NULL, 7200, 0},
    {"2h", "fail", NULL, "stale_ok", 7200, 2},
    {"2h", "fail", "1h", "live", 3600, 0},
    {"never", NULL, "1h", "fail", 3600, 0},
};

START_TEST(sources_of_one_table_share_the_tightest_policy)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    Kiln__Mc__Source *one = pw_source(m, "one", "t");
    Kiln__Mc__Source *two = pw_extend(m, "two", one);
    const char *values[] = {folds[_i].w1, folds[_i].f1, folds[_i].w2, folds[_i].f2};
    for (size_t i = 0; i < 4; i++) {
        if (values[i]) {
            pw_tag(i < 2 ? one : two, i % 2 ? "freshness.fallback" : "freshness.window", values[i]);
        }
    }
    rp_ready();
    ck_assert_uint_eq(rp_make()->window_s, folds[_i].window);
    ck_assert_int_eq(rp.run.targets[0].fallback, folds[_i].fallback);
}
END_TEST

START_TEST(tag_gets_trigger_and_run_unless_metadata_is_off)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    pw_metadata(pw_source(m, "s", "t"), "team", "x");
    pw_source(m, "plain", "u");
    rp_ready();
    rp.in.trigger = "ON_DEMAND";
    rp.in.run_id = "17-1";
    rp_make();
    ck_assert_str_eq(rp.run.targets[0].tag,
                     "team=\"x\",class=\"materialize\",package=\"sales\",source=\"s\","
                     "trigger=\"ON_DEMAND\",run_id=\"17-1\"");
    ck_assert_str_eq(rp.run.targets[1].tag, "");
    rp.in.query_metadata_off = true;
    ck_assert_str_eq(rp_make()->tag, "");
}
END_TEST

START_TEST(preview_says_what_happens_and_why)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    Kiln__Mc__Source *base = pw_source(m, "base", "t");
    pw_extend(m, "ext", base);
    pw_depends(pw_source(m, "child", "c"), base);
    pw_source(m, "view", "v");
    pw_source(m, "bad", "u")->given_in_query = true;
    pw_tag(pw_source(m, "stored", "w"), "storage", "lake");
    pw_dropped(m, "flat");
    rp_ready();
    rp_stands(0);
    rp.states[1].relkind = 'r';
    rp.states[1].has_fence = rp.states[1].still_there = true;
    rp.states[1].fence_generation = "THEIRS";
    rp.states[2].relkind = 'v';
    rp_make();

    json_t *v = run_plan_preview(&rp.run, &pw.plan);

    const json_t *list = json_object_get(v, "targets");
    const json_t *first = json_array_get(list, 0), *second = json_array_get(list, 1);
    ck_assert_str_eq(json_str(first, "action", ""), "reuse");
    ck_assert_int_eq(json_int(first, "rowCount", 0), 42);
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(first, "sharedBy"), 0)),
                     "ext");
    ck_assert_str_eq(json_str(second, "action", ""), "build");
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(second, "after"), 0)),
                     "base");
    ck_assert_str_eq(json_str(second, "upstreamReuse", ""), "reused");
    ck_assert_str_eq(json_str(second, "physicalTableName", ""), "\"public\".\"c\"");
    ck_assert(has_text(json_str(json_array_get(list, 2), "why", ""), "target_not_a_table"));
    ck_assert_uint_eq(json_array_size(json_object_get(v, "warnings")), 1);
    const json_t *refused = json_array_get(json_object_get(v, "refused"), 0);
    ck_assert_str_eq(json_str(refused, "reason", ""), "given_in_persisted_query");
    const json_t *skipped = json_array_get(json_object_get(v, "skipped"), 0);
    ck_assert_str_eq(json_str(skipped, "sourceName", ""), "stored");
    ck_assert(has_text(json_str(v, "fails", ""), "flat"));
    json_decref(v);
}
END_TEST

Suite *run_plan_scope_suite(void)
{
    TCase *tc = tcase_create("run_plan_scope");
    tcase_add_checked_fixture(tc, plan_up, plan_down);
    tcase_add_test(tc, unknown_name_is_refused_with_the_known_ones);
    tcase_add_test(tc, unknown_name_in_a_package_without_sources_says_none);
    tcase_add_test(tc, name_of_an_extension_covers_the_shared_table);
    tcase_add_test(tc, dropped_shape_fails_every_run_that_covers_it_and_no_other);
    tcase_add_test(tc, refusals_in_scope_are_reported_and_skipped_sources_do_not_count);
    tcase_add_test(tc, child_reads_the_parent_of_the_same_run);
    tcase_add_test(tc, named_child_reads_an_unnamed_parent_only_while_it_is_proven_or_bound);
    tcase_add_test(tc, upstreams_that_are_not_stored_are_recomputed_with_a_reason);
    tcase_add_loop_test(tc, sources_of_one_table_share_the_tightest_policy, 0,
                        (int)ARRAY_LEN(folds));
    tcase_add_test(tc, tag_gets_trigger_and_run_unless_metadata_is_off);
    tcase_add_test(tc, preview_says_what_happens_and_why);
    Suite *s = suite_create("run_plan_scope");
    suite_add_tcase(s, tc);
    return s;
}
