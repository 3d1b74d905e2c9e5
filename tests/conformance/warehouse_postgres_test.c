/* What only a real PostgreSQL shows: types, names, locks, lost answers, receipts under concurrent
 * swaps. */
#include "tests/conformance/warehouse_fixture.h"
#include "tests/conformance/warehouse_suites.h"

#include <stdio.h>

#define ROWS(n) "SELECT g AS n FROM generate_series(1, " #n ") g"

static void setup(void)
{
    engine_start(ENGINE_POSTGRES);
}

static void check_types(const struct wh_columns *cols)
{
    static const struct wh_column expected[] = {
        {.name = "i", .data_type = "integer"},
        {.name = "d", .data_type = "numeric"},
        {.name = "v", .data_type = "character varying"},
        {.name = "tz", .data_type = "timestamp with time zone"},
        {.name = "ai", .data_type = "ARRAY", .element_type = "integer"},
        {.name = "at", .data_type = "ARRAY", .element_type = "text"},
        {.name = "dom", .data_type = "text"},
        {.name = "ad", .data_type = "ARRAY", .element_type = "text"},
        {.name = "en", .data_type = "mart.mood"},
        {.name = "j", .data_type = "jsonb"},
    };
    ck_assert_uint_eq(cols->n, ARRAY_LEN(expected));
    for (size_t i = 0; i < cols->n; i++) {
        ck_assert_str_eq(cols->items[i].name, expected[i].name);
        ck_assert_str_eq(cols->items[i].data_type, expected[i].data_type);
        ck_assert_pstr_eq(cols->items[i].element_type, expected[i].element_type);
    }
}

START_TEST(types_are_spelled_alike_everywhere)
{
    struct run r;
    sql("CREATE DOMAIN mart.name1 AS text; CREATE DOMAIN mart.name2 AS mart.name1; CREATE TYPE "
        "mart.mood AS ENUM ('sad'); CREATE TABLE mart.types (i int NOT NULL, d numeric(10,2), v "
        "varchar(7), tz timestamptz(3), ai int[], at text[][], dom mart.name2, ad mart.name1[], en "
        "mart.mood, j jsonb); GRANT SELECT ON mart.types TO kiln; CREATE MATERIALIZED VIEW mart.mv "
        "AS SELECT * FROM mart.types; ALTER MATERIALIZED VIEW mart.mv OWNER TO kiln");
    const char *const paths[] = {"mart.types", "mart.mv", "Mart.Types"};
    run_init(&r, wh);
    wh->ops->catalog_tables(&r.op, paths, 3);
    ck_assert_msg(wait_for(&r) == 0, "%s", err_text(&r.op.err));
    for (int i = 0; i < 3; i++) {
        ck_assert_msg(!r.op.facts.schema_errors[i], "%s", r.op.facts.schema_errors[i]);
        check_types(&r.op.facts.schemas[i]);
    }
    ck_assert(!r.op.facts.schemas[0].items[0].nullable);
    ck_assert(r.op.facts.schemas[0].items[1].nullable);

    run_init(&r, wh);
    wh->ops->describe(&r.op, "SELECT * FROM mart.types");
    ck_assert_int_eq(wait_for(&r), 0);
    check_types(&r.op.facts.columns);
    ck_assert_int_eq(do_build(&r, "copy", 5, "SELECT * FROM mart.types; -- all of it"), 0);
    check_types(&r.op.facts.columns);
}
END_TEST

START_TEST(one_bad_path_does_not_hide_the_others)
{
    struct run r;
    sql("CREATE TABLE mart.a (x int); CREATE TABLE mart.secret (x int); CREATE SEQUENCE mart.seq; "
        "GRANT SELECT ON mart.a TO kiln");
    const char *const paths[] = {"mart.a", "elsewhere.mart.a", "mart.secret", "mart.seq", "mart.a"};
    run_init(&r, wh);
    wh->ops->catalog_tables(&r.op, paths, 5);
    ck_assert_msg(wait_for(&r) == 0, "%s", err_text(&r.op.err));
    const struct wh_facts *facts = &r.op.facts;
    ck_assert_ptr_null(facts->schema_errors[0]);
    ck_assert_ptr_nonnull(strstr(facts->schema_errors[1], "cross-database"));
    ck_assert_ptr_nonnull(strstr(facts->schema_errors[2], "grant SELECT"));
    ck_assert_ptr_nonnull(strstr(facts->schema_errors[3], "neither a table nor a view"));
    ck_assert_uint_eq(facts->schemas[4].n, 1);
}
END_TEST

