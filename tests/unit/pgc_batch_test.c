/* Batches of statements: answers, errors, rows one by one, and what ends them early. */
#include "tests/unit/pgc_fixture.h"
#include "tests/unit/pgc_suites.h"

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

TCase *pgc_batch_tests(void)
{
    TCase *tc = tcase_create("batches");
    tcase_add_checked_fixture(tc, open_pool_of_two, close_pool);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_batch_of_statements_is_answered_in_one_go);
    tcase_add_test(tc, an_error_names_its_statement_and_undoes_the_batch);
    tcase_add_test(tc, rows_are_streamed_one_by_one);
    tcase_add_test(tc, columns_are_told_when_there_is_no_row);
    tcase_add_test(tc, a_reader_that_stops_ends_the_statement_early);
    tcase_add_test(tc, a_veto_ends_the_batch_before_later_rows_are_seen);
    tcase_add_test(tc, cancel_reaches_a_running_statement_soon);
    tcase_add_test(tc, a_timeout_cancels_the_statement);
    tcase_add_test(tc, a_statement_is_described_without_running);
    tcase_add_test(tc, large_parameters_and_answers_pass);
    return tc;
}
