#include "tests/support/suite.h"
#include "tests/unit/plan_fixture.h"

/* ---- shape of the plan ---- */

START_TEST(package_without_persist_sources_has_a_null_plan_and_no_error)
{
    pw_model("a.malloy", "source: x is pg.table('t')");

    const struct package_plan *p = pw_plan();

    ck_assert_ptr_null(p->load_error);
    ck_assert(json_is_null(p->build_plan));
    ck_assert_uint_eq(p->n_targets, 0);
    ck_assert_uint_eq(json_array_size(p->warnings), 0);
}
END_TEST

START_TEST(chain_is_planned_parents_first_whatever_the_order_of_declaration)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    Kiln__Mc__Source *child = pw_source(m, "child", "mart.child");
    Kiln__Mc__Source *mid = pw_source(m, "mid", "mart.mid");
    Kiln__Mc__Source *top = pw_source(m, "top", "mart.top");
    pw_depends(child, mid);
    pw_depends(mid, top);
    pw_depends(child, top);

    const struct package_plan *p = pw_plan();

    ck_assert_uint_eq(p->n_targets, 3);
    ck_assert_str_eq(p->sources[0].name, "top");
    ck_assert_str_eq(p->sources[2].name, "child");
    const struct planned_target *t = pw_target("child");
    ck_assert_uint_eq(t->n_parents, 2);
    ck_assert_str_eq(p->targets[t->parents[0]].table, "mid");
    ck_assert_str_eq(p->targets[t->parents[1]].table, "top");
    ck_assert_str_eq(t->schema, "mart");
    ck_assert_str_eq(pw_row("child")->depends_on[0], "build-mid");
    const json_t *graph = json_array_get(json_object_get(p->build_plan, "graphs"), 0);
    ck_assert_str_eq(json_str(graph, "connectionName", ""), "pg");
    ck_assert_uint_eq(json_array_size(json_object_get(graph, "nodes")), 3);
}
END_TEST

START_TEST(source_that_two_models_reach_is_listed_once_under_the_declaring_file)
{
    Kiln__Mc__Model *a = pw_model("a.malloy", NULL);
    Kiln__Mc__Model *b = pw_model("b.malloy", NULL);
    Kiln__Mc__Source *seen = pw_source(a, "daily", "daily");
    seen->declared_in = b->path;
    seen->source_id = arena_strdup(&pw.a, "daily@mpkg://sales/b.malloy");
    pw_source(b, "daily", "daily");
    Kiln__Mc__Model *c = pw_model("c.malloy", NULL);
    Kiln__Mc__Source *again = pw_source(c, "daily", "daily");
    again->declared_in = b->path;
    again->source_id = seen->source_id;

    const struct package_plan *p = pw_plan();

    ck_assert_uint_eq(p->n_sources, 1);
    ck_assert_str_eq(p->sources[0].model, "b.malloy");
    ck_assert_str_eq(p->sources[0].declared_in, "b.malloy");
}
END_TEST

START_TEST(walk_that_could_plan_a_source_beats_one_that_could_not)
{
    Kiln__Mc__Model *a = pw_model("a.malloy", NULL);
    Kiln__Mc__Model *b = pw_model("b.malloy", NULL);
    Kiln__Mc__Source *failed = pw_source(a, "x", "x");
    failed->failed_text = arena_strdup(&pw.a, "no luck");
    failed->declared_in = arena_strdup(&pw.a, "lib.malloy");
    Kiln__Mc__Source *fine = pw_source(b, "x", "x");
    fine->source_id = failed->source_id;
    fine->declared_in = failed->declared_in;

    pw_plan();

    ck_assert_ptr_null(pw_refused("x"));
    ck_assert_str_eq(pw_row("x")->model, "b.malloy");
}
END_TEST

