/* What DuckDB promises of builds beyond the suite. */
#include "common/generation/generation.h"
#include "tests/conformance/warehouse_duckdb_fixture.h"
#include "tests/conformance/warehouse_suites.h"

#include <signal.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <unistd.h>

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

static int do_describe(struct run *r, const char *sql)
{
    run_init(r, wh);
    wh->ops->describe(&r->op, sql);
    return wait_for(r);
}

/* A CSV file is opened each time its columns are asked for. Equal events in a row are told once:
 * closing comes between. */
static int opened(int watch)
{
    char events[65536];
    ssize_t n = read(watch, events, sizeof(events));
    int opens = 0;
    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *ev = (const void *)(events + at);
        opens += ev->mask & IN_OPEN ? 1 : 0;
        at += (ssize_t)sizeof(*ev) + ev->len;
    }
    return opens;
}

START_TEST(a_build_describes_its_query_once)
{
    struct run r;
    const char *file = arena_printf(&arena, "%s/a.csv", duck_root);
    const char *sql = arena_printf(&arena, "SELECT * FROM '%s'", file);
    FILE *f = fopen(file, "w");
    ck_assert(f && fputs("a,b\n1,x\n2,y\n", f) >= 0 && fclose(f) == 0);
    int watch = inotify_init1(IN_NONBLOCK);
    ck_assert_int_ge(inotify_add_watch(watch, file, IN_OPEN | IN_CLOSE), 0);

    ck_assert_int_eq(do_describe(&r, sql), 0);
    int describe = opened(watch);
    ck_assert_int_eq(
        duck_run(arena_printf(&arena, "COPY (%s) TO '%s/a.parquet'", sql, duck_root), &r.op.err),
        0);
    int copy = opened(watch);
    ck_assert_int_eq(do_build(&r, "sales", 100, sql), 0);
    int build = opened(watch);
    (void)close(watch);

    ck_assert_int_gt(describe, 0);
    ck_assert_int_le(build, describe + copy);
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

void add_duckdb_build_tests(TCase *tc)
{
    tcase_add_test(tc, nothing_is_swapped_in_place);
    tcase_add_test(tc, a_build_needs_the_id_of_its_generation);
    tcase_add_test(tc, a_build_takes_one_select_and_nothing_else);
    tcase_add_test(tc, a_build_runs_its_query_once);
    tcase_add_test(tc, a_build_describes_its_query_once);
    tcase_add_test(tc, a_build_on_a_full_disk_leaves_nothing_and_the_next_one_goes_well);
    tcase_add_test(tc, a_manifest_says_what_was_built);
}
