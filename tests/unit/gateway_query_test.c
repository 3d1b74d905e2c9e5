/* The query half: what is asked of compiler and warehouse, and what comes of their answers. */
#include "gateway_query_fixture.h"
#include "tests/support/suite.h"

#define QUERY "{\"query\":\"run: a -> x\",\"compactJson\":true}"

START_TEST(a_query_over_tables_is_baked_with_a_receipt)
{
    fixture_ask("query", "", QUERY);

    expect_answer("HTTP/1.1 200 ");
    expect_answer("\r\nKiln-Served: baked\r\nKiln-Epoch: 41\r\n");
    expect_answer(
        "{\"result\":\"[{\\\"n\\\":1.5}]\",\"resource\":\"/query\",\"queryRowLimit\":1000,"
        "\"queryRowLimitSource\":\"query\",\"queryCorrelationId\":null,"
        "\"servedFrom\":null,\"executionTimeMs\":");
    expect_answer("\"queryCostBytes\":null,\"decision\":{\"served\":\"baked\",\"epoch\":41,");
    expect_answer("\"generation\":\"G7\"");
    ck_assert(!client_has(&fx.c, "Kiln-Reason"));
    ck_assert(!client_has(&fx.c, "Kiln-Generation")); /* there are two */
    ck_assert_str_eq(fx.asked[0].text, "run: a -> x|||");
    expect_idle();
}
END_TEST

START_TEST(the_full_form_has_head_and_tail)
{
    fx.row_limit = 0;
    fixture_ask("query", "",
                "{\"queryName\":\"v\",\"sourceName\":\"a\",\"givens\":{\"x\":1},"
                "\"bypassFilters\":true}");

    expect_answer(
        "{\"result\":\"{\\\"schema\\\":{},\\\"data\\\":{\\\"kind\\\":\\\"array_cell\\\",");
    expect_answer("]},\\\"sql\\\":\\\"SELECT 1\\\"}\",\"resource\"");
    expect_answer("\"queryRowLimit\":null,\"queryRowLimitSource\":null");
    expect_answer("\r\nDeprecation: true\r\n");
    ck_assert_str_eq(fx.asked[0].text, "|a|v|{\"x\":1}");
    expect_idle();
}
END_TEST

START_TEST(a_repeated_query_is_not_compiled_again)
{
    fixture_ask("query", "", QUERY);
    fixture_ask("query", "", QUERY);
    ck_assert_uint_eq(fx.n_asked, 1);
    ck_assert_uint_eq(fx.n_queries, 2);

    fixture_ask("query", "", "{\"query\":\"run: a -> x\",\"givens\":{\"y\":2}}");
    ck_assert_uint_eq(fx.n_asked, 2);
    fx.package.epoch++;
    fixture_ask("query", "", QUERY);
    ck_assert_uint_eq(fx.n_asked, 3);
    expect_idle();
}
END_TEST

START_TEST(live_mode_offers_no_table)
{
    fixture_ask("query", "Kiln-Mode: live\r\n", QUERY);

    expect_answer("\r\nKiln-Served: live\r\n");
    expect_answer("\r\nKiln-Reason: mode_live\r\n");
    ck_assert_uint_eq(fx.asked[0].n_manifest, 1); /* one that nothing matches */
    ck_assert(!fx.asked[0].offers_a && !fx.asked[0].offers_b);
    ck_assert_uint_eq(fx.last_n_baked, 0);
    fixture_ask("query", "Kiln-Mode: auto\r\n", QUERY);
    expect_answer("\r\nKiln-Served: baked\r\n");
}
END_TEST

START_TEST(a_stale_table_is_left_out)
{
    fx.bindings[0].window_s = 60;
    fx.bindings[0].data_as_of_us = 1;
    gw_view_make(&fx.package);

    fixture_ask("query", "", QUERY);

    expect_answer("\r\nKiln-Served: mixed\r\n");
    expect_answer("\r\nKiln-Reason: stale\r\n");
    expect_answer("\r\nKiln-Generation: G7\r\n");
    ck_assert(!fx.asked[0].offers_a && fx.asked[0].offers_b);
}
END_TEST