START_TEST(build_plan_row_has_what_clients_read)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    Kiln__Mc__Source *s = pw_source(m, "a", "a_tbl");
    pw_tag(s, "freshness.window", "24h");
    pw_tag(s, "refresh", "full");
    pw_metadata(s, "team", "finance");
    Kiln__Mc__Col col, list;
    kiln__mc__col__init(&col);
    kiln__mc__col__init(&list);
    col.name = arena_strdup(&pw.a, "d");
    col.data_type = arena_strdup(&pw.a, "date");
    list.name = arena_strdup(&pw.a, "l");
    list.data_type = arena_strdup(&pw.a, "ARRAY");
    list.element_type = arena_strdup(&pw.a, "text");
    s->columns = (Kiln__Mc__Col *[]){&col, &list};
    s->n_columns = 2;

    const struct package_plan *p = pw_plan();

    const json_t *row =
        json_object_get(json_object_get(p->build_plan, "sources"), "a@mpkg://sales/a.malloy");
    ck_assert_str_eq(json_str(row, "sourceEntityId", ""), "build-a");
    ck_assert_str_eq(json_str(row, "origin", ""), "persist");
    ck_assert(json_is_null(json_object_get(row, "preaggregate")));
    ck_assert_str_eq(json_str(row, "refresh", ""), "full");
    ck_assert_str_eq(json_str(json_object_get(row, "freshness"), "window", ""), "24h");
    ck_assert(json_is_null(json_object_get(json_object_get(row, "freshness"), "fallback")));
    ck_assert_str_eq(json_str(json_object_get(row, "queryMetadata"), "team", ""), "finance");
    const json_t *fields = json_object_get(row, "annotationFields");
    ck_assert_str_eq(json_str(fields, "persist", "-"), "");
    ck_assert_str_eq(json_str(fields, "name", ""), "a_tbl");
    ck_assert_ptr_null(json_object_get(fields, "freshness.window"));
    const json_t *columns = json_object_get(row, "columns");
    ck_assert_str_eq(json_str(json_array_get(columns, 0), "type", ""), "date");
    ck_assert_str_eq(p->sources[0].columns.items[1].element_type, "text");
    ck_assert_uint_eq(json_object_size(json_object_get(p->build_plan, "refusedSources")), 0);
}
END_TEST

/* ---- names ---- */

START_TEST(source_without_a_name_is_stored_under_its_own)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    pw_source(m, "plain", NULL);
    pw_source(m, "with.dot and space", NULL);

    pw_plan();

    ck_assert_str_eq(pw_target("plain")->table, "plain");
    ck_assert_str_eq(pw_target("plain")->schema, "");
    ck_assert_str_eq(pw_target("with.dot and space")->table, "with.dot and space");
}
END_TEST

START_TEST(unicode_letters_are_letters)
{
    pw_source(pw_model("a.malloy", NULL), "s", "mart.gr\xc3\xbcn_\xe6\x97\xa5-1");

    const struct package_plan *p = pw_plan();

    ck_assert_ptr_null(p->load_error);
    ck_assert_str_eq(pw_target("s")->table, "gr\xc3\xbcn_\xe6\x97\xa5-1");
}
END_TEST

START_TEST(doubly_quoted_name_is_served_and_gets_an_advisory)
{
    pw_source(pw_model("a.malloy", NULL), "s", "mart.\"Quoted \"\"T.bl\"");

    const struct package_plan *p = pw_plan();

    ck_assert_ptr_null(p->load_error);
    ck_assert_str_eq(pw_target("s")->table, "Quoted \"T.bl");
    ck_assert_str_eq(pw_target("s")->schema, "mart");
    ck_assert(has_note(p->advisories, "s", "\"mart\".\"Quoted \"\"T.bl\""));
    ck_assert_uint_eq(json_array_size(p->warnings), 0);
}
END_TEST

