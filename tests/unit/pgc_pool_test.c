/* Pools that a test opens as it needs them: prepared statements, set-up, refusals, the end. */
#include "tests/unit/pgc_fixture.h"
#include "tests/unit/pgc_suites.h"

#include <stdio.h>

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
    open_pool_of_two();
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

TCase *pgc_pool_tests(void)
{
    TCase *tc = tcase_create("own pools");
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
    return tc;
}