START_TEST(odd_names_are_names)
{
    struct run r;
    publish("gr\u00fcn \"x\".y it's", 100, "g1", 4);
    ck_assert_int_eq(do_probe(&r, "gr\u00fcn \"x\".y it's", "g1"), 0);
    ck_assert(r.op.facts.relations[0].fence.still_there);
    publish("gr\u00fcn \"x\".y it's", 200, "g2", 5);
    struct wh_receipt baked = {.name = {"mart", "gr\u00fcn \"x\".y it's"}, .build_id = "b1"};
    struct sink_told s;
    sink_init(&s);
    struct wh_query q = {.sql = "SELECT count(*) FROM mart.\"gr\u00fcn \"\"x\"\".y it's\"",
                         .baked = &baked,
                         .n_baked = 1,
                         .read_only = true};
    run_init(&r, wh);
    wh->ops->query(&r.op, &q, &s.sink);
    ck_assert_msg(wait_for(&r) == 0, "%s", err_text(&r.op.err));
    ck_assert_str_eq(s.first, "5");
    ck_assert_int_eq(do_drop(&r, "gr\u00fcn \"x\".y it's", 300), 0);
    ck_assert_uint_eq(r.op.facts.rows, 1);
}
END_TEST

START_TEST(a_view_at_the_name_is_no_target)
{
    struct run r;
    sql("CREATE VIEW mart.sales AS SELECT 1 AS n");
    ck_assert_int_eq(do_build(&r, "sales", 100, ROWS(7)), 0);
    ck_assert_int_eq(do_swap(&r, "sales", 100, "g1", true), ERR_WH_TARGET);
    ck_assert_ptr_nonnull(strstr(r.op.err.text, "not an ordinary table"));
}
END_TEST

START_TEST(a_build_is_in_utc_and_its_query_cannot_end_its_comment)
{
    struct run r;
    sql("ALTER ROLE kiln SET TimeZone = 'Asia/Tokyo'");
    ck_assert_int_eq(
        do_build(&r, "sales", 100,
                 "SELECT date_trunc('day', timestamptz '2024-01-01 20:00Z')::text AS d"),
        0);
    ck_assert_str_eq(value("SELECT d FROM mart._kiln_100"), "2024-01-01 00:00:00+00");
    sql("ALTER ROLE kiln RESET TimeZone");
}
END_TEST

START_TEST(served_queries_cannot_write)
{
    struct run r;
    struct sink_told s;
    sink_init(&s);
    struct wh_query q = {.sql = "CREATE TABLE mart.evil (a int)", .read_only = true};
    run_init(&r, wh);
    wh->ops->query(&r.op, &q, &s.sink);
    ck_assert_int_eq(wait_for(&r), ERR_WH_SQL);
    ck_assert_str_eq(r.op.err.sqlstate, "25006");
}
END_TEST

/* A session of someone else that reads the table for a while. */
static struct run reader;
static struct sink_told reader_sink;
static struct wh_query reader_query;

static void read_for(struct wh *w, const char *query)
{
    sink_init(&reader_sink);
    reader_query = (struct wh_query){.sql = query, .read_only = true};
    run_init(&reader, w);
    w->ops->query(&reader.op, &reader_query, &reader_sink.sink);
    turn_until(strcmp(value("SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND "
                            "query LIKE '%pg_sleep%' AND pid <> pg_backend_pid()"),
                      "0") != 0);
}

START_TEST(a_swap_waits_for_readers_without_stopping_new_ones)
{
    struct run r;
    publish("sales", 100, "g1", 7);
    ck_assert_int_eq(do_build(&r, "sales", 200, ROWS(9)), 0);
    struct wh *other = connection_open(false, 2);
    struct ms since = loop_now(loop);
    read_for(other, "SELECT (SELECT count(*) FROM mart.sales), pg_sleep(1.5)::text");

    ck_assert_msg(do_swap(&r, "sales", 200, "g2", false) == 0, "%s", err_text(&r.op.err));

    /* Not before the reader had slept; who hears of his end first is not said. */
    ck_assert_int_ge(ms_sub(loop_now(loop), since).v, 1500);
    turn_until(reader.dones == 1);
    ck_assert_int_eq(reader.op.rc, 0);
    ck_assert_str_eq(reader_sink.first, "7");
    ck_assert_int_eq(rows_of("sales"), 9);
    connection_close(other);
}
END_TEST

