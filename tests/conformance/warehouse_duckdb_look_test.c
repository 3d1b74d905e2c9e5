/* Targets, tables and results looked at and cleared up in DuckDB. */
#include "tests/conformance/warehouse_duckdb_fixture.h"
#include "tests/conformance/warehouse_suites.h"

#include <stdio.h>
#include <unistd.h>

START_TEST(the_catalog_tells_which_names_can_be_targets)
{
    struct run r;
    publish("sales", 100, NULL, 7);
    ck_assert_int_eq(duck_run("CREATE TABLE base AS SELECT 1 AS n", &r.op.err), 0);
    const struct wh_name names[] = {{"", "sales"}, {"main", "BASE"}, {"", "none"}, {"mart", "x"}};
    run_init(&r, wh);
    wh->ops->catalog_targets(&r.op, names, 4);
    ck_assert_msg(wait_for(&r) == 0, "%s", r.op.err.text);
    const struct wh_relation *rel = r.op.facts.relations;
    ck_assert_int_eq(rel[0].kind, 'v');
    ck_assert_str_eq(rel[0].name.schema, "main");
    ck_assert(rel[0].schema_exists && rel[0].schema_writable);
    ck_assert(rel[0].fence.exists && rel[0].fence.still_there);
    ck_assert_str_eq(rel[0].fence.generation, generation_of(NULL, 100));
    ck_assert_int_eq(rel[1].kind, 'r');
    ck_assert(!rel[1].fence.exists);
    ck_assert_int_eq(rel[2].kind, 0);
    ck_assert(!rel[3].schema_exists); /* a dotted name */
}
END_TEST

static void is_table(const char *path, const char *text)
{
    const char *got = wh_duckdb_table(&arena, path);
    ck_assert_msg(text ? got && strcmp(got, text) == 0 : !got, "%s: %s", path,
                  got ? got : "(none)");
}

START_TEST(table_paths_are_written_as_the_compiler_writes_them)
{
    is_table("flights", "flights");
    is_table("flights.parquet", "flights.parquet");
    is_table("a.\"b \"\"c\".d", "a.\"b \"\"c\".d");
    is_table("data/2024-01.parquet", "'data/2024-01.parquet'");
    is_table("year=2024/x.csv", "'year=2024/x.csv'");
    is_table("'it''s here.csv'", "'it''s here.csv'");
    is_table("'a; b'", NULL);
    is_table("'a -- b'", NULL);
    is_table("'a' 'b'", NULL);
    is_table("'a", NULL);
    is_table("a b.csv", NULL);
    is_table("it's.csv", NULL);
    is_table("a\"b", NULL);
    is_table("\"a", NULL);
    is_table("read_csv('x')", NULL);
    is_table("", NULL);
}
END_TEST

static bool probe_finds(const char *generation, const char *build_id)
{
    struct run r;
    struct wh_table t = table_of("sales", generation, build_id);
    run_init(&r, wh);
    wh->ops->probe(&r.op, &t, 1);
    ck_assert_msg(wait_for(&r) == 0, "%s", r.op.err.text);
    return r.op.facts.relations[0].fence.still_there;
}

START_TEST(a_probe_looks_at_files_and_their_sizes)
{
    struct run r;
    const char *generation = generation_of(NULL, 100);
    ck_assert_int_eq(do_build(&r, "sales", 100, "SELECT 1 AS n"), 0);
    ck_assert(probe_finds(generation, "b1"));
    ck_assert(probe_finds(generation, NULL));
    ck_assert(!probe_finds(generation, "b2"));
    ck_assert(!probe_finds(generation_of(NULL, 101), "b1"));

    FILE *f = fopen(path_of(100, "data-1.parquet"), "w"); /* by hand */
    ck_assert_ptr_nonnull(f);
    (void)fclose(f);
    ck_assert(!probe_finds(generation, "b1"));
    ck_assert_int_eq(unlink(path_of(100, "data-1.parquet")), 0);
    ck_assert(probe_finds(generation, "b1"));
    cut_file(path_of(100, "data-0.parquet"), 10);
    ck_assert(!probe_finds(generation, "b1"));
    ck_assert_int_eq(unlink(path_of(100, "data-0.parquet")), 0);
    ck_assert(!probe_finds(generation, "b1"));
}
END_TEST

static int drop(struct run *r, uint64_t token)
{
    struct wh_table t = staging_of("sales", token);
    run_init(r, wh);
    wh->ops->drop(&r->op, &t, token + 1);
    return wait_for(r);
}

START_TEST(a_generation_is_dropped_once_and_again)
{
    struct run r;
    ck_assert_int_eq(do_build(&r, "sales", 100, "SELECT 1 AS n"), 0);
    ck_assert_int_eq(drop(&r, 100), 0);
    ck_assert_uint_eq(r.op.facts.rows, 1);
    ck_assert_int_ne(access(path_of(100, ""), F_OK), 0);
    ck_assert_int_eq(drop(&r, 100), 0);
    ck_assert_uint_eq(r.op.facts.rows, 0);
}
END_TEST

START_TEST(a_sweep_without_a_record_is_refused)
{
    struct run r;
    const char *const datasets[] = {DUCK_DATASET};
    ck_assert_int_eq(do_build(&r, "sales", 100, "SELECT 1 AS n"), 0);
    run_init(&r, wh);
    wh->ops->sweep(
        &r.op, &(struct wh_sweep){.schemas = datasets, .n_schemas = 1, .older_than_us = INT64_MAX});
    ck_assert_int_eq(wait_for(&r), ERR_ARG);
    ck_assert_int_eq(rows_of("_kiln_100"), 1);
}
END_TEST

void add_duckdb_look_tests(TCase *tc)
{
    tcase_add_test(tc, the_catalog_tells_which_names_can_be_targets);
    tcase_add_test(tc, table_paths_are_written_as_the_compiler_writes_them);
    tcase_add_test(tc, a_probe_looks_at_files_and_their_sizes);
    tcase_add_test(tc, a_generation_is_dropped_once_and_again);
    tcase_add_test(tc, a_sweep_without_a_record_is_refused);
}