START_TEST(superseded_tables_send_the_query_live)
{
    fx.query_rc = ERR_STORE_MOVED;
    fx.query_fails = 1;

    fixture_ask("query", "", QUERY);

    expect_answer("\r\nKiln-Served: live\r\n");
    expect_answer("\r\nKiln-Reason: binding_superseded\r\n");
    ck_assert_uint_eq(fx.n_asked, 2);
    ck_assert_uint_eq(fx.n_broken, 2);
    ck_assert_str_eq(fx.broken, "b binding_superseded");
    expect_idle();
}
END_TEST

START_TEST(only_the_missing_table_is_left_out)
{
    fx.query_rc = ERR_WH_MISSING;
    fx.query_fails = 1;
    fx.query_text = "relation \"s.b\" does not exist";

    fixture_ask("query", "", QUERY);

    expect_answer("\r\nKiln-Served: mixed\r\n");
    expect_answer("\r\nKiln-Reason: table_missing\r\n");
    ck_assert(fx.asked[1].offers_a && !fx.asked[1].offers_b);
    ck_assert_uint_eq(fx.n_broken, 1);
    expect_idle();
}
END_TEST

START_TEST(a_second_missing_table_takes_all_of_them)
{
    fx.query_rc = ERR_WH_MISSING;
    fx.query_fails = 2;
    fx.query_text = "relation \"s.b\" does not exist";

    fixture_ask("query", "", QUERY);

    expect_answer("\r\nKiln-Served: live\r\n");
    ck_assert_uint_eq(fx.n_asked, 3);
    expect_idle();
}
END_TEST

START_TEST(another_missing_relation_is_the_query_s_own)
{
    fx.query_rc = ERR_WH_MISSING;
    fx.query_fails = 1;
    fx.query_text = "relation \"public.orders\" does not exist";
    fx.receipts_agree = true;

    fixture_ask("query", "", QUERY);

    expect_answer("HTTP/1.1 400 ");
    expect_answer("public.orders");
    ck_assert_uint_eq(fx.n_asked, 1);
    ck_assert_uint_eq(fx.n_broken, 0);
    expect_idle();
}
END_TEST

START_TEST(errors_of_the_warehouse_have_their_status)
{
    static const struct {
        int code;
        const char *text, *status;
    } cases[] = {{ERR_WH_SQL, "division by zero", "400"},
                 {ERR_WH_CONNECT, "refused", "502"},
                 {ERR_TIMEOUT, "", "504"},
                 {ERR_CANCELLED, "canceling statement due to statement timeout", "504"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char status[32];
        fx.query_rc = cases[i].code;
        fx.query_text = cases[i].text;
        fx.query_fails = 1;
        fixture_ask("query", "", QUERY);
        snprintf(status, sizeof(status), "HTTP/1.1 %s ", cases[i].status);
        expect_answer(status);
    }
    expect_answer("PUBLISHER_QUERY_TIMEOUT_MS");
    fx.connect_rc = ERR_NOT_FOUND;
    fixture_ask("query", "", QUERY);
    expect_answer("HTTP/1.1 404 ");
    expect_idle();
}
END_TEST

START_TEST(row_and_byte_caps_answer_413)
{
    fx.n_rows = 101;
    fixture_ask("query", "", QUERY);
    expect_answer("HTTP/1.1 413 ");
    expect_answer("PUBLISHER_MAX_QUERY_ROWS");

    fx.n_rows = 100;
    fixture_ask("query", "", QUERY);
    expect_answer("HTTP/1.1 200 ");
    fixture_ask("query", "", "{\"query\":\"run: a -> x\"}"); /* the full form is larger */
    expect_answer("HTTP/1.1 413 ");
    expect_answer("PUBLISHER_MAX_RESPONSE_BYTES");
    fx.set.max_query_rows = fx.set.max_response_bytes = fx.set.query_timeout_ms = 0; /* no caps */
    fx.n_rows = 500;
    fixture_ask("query", "", "{\"query\":\"run: a -> x\"}");
    expect_answer("HTTP/1.1 200 ");
    expect_idle();
}
END_TEST

START_TEST(compile_errors_name_model_and_line)
{
    static const char *const codes[][2] = {{"compile_error", "400"}, {"too_complex", "400"},
                                           {"not_found", "404"},     {"model_failed", "424"},
                                           {"bad_request", "400"},   {"internal", "500"},
                                           {"not_loaded", "503"},    {"newer", "400"}};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        char status[32];
        fx.error_code = codes[i][0];
        fx.n_asked = 0;
        fixture_ask("query", "", QUERY);
        snprintf(status, sizeof(status), "HTTP/1.1 %s ", codes[i][1]);
        expect_answer(status);
        expect_answer("\"message\":\"m.malloy:3: first\\nline 1: second\"");
    }
    fixture_ask("model", "", "");
    expect_answer("HTTP/1.1 400 ");
    fixture_ask("compile", "", "{\"source\":\"run: x\"}");
    expect_answer("HTTP/1.1 400 ");
    expect_idle();
}
END_TEST