static const struct {
    const char *name, *problem;
} bad_names[] = {
    {"a b", "a space"},
    {"a;b", "the character ;"},
    {"a`b", "the character `"},
    {"a\"b", "the character \""},
    {"a..b", "an empty part"},
    {"", "an empty part"},
    {"a.", "an empty part"},
    {"\"\"", "an empty part"},
    {"\"open", "an unclosed double quote"},
    {"\"a\"b", "text after a closing double quote"},
    {"a.b.c.d", "more than three parts"},
    {"a\x01", "U+0001"},
    {"\"a\x01\"", "U+0001"},
    {"a\xe2\x82\xac", "the character \xe2\x82\xac"},
    {"a\xff", "no UTF-8"},
    {"a\xc3", "no UTF-8"},
    {"a\xc0\x80", "no UTF-8"},
    {"a\xf0\x9f\x98\x80", "the character \xf0\x9f\x98\x80"},
};

START_TEST(name_with_a_bad_character_fails_the_load_and_says_which)
{
    pw_source(pw_model("a.malloy", NULL), "s", bad_names[_i].name);

    const struct package_plan *p = pw_plan();

    ck_assert_int_eq(p->load_status, 424);
    ck_assert_msg(has_text(p->load_error, bad_names[_i].problem), "%s", p->load_error);
    ck_assert(has_text(p->load_error, "source 's' in a.malloy"));
    ck_assert(!has_text(p->load_error, "persist annotation name must be quoted"));
}
END_TEST

/* ---- what the raw text tells ---- */

START_TEST(unquoted_names_fail_the_load_and_every_line_is_listed)
{
    pw_model("a.malloy", "##! experimental.persistence\r\n"
                         "  #@ persist name=x\r\n"
                         "source: x is y -> { select: * }\n"
                         "#@\tpersist storage=\"a name=b\" name = mart.z\n"
                         "// a remark between them\n"
                         "# bar_chart\n"
                         "#@ queryMetadata.name=ok freshness.window=\"1h\" name=\n"
                         "source: z is y -> { select: * }\n");
    pw_model("b.malloy", "#@ persist name=q");

    const struct package_plan *p = pw_plan();

    ck_assert_int_eq(p->load_status, 424);
    ck_assert(has_text(p->load_error, "persist annotation name must be quoted"));
    ck_assert(has_text(p->load_error, "a.malloy line 2: #@ persist name=x;"));
    ck_assert(has_text(p->load_error, "a.malloy line 4:"));
    ck_assert(has_text(p->load_error, "a.malloy line 7:"));
    ck_assert(has_text(p->load_error, "b.malloy line 1: #@ persist name=q"));
}
END_TEST

START_TEST(quoted_and_foreign_name_keys_are_no_offence)
{
    pw_model("a.malloy", "#@ persist name=\"a\" x='it\\'s name=b'\n"
                         "#@ queryMetadata.name=free table_name=t names=x name\n"
                         "source: a is y -> { select: * }\n"
                         "#@ persistent name=x\n"
                         "#@persist name=x\n"
                         "#@ -persist name=x\n"
                         "#@ other name=x\n"
                         "source: b is y\n"
                         "#@ persist name = 'c' filename=x\n");
    pw_model("n.malloynb", "#@ persist name=x");

    ck_assert_ptr_null(pw_plan()->load_error);
}
END_TEST

START_TEST(tag_problem_on_a_persist_line_fails_like_an_unquoted_name)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", "#@ persist\n#@ x=[\nsource: a is b\n");
    pw_problem(m, "error", "tag",
               "persist annotation name must be quoted and its line well formed: "
               "no end of list",
               1);
    pw_problem(m, "error", "persist-name-unquoted", "write name=", 0);
    pw_problem(m, "error", "persist-name-unquoted", "write name=", 0);
    pw_problem(m, "error", "tag", "another", 77);
    pw_problem(m, "warn", "tag", "only a warning", 2);

    const struct package_plan *p = pw_plan();

    ck_assert(has_text(p->load_error, "must be quoted (write name=\"...\"): "));
    ck_assert(has_text(p->load_error, "a.malloy line 2: #@ x=[ (no end of list)"));
    ck_assert(has_text(p->load_error, "a.malloy line 1: #@ persist;"));
    ck_assert(has_text(p->load_error, "a.malloy line 78:  (another)"));
    ck_assert(!has_text(p->load_error, "only a warning"));
}
END_TEST

