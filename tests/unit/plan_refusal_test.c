#include "tests/unit/plan_fixture.h"

static Kiln__Mc__Source *one_source(const char *name)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    pw_source(m, "fine", "fine");
    return pw_source(m, "bad", name);
}

/* The bad one is refused alone, warned about, listed apart; its sibling is planned. */
static void assert_refused(const char *reason, const char *fragment)
{
    const struct package_plan *p = pw_plan();
    ck_assert_ptr_null(p->load_error);
    ck_assert_ptr_nonnull(pw_refused("bad"));
    ck_assert_str_eq(pw_refused("bad"), reason);
    ck_assert_msg(has_text(pw_refused_text("bad"), fragment), "%s", pw_refused_text("bad"));
    ck_assert(has_note(p->warnings, "bad", fragment));
    ck_assert_ptr_null(pw_refused("fine"));
    ck_assert_ptr_nonnull(pw_target("fine"));
    const json_t *refused = json_object_get(json_object_get(p->build_plan, "refusedSources"),
                                            "bad@mpkg://sales/a.malloy");
    ck_assert_str_eq(json_str(refused, "reason", ""), reason);
    ck_assert_str_eq(json_str(refused, "tier", ""), "colocated");
    ck_assert_str_eq(json_str(refused, "modelPath", ""), "a.malloy");
    ck_assert_uint_eq(json_object_size(json_object_get(p->build_plan, "sources")), 1);
}

START_TEST(free_parameter_is_refused)
{
    Kiln__Mc__Source *s = one_source("t");
    s->free_parameters = pw_list(NULL, &s->n_free_parameters, "region");
    s->free_parameters = pw_list(s->free_parameters, &s->n_free_parameters, "year");
    s->failed_text = arena_strdup(&pw.a, "Argument not provided");
    assert_refused("free_parameter", "(region, year)");
}
END_TEST

START_TEST(given_in_the_persisted_query_is_refused)
{
    Kiln__Mc__Source *s = one_source("t");
    s->given_in_query = true;
    s->failed_text = arena_strdup(&pw.a, "given has no value");
    assert_refused("given_in_persisted_query", "references a given");
}
END_TEST

START_TEST(unknown_connection_is_refused_by_name)
{
    one_source("t")->connection = arena_strdup(&pw.a, "nowhere");
    assert_refused("unknown_connection", "'nowhere', which environment 'prod' does not have");
}
END_TEST

START_TEST(source_that_cannot_be_planned_is_refused_alone)
{
    Kiln__Mc__Source *s = one_source("t");
    s->failed_code = arena_strdup(&pw.a, "compile");
    s->build_id = arena_strdup(&pw.a, "");
    assert_refused("plan_failed", "the compiler gave no reason");
    s->failed_text = arena_strdup(&pw.a, "no such field 'z'");
    assert_refused("plan_failed", "no such field 'z'");
}
END_TEST

START_TEST(partition_without_storage_is_refused)
{
    pw_tag(one_source("t"), "partition", "day, region");
    assert_refused("partition_without_storage", "storage=");
}
END_TEST

START_TEST(three_part_name_is_refused_with_the_two_part_one)
{
    one_source("prod.mart.t");
    assert_refused("name_other_database", "name=\"mart.t\"");
}
END_TEST

START_TEST(name_in_an_attached_database_or_another_schema_of_duckdb_is_refused)
{
    Kiln__Mc__Source *s = one_source("pg.public.t");
    s->dialect = arena_strdup(&pw.a, "duckdb");
    assert_refused("name_other_database", "pg.public.t: on DuckDB nothing is built in an attached");
    s->name_property = arena_strdup(&pw.a, "mart.t");
    assert_refused("name_other_database", "write name=\"t\"");
    s->name_property = arena_strdup(&pw.a, "main.t");
    pw_plan();
    ck_assert_ptr_null(pw_refused("bad"));
}
END_TEST

