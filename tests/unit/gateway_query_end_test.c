/* The query half when things end early: clients that hang up, slots, closing; and the requests
 * beside queries. */
#include "gateway_query_fixture.h"
#include "tests/support/suite.h"

#define QUERY "{\"query\":\"run: a -> x\",\"compactJson\":true}"

START_TEST(a_client_that_hangs_up_cancels_its_statement_and_frees_its_slot)
{
    struct client gone;
    client_connect(&gone, http_server_port(fx.server));
    fx.holds_warehouse = true;
    fixture_send(&gone, "query", "", QUERY);
    turn_until(fx.loop, fx.held_op);
    ck_assert_uint_eq(fx.g.queries_running, 1);

    client_close(&gone);

    turn_until(fx.loop, fx.n_cancels == 1);
    expect_idle();
}
END_TEST

START_TEST(a_client_that_hangs_up_while_compiling_leaves_the_compile_to_others)
{
    struct client gone;
    client_connect(&gone, http_server_port(fx.server));
    fx.holds_compiler = true;
    fixture_send(&gone, "query", "", QUERY);
    turn_until(fx.loop, fx.held_call);

    client_close(&gone);
    expect_idle();
    fixture_send(&fx.c, "query", "", QUERY);
    turn_until(fx.loop, fx.g.queries_running == 1);
    fixture_release_call();

    turn_until(fx.loop, client_has(&fx.c, "HTTP/1.1 200 "));
    ck_assert_uint_eq(fx.n_asked, 1);
    expect_idle();
}
END_TEST

START_TEST(queries_past_the_cap_are_told_to_come_again)
{
    struct client others[2];
    fx.holds_compiler = true;
    for (int i = 0; i < 2; i++) {
        client_connect(&others[i], http_server_port(fx.server));
        fixture_send(&others[i], "query", "", QUERY);
    }
    turn_until(fx.loop, fx.g.queries_running == 2);

    fixture_ask("query", "", QUERY);
    expect_answer("HTTP/1.1 503 ");
    expect_answer("\r\nRetry-After: 1\r\n");
    fixture_ask("sql", "", "{\"sqlStatement\":\"select 1\"}");
    expect_answer("HTTP/1.1 503 ");

    fixture_release_call();
    for (int i = 0; i < 2; i++) {
        turn_until(fx.loop, client_has(&others[i], "HTTP/1.1 200 "));
        client_close(&others[i]);
    }
    ck_assert_uint_eq(fx.n_asked, 1);  /* one compile for both */
    fx.set.max_concurrent_queries = 0; /* no cap */
    fixture_ask("query", "", QUERY);
    expect_answer("HTTP/1.1 200 ");
    expect_idle();
}
END_TEST

START_TEST(closing_ends_queries_and_compiles)
{
    struct client other;
    client_connect(&other, http_server_port(fx.server));
    fx.holds_compiler = true;
    fixture_send(&other, "query", "", QUERY);
    turn_until(fx.loop, fx.held_call);

    gw_query_close(&fx.w, on_fixture_closed);

    turn_until(fx.loop, fx.closed);
    ck_assert_ptr_null(fx.w.query_half);
    turn_until(fx.loop, client_has(&other, "HTTP/1.1 499 "));
    client_close(&other);
}
END_TEST

/* The compiler holds the query of one worker; the other one's errand for the same has arrived. */
static void hold_for_both(struct client *other)
{
    client_connect(other, http_server_port(fx.server));
    fx.holds_compiler = true;
    fixture_send(&fx.c, "query", "", QUERY);
    turn_until(fx.loop, fx.held_call);
    fixture_send(other, "other", "", QUERY);
    turn_until(fx.loop, !list_empty(&fx.other.query_half->compiles));
    (void)loop_turn(fx.loop, MS(10));
}

START_TEST(equal_misses_of_two_workers_share_one_compile)
{
    struct client other;
    hold_for_both(&other);
    ck_assert_uint_eq(map_len(&fx.g.compiling), 1);
    fixture_release_call();

    turn_until(fx.loop, client_has(&fx.c, "HTTP/1.1 200 ") && client_has(&other, "HTTP/1.1 200 "));
    ck_assert_uint_eq(fx.n_asked, 1);
    fixture_ask("query", "", QUERY); /* each has its own copy now */
    fixture_send(&other, "other", "", QUERY);
    turn_until(fx.loop, client_has(&other, "HTTP/1.1 200 "));
    ck_assert_uint_eq(fx.n_asked, 1);
    client_close(&other);
    expect_idle();
}
END_TEST

START_TEST(a_worker_that_closes_leaves_a_shared_compile_to_the_other)
{
    struct client other;
    hold_for_both(&other);

    gw_query_close(&fx.w, on_fixture_closed);
    turn_until(fx.loop, fx.closed);
    ck_assert_ptr_nonnull(fx.held_call);
    fixture_release_call();

    turn_until(fx.loop, client_has(&other, "HTTP/1.1 200 "));
    ck_assert_uint_eq(fx.n_asked, 1);
    client_close(&other);
}
END_TEST

START_TEST(compile_learns_new_tables_and_answers_problems)
{
    fx.asks_needs = true;

    fixture_ask("compile", "", "{\"source\":\"run: x\",\"includeSql\":true,\"givens\":{\"a\":1}}");

    expect_answer("HTTP/1.1 200 ");
    expect_answer("{\"status\":\"success\",\"problems\":[{\"message\":\"careful\",\"severity\":"
                  "\"warn\",\"code\":\"\",\"at\":{\"url\":\"m.malloy\",\"range\":{\"start\":{"
                  "\"line\":2,\"character\":0},\"end\":{\"line\":0,\"character\":0}}}}],"
                  "\"sql\":\"SELECT 2\"}");
    ck_assert_uint_eq(fx.n_asked, 2);
    ck_assert_uint_eq(fx.asked[0].n_manifest, 2);
    ck_assert_uint_eq(fx.asked[1].n_tables, 1);
    ck_assert_uint_eq(fx.asked[1].n_sqls, 1);
    expect_idle();
}
END_TEST

