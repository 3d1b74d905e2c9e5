/* What DuckDB promises beyond the suite: publishing by binding, and exact types. */
#include "common/generation/generation.h"
#include "tests/conformance/warehouse_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- shorthands ---- */

static int ask(struct run *r, struct sink_told *s, struct wh_query q)
{
    sink_init(s);
    run_init(r, wh);
    wh->ops->query(&r->op, &q, &s->sink);
    return wait_for(r);
}

static const char *path_of(uint64_t token, const char *file)
{
    return arena_printf(&arena, "%s/%s/%s%s%s", duck_root, DUCK_DATASET, generation_of(NULL, token),
                        file[0] ? "/" : "", file);
}

static void bind_names(size_t n, const char *const *names, const uint64_t *tokens)
{
    for (size_t i = 0; i < n; i++) {
        duck_bindings[i] =
            (struct wh_duckdb_binding){names[i], generation_of(NULL, tokens[i]), "b1"};
    }
    n_duck_bindings = n;
}

static void cut_file(const char *path, off_t bytes)
{
    ck_assert_int_eq(truncate(path, bytes), 0);
}

/* ---- building ---- */

START_TEST(nothing_is_swapped_in_place)
{
    struct run r;
    ck_assert_int_eq(wh->ops->cls, WH_CLASS_BY_BINDING);
    ck_assert_int_eq(do_build(&r, "sales", 100, "SELECT 1 AS n"), 0);
    ck_assert_int_eq(do_swap(&r, "sales", 100, "g1", false), ERR_UNSUPPORTED);
    ck_assert_int_eq(do_resolve(&r, "sales", 100), ERR_UNSUPPORTED);
}
END_TEST

START_TEST(a_build_needs_the_id_of_its_generation)
{
    struct run r;
    run_init(&r, wh);
    wh->ops->build(&r.op, &(struct wh_build){.table = table_of("sales", "../x", "b1"),
                                             .token = 1,
                                             .sql = "SELECT 1 AS n"});
    ck_assert_int_eq(wait_for(&r), ERR_ARG);
}
END_TEST

START_TEST(a_build_takes_one_select_and_nothing_else)
{
    static const char *const refused[] = {
        "SELECT 1 AS n) TO '/tmp/kt-never.csv'; --",
        "SELECT 1; SELECT 2",
        "CREATE TABLE x(i INT)",
        "COPY (SELECT 1) TO '/tmp/kt-never.csv'",
        "SET threads = 1",
        "",
        "SELECT 1 AS n) --",
    };
    struct run r;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        int rc = do_build(&r, "sales", 100, refused[i]);
        ck_assert_msg(rc == ERR_WH_SQL || rc == ERR_WH_DENIED, "%s: %d", refused[i], rc);
        ck_assert_int_eq(rows_of("_kiln_100"), -1);
    }
    ck_assert_int_ne(access("/tmp/kt-never.csv", F_OK), 0);
    ck_assert_int_eq(do_build(&r, "sales", 100, "SELECT 1 AS n -- and a comment"), 0);
    ck_assert_int_eq(do_build(&r, "sales", 100, "WITH a AS (SELECT 1 AS n) SELECT * FROM a;"),
                     ERR_WH_SQL);
}
END_TEST

/* An open query already works in the background: looking at its columns must not open it. */
START_TEST(a_build_runs_its_query_once)
{
    struct run r;
    struct sink_told s;
    ck_assert_int_eq(duck_run("CREATE SEQUENCE seq", &r.op.err), 0);
    ck_assert_int_eq(do_build(&r, "sales", 100,
                              "SELECT max(nextval('seq') + 0 * i) AS n FROM range(300000) t(i)"),
                     0);
    ck_assert_int_eq(ask(&r, &s, (struct wh_query){.sql = "SELECT nextval('seq')"}), 0);
    ck_assert_str_eq(s.first, "300001");
}
END_TEST

/* The file system's limit stands for a full disk: writes fail in the middle of a file. */
START_TEST(a_build_on_a_full_disk_leaves_nothing_and_the_next_one_goes_well)
{
    struct run r;
    struct rlimit old;
    const char *big = "SELECT hash(i) AS h, hash(i + 1) AS k FROM range(1000000) t(i)";
    (void)signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){1 << 20, old.rlim_max}), 0);
    int rc = do_build(&r, "sales", 100, big);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);

    ck_assert_msg(rc == ERR_IO, "%d: %s", rc, r.op.err.text);
    ck_assert_int_ne(access(path_of(100, ""), F_OK), 0);
    ck_assert_int_eq(do_build(&r, "sales", 101, big), 0);
    ck_assert_uint_eq(r.op.facts.rows, 1000000);
}
END_TEST