START_TEST(name_over_63_bytes_is_refused_on_postgres_only)
{
    char name[80] = {0};
    memset(name, 'x', 64);
    Kiln__Mc__Source *s = one_source(name);
    assert_refused("name_too_long", "of 64 bytes");
    s->dialect = arena_strdup(&pw.a, "duckdb");
    pw_plan();
    ck_assert_ptr_null(pw_refused("bad"));
}
END_TEST

START_TEST(names_that_kiln_keeps_for_itself_are_refused)
{
    Kiln__Mc__Source *s = one_source("mart.kiln_fence");
    assert_refused("name_reserved", "'kiln_fence'");
    s->name_property = arena_strdup(&pw.a, "_kiln_17");
    assert_refused("name_reserved", "'_kiln_17'");
}
END_TEST

START_TEST(target_that_a_model_reads_is_refused)
{
    Kiln__Mc__Source *s = one_source("mart.orders");
    Kiln__Mc__Model *m = pw_model("b.malloy", NULL);
    pw_reads(m, "pg", "other.orders");
    pw_reads(m, "duck", "mart.orders");
    m->reads_tables = pw_list(m->reads_tables, &m->n_reads_tables, "no separator");
    pw_plan();
    ck_assert_ptr_null(pw_refused("bad"));

    pw_reads(m, "again", "db.mart.orders"); /* the same database by another name */
    assert_refused("target_is_a_source", "reads as a base table");

    s->name_property = arena_strdup(&pw.a, "sales orders");
    s->has_name = false;
    s->name = arena_strdup(&pw.a, "bad");
    pw_reads(m, "pg", "public.bad");
    assert_refused("target_is_a_source", "bad on connection 'pg'");
    pw_reads(m, "pg", "an odd; path");
    pw_plan();
    ck_assert_str_eq(pw.plan.reads[pw.plan.n_reads - 1].table, "an odd; path");
}
END_TEST

START_TEST(connection_that_is_only_planned_refuses_its_targets_in_one_sentence)
{
    Kiln__Mc__Source *s = one_source("t");
    s->connection = arena_strdup(&pw.a, "duck");
    s->dialect = arena_strdup(&pw.a, "duckdb");
    assert_refused("no_driver", "connection 'duck' is of type duckdb");
    ck_assert_str_eq(pw_target("bad")->refused_reason, "no_driver");
    s->connection = arena_strdup(&pw.a, "lab");
    assert_refused("no_driver", "connection 'lab' is of type snowflake");
}
END_TEST

/* ---- storage= ---- */

START_TEST(storage_source_is_skipped_served_live_and_warned_about)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    Kiln__Mc__Source *s = pw_source(m, "stored", "t");
    pw_tag(s, "storage", " lake ");
    pw_tag(s, "partition", "day , ,region");
    pw_tag(pw_source(m, "blank", "u"), "storage", "  ");

    const struct package_plan *p = pw_plan();

    ck_assert_ptr_null(pw_refused("stored"));
    ck_assert_ptr_null(pw_target("stored"));
    ck_assert_str_eq(pw_row("stored")->skipped, "storage");
    ck_assert(has_note(p->warnings, "stored", "storage=\"lake\""));
    ck_assert(has_note(p->warnings, "stored", "ignored"));
    ck_assert(has_note(p->warnings, "stored", "served live"));
    ck_assert_ptr_nonnull(pw_target("blank"));
    /* SHA-256 of "12:build-stored/10:day,region" */
    ck_assert_uint_eq(strlen(pw_row("stored")->entity_id), 64);
    struct sha256 want = sha256_of("12:build-stored/10:day,region", 29);
    char hex[65];
    hex_encode(want.b, sizeof(want.b), hex);
    ck_assert_str_eq(pw_row("stored")->entity_id, hex);
    ck_assert_str_eq(pw_row("stored")->build_id, "build-stored");

    pw.in.storage_mode = "on";
    ck_assert(has_note(pw_plan()->warnings, "stored", "no storage tier yet"));
    pw.in.storage_mode = NULL;
    ck_assert(has_note(pw_plan()->warnings, "stored", "PERSIST_STORAGE_MODE is off"));
}
END_TEST