START_TEST(bad_requests_are_refused_before_any_work)
{
    static const char *const bad[][3] = {
        {"query", "", ""},
        {"query", "", "[]"},
        {"query", "", "{}"},
        {"query", "", "{\"query\":\"\"}"},
        {"query", "", "{\"query\":1}"},
        {"query", "", "{\"query\":\"a\\u0000b\"}"},
        {"query", "", "{\"query\":\"a\",\"queryName\":\"b\"}"},
        {"query", "", "{\"sourceName\":\"a\"}"},
        {"query", "", "{\"query\":\"a\",\"givens\":[]}"},
        {"query", "", "{\"query\":\"a\",\"compactJson\":\"yes\"}"},
        {"query", "Kiln-Mode: maybe\r\n", QUERY},
        {"compile", "", "{}"},
        {"compile", "", "{\"source\":\"x\",\"scope\":\"y\"}"},
        {"compile", "", "{\"source\":\"x\",\"givens\":1}"},
        {"sql", "", "{}"},
        {"sql", "", "{\"sqlStatement\":\"drop table t\"}"},
        {"sql", "", "{\"sqlStatement\":\"select 1\",\"options\":{\"rowLimit\":0}}"},
        {"test", "", "{}"},
        {"test", "", "7"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        fixture_ask(bad[i][0], bad[i][1], bad[i][2]);
        ck_assert_msg(client_has(&fx.c, "HTTP/1.1 400 "), "%s: %s", bad[i][2], buf_str(&fx.c.in));
    }
    fixture_ask("query", "", "{\"query\":\"a\",\"versionId\":\"1\"}");
    expect_answer("HTTP/1.1 501 ");
    fixture_ask("query?versionId=2", "", QUERY);
    expect_answer("HTTP/1.1 501 ");
    fixture_ask("model?versionId=2", "", "");
    expect_answer("HTTP/1.1 501 ");
    fixture_ask("query", "", "{\"query\":\"a\",\"filterParams\":{\"r\":\"EU\"}}");
    expect_answer("HTTP/1.1 501 ");
    ck_assert_uint_eq(fx.n_asked, 0);
    ck_assert_uint_eq(fx.n_queries, 0);
    expect_idle();
}
END_TEST

#define TAGGED(more) "{\"query\":\"run: a -> x\",\"compactJson\":true" more "}"

START_TEST(query_is_tagged_when_metadata_is_declared_and_stays_one_prepared_statement)
{
    fx.package.package_json =
        "{\"queryMetadata\":{\"team\":\"weaker\",\"cost\":\"c1\",\"class\":\"x\","
        "\"bad key\":\"y\",\"n\":1}}";
    gw_view_make(&fx.package);
    fx.team = "red";
    fixture_ask("query", "", QUERY);
    ck_assert_str_eq(fx.last_tag,
                     "team=\"red\",cost=\"c1\",class=\"interactive\",environment=\"dev\","
                     "package=\"shop\",model=\"m.malloy\",source=\"daily\"");
    ck_assert_uint_eq(strlen(fx.last_correlation), 32);
    auto_free char *first = xasprintf("\"queryCorrelationId\":\"%s\"", fx.last_correlation);
    auto_free char *prepared = xstrdup(fx.last_prepared);
    expect_answer(first);

    fixture_ask("query", "", QUERY);

    ck_assert_str_eq(fx.last_prepared, prepared);
    ck_assert(!client_has(&fx.c, first)); /* every run has its own */
    expect_idle();
}
END_TEST

START_TEST(query_says_what_its_request_says_and_then_is_no_prepared_statement)
{
    fx.team = "red";
    fixture_ask(
        "query", "",
        TAGGED(",\"queryMetadata\":{\"team\":\"blue\",\"job\":\"j\"},\"queryClass\":\"ops\""));
    ck_assert_str_eq(fx.last_tag, "team=\"blue\",job=\"j\",class=\"ops\",environment=\"dev\","
                                  "package=\"shop\",model=\"m.malloy\",source=\"daily\"");
    ck_assert_str_eq(fx.last_prepared, "");
    fixture_ask("query", "", QUERY);
    ck_assert_str_ne(fx.last_prepared, "");
    ck_assert_uint_eq(fx.n_asked, 1); /* compiled once */

    fixture_ask("sql", "", "{\"sqlStatement\":\"select 1\",\"queryMetadata\":{\"job\":\"j\"}}");
    ck_assert_str_eq(fx.last_tag, "job=\"j\",class=\"interactive\",environment=\"dev\"");
    expect_answer(fx.last_correlation);
}
END_TEST

START_TEST(bad_query_metadata_of_a_request_is_refused)
{
    static const char *const bad[][2] = {
        {TAGGED(",\"queryMetadata\":7"), "an object of strings"},
        {TAGGED(",\"queryMetadata\":{\"a\":7}"), "'queryMetadata.a': its value is no string"},
        {TAGGED(",\"queryMetadata\":{\"run_id\":\"x\"}"), "its name belongs to the server"},
        {TAGGED(",\"queryClass\":\"other\""), "'queryClass' must be"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        fixture_ask("query", "", bad[i][0]);
        expect_answer("HTTP/1.1 400 ");
        expect_answer(bad[i][1]);
    }
    ck_assert_uint_eq(fx.n_queries, 0);
}
END_TEST

START_TEST(nothing_is_tagged_without_a_declaration_or_when_it_is_off)
{
    fixture_ask("query", "", TAGGED(",\"queryClass\":\"ops\""));
    ck_assert_str_eq(fx.last_tag, "");
    ck_assert_str_eq(fx.last_correlation, "");
    expect_answer("\"queryCorrelationId\":null");
    fx.set.query_metadata = "off";
    fx.team = "red";
    fx.package.epoch++;
    fixture_ask("query", "", TAGGED(",\"queryMetadata\":{\"job\":\"j\"}"));
    ck_assert_str_eq(fx.last_tag, "");
    expect_answer("\"queryCorrelationId\":null");
}
END_TEST

START_TEST(texts_too_long_are_refused)
{
    auto_buf struct buf text = {0};
    auto_free char *query = NULL;
    auto_free char *sql = NULL;
    for (int i = 0; i < GW_TEXT_MAX; i++) {
        buf_add_char(&text, 'x');
    }
    query = xasprintf("{\"query\":\"%sx\"}", buf_str(&text));
    sql = xasprintf("{\"sqlStatement\":\"select %s\"}", buf_str(&text));

    fixture_ask("query", "", query);
    expect_answer("HTTP/1.1 400 ");
    fixture_ask("sql", "", sql);
    expect_answer("HTTP/1.1 400 ");
    ck_assert_uint_eq(fx.n_asked + fx.n_queries, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gateway_query");
    TCase *t = tcase_create("query");
    tcase_add_checked_fixture(t, fixture_open, fixture_shut);
    tcase_add_test(t, a_query_over_tables_is_baked_with_a_receipt);
    tcase_add_test(t, the_full_form_has_head_and_tail);
    tcase_add_test(t, a_repeated_query_is_not_compiled_again);
    tcase_add_test(t, live_mode_offers_no_table);
    tcase_add_test(t, a_stale_table_is_left_out);
    tcase_add_test(t, superseded_tables_send_the_query_live);
    tcase_add_test(t, only_the_missing_table_is_left_out);
    tcase_add_test(t, a_second_missing_table_takes_all_of_them);
    tcase_add_test(t, another_missing_relation_is_the_query_s_own);
    tcase_add_test(t, errors_of_the_warehouse_have_their_status);
    tcase_add_test(t, row_and_byte_caps_answer_413);
    tcase_add_test(t, compile_errors_name_model_and_line);
    tcase_add_test(t, bad_requests_are_refused_before_any_work);
    tcase_add_test(t, query_is_tagged_when_metadata_is_declared_and_stays_one_prepared_statement);
    tcase_add_test(t, query_says_what_its_request_says_and_then_is_no_prepared_statement);
    tcase_add_test(t, bad_query_metadata_of_a_request_is_refused);
    tcase_add_test(t, nothing_is_tagged_without_a_declaration_or_when_it_is_off);
    tcase_add_test(t, texts_too_long_are_refused);
    suite_add_tcase(suite, t);
    return suite_run(suite);
}