START_TEST(preaggregate_gets_an_advisory_and_no_warning)
{
    pw_model("a.malloy", "source: a is b extend {\n  #@ preaggregate grain=\"d\"\n  measure: n is "
                         "count()\n}\n");

    const struct package_plan *p = pw_plan();

    ck_assert(has_note(p->advisories, NULL, "line 2 is ignored"));
    ck_assert_uint_eq(json_array_size(p->warnings), 0);
}
END_TEST

START_TEST(model_that_does_not_compile_fails_the_load_by_name)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    m->error = arena_strdup(&pw.a, "a.malloy:3:1: no such field");
    Kiln__Mc__Model *other = pw_model("b.malloy", NULL);
    other->error = arena_strdup(&pw.a, "too deep");

    const struct package_plan *p = pw_plan();

    ck_assert_int_eq(p->load_status, 424);
    ck_assert_str_eq(p->load_error, "the model does not compile: a.malloy:3:1: no such field; "
                                    "model b.malloy does not compile: too deep");
    ck_assert_ptr_nonnull(p->package);
}
END_TEST

START_TEST(access_rule_fails_the_load_once_per_place)
{
    Kiln__Mc__Model *a = pw_model("a.malloy", NULL);
    a->locks = pw_list(NULL, &a->n_locks, "a.malloy:3: #(access_filter) region = $R");
    Kiln__Mc__Model *b = pw_model("b.malloy", NULL);
    b->locks = a->locks;
    b->n_locks = 1;
    Kiln__Mc__Source *s = pw_source(pw_model("c.malloy", NULL), "s", "s");
    s->gates = pw_list(NULL, &s->n_gates, "#(authorize) true");

    const struct package_plan *p = pw_plan();

    ck_assert_int_eq(p->load_status, 424);
    ck_assert(has_text(p->load_error,
                       "remove a.malloy:3: #(access_filter) region = $R, #(authorize) "
                       "true on source 's' in c.malloy"));
}
END_TEST

/* ---- notes ---- */

START_TEST(dropped_shape_is_warned_about_once_and_is_no_plan_row)
{
    Kiln__Mc__Model *a = pw_model("a.malloy", NULL);
    Kiln__Mc__Model *b = pw_model("b.malloy", NULL);
    pw_dropped(a, "flat");
    pw_dropped(a, "flat");
    Kiln__Mc__Source *s = pw_source(b, "seen", "seen");
    pw_dropped(b, "seen"); /* planned by another walk */

    const struct package_plan *p = pw_plan();

    ck_assert_uint_eq(p->n_dropped, 1);
    ck_assert_uint_eq(p->n_sources, 1);
    ck_assert_str_eq(p->sources[0].source_id, s->source_id);
    ck_assert(has_note(p->warnings, "flat", "not recognized as a materializable source"));
}
END_TEST

START_TEST(persist_that_no_flagged_model_reaches_is_an_advisory_only)
{
    Kiln__Mc__Model *a = pw_model("a.malloy", NULL);
    Kiln__Mc__Model *lib = pw_model("lib.malloy", NULL);
    lib->flagged = false;
    lib->unreached = pw_list(NULL, &lib->n_unreached, "reached");
    lib->unreached = pw_list(lib->unreached, &lib->n_unreached, "lost");
    lib->unreached = pw_list(lib->unreached, &lib->n_unreached, "flat");
    Kiln__Mc__Source *s = pw_source(a, "reached", "r");
    s->declared_in = lib->path;
    pw_dropped(lib, "flat");

    const struct package_plan *p = pw_plan();

    ck_assert(has_note(p->advisories, "lost", "lib.malloy"));
    ck_assert_uint_eq(json_array_size(p->advisories), 1);
    ck_assert_uint_eq(json_array_size(p->warnings), 1); /* the dropped one */
}
END_TEST