/* ---- identity ---- */

START_TEST(extension_shares_the_table_and_the_declared_base_owns_it)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    Kiln__Mc__Source *ext = pw_source(m, "ext", "own_name");
    Kiln__Mc__Source *base = pw_source(m, "base", "t");
    Kiln__Mc__Source *twin = pw_source(m, "twin", "t2");
    ext->extends = base->source_id;
    ext->build_id = twin->build_id = base->build_id;

    const struct package_plan *p = pw_plan();

    ck_assert_uint_eq(p->n_targets, 1);
    ck_assert_uint_eq(p->targets[0].n_sources, 3);
    ck_assert_str_eq(p->sources[p->targets[0].owner].name, "base");
    ck_assert_uint_eq(p->targets[0].sources[0], p->targets[0].owner);
    ck_assert_str_eq(p->targets[0].table, "t");
    ck_assert(pw_row("ext")->is_extension);
    ck_assert(has_note(p->advisories, "ext", "source 'base'"));
    ck_assert(has_note(p->advisories, "twin", "its own name= is not used"));
    ck_assert_uint_eq(json_array_size(p->warnings), 0);
    ck_assert_uint_eq(json_object_size(json_object_get(p->build_plan, "sources")), 3);
}
END_TEST

START_TEST(declared_first_owns_even_where_a_child_pulled_its_twin_forward)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    Kiln__Mc__Source *child = pw_source(m, "child", "c");
    Kiln__Mc__Source *one = pw_source(m, "one", "first");
    Kiln__Mc__Source *two = pw_source(m, "two", "second");
    two->build_id = one->build_id;
    pw_depends(child, two);

    const struct package_plan *p = pw_plan();

    ck_assert_str_eq(p->sources[0].name, "two");
    ck_assert_str_eq(pw_target("two")->table, "first");
    ck_assert_str_eq(p->sources[pw_target("two")->sources[1]].name, "two");
}
END_TEST

START_TEST(refused_twin_leaves_the_table_to_its_sibling)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    Kiln__Mc__Source *one = pw_source(m, "one", "a.b.c");
    pw_source(m, "two", "t")->build_id = one->build_id;

    const struct package_plan *p = pw_plan();

    ck_assert_str_eq(pw_refused("one"), "name_other_database");
    ck_assert_uint_eq(p->n_targets, 1);
    ck_assert_uint_eq(p->targets[0].n_sources, 1);
    ck_assert_str_eq(p->targets[0].table, "t");
}
END_TEST

/* ---- collisions ---- */

START_TEST(first_of_two_targets_with_one_name_builds_and_the_warning_sorts_the_names)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    Kiln__Mc__Source *zoo = pw_source(m, "zoo", "public.t");
    pw_source(m, "apple", "t")->connection = arena_strdup(&pw.a, "again");
    pw_source(m, "mango", "\"t\"");
    pw_source(m, "other", "T");
    Kiln__Mc__Source *child = pw_source(m, "child", "child");
    pw_depends(child, zoo);

    const struct package_plan *p = pw_plan();

    ck_assert_ptr_null(p->load_error);
    ck_assert_ptr_null(pw_refused("zoo"));
    ck_assert_str_eq(pw_refused("apple"), "target_collision");
    ck_assert_str_eq(pw_refused("mango"), "target_collision");
    ck_assert_ptr_null(pw_refused("other"));
    ck_assert(has_note(p->warnings, "apple",
                       "'apple', 'mango' and 'zoo' resolve to the same materialized table"));

    pw.in.publishing = true;
    ck_assert_ptr_null(pw_plan()->load_error);
    pw.in.collision_enforce = true;
    p = pw_plan();
    ck_assert_int_eq(p->load_status, 400);
    ck_assert(has_text(p->load_error, "resolve to the same materialized table"));
}
END_TEST