START_TEST(a_manifest_says_what_was_built)
{
    struct run r;
    struct generation_manifest m;
    struct err e;
    ck_assert_int_eq(do_build(&r, "sales", 100, "SELECT 1 AS \"a \"\"b\", sum(2) AS s"), 0);

    const struct generation_ref ref = {duck_root, DUCK_DATASET, generation_of(NULL, 100)};
    ck_assert_int_eq(generation_read(&arena, &ref, &m, &e), 0);
    ck_assert_int_eq(generation_verify(&ref, &m, GENERATION_HASHES, &e), 0);
    ck_assert_str_eq(m.target, "sales");
    ck_assert_str_eq(m.build_id, "b1");
    ck_assert_uint_eq(m.token, 100);
    ck_assert_uint_eq(m.rows, 1);
    ck_assert_uint_eq(m.bytes, r.op.facts.bytes);
    ck_assert_int_eq(m.data_as_of_us, r.op.facts.data_as_of_us);
    ck_assert_uint_eq(r.op.facts.n_files, 1);
    ck_assert_str_eq(r.op.facts.files[0].name, "data-0.parquet");
    ck_assert_uint_eq(r.op.facts.files[0].bytes, m.bytes);
    ck_assert_uint_eq(m.n_columns, 2);
    ck_assert_str_eq(m.columns[0].name, "a \"b");
    ck_assert_str_eq(m.columns[1].type, "HUGEINT");
    ck_assert_str_eq(m.columns[1].stored, "BIGINT");
    ck_assert(uuid_eq(&m.installation, &us));
}
END_TEST

/* ---- binding ---- */

START_TEST(a_bound_generation_is_read_under_its_name_with_its_epoch)
{
    struct run r;
    struct sink_told s;
    publish("Sales of \"2024\"", 100, NULL, 7);
    struct wh_query q = {.sql = "SELECT count(*) FROM \"Sales of \"\"2024\"\"\"",
                         .read_only = true};
    sink_init(&s);
    run_init(&r, wh);
    wh->ops->query(&r.op, &q, &s.sink);
    ck_assert_msg(wait_for(&r) == 0, "%s", r.op.err.text);
    ck_assert_str_eq(s.first, "7");
    ck_assert_uint_eq(q.epoch, 1);
    ck_assert_uint_eq(wh_duckdb_epoch(wh), 1);
}
END_TEST

START_TEST(an_older_epoch_changes_nothing)
{
    struct run r;
    publish("sales", 100, NULL, 7);
    publish("sales", 101, NULL, 9);
    bind_names(1, (const char *const[]){"sales"}, (const uint64_t[]){100});
    ck_assert_int_eq(duck_bind(&r, 1), 0);
    ck_assert_int_eq(duck_bind(&r, 2), 0);
    ck_assert_int_eq(rows_of("sales"), 9);
    ck_assert_uint_eq(wh_duckdb_epoch(wh), 2);
}
END_TEST

START_TEST(names_that_are_bound_no_more_are_gone)
{
    struct run r;
    struct sink_told s;
    publish("sales", 100, NULL, 7);
    publish("other", 101, NULL, 3);
    bind_names(1, (const char *const[]){"other"}, (const uint64_t[]){101});
    ck_assert_int_eq(duck_bind(&r, 10), 0);
    ck_assert_int_eq(ask(&r, &s, (struct wh_query){.sql = "SELECT * FROM sales"}), ERR_WH_MISSING);
    ck_assert_int_eq(rows_of("other"), 3);
}
END_TEST

START_TEST(what_cannot_be_bound_leaves_the_bindings_in_force)
{
    struct run r;
    const char *const names[] = {"other", "sales"};
    publish("sales", 100, NULL, 7);
    ck_assert_int_eq(do_build(&r, "other", 101, "SELECT 1 AS n"), 0);

    bind_names(2, names, (const uint64_t[]){101, 999});
    ck_assert_int_eq(duck_bind(&r, 5), ERR_WH_MISSING);
    ck_assert_ptr_nonnull(strstr(r.op.err.text, "sales cannot be bound"));

    cut_file(path_of(101, "data-0.parquet"), 100);
    bind_names(2, names, (const uint64_t[]){101, 100});
    ck_assert_int_eq(duck_bind(&r, 5), ERR_GENERATION);
    ck_assert_ptr_nonnull(strstr(r.op.err.text, "other cannot be bound"));

    ck_assert_uint_eq(wh_duckdb_epoch(wh), 1);
    ck_assert_int_eq(rows_of("sales"), 7);
    ck_assert_int_eq(rows_of("other"), -1);
}
END_TEST