START_TEST(a_swap_gives_a_busy_target_up_in_time)
{
    struct run r;
    publish("sales", 100, "g1", 7);
    ck_assert_int_eq(do_build(&r, "sales", 200, ROWS(9)), 0);
    struct wh *other = connection_open(false, 2);
    read_for(other, "SELECT pg_sleep(600)::text, (SELECT count(*) FROM mart.sales)");

    run_init(&r, wh);
    r.op.timeout = MS(1500);
    wh->ops->swap(&r.op,
                  &(struct wh_publish){.table = table_of("sales", "g2", "b1"), .token = 200});
    ck_assert_int_eq(wait_for(&r), ERR_TARGET_BUSY);

    run_init(&r, wh);
    struct wh_table t = table_of("sales", NULL, NULL);
    r.op.timeout = MS(1500);
    wh->ops->drop(&r.op, &t, 300);
    ck_assert_int_eq(wait_for(&r), ERR_TARGET_BUSY);
    other->ops->cancel(&reader.op);
    ck_assert_int_eq(wait_for(&reader), ERR_CANCELLED);
    connection_close(other);
    ck_assert_int_eq(rows_of("sales"), 7);
}
END_TEST

static void kill_committing(void)
{
    turn_until(strcmp(value("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"),
                      "1") == 0);
    sql("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE wait_event = "
        "'SyncRep'");
}

/* A commit that waits for a standby that is not there, then loses its connection: it was committed
 * all the same. */
START_TEST(a_commit_without_an_answer_is_resolved)
{
    struct run r;
    publish("sales", 100, "g1", 7);
    ck_assert_int_eq(do_build(&r, "sales", 200, ROWS(9)), 0);
    connection_close(wh);
    sql("ALTER ROLE kiln SET synchronous_commit = on");
    wh = connection_open(true, 3);
    struct run hello;
    run_init(&hello, wh);
    wh->ops->test(&hello.op);
    ck_assert_int_eq(wait_for(&hello), 0);
    sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    sql("SELECT pg_reload_conf()");
    turn_until(strcmp(value("SHOW synchronous_standby_names"), "nobody") == 0);

    run_init(&r, wh);
    wh->ops->swap(&r.op, &(struct wh_publish){
                             .table = table_of("sales", "g2", "b1"), .token = 200, .rows = 9});
    kill_committing();
    sql("ALTER SYSTEM RESET synchronous_standby_names");
    sql("SELECT pg_reload_conf()");

    ck_assert_msg(wait_for(&r) == 0, "%s", err_text(&r.op.err));
    ck_assert_uint_eq(r.op.facts.fence.published, 200);
    ck_assert_int_eq(rows_of("sales"), 9);
    sql("ALTER ROLE kiln RESET synchronous_commit");
}
END_TEST

/* ---- receipts while tables are swapped under the readers ---- */

struct asker {
    struct run run;
    struct sink_told sink;
    struct wh_query query;
    struct wh_receipt baked[2];
    struct arena arena;
    struct wh *wh;
    int asked, wrong, failed;
    bool stop, stopped;
};

static void ask_again(struct asker *a);

/* Each generation's name is its number of rows: what was counted must be what the receipt names. */
static void on_answer(struct wh_op *op)
{
    struct asker *a = container_of(container_of(op, struct run, op), struct asker, run);
    a->asked++;
    if (op->rc != 0) {
        a->failed++;
    } else if (!a->baked[0].ok || strcmp(a->sink.first, a->baked[0].generation) != 0) {
        a->wrong++;
    }
    ask_again(a);
}

static void ask_again(struct asker *a)
{
    arena_reset(&a->arena);
    if (a->stop) {
        a->stopped = true;
        return;
    }
    sink_init(&a->sink);
    a->run.op = (struct wh_op){.wh = a->wh, .arena = &a->arena, .done = on_answer};
    a->wh->ops->query(&a->run.op, &a->query, &a->sink.sink);
}