/* ---- layers ---- */

START_TEST(freshness_is_resolved_per_field_over_three_layers)
{
    pw_manifest(
        "{\"materialization\":{\"freshness\":{\"window\":\"7d\",\"fallback\":\"stale_ok\"}}}");
    Kiln__Mc__Model *a = pw_model("a.malloy", NULL);
    Kiln__Mc__Model *b = pw_model("b.malloy", NULL);
    pw_note(b, "freshness.window", "3h");
    pw_note(b, "freshness.fallback", "fail");
    pw_note(b, "materialization.freshness.window", "2h");
    pw_source(a, "package_only", "t1");
    pw_tag(pw_source(a, "own_window", "t2"), "freshness.window", "1h");
    pw_source(b, "file", "t3");
    Kiln__Mc__Source *odd = pw_source(b, "odd", "t4");
    pw_tag(odd, "freshness.fallback", "whenever");
    pw_tag(odd, "freshness.window", " ");

    const struct package_plan *p = pw_plan();

    ck_assert_str_eq(pw_row("package_only")->freshness_window, "7d");
    ck_assert_str_eq(pw_row("own_window")->freshness_window, "1h");
    ck_assert_str_eq(pw_row("own_window")->freshness_fallback, "stale_ok");
    ck_assert_str_eq(pw_row("file")->freshness_window, "2h");
    ck_assert_str_eq(pw_row("file")->freshness_fallback, "fail");
    ck_assert_str_eq(pw_row("odd")->freshness_window, "2h");
    ck_assert_str_eq(pw_row("odd")->freshness_fallback, "fail");
    ck_assert_str_eq(p->freshness_declarers, "own_window, file, odd");
}
END_TEST

START_TEST(query_metadata_is_layered_validated_and_never_rejects)
{
    pw_manifest(
        "{\"queryMetadata\":{\"team\":\"package\",\"cost\":\"c1\",\"class\":\"x\",\"n\":1}}");
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    pw_note(m, "queryMetadata.team", "file");
    pw_note(m, "materialization.queryMetadata.team", "old");
    pw_note(m, "queryMetadata.tier", "gold*/ DROP /*");
    Kiln__Mc__Source *s = pw_source(m, "gr\xc3\xbcn", "t");
    pw_metadata(s, "tier2", "a\"b");
    pw_metadata(s, "bad key", "x");
    pw_source(m, "plain", "u");

    const struct package_plan *p = pw_plan();

    ck_assert_ptr_null(p->load_error);
    ck_assert_str_eq(pw_target("gr\xc3\xbcn")->tag,
                     "team=\"file\",tier=\"gold* / DROP / *\",cost=\"c1\",class=\"materialize\","
                     "package=\"sales\",source=\"gr__n\"");
    ck_assert(has_note(p->warnings, NULL, "'class' of queryMetadata in publisher.json"));
    ck_assert(has_note(p->warnings, NULL, "'n' of queryMetadata in publisher.json is dropped"));
    ck_assert(has_note(p->warnings, "gr\xc3\xbcn", "'tier2'"));
    ck_assert(has_note(p->warnings, "gr\xc3\xbcn", "'bad key'"));
    ck_assert_uint_eq(json_array_size(p->warnings), 4);
}
END_TEST

START_TEST(twenty_first_property_is_dropped_with_a_warning)
{
    Kiln__Mc__Source *s = pw_source(pw_model("a.malloy", NULL), "s", "t");
    for (int i = 0; i < 21; i++) {
        pw_metadata(s, arena_printf(&pw.a, "k%d", i), "v");
    }

    const struct package_plan *p = pw_plan();

    ck_assert(has_note(p->warnings, "s", "'k20'"));
    ck_assert(!has_text(pw_target("s")->tag, "k20"));
    ck_assert(has_text(pw_target("s")->tag, "k19"));
}
END_TEST