START_TEST(unknown_option_is_a_warning_said_once_for_a_base_and_its_extension)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    Kiln__Mc__Source *base = pw_source(m, "base", "t");
    base->unknown_tag_keys = pw_list(NULL, &base->n_unknown_tag_keys, "mergekey");
    Kiln__Mc__Source *ext = pw_extend(m, "ext", base);
    ext->unknown_tag_keys = pw_list(NULL, &ext->n_unknown_tag_keys, "mergekey");
    ext->unknown_tag_keys = pw_list(ext->unknown_tag_keys, &ext->n_unknown_tag_keys, "colour");

    const struct package_plan *p = pw_plan();

    ck_assert(has_note(p->warnings, "base", "'mergekey'"));
    ck_assert(has_note(p->warnings, "ext", "'colour'"));
    ck_assert(!has_note(p->warnings, "ext", "'mergekey'"));
}
END_TEST

START_TEST(incremental_is_built_in_full_with_an_advisory_and_rubbish_fails_the_load)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    Kiln__Mc__Source *s = pw_source(m, "inc", "inc");
    pw_tag(s, "refresh", "incremental");
    pw_tag(s, "watermark", "d");
    pw_tag(s, "freshness.window", "soon");

    const struct package_plan *p = pw_plan();
    ck_assert_ptr_null(p->load_error);
    ck_assert_ptr_nonnull(pw_target("inc"));
    ck_assert(has_note(p->advisories, "inc", "built in full"));
    ck_assert(has_note(p->advisories, "inc", "'soon'"));

    pw_tag(pw_source(m, "bad", "bad"), "refresh", "Full");
    pw_tag(pw_source(m, "mark", "mark"), "watermark", "d");
    pw_tag(pw_source(m, "key", "key"), "merge_key", "d");
    p = pw_plan();
    ck_assert(has_text(p->load_error, "refresh=\"Full\" of source 'bad' in a.malloy"));
    ck_assert(has_text(p->load_error, "watermark= of source 'mark'"));
    ck_assert(has_text(p->load_error, "merge_key= of source 'key'"));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("plan");
    tcase_add_checked_fixture(tc, plan_up, plan_down);
    tcase_add_test(tc, package_without_persist_sources_has_a_null_plan_and_no_error);
    tcase_add_test(tc, chain_is_planned_parents_first_whatever_the_order_of_declaration);
    tcase_add_test(tc, source_that_two_models_reach_is_listed_once_under_the_declaring_file);
    tcase_add_test(tc, walk_that_could_plan_a_source_beats_one_that_could_not);
    tcase_add_test(tc, build_plan_row_has_what_clients_read);
    tcase_add_test(tc, source_without_a_name_is_stored_under_its_own);
    tcase_add_test(tc, unicode_letters_are_letters);
    tcase_add_test(tc, doubly_quoted_name_is_served_and_gets_an_advisory);
    tcase_add_loop_test(tc, name_with_a_bad_character_fails_the_load_and_says_which, 0,
                        (int)ARRAY_LEN(bad_names));
    tcase_add_test(tc, unquoted_names_fail_the_load_and_every_line_is_listed);
    tcase_add_test(tc, quoted_and_foreign_name_keys_are_no_offence);
    tcase_add_test(tc, tag_problem_on_a_persist_line_fails_like_an_unquoted_name);
    tcase_add_test(tc, preaggregate_gets_an_advisory_and_no_warning);
    tcase_add_test(tc, model_that_does_not_compile_fails_the_load_by_name);
    tcase_add_test(tc, access_rule_fails_the_load_once_per_place);
    tcase_add_test(tc, dropped_shape_is_warned_about_once_and_is_no_plan_row);
    tcase_add_test(tc, persist_that_no_flagged_model_reaches_is_an_advisory_only);
    tcase_add_test(tc, unknown_option_is_a_warning_said_once_for_a_base_and_its_extension);
    tcase_add_test(tc, incremental_is_built_in_full_with_an_advisory_and_rubbish_fails_the_load);
    Suite *s = suite_create("plan");
    suite_add_tcase(s, tc);
    int failed = suite_run(s);
    return failed | suite_run(plan_refusal_suite());
}