START_TEST(a_bound_file_that_vanishes_is_missing_and_one_cut_off_an_error)
{
    struct run r;
    struct sink_told s;
    publish("sales", 100, NULL, 7);
    struct wh_receipt baked = {.name = {"", "sales"}, .build_id = "b1"};
    struct wh_query q = {.sql = "SELECT max(n) FROM sales", .baked = &baked, .n_baked = 1};

    ck_assert_int_eq(ask(&r, &s, q), 0);
    ck_assert_int_eq(unlink(path_of(100, "data-0.parquet")), 0);
    ck_assert_int_eq(ask(&r, &s, q), ERR_WH_MISSING);
    ck_assert_int_eq(s.rows, 0);

    publish("sales", 101, NULL, 7);
    cut_file(path_of(101, "data-0.parquet"), 30);
    ck_assert_int_lt(ask(&r, &s, q), 0);
    ck_assert_int_eq(s.rows, 0);
    ck_assert_ptr_nonnull(strstr(r.op.err.text, "data-0.parquet"));
    ck_assert_ptr_nonnull(strstr(r.op.err.text, generation_of(NULL, 101)));
}
END_TEST

START_TEST(what_is_in_memory_goes_when_it_is_bound_no_more)
{
    struct run r;
    struct sink_told s;
    struct wh_query q = {.sql = "SELECT count(*) FROM information_schema.tables WHERE table_schema "
                                "= 'kiln'"};
    publish("sales", 100, NULL, 7);
    publish("other", 101, NULL, 7);
    publish("sales", 102, NULL, 8);
    ck_assert_int_eq(ask(&r, &s, q), 0);
    ck_assert_str_eq(s.first, duck_resident ? "2" : "0");
    ck_assert_int_eq(rows_of("sales"), 8);
}
END_TEST

START_TEST(a_prepared_query_reads_what_is_bound_now)
{
    struct run r;
    struct sink_told s;
    struct wh_query q = {.sql = "SELECT count(*) FROM sales", .prepare_as = "q", .read_only = true};
    for (uint64_t i = 0; i < 6; i++) {
        publish("sales", 100 + i, NULL, (unsigned)(7 + i));
        ck_assert_int_eq(ask(&r, &s, q), 0);
        ck_assert_str_eq(s.first, arena_printf(&arena, "%d", (int)(7 + i)));
    }
    q.sql = "SELECT 1 + count(*) FROM sales"; /* the same key for another text */
    ck_assert_int_eq(ask(&r, &s, q), 0);
    ck_assert_str_eq(s.first, "13");
}
END_TEST

/* Two names of one generation number, swapped under readers: they never differ. */
struct reader {
    struct run run;
    struct sink_told told;
    struct wh_query query;
    bool differs;
};

static int on_pair(void *data, const struct slice *cells)
{
    struct reader *r = data;
    r->differs = r->differs || !slice_eq(cells[0], cells[1]) ||
                 !slice_is(cells[0],
                           arena_printf(&arena, "%llu", (unsigned long long)(90 + r->query.epoch)));
    return 0;
}

static void read_again(struct reader *r)
{
    r->query = (struct wh_query){.sql = "SELECT (SELECT max(n) FROM a), (SELECT max(n) FROM b)",
                                 .prepare_as = "pair"};
    r->told.sink = (struct wh_sink){.data = r, .on_row = on_pair};
    run_init(&r->run, wh);
    wh->ops->query(&r->run.op, &r->query, &r->told.sink);
}

START_TEST(a_swap_under_readers_is_seen_whole_and_with_its_epoch)
{
    static struct reader readers[2];
    struct run r;
    memset(readers, 0, sizeof readers);
    for (uint64_t i = 1; i <= 20; i++) {
        const char *sql = arena_printf(&arena, "SELECT %d AS n", (int)(90 + i));
        ck_assert_int_eq(do_build(&r, "a", 1000 + i, sql), 0);
        ck_assert_int_eq(do_build(&r, "b", 2000 + i, sql), 0);
    }
    for (uint64_t i = 1; i <= 20; i++) { /* each swap meets the reads that began before it */
        bind_names(2, (const char *const[]){"a", "b"}, (const uint64_t[]){1000 + i, 2000 + i});
        ck_assert_int_eq(duck_bind(&r, i), 0);
        for (size_t k = 0; k < ARRAY_LEN(readers); k++) {
            if (i > 1) {
                turn_until(readers[k].run.dones == 1);
                ck_assert_msg(readers[k].run.op.rc == 0, "%s", readers[k].run.op.err.text);
            }
            read_again(&readers[k]);
        }
    }
    for (size_t k = 0; k < ARRAY_LEN(readers); k++) {
        turn_until(readers[k].run.dones == 1);
        ck_assert_int_eq(readers[k].run.op.rc, 0);
        ck_assert(!readers[k].differs);
    }
}
END_TEST