START_TEST(thing_that_two_sources_meet_is_said_once)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    pw_note(m, "queryMetadata.run_id", "mine");
    pw_source(m, "one", "t");
    pw_source(m, "two", "u");

    const struct package_plan *p = pw_plan();

    ck_assert(has_note(p->warnings, NULL, "'run_id' of the '## queryMetadata' lines"));
    ck_assert_uint_eq(json_array_size(p->warnings), 1);
}
END_TEST

START_TEST(twenty_refusals_are_all_kept)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    for (int i = 0; i < 20; i++) {
        pw_source(m, arena_printf(&pw.a, "s%d", i), "a.b.c");
    }

    const struct package_plan *p = pw_plan();

    ck_assert_uint_eq(p->n_refusals, 20);
    ck_assert_str_eq(p->refusals[0].name, "s0");
    ck_assert_str_eq(p->refusals[19].name, "s19");
}
END_TEST

START_TEST(nothing_declared_means_no_tag)
{
    pw_source(pw_model("a.malloy", NULL), "s", "t");
    pw_plan();
    ck_assert_str_eq(pw_target("s")->tag, "");
}
END_TEST

START_TEST(many_sources_are_planned)
{
    Kiln__Mc__Model *m = pw_model("a.malloy", NULL);
    Kiln__Mc__Source *before = NULL;
    for (int i = 0; i < 300; i++) {
        Kiln__Mc__Source *s = pw_source(m, arena_printf(&pw.a, "s%d", i), NULL);
        if (before) {
            pw_depends(s, before);
        }
        before = s;
    }

    const struct package_plan *p = pw_plan();

    ck_assert_uint_eq(p->n_targets, 300);
    ck_assert_uint_eq(p->targets[299].parents[0], 298);
}
END_TEST

Suite *plan_refusal_suite(void)
{
    TCase *tc = tcase_create("plan_refusal");
    tcase_add_checked_fixture(tc, plan_up, plan_down);
    tcase_add_test(tc, free_parameter_is_refused);
    tcase_add_test(tc, given_in_the_persisted_query_is_refused);
    tcase_add_test(tc, unknown_connection_is_refused_by_name);
    tcase_add_test(tc, source_that_cannot_be_planned_is_refused_alone);
    tcase_add_test(tc, partition_without_storage_is_refused);
    tcase_add_test(tc, three_part_name_is_refused_with_the_two_part_one);
    tcase_add_test(tc, name_in_an_attached_database_or_another_schema_of_duckdb_is_refused);
    tcase_add_test(tc, name_over_63_bytes_is_refused_on_postgres_only);
    tcase_add_test(tc, names_that_kiln_keeps_for_itself_are_refused);
    tcase_add_test(tc, target_that_a_model_reads_is_refused);
    tcase_add_test(tc, connection_that_is_only_planned_refuses_its_targets_in_one_sentence);
    tcase_add_test(tc, storage_source_is_skipped_served_live_and_warned_about);
    tcase_add_test(tc, extension_shares_the_table_and_the_declared_base_owns_it);
    tcase_add_test(tc, declared_first_owns_even_where_a_child_pulled_its_twin_forward);
    tcase_add_test(tc, refused_twin_leaves_the_table_to_its_sibling);
    tcase_add_test(tc, first_of_two_targets_with_one_name_builds_and_the_warning_sorts_the_names);
    tcase_add_test(tc, freshness_is_resolved_per_field_over_three_layers);
    tcase_add_test(tc, query_metadata_is_layered_validated_and_never_rejects);
    tcase_add_test(tc, twenty_first_property_is_dropped_with_a_warning);
    tcase_add_test(tc, thing_that_two_sources_meet_is_said_once);
    tcase_add_test(tc, twenty_refusals_are_all_kept);
    tcase_add_test(tc, nothing_declared_means_no_tag);
    tcase_add_test(tc, many_sources_are_planned);
    Suite *s = suite_create("plan_refusal");
    suite_add_tcase(s, tc);
    return s;
}