START_TEST(compile_goes_on_without_a_connection)
{
    fx.asks_needs = true;
    fx.connect_rc = ERR_WH_CONNECT;

    fixture_ask("compile", "", "{\"source\":\"run: x\"}");

    expect_answer("HTTP/1.1 200 ");
    ck_assert_uint_eq(fx.asked[1].n_tables, 1); /* told with its error */
    expect_idle();
}
END_TEST

START_TEST(a_hang_up_ends_a_compile_and_a_description)
{
    static const char *const paths[] = {"compile", "model"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct client gone;
        client_connect(&gone, http_server_port(fx.server));
        fx.holds_compiler = true;
        fixture_send(&gone, paths[i], "", "{\"source\":\"x\"}");
        turn_until(fx.loop, fx.held_call);
        client_close(&gone);
        turn_until(fx.loop, !fx.held_call);
        expect_idle();
    }
}
END_TEST

START_TEST(a_model_is_described_with_its_resource)
{
    fixture_ask("model", "", "");

    expect_answer("{\"resource\":\"/model\",\"type\":\"source\"}");
    expect_idle();
}
END_TEST

START_TEST(sql_of_a_caller_is_read_only_and_rolled_back)
{
    fx.n_rows = 2;

    fixture_ask("sql", "", "{\"sqlStatement\":\"select 1;\",\"options\":\"{\\\"rowLimit\\\":5}\"}");

    expect_answer(
        "{\"data\":\"{\\\"rows\\\":[{\\\"n\\\":1.50},{\\\"n\\\":1.50}],\\\"totalRows\\\":2}"
        "\",\"queryCorrelationId\":null}");
    ck_assert(fx.last_rolls_back);
    expect_idle();
}
END_TEST

START_TEST(sql_of_a_caller_has_the_same_caps_and_errors)
{
    fx.n_rows = 101;
    fixture_ask("sql", "", "{\"sqlStatement\":\"select 1\"}");
    expect_answer("HTTP/1.1 413 ");
    fx.query_fails = 1;
    fx.query_rc = ERR_WH_SQL;
    fixture_ask("sql", "", "{\"sqlStatement\":\"select 1\"}");
    expect_answer("HTTP/1.1 400 ");
    fx.connect_rc = ERR_NOT_FOUND;
    fixture_ask("sql", "", "{\"sqlStatement\":\"select 1\"}");
    expect_answer("HTTP/1.1 404 ");
    expect_idle();
}
END_TEST

START_TEST(a_hang_up_cancels_the_sql_of_a_caller)
{
    struct client gone;
    client_connect(&gone, http_server_port(fx.server));
    fx.holds_warehouse = true;
    fixture_send(&gone, "sql", "", "{\"sqlStatement\":\"select 1\"}");
    turn_until(fx.loop, fx.held_op);

    client_close(&gone);

    turn_until(fx.loop, fx.n_cancels == 1);
    expect_idle();
}
END_TEST

START_TEST(a_connection_without_driver_fails_its_test)
{
    fixture_ask("test", "", "{\"name\":\"s\",\"type\":\"snowflake\"}");

    expect_answer("HTTP/1.1 200 ");
    expect_answer("{\"status\":\"failed\",\"errorMessage\":\"");
    expect_idle();
}
END_TEST

START_TEST(an_unreachable_connection_fails_its_test_without_its_password)
{
    fixture_ask("test", "",
                "{\"name\":\"w\",\"type\":\"postgres\",\"postgresConnection\":{\"host\":"
                "\"/nonexistent\",\"databaseName\":\"d\",\"userName\":\"u\",\"password\":"
                "\"hush-hush\"}}");

    turn_until(fx.loop, client_has(&fx.c, "errorMessage"));
    expect_answer("\"status\":\"failed\"");
    ck_assert(!client_has(&fx.c, "hush-hush"));
    expect_idle();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gateway_query_end");
    TCase *t = tcase_create("end");
    tcase_set_timeout(t, 30);
    tcase_add_checked_fixture(t, fixture_open, fixture_shut);
    tcase_add_test(t, a_client_that_hangs_up_cancels_its_statement_and_frees_its_slot);
    tcase_add_test(t, a_client_that_hangs_up_while_compiling_leaves_the_compile_to_others);
    tcase_add_test(t, queries_past_the_cap_are_told_to_come_again);
    tcase_add_test(t, closing_ends_queries_and_compiles);
    tcase_add_test(t, equal_misses_of_two_workers_share_one_compile);
    tcase_add_test(t, a_worker_that_closes_leaves_a_shared_compile_to_the_other);
    tcase_add_test(t, compile_learns_new_tables_and_answers_problems);
    tcase_add_test(t, compile_goes_on_without_a_connection);
    tcase_add_test(t, a_hang_up_ends_a_compile_and_a_description);
    tcase_add_test(t, a_model_is_described_with_its_resource);
    tcase_add_test(t, sql_of_a_caller_is_read_only_and_rolled_back);
    tcase_add_test(t, sql_of_a_caller_has_the_same_caps_and_errors);
    tcase_add_test(t, a_hang_up_cancels_the_sql_of_a_caller);
    tcase_add_test(t, a_connection_without_driver_fails_its_test);
    tcase_add_test(t, an_unreachable_connection_fails_its_test_without_its_password);
    suite_add_tcase(suite, t);
    return suite_run(suite);
}