START_TEST(handles_of_a_package_share_what_is_bound)
{
    struct run r;
    struct sink_told s;
    struct wh *second = wh_duckdb_share(loop, wh);
    publish("sales", 100, NULL, 7);
    struct wh_query q = {.sql = "SELECT count(*) FROM sales"};
    sink_init(&s);
    run_init(&r, second);
    second->ops->query(&r.op, &q, &s.sink);
    ck_assert_int_eq(wait_for(&r), 0);
    ck_assert_str_eq(s.first, "7");
    ck_assert_uint_eq(wh_duckdb_epoch(second), 1);
    connection_close(second);
    ck_assert_int_eq(rows_of("sales"), 7);
}
END_TEST

/* ---- looking and clearing up ---- */

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

/* ---- types ---- */

static const struct {
    const char *type, *sql;
    bool is_kept;
} cases[] = {
#define KEPT true
#define LOST false
#define DUCK_CASE(type, sql, json, kept) {type, sql, kept},
#include "tests/support/duck_cases.def"
#undef DUCK_CASE
};

struct row_told {
    struct wh_sink sink;
    char *row;
};

static int on_json(void *data, const struct slice *cells)
{
    struct row_told *t = data;
    t->row = arena_slice(&arena, cells[0]);
    return 0;
}

static const char *json_row(const char *sql)
{
    struct run r;
    struct row_told t = {.row = NULL};
    t.sink = (struct wh_sink){.data = &t, .on_row = on_json};
    struct wh_query q = {.sql = sql, .json_rows = true, .read_only = true};
    run_init(&r, wh);
    wh->ops->query(&r.op, &q, &t.sink);
    ck_assert_msg(wait_for(&r) == 0, "%s: %s", sql, r.op.err.text);
    ck_assert_ptr_nonnull(t.row);
    return t.row;
}

START_TEST(every_type_comes_back_exactly_or_is_refused_by_name)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run r;
        const char *source = arena_printf(&arena, "SELECT %s AS \"the v\"", cases[i].sql);
        int rc = do_build(&r, "typed", 1000 + i, source);
        if (!cases[i].is_kept) {
            ck_assert_msg(rc == ERR_UNSUPPORTED || rc == ERR_WH_SQL, "%s: %d", cases[i].sql, rc);
            ck_assert_msg(strstr(r.op.err.text, "the v"), "%s: %s", cases[i].sql, r.op.err.text);
            continue;
        }
        ck_assert_msg(rc == 0, "%s: %s", cases[i].sql, r.op.err.text);
        bind_names(1, (const char *const[]){"typed"}, (const uint64_t[]){1000 + i});
        ck_assert_msg(duck_bind(&r, 1000 + i) == 0, "%s: %s", cases[i].sql, r.op.err.text);
        const char *both = "SELECT \"the v\" AS v, typeof(\"the v\") AS t FROM";
        const char *live = json_row(arena_printf(&arena, "%s (%s)", both, source));
        const char *baked = json_row(arena_printf(&arena, "%s typed", both));
        if (strcmp(cases[i].type, "NULL") != 0) {
            ck_assert_str_eq(baked, live);
        }
    }
}
END_TEST

void add_by_binding_tests(TCase *tc)
{
    tcase_add_test(tc, nothing_is_swapped_in_place);
    tcase_add_test(tc, a_build_needs_the_id_of_its_generation);
    tcase_add_test(tc, a_build_takes_one_select_and_nothing_else);
    tcase_add_test(tc, a_build_runs_its_query_once);
    tcase_add_test(tc, a_build_on_a_full_disk_leaves_nothing_and_the_next_one_goes_well);
    tcase_add_test(tc, a_manifest_says_what_was_built);
    tcase_add_test(tc, a_bound_generation_is_read_under_its_name_with_its_epoch);
    tcase_add_test(tc, an_older_epoch_changes_nothing);
    tcase_add_test(tc, names_that_are_bound_no_more_are_gone);
    tcase_add_test(tc, what_cannot_be_bound_leaves_the_bindings_in_force);
    tcase_add_test(tc, a_bound_file_that_vanishes_is_missing_and_one_cut_off_an_error);
    tcase_add_test(tc, what_is_in_memory_goes_when_it_is_bound_no_more);
    tcase_add_test(tc, a_prepared_query_reads_what_is_bound_now);
    tcase_add_test(tc, a_swap_under_readers_is_seen_whole_and_with_its_epoch);
    tcase_add_test(tc, handles_of_a_package_share_what_is_bound);
    tcase_add_test(tc, the_catalog_tells_which_names_can_be_targets);
    tcase_add_test(tc, table_paths_are_written_as_the_compiler_writes_them);
    tcase_add_test(tc, a_probe_looks_at_files_and_their_sizes);
    tcase_add_test(tc, a_generation_is_dropped_once_and_again);
    tcase_add_test(tc, a_sweep_without_a_record_is_refused);
    tcase_add_test(tc, every_type_comes_back_exactly_or_is_refused_by_name);
}