START_TEST(a_receipt_is_true_under_concurrent_swaps)
{
    enum { ASKERS = 3, SWAPS = 25 };
    struct asker askers[ASKERS];
    struct wh *readers = connection_open(false, ASKERS);
    publish("sales", 100, "1", 1);
    for (int i = 0; i < ASKERS; i++) {
        askers[i] = (struct asker){.wh = readers};
        askers[i].baked[0] = (struct wh_receipt){.name = {"mart", "sales"}, .build_id = "b1"};
        askers[i].query = (struct wh_query){.sql = "SELECT count(*) FROM mart.sales",
                                            .baked = askers[i].baked,
                                            .n_baked = 1,
                                            .read_only = true,
                                            .prepare_as = "q"};
        arena_init(&askers[i].arena);
        ask_again(&askers[i]);
    }

    for (unsigned n = 2; n <= SWAPS; n++) {
        publish("sales", 100 + n, arena_printf(&arena, "%u", n), n);
    }

    for (int i = 0; i < ASKERS; i++) {
        askers[i].stop = true;
        turn_until(askers[i].stopped);
        ck_assert_int_gt(askers[i].asked, SWAPS);
        ck_assert_int_eq(askers[i].wrong, 0);
        ck_assert_int_eq(askers[i].failed, 0);
        arena_fini(&askers[i].arena);
    }
    connection_close(readers);
}
END_TEST

START_TEST(two_first_swaps_of_a_schema_may_make_the_fence_at_once)
{
    struct run r[4];
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(do_build(&r[i], "sales", 100 + i, ROWS(1)), 0);
    }
    static const char *const tables[] = {"a", "b", "c", "d"};
    for (unsigned i = 0; i < 4; i++) {
        run_init(&r[i], wh);
        wh->ops->swap(&r[i].op, &(struct wh_publish){.table = table_of(tables[i], "g", "b1"),
                                                     .token = 100 + i});
    }
    for (unsigned i = 0; i < 4; i++) {
        turn_until(r[i].dones == 1);
        ck_assert_msg(r[i].op.rc == 0, "%s", err_text(&r[i].op.err));
        ck_assert_int_eq(rows_of(tables[i]), 1);
    }
}
END_TEST

START_TEST(a_wrong_password_is_never_printed)
{
    struct wh *w = NULL;
    struct err e;
    const char *config = arena_printf(
        &arena,
        "{\"name\":\"x\",\"type\":\"postgres\",\"postgresConnection\":{\"connectionString\":"
        "\"postgresql://kiln:sup3rsecret@127.0.0.1:%d/sup3rsecret\"}}",
        server.port);
    ck_assert_int_eq(
        wh_open(loop, &(struct wh_settings){.name = "x", .type = "postgres", .config_json = config},
                &w, &e),
        0);
    struct run r;
    run_init(&r, w);
    w->ops->test(&r.op);
    ck_assert_int_eq(wait_for(&r), ERR_WH_MISSING);
    ck_assert_ptr_null(strstr(r.op.err.text, "sup3rsecret"));
    ck_assert_ptr_nonnull(strstr(r.op.err.text, "connection 'x'"));
    connection_close(w);
}
END_TEST

void add_postgres_tests(Suite *s)
{
    TCase *tc = tcase_create("postgres alone");
    tcase_add_checked_fixture(tc, setup, engine_stop);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, types_are_spelled_alike_everywhere);
    tcase_add_test(tc, one_bad_path_does_not_hide_the_others);
    tcase_add_test(tc, odd_names_are_names);
    tcase_add_test(tc, a_view_at_the_name_is_no_target);
    tcase_add_test(tc, a_build_is_in_utc_and_its_query_cannot_end_its_comment);
    tcase_add_test(tc, served_queries_cannot_write);
    tcase_add_test(tc, a_swap_waits_for_readers_without_stopping_new_ones);
    tcase_add_test(tc, a_swap_gives_a_busy_target_up_in_time);
    tcase_add_test(tc, a_commit_without_an_answer_is_resolved);
    tcase_add_test(tc, a_receipt_is_true_under_concurrent_swaps);
    tcase_add_test(tc, two_first_swaps_of_a_schema_may_make_the_fence_at_once);
    tcase_add_test(tc, a_wrong_password_is_never_printed);
    suite_add_tcase(s, tc);
}
