#include "common/pgc/pgc.h"
#include "tests/support/pg_server.h"
#include "tests/support/suite.h"
#include <stdio.h>

#define PATIENCE 20000 /* ms a test waits for a condition before it fails */
#define turn_until(l, claim)                                                                       \
    do {                                                                                           \
        struct ms limit = ms_add(loop_now(l), MS(PATIENCE));                                       \
        while (!(claim)) {                                                                         \
            ck_assert_msg(ms_before(loop_now(l), limit), "never: " #claim);                        \
            (void)loop_turn(l, MS(50));                                                            \
        }                                                                                          \
    } while (0)

static struct pg_server server;
static struct loop *loop;
static struct pgc_pool *pool;

static void on_closed(void *data)
{
    *(bool *)data = true;
}

static void open_pool(const char *conninfo, unsigned max, const char *const *setup)
{
    loop = loop_new();
    pool = pgc_pool_new(loop, &(struct pgc_settings){.conninfo = conninfo,
                                                     .max = max,
                                                     .setup = setup,
                                                     .what = "test store",
                                                     .secret = "hunter22"});
}

static void close_pool(void)
{
    bool closed = false;
    pgc_pool_close(pool, on_closed, &closed);
    turn_until(loop, closed);
    pgc_pool_free(pool);
    loop_free(loop);
}

static void setup(void)
{
    open_pool(pg_server_conninfo(&server, "postgres"), 2, NULL);
}

struct told {
    int dones, columns, rows, results;
    size_t stop_after;
    int veto; /* on_result of statement veto_at */
    size_t veto_at;
    char last[64];
};

static void on_done(struct pgc_batch *b)
{
    ((struct told *)b->data)->dones++;
}

static void on_columns(struct pgc_batch *b, size_t stmt, const struct pgc_result *r)
{
    (void)stmt;
    ck_assert_uint_gt(pgc_cols(r), 0);
    ((struct told *)b->data)->columns++;
}

static enum pgc_row_next on_row(struct pgc_batch *b, size_t stmt, const struct slice *cells)
{
    (void)stmt;
    struct told *t = b->data;
    t->rows++;
    snprintf(t->last, sizeof t->last, "%.*s", SLICE_FMT(cells[0]));
    return t->stop_after && (size_t)t->rows >= t->stop_after ? PGC_ROW_STOP : PGC_ROW_MORE;
}

static int on_result(struct pgc_batch *b, size_t stmt, const struct pgc_result *r)
{
    (void)r;
    struct told *t = b->data;
    t->results++;
    return t->veto && stmt == t->veto_at ? t->veto : 0;
}

static struct pgc_batch batch_of(const struct pgc_stmt *stmts, size_t n, struct told *t)
{
    return (struct pgc_batch){.stmts = stmts,
                              .n = n,
                              .on_columns = on_columns,
                              .on_row = on_row,
                              .on_result = on_result,
                              .done = on_done,
                              .data = t};
}

static void run_batch(struct pgc_batch *b)
{
    struct told *t = b->data;
    int before = t->dones;
    pgc_batch_start(pool, b);
    ck_assert_int_eq(t->dones, before); /* never inside the start */
    turn_until(loop, t->dones > before);
}

/* One statement without parameters; the caller finishes b. */
static void run_sql(struct pgc_batch *b, struct told *t, const struct pgc_stmt *stmt)
{
    *b = batch_of(stmt, 1, t);
    run_batch(b);
}

static int64_t value_of(const char *sql)
{
    struct told t = {0};
    struct pgc_batch b;
    run_sql(&b, &t, &(struct pgc_stmt){.sql = sql});
    ck_assert_msg(b.rc == 0, "%s: %s", sql, err_text(&b.err));
    int64_t v = pgc_i64(b.results[0], 0, 0);
    pgc_batch_fini(&b);
    return v;
}

START_TEST(a_batch_of_statements_is_answered_in_one_go)
{
    const char *params[] = {"41", NULL};
    struct pgc_stmt stmts[] = {
        {.sql = "CREATE TEMP TABLE t AS SELECT 1 AS a, 'x' AS b"},
        {.sql = "SELECT $1::int + 1 AS sum, $2::text AS nothing, true",
         .params = params,
         .n_params = 2},
        {.sql = "UPDATE t SET a = 7"},
    };
    struct told t = {0};
    struct pgc_batch b = batch_of(stmts, 3, &t);

    run_batch(&b);

    ck_assert_msg(b.rc == 0, "%s", err_text(&b.err));
    ck_assert_uint_eq(pgc_affected(b.results[0]), 1);
    ck_assert_int_eq(pgc_i64(b.results[1], 0, 0), 42);
    ck_assert_ptr_null(pgc_text(b.results[1], 0, 1));
    ck_assert(pgc_bool(b.results[1], 0, 2));
    ck_assert_str_eq(pgc_col_name(b.results[1], 0), "sum");
    ck_assert_uint_eq(pgc_col_type(b.results[1], 0), 23);
    ck_assert_uint_eq(pgc_affected(b.results[2]), 1);
    pgc_batch_fini(&b);
}
END_TEST

START_TEST(an_error_names_its_statement_and_undoes_the_batch)
{
    struct pgc_stmt stmts[] = {{.sql = "CREATE TABLE never (a int)"},
                               {.sql = "SELECT * FROM missing"},
                               {.sql = "SELECT 1"}};
    struct told t = {0};
    struct pgc_batch b = batch_of(stmts, 3, &t);

    run_batch(&b);

    ck_assert_int_eq(b.rc, ERR_WH_MISSING);
    ck_assert_str_eq(b.err.sqlstate, "42P01");
    ck_assert_uint_eq(b.failed_at, 1);
    ck_assert(!b.unknown_outcome);
    ck_assert_ptr_nonnull(strstr(b.err.text, "test store: relation \"missing\" does not exist"));
    ck_assert_ptr_null(b.results[2]);
    pgc_batch_fini(&b);
    ck_assert_int_eq(value_of("SELECT count(*) FROM pg_class WHERE relname = 'never'"), 0);
}
END_TEST

START_TEST(rows_are_streamed_one_by_one)
{
    struct told t = {0};
    struct pgc_batch b;

    run_sql(&b, &t,
            &(struct pgc_stmt){.sql = "SELECT g FROM generate_series(1, 50000) g", .stream = true});

    ck_assert_int_eq(b.rc, 0);
    ck_assert_int_eq(t.columns, 1);
    ck_assert_int_eq(t.rows, 50000);
    ck_assert_str_eq(t.last, "50000");
    ck_assert_uint_eq(pgc_rows(b.results[0]), 0);
    ck_assert_uint_eq(pgc_affected(b.results[0]), 50000);
    pgc_batch_fini(&b);
}
END_TEST

START_TEST(columns_are_told_when_there_is_no_row)
{
    struct told t = {0};
    struct pgc_batch b;

    run_sql(&b, &t, &(struct pgc_stmt){.sql = "SELECT 1 WHERE false", .stream = true});

    ck_assert_int_eq(b.rc, 0);
    ck_assert_int_eq(t.columns, 1);
    ck_assert_int_eq(t.rows, 0);
    pgc_batch_fini(&b);
}
END_TEST

START_TEST(a_reader_that_stops_ends_the_statement_early)
{
    struct told t = {.stop_after = 3};
    struct pgc_batch b;

    run_sql(&b, &t,
            &(struct pgc_stmt){.sql = "SELECT generate_series(1, 100000000)", .stream = true});

    ck_assert_int_eq(b.rc, ERR_CANCELLED);
    ck_assert_int_eq(t.rows, 3);
    pgc_batch_fini(&b);
    ck_assert_int_eq(value_of("SELECT 5"), 5);
}
END_TEST

START_TEST(a_veto_ends_the_batch_before_later_rows_are_seen)
{
    struct pgc_stmt stmts[] = {{.sql = "BEGIN READ ONLY"},
                               {.sql = "SELECT 1", .flush = true},
                               {.sql = "SELECT pg_sleep(30)", .stream = true},
                               {.sql = "COMMIT"}};
    struct told t = {.veto = ERR_STORE_MOVED, .veto_at = 1};
    struct pgc_batch b = batch_of(stmts, 4, &t);
    struct ms start = loop_now(loop);

    run_batch(&b);

    ck_assert_int_eq(b.rc, ERR_STORE_MOVED);
    ck_assert_uint_eq(b.failed_at, 1);
    ck_assert_int_eq(t.rows, 0);
    ck_assert_int_lt(ms_sub(loop_now(loop), start).v, 2000);
    pgc_batch_fini(&b);
    ck_assert_int_eq(value_of("SELECT 6"), 6);
}
END_TEST

START_TEST(a_statement_is_prepared_once_per_session)
{
    open_pool(pg_server_conninfo(&server, "postgres"), 1, NULL);
    struct pgc_stmt stmt = {.sql = "SELECT 7", .prepare_as = "seven"};
    for (int i = 0; i < 3; i++) {
        struct told t = {0};
        struct pgc_batch b;
        run_sql(&b, &t, &stmt);
        ck_assert_int_eq(b.rc, 0);
        ck_assert_int_eq(pgc_i64(b.results[0], 0, 0), 7);
        pgc_batch_fini(&b);
    }
    ck_assert_int_eq(value_of("SELECT count(*) FROM pg_prepared_statements"), 1);
    close_pool();
}
END_TEST

START_TEST(the_oldest_prepared_statements_go)
{
    open_pool(pg_server_conninfo(&server, "postgres"), 1, NULL);
    for (int i = 0; i < 230; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        struct told t = {0};
        struct pgc_batch b;
        run_sql(&b, &t, &(struct pgc_stmt){.sql = "SELECT 7", .prepare_as = name});
        ck_assert_int_eq(b.rc, 0);
        pgc_batch_fini(&b);
    }
    ck_assert_int_eq(value_of("SELECT count(*) FROM pg_prepared_statements"), 200);
    close_pool();
}
END_TEST

START_TEST(a_prepared_statement_survives_a_change_of_its_columns)
{
    setup();
    (void)value_of("SELECT 1");
    pg_server_exec(&server, "postgres", "DROP TABLE IF EXISTS c; CREATE TABLE c AS SELECT 1 AS a");
    struct pgc_stmt stmt = {.sql = "SELECT * FROM c", .prepare_as = "star"};
    struct told t = {0};
    struct pgc_batch b;
    run_sql(&b, &t, &stmt);
    ck_assert_int_eq(b.rc, 0);
    pgc_batch_fini(&b);

    pg_server_exec(&server, "postgres", "DROP TABLE c; CREATE TABLE c AS SELECT 'x' AS b, 2 AS a");
    run_sql(&b, &t, &stmt);

    ck_assert_msg(b.rc == 0, "%s", err_text(&b.err));
    ck_assert_uint_eq(pgc_cols(b.results[0]), 2);
    pgc_batch_fini(&b);
    close_pool();
}
END_TEST

START_TEST(cancel_reaches_a_running_statement_soon)
{
    struct told t = {0};
    struct pgc_batch b = batch_of(&(struct pgc_stmt){.sql = "SELECT pg_sleep(60)"}, 1, &t);
    pgc_batch_start(pool, &b);
    char *n = NULL;
    do {
        free(n);
        (void)loop_turn(loop, MS(10));
        n = pg_server_value(&server, "postgres",
                            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND "
                            "query LIKE '%pg_sleep(60)' AND pid <> pg_backend_pid()");
    } while (strcmp(n, "1") != 0);
    free(n);
    struct ms start = loop_now(loop);

    pgc_batch_cancel(&b);
    pgc_batch_cancel(&b);
    ck_assert_int_eq(t.dones, 0);
    turn_until(loop, t.dones == 1);

    ck_assert_int_eq(b.rc, ERR_CANCELLED);
    ck_assert_int_lt(ms_sub(loop_now(loop), start).v, 2000);
    pgc_batch_fini(&b);
    ck_assert_int_eq(value_of("SELECT 8"), 8);
}
END_TEST

START_TEST(a_timeout_cancels_the_statement)
{
    struct told t = {0};
    struct pgc_batch b = batch_of(&(struct pgc_stmt){.sql = "SELECT pg_sleep(60)"}, 1, &t);
    b.timeout = MS(100);

    run_batch(&b);

    ck_assert_int_eq(b.rc, ERR_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(b.err.text, "100 ms"));
    pgc_batch_fini(&b);
}
END_TEST

static void on_held(struct pgc_hold *h)
{
    *(int *)h->data += 1;
}

static struct pgc_conn *hold(void)
{
    int held = 0;
    struct pgc_hold h = {.done = on_held, .data = &held};
    pgc_hold_start(pool, &h);
    ck_assert_int_eq(held, 0);
    turn_until(loop, held);
    ck_assert_msg(h.rc == 0, "%s", err_text(&h.err));
    return h.conn;
}

START_TEST(a_session_left_in_a_transaction_is_rolled_back_before_its_next_use)
{
    open_pool(pg_server_conninfo(&server, "postgres"), 1, NULL);
    struct pgc_conn *c = hold();
    int pid = pgc_conn_pid(c);
    struct pgc_stmt stmts[] = {{.sql = "BEGIN"}, {.sql = "CREATE TABLE gone (a int)"}};
    struct told t = {0};
    struct pgc_batch b = batch_of(stmts, 2, &t);
    b.on = c;
    run_batch(&b);
    ck_assert_int_eq(b.rc, 0);
    pgc_batch_fini(&b);

    pgc_give(c, false);

    ck_assert_int_eq(value_of("SELECT pg_backend_pid()"), pid);
    ck_assert_int_eq(value_of("SELECT count(*) FROM pg_class WHERE relname = 'gone'"), 0);
    close_pool();
}
END_TEST

START_TEST(requests_wait_for_a_free_session)
{
    struct pgc_conn *one = hold();
    struct pgc_conn *two = hold();
    struct told t = {0};
    struct pgc_stmt stmt = {.sql = "SELECT 1"};
    struct pgc_batch waits = batch_of(&stmt, 1, &t);
    struct told t2 = {0};
    struct pgc_batch gives_up = batch_of(&stmt, 1, &t2);
    gives_up.timeout = MS(50);
    struct told t3 = {0};
    struct pgc_batch is_cancelled = batch_of(&stmt, 1, &t3);
    pgc_batch_start(pool, &waits);
    pgc_batch_start(pool, &gives_up);
    pgc_batch_start(pool, &is_cancelled);
    pgc_batch_cancel(&is_cancelled);

    turn_until(loop, t2.dones == 1 && t3.dones == 1);
    ck_assert_int_eq(gives_up.rc, ERR_TIMEOUT);
    ck_assert_int_eq(is_cancelled.rc, ERR_CANCELLED);
    ck_assert_int_eq(t.dones, 0);
    unsigned open;
    unsigned busy;
    unsigned waiting;
    pgc_pool_counts(pool, &open, &busy, &waiting);
    ck_assert_uint_eq(open, 2);
    ck_assert_uint_eq(busy, 2);
    ck_assert_uint_eq(waiting, 1);
    pgc_give(two, false);
    turn_until(loop, t.dones == 1);

    ck_assert_int_eq(waits.rc, 0);
    pgc_batch_fini(&waits);
    pgc_batch_fini(&gives_up);
    pgc_batch_fini(&is_cancelled);
    pgc_give(one, true);
}
END_TEST

START_TEST(an_idle_session_that_died_is_replaced_unnoticed)
{
    ck_assert_int_eq(value_of("SELECT 1"), 1);
    pg_server_exec(&server, "postgres",
                   "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid <> "
                   "pg_backend_pid() AND backend_type = 'client backend'");

    ck_assert_int_eq(value_of("SELECT 2"), 2);
}
END_TEST

START_TEST(a_lost_connection_says_that_the_outcome_is_unknown)
{
    struct told t = {0};
    struct pgc_stmt stmts[] = {{.sql = "SELECT pg_sleep(60)"}};
    struct pgc_batch b = batch_of(stmts, 1, &t);
    pgc_batch_start(pool, &b);
    char *n = NULL;
    do {
        free(n);
        (void)loop_turn(loop, MS(10));
        n = pg_server_value(&server, "postgres",
                            "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity "
                            "WHERE query LIKE '%pg_sleep(60)' AND state = 'active' AND pid <> "
                            "pg_backend_pid()");
    } while (strcmp(n, "0") == 0);
    free(n);

    turn_until(loop, t.dones == 1);

    ck_assert_int_eq(err_code_class(b.rc), ERR_CLASS_TRANSIENT);
    ck_assert_str_eq(b.err.sqlstate, "57P01");
    ck_assert(b.unknown_outcome);
    pgc_batch_fini(&b);
    ck_assert_int_eq(value_of("SELECT 3"), 3);
}
END_TEST

START_TEST(set_up_statements_run_on_every_session)
{
    const char *const texts[] = {"SET TimeZone = 'UTC'", "SET work_mem = '7MB'", NULL};
    open_pool(pg_server_conninfo(&server, "postgres"), 1, texts);
    ck_assert_int_eq(value_of("SELECT count(*) FROM pg_settings WHERE (name = 'work_mem' AND "
                              "setting = '7168') OR (name = 'TimeZone' AND setting = 'UTC')"),
                     2);
    close_pool();
}
END_TEST

START_TEST(a_set_up_statement_that_fails_fails_the_request)
{
    const char *const texts[] = {"SET no_such_setting = 1", NULL};
    open_pool(pg_server_conninfo(&server, "postgres"), 1, texts);
    struct told t = {0};
    struct pgc_batch b;
    run_sql(&b, &t, &(struct pgc_stmt){.sql = "SELECT 1"});
    ck_assert_int_eq(b.rc, ERR_WH_SQL);
    ck_assert_ptr_nonnull(strstr(b.err.text, "no_such_setting"));
    pgc_batch_fini(&b);
    close_pool();
}
END_TEST

static void refused(const char *conninfo, int code, const char *sqlstate, const char *says)
{
    open_pool(conninfo, 1, NULL);
    struct told t = {0};
    struct pgc_batch b;
    run_sql(&b, &t, &(struct pgc_stmt){.sql = "SELECT 1"});
    ck_assert_msg(b.rc == code, "%d: %s", b.rc, err_text(&b.err));
    ck_assert_str_eq(b.err.sqlstate, sqlstate);
    ck_assert_msg(strstr(b.err.text, says) != NULL, "%s", b.err.text);
    ck_assert_ptr_null(strstr(b.err.text, "hunter22"));
    ck_assert_ptr_null(strchr(b.err.text, '\n'));
    pgc_batch_fini(&b);
    close_pool();
}

START_TEST(refusals_name_their_cause_and_no_password)
{
    char text[300];
    refused("host=/tmp/no-such-directory user=postgres password=hunter22", ERR_WH_CONNECT, "",
            "/tmp/no-such-directory");
    refused("host=no-such-host.invalid user=postgres password=hunter22", ERR_WH_CONNECT, "",
            "host name \"no-such-host.invalid\" is not known");
    refused("host=x hunter22", ERR_INVALID, "", "does not parse");
    snprintf(text, sizeof text, "host=%s port=%d user=locked password=hunter22 dbname=postgres",
             server.dir, server.port);
    refused(text, ERR_WH_DENIED, "28000", "not permitted to log in");
    snprintf(text, sizeof text, "host=%s port=%d user=postgres dbname=hunter22", server.dir,
             server.port);
    refused(text, ERR_WH_MISSING, "3D000", "\"***\" does not exist");
}
END_TEST

START_TEST(a_host_name_is_resolved)
{
    char text[200];
    snprintf(text, sizeof text, "postgresql://postgres@localhost:%d/postgres", server.port);
    open_pool(text, 1, NULL);
    ck_assert_int_eq(value_of("SELECT 9"), 9);
    close_pool();
}
END_TEST

static void on_described(struct pgc_describe *d)
{
    *(int *)d->data += 1;
}

START_TEST(a_statement_is_described_without_running)
{
    int told = 0;
    struct pgc_describe d = {.sql = "SELECT 1::numeric(10,2) AS n, pg_sleep(60), 'x'::text AS t",
                             .done = on_described,
                             .data = &told};
    pgc_describe_start(pool, &d);
    turn_until(loop, told == 1);

    ck_assert_msg(d.rc == 0, "%s", err_text(&d.err));
    ck_assert_uint_eq(pgc_cols(d.result), 3);
    ck_assert_str_eq(pgc_col_name(d.result, 0), "n");
    ck_assert_uint_eq(pgc_col_type(d.result, 0), 1700);
    ck_assert_int_eq(pgc_col_typmod(d.result, 0), (10 << 16 | 2) + 4);
    pgc_describe_fini(&d);

    d.sql = "SELECT nope";
    pgc_describe_start(pool, &d);
    turn_until(loop, told == 2);
    ck_assert_int_eq(d.rc, ERR_WH_SQL);
    pgc_describe_fini(&d);
}
END_TEST

START_TEST(closing_fails_what_waits_and_lets_the_rest_end)
{
    open_pool(pg_server_conninfo(&server, "postgres"), 1, NULL);
    struct pgc_stmt stmt = {.sql = "SELECT pg_sleep(0.2)"};
    struct told t[2] = {0};
    struct pgc_batch runs = batch_of(&stmt, 1, &t[0]);
    struct pgc_batch waits = batch_of(&stmt, 1, &t[1]);
    ck_assert_int_eq(value_of("SELECT 1"), 1);
    pgc_batch_start(pool, &runs);
    pgc_batch_start(pool, &waits);
    bool closed = false;

    pgc_pool_close(pool, on_closed, &closed);
    turn_until(loop, closed);

    ck_assert_int_eq(runs.rc, 0);
    ck_assert_int_eq(waits.rc, ERR_SHUTDOWN);
    pgc_batch_fini(&runs);
    pgc_batch_fini(&waits);
    pgc_pool_free(pool);
    loop_free(loop);
}
END_TEST

START_TEST(large_parameters_and_answers_pass)
{
    size_t len = 9 << 20;
    char *big = xmalloc(len + 1);
    memset(big, 'z', len);
    big[len] = '\0';
    const char *params[] = {big};
    struct pgc_stmt stmts[] = {{.sql = "SELECT $1::text", .params = params, .n_params = 1},
                               {.sql = "SELECT length($1::text)", .params = params, .n_params = 1}};
    struct told t = {0};
    struct pgc_batch b = batch_of(stmts, 2, &t);

    run_batch(&b);

    ck_assert_msg(b.rc == 0, "%s", err_text(&b.err));
    ck_assert_uint_eq(pgc_cell(b.results[0], 0, 0).len, len);
    ck_assert_int_eq(pgc_i64(b.results[1], 0, 0), (int64_t)len);
    pgc_batch_fini(&b);
    free(big);
}
END_TEST

START_TEST(idle_sessions_are_closed)
{
    loop = loop_new();
    pool = pgc_pool_new(loop,
                        &(struct pgc_settings){.conninfo = pg_server_conninfo(&server, "postgres"),
                                               .idle_close = MS(50)});
    ck_assert_int_eq(value_of("SELECT 1"), 1);
    unsigned open = 1;
    unsigned busy;
    unsigned waiting;
    turn_until(loop, (pgc_pool_counts(pool, &open, &busy, &waiting), open == 0));
    ck_assert_int_eq(value_of("SELECT 1"), 1);
    close_pool();
}
END_TEST

START_TEST(quoting_keeps_text_inside_its_quotes)
{
    auto_buf struct buf out = {0};
    pgc_quote_ident(&out, SLICE("a\"b"));
    pgc_quote_literal(&out, SLICE(" it's \\ "));
    ck_assert_str_eq(buf_str(&out), "\"a\"\"b\"E' it''s \\\\ '");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("pgc");
    TCase *tc = tcase_create("one pool");
    tcase_add_checked_fixture(tc, setup, close_pool);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_batch_of_statements_is_answered_in_one_go);
    tcase_add_test(tc, an_error_names_its_statement_and_undoes_the_batch);
    tcase_add_test(tc, rows_are_streamed_one_by_one);
    tcase_add_test(tc, columns_are_told_when_there_is_no_row);
    tcase_add_test(tc, a_reader_that_stops_ends_the_statement_early);
    tcase_add_test(tc, a_veto_ends_the_batch_before_later_rows_are_seen);
    tcase_add_test(tc, cancel_reaches_a_running_statement_soon);
    tcase_add_test(tc, a_timeout_cancels_the_statement);
    tcase_add_test(tc, requests_wait_for_a_free_session);
    tcase_add_test(tc, an_idle_session_that_died_is_replaced_unnoticed);
    tcase_add_test(tc, a_lost_connection_says_that_the_outcome_is_unknown);
    tcase_add_test(tc, a_statement_is_described_without_running);
    tcase_add_test(tc, large_parameters_and_answers_pass);
    suite_add_tcase(s, tc);
    tc = tcase_create("own pools");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_statement_is_prepared_once_per_session);
    tcase_add_test(tc, the_oldest_prepared_statements_go);
    tcase_add_test(tc, a_prepared_statement_survives_a_change_of_its_columns);
    tcase_add_test(tc, a_session_left_in_a_transaction_is_rolled_back_before_its_next_use);
    tcase_add_test(tc, set_up_statements_run_on_every_session);
    tcase_add_test(tc, a_set_up_statement_that_fails_fails_the_request);
    tcase_add_test(tc, refusals_name_their_cause_and_no_password);
    tcase_add_test(tc, a_host_name_is_resolved);
    tcase_add_test(tc, closing_fails_what_waits_and_lets_the_rest_end);
    tcase_add_test(tc, idle_sessions_are_closed);
    tcase_add_test(tc, quoting_keeps_text_inside_its_quotes);
    suite_add_tcase(s, tc);
    return s;
}

static void stop_server(void)
{
    pg_server_stop(&server);
}

int main(void)
{
    pg_server_start(&server);
    if (atexit(stop_server) != 0) {
        return EXIT_FAILURE;
    }
    pg_server_exec(&server, "postgres", "CREATE ROLE locked NOLOGIN");
    return suite_run(suite());
}
