#include "common/http/http_internal.h"
#include "common/log/log.h"
#include "http_fixture.h"
#include "http_tests.h"
#include "tests/support/suite.h"

static void ask(struct fixture *f, const char *request, const char *answer_part)
{
    buf_clear(&f->c.in);
    client_send(&f->c, request);
    turn_until(f->loop, client_has(&f->c, answer_part));
}

/* A request on a connection of its own; waits for the server to close it. */
static void ask_to_end(struct fixture *f, const char *request)
{
    client_close(&f->c);
    client_connect(&f->c, http_server_port(f->server));
    client_send(&f->c, request);
    turn_until(f->loop, client_ended(&f->c));
}

START_TEST(request_is_answered_and_the_connection_carries_the_next_one)
{
    struct fixture f;
    fixture_init(&f, NULL);

    ask(&f, "GET /a/b?c=d HTTP/1.1\r\nHost: x\r\nX-Name: one\r\n\r\n", "GET /a/b ?c=d []");
    ck_assert(client_has(&f.c, "HTTP/1.1 200 OK\r\nDate: "));
    ck_assert(client_has(&f.c, "X-Seen: one\r\n"));
    ck_assert(client_has(&f.c, "Content-Length: 16\r\n\r\n"));
    ask(&f, "PUT /x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", "PUT /x ? [abc]");

    ck_assert(!client_ended(&f.c));
    ck_assert_int_eq(http_server_open(f.server), 1);
    fixture_fini(&f);
}
END_TEST

START_TEST(request_that_comes_byte_by_byte_is_the_same_request)
{
    struct fixture f;
    fixture_init(&f, NULL);
    const char *text = "POST /a?b HTTP/1.1\r\nHost: x\r\nX-Empty:\r\nX-Name:  two words \r\n"
                       "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\n"
                       "Trailer: t\r\n\r\n";

    for (const char *p = text; *p; p++) {
        client_send_bytes(&f.c, p, 1);
        (void)loop_turn(f.loop, MS(50));
    }

    turn_until(f.loop, client_has(&f.c, "POST /a ?b [abcde]"));
    ck_assert(client_has(&f.c, "X-Seen: two words\r\n"));
    ck_assert_int_eq(f.n_requests, 1);
    fixture_fini(&f);
}
END_TEST

START_TEST(pipelined_requests_are_answered_in_order_one_at_a_time)
{
    struct fixture f;
    fixture_init(&f, NULL);

    client_send(&f.c, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n"
                      "POST /3 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"
                      "GET /4 HTTP/1.1\r\nHos");
    turn_until(f.loop, f.n_held == 1);
    (void)loop_turn(f.loop, MS(5));
    ck_assert_int_eq(f.n_requests, 1);
    http_reply_json(f.held[0], 200, SLICE("\"held\""));
    turn_until(f.loop, client_has(&f.c, "POST /3 ? [hi]"));
    client_send(&f.c, "t: x\r\n\r\n");
    turn_until(f.loop, client_has(&f.c, "GET /4 ? []"));

    const char *held = strstr(f.c.in.p, "\"held\"");
    const char *second = strstr(f.c.in.p, "GET /2 ? []");
    const char *third = strstr(f.c.in.p, "POST /3");
    ck_assert(held && second && third && held < second && second < third);
    fixture_fini(&f);
}
END_TEST

START_TEST(body_over_the_cap_is_refused_and_the_refusal_arrives_while_the_client_still_sends)
{
    struct fixture f;
    fixture_init(&f, NULL);

    client_send(&f.c, "POST /tiny HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n");
    turn_until(f.loop,
               client_has(&f.c, "{\"code\":413,\"message\":\"the request body is too large\"}"));
    client_send(&f.c, "01234567890");
    turn_until(f.loop, client_ended(&f.c));
    ck_assert(client_has(&f.c, "HTTP/1.1 413 "));
    ck_assert(client_has(&f.c, "Connection: close\r\n"));
    client_close(&f.c);
    client_connect(&f.c, http_server_port(f.server));
    client_send(&f.c, "POST /tiny HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                      "5\r\n01234\r\n6\r\n567890\r\n0\r\n\r\n");
    turn_until(f.loop, client_has(&f.c, "{\"code\":413,"));

    ck_assert_int_eq(f.n_requests, 0);
    ask_to_end(&f, "POST /tiny HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                   "Content-Length: 10\r\n\r\n0123456789");
    ck_assert(client_has(&f.c, "POST /tiny ? [0123456789]"));
    fixture_fini(&f);
}
END_TEST

static const struct {
    const char *request, *answer;
} bad_heads[] = {
    {"GARBAGE\r\n\r\n", "{\"code\":400,"},
    {"GET / HTTP/1.1\r\n\r\n",
     "{\"code\":400,\"message\":\"the request needs exactly one Host header\"}"},
    {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "{\"code\":400,"},
    {"GET / HTTP/1.1\nHost: x\n\n", "{\"code\":400,"},
    {"GET / HTTP/2.7\r\nHost: x\r\n\r\n", "{\"code\":400,"},
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: "
     "chunked\r\n\r\n0\r\n\r\n",
     "{\"code\":400,"},
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "{\"code\":400,"},
    {"POST / HTTP/1.1\r\nHost: x\r\nExpect: tea\r\nContent-Length: 1\r\n\r\n", "{\"code\":417,"},
};

START_TEST(bad_head_is_answered_with_a_status_and_a_sentence_in_json)
{
    struct fixture f;
    fixture_init(&f, NULL);

    for (size_t i = 0; i < ARRAY_LEN(bad_heads); i++) {
        client_close(&f.c);
        client_connect(&f.c, http_server_port(f.server));
        client_send(&f.c, bad_heads[i].request);
        turn_until(f.loop, client_has(&f.c, bad_heads[i].answer));
        ck_assert(client_has(&f.c, "Content-Type: application/json"));
        (void)shutdown(f.c.fd, SHUT_WR);
        turn_until(f.loop, client_ended(&f.c));
    }

    ck_assert_int_eq(f.n_requests, 0);
    fixture_fini(&f);
}
END_TEST

START_TEST(head_over_the_cap_is_refused_however_it_is_made_long)
{
    struct fixture f;
    struct http_limits lim = {.head_bytes = 4096};
    fixture_init(&f, &lim);
    char pad[5001];
    memset(pad, 'a', 5000);
    pad[5000] = '\0';
    char text[8192];

    (void)snprintf(text, sizeof(text), "GET /%s HTTP/1.1\r\nHost: x\r\n\r\n", pad);
    ask_to_end(&f, text);
    ck_assert(client_has(&f.c, "{\"code\":431,\"message\":\"the request head is too large\"}"));
    (void)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n", pad);
    ask_to_end(&f, text);
    ck_assert(client_has(&f.c, "{\"code\":431,"));
    memset(pad, '\n', 5000);
    for (int i = 0; i < 5000; i += 2) {
        pad[i] = '\r';
    }
    ask_to_end(&f, pad);
    ck_assert(client_has(&f.c, "{\"code\":431,"));

    fixture_fini(&f);
}
END_TEST

START_TEST(client_that_expects_a_continue_gets_it_before_it_sends_the_body)
{
    struct fixture f;
    fixture_init(&f, NULL);

    ask(&f, "POST /x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n");
    ask(&f, "hi", "POST /x ? [hi]");
    ask(&f, "POST /tiny HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 99\r\n\r\n",
        "HTTP/1.1 413 ");

    ck_assert_int_eq(client_count(&f.c, "100 Continue"), 0);
    fixture_fini(&f);
}
END_TEST

START_TEST(answer_to_head_has_the_length_but_no_body)
{
    struct fixture f;
    fixture_init(&f, NULL);

    ask(&f, "HEAD /x HTTP/1.1\r\nHost: x\r\n\r\n", "Content-Length: 12\r\n\r\n");
    ask(&f, "HEAD /bytes?100000 HTTP/1.1\r\nHost: x\r\n\r\n", "Content-Length: 100000\r\n\r\n");
    ask(&f, "GET /y HTTP/1.1\r\nHost: x\r\n\r\n", "GET /y ? []");

    ck_assert_int_eq(client_count(&f.c, "HTTP/1.1 "), 1);
    ck_assert(slice_starts(buf_slice(&f.c.in), SLICE("HTTP/1.1 200")));
    fixture_fini(&f);
}
END_TEST

START_TEST(old_clients_and_those_that_ask_for_it_get_their_connection_closed)
{
    struct fixture f;
    fixture_init(&f, NULL);

    ask_to_end(&f, "GET /old HTTP/1.0\r\n\r\n");
    ck_assert(client_has(&f.c, "Connection: close\r\n"));
    ck_assert(client_has(&f.c, "GET /old ? []"));
    ask_to_end(&f, "GET /new HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    ck_assert(client_has(&f.c, "GET /new ? []"));
    client_close(&f.c);
    client_connect(&f.c, http_server_port(f.server));
    ask(&f, "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET /a ? []");
    ck_assert(client_has(&f.c, "Connection: keep-alive\r\n"));
    ask(&f, "GET /b HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET /b ? []");

    fixture_fini(&f);
}
END_TEST

START_TEST(offer_of_another_protocol_is_ignored_and_absolute_targets_are_understood)
{
    struct fixture f;
    fixture_init(&f, NULL);

    ask(&f, "GET /w HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        "GET /w ? []");
    ask(&f, "GET http://h:80/p?q HTTP/1.1\r\nHost: x\r\n\r\n", "GET /p ?q []");
    ask(&f, "GET http://h HTTP/1.1\r\nHost: x\r\n\r\n", "GET / ? []");

    fixture_fini(&f);
}
END_TEST

START_TEST(large_body_reaches_a_slow_reader_whole)
{
    struct fixture f;
    fixture_init(&f, NULL);
    client_send(&f.c, "GET /bytes?8000000 HTTP/1.1\r\nHost: x\r\n\r\n"
                      "GET /after HTTP/1.1\r\nHost: x\r\n\r\n");
    for (int i = 0; i < 5; i++) {
        (void)loop_turn(f.loop, MS(5)); /* the client does not read yet */
    }
    ck_assert_int_eq(f.n_requests, 1); /* the next request waits for the write to end */

    turn_until(f.loop, client_has(&f.c, "GET /after ? []"));

    const char *body = strstr(f.c.in.p, "\r\n\r\n") + 4;
    ck_assert_uint_eq(strspn(body, "x"), 8000000);
    fixture_fini(&f);
}
END_TEST

START_TEST(answer_in_pieces_is_chunked_and_feels_a_slow_reader)
{
    struct fixture f;
    fixture_init(&f, NULL);
    client_send(&f.c, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_until(f.loop, f.n_held == 1);
    char piece[10000];
    memset(piece, 'y', sizeof(piece));

    http_begin(f.held[0], 200, NULL, 0, on_fixture_drain, &f);
    turn_until(f.loop, client_has(&f.c, "Transfer-Encoding: chunked\r\n\r\n"));
    int pieces = 0;
    while (http_write(f.held[0], slice_make(piece, sizeof(piece)))) {
        pieces++;
        ck_assert_int_lt(pieces, 10000);
    }
    ck_assert_int_eq(f.drained, 0);
    turn_until(f.loop, (client_read(&f.c), f.drained == 1));
    ck_assert(http_write(f.held[0], SLICE_NONE)); /* no piece: must not look like the end */
    ck_assert(http_write(f.held[0], SLICE("last")));
    http_end(f.held[0]);
    turn_until(f.loop, client_has(&f.c, "4\r\nlast\r\n0\r\n\r\n"));

    ck_assert_int_eq(client_count(&f.c, "2710\r\n"), pieces + 1);
    ask(&f, "GET /y HTTP/1.1\r\nHost: x\r\n\r\n", "GET /y ? []");
    fixture_fini(&f);
}
END_TEST

START_TEST(answer_in_pieces_to_an_old_client_ends_with_the_connection)
{
    struct fixture f;
    fixture_init(&f, NULL);
    client_send(&f.c, "GET /hold HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    turn_until(f.loop, f.n_held == 1);

    http_begin(f.held[0], 200, NULL, 0, NULL, NULL);
    ck_assert(http_write(f.held[0], SLICE("one ")));
    ck_assert(http_write(f.held[0], SLICE("two")));
    http_end(f.held[0]);
    turn_until(f.loop, client_ended(&f.c));

    ck_assert(client_has(&f.c, "\r\n\r\none two"));
    ck_assert(!client_has(&f.c, "chunked"));
    fixture_fini(&f);
}
END_TEST

START_TEST(error_answer_has_code_and_message_and_values_cannot_smuggle_headers)
{
    struct fixture f;
    fixture_init(&f, NULL);

    ask(&f, "GET /error HTTP/1.1\r\nHost: x\r\n\r\n",
        "{\"code\":404,\"message\":\"no package \\\"x\\\"\"}");
    ck_assert(client_has(&f.c, "HTTP/1.1 404 Not Found\r\n"));
    client_send(&f.c, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_until(f.loop, f.n_held == 1);
    struct http_header evil = {SLICE("X-Reason"), SLICE("a\r\nSet-Cookie: b")};
    http_reply(f.held[0], 204, &evil, 1, SLICE("ignored"));
    turn_until(f.loop, client_has(&f.c, "X-Reason: a  Set-Cookie: b\r\n\r\n"));

    ck_assert(!client_has(&f.c, "ignored"));
    fixture_fini(&f);
}
END_TEST

START_TEST(headers_set_beforehand_go_out_once_with_whatever_answer_is_given)
{
    struct fixture f;
    fixture_init(&f, NULL);

    client_send(&f.c, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_until(f.loop, f.n_held == 1);
    http_answer_header(f.held[0], SLICE("X-First"), SLICE("1"));
    http_answer_header(f.held[0], SLICE("content-type"), SLICE("text/plain"));
    http_reply_error(f.held[0], ERR_NOT_FOUND, "no");
    turn_until(f.loop, client_has(&f.c, "GET /2 ? []"));

    ck_assert(client_has(&f.c, "\r\nX-First: 1\r\n"));
    ck_assert(!client_has(&f.c, "text/plain"));
    ck_assert(strstr(strstr(f.c.in.p, "X-First") + 1, "X-First") == NULL);
    fixture_fini(&f);
}
END_TEST

START_TEST(traceparent_gives_its_trace_id_and_rubbish_none)
{
    static const char good[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    static const char *const bad[] = {
        "",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473x-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
    };
    uint8_t id[16] = {1};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        ck_assert_msg(!http_traceparent(slice_of(bad[i]), id), "%s", bad[i]);
    }
    ck_assert_uint_eq(id[0], 1);
    ck_assert(http_traceparent(slice_of(good), id));
    ck_assert_str_eq(log_id(id), "4bf92f3577b34da6a3ce929d0e0e4736");
    ck_assert(http_traceparent(
        SLICE("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"), id));
}
END_TEST

START_TEST(paths_and_queries_are_decoded_and_bad_encoding_is_seen)
{
    struct arena a;
    arena_init(&a);
    char *pieces[4];
    char *value = NULL;

    ck_assert_int_eq(http_split_path(&a, SLICE("/api/a%20b/c%2Fd/"), pieces, 4), 3);
    ck_assert_str_eq(pieces[1], "a b");
    ck_assert_str_eq(pieces[2], "c/d");
    ck_assert_int_eq(http_split_path(&a, SLICE("/"), pieces, 4), 0);
    ck_assert_int_eq(http_split_path(&a, SLICE("/a//b"), pieces, 4), 3);
    ck_assert_int_eq(http_split_path(&a, SLICE("/1/2/3/4/5"), pieces, 4), -1);
    ck_assert_int_eq(http_split_path(&a, SLICE("/%zz"), pieces, 4), -1);
    ck_assert_ptr_null(http_decode(&a, SLICE("a%00b")));
    ck_assert_ptr_null(http_decode(&a, SLICE("a%4")));
    ck_assert_ptr_null(http_decode(&a, slice_make("a\0b", 3)));
    ck_assert_str_eq(http_decode(&a, SLICE("%c3%A4+")), "\xc3\xa4+");
    struct slice query = SLICE("a=1&b+b=x%26y+z&flag&a=2&bad=%f");
    ck_assert(http_query_find(query, "b b", &a, &value));
    ck_assert_str_eq(value, "x&y z");
    ck_assert(http_query_find(query, "a", &a, &value));
    ck_assert_str_eq(value, "1");
    ck_assert(http_query_find(query, "flag", &a, &value));
    ck_assert_str_eq(value, "");
    ck_assert(!http_query_find(query, "c", &a, &value));
    ck_assert(!http_query_find(query, "bad", &a, &value));

    arena_fini(&a);
}
END_TEST

int main(void)
{
    log_setup("http_test", LOG_ERROR, LOG_FORM_TEXT);
    TCase *tc = tcase_create("http");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, request_is_answered_and_the_connection_carries_the_next_one);
    tcase_add_test(tc, request_that_comes_byte_by_byte_is_the_same_request);
    tcase_add_test(tc, pipelined_requests_are_answered_in_order_one_at_a_time);
    tcase_add_test(
        tc, body_over_the_cap_is_refused_and_the_refusal_arrives_while_the_client_still_sends);
    tcase_add_test(tc, bad_head_is_answered_with_a_status_and_a_sentence_in_json);
    tcase_add_test(tc, head_over_the_cap_is_refused_however_it_is_made_long);
    tcase_add_test(tc, client_that_expects_a_continue_gets_it_before_it_sends_the_body);
    tcase_add_test(tc, answer_to_head_has_the_length_but_no_body);
    tcase_add_test(tc, old_clients_and_those_that_ask_for_it_get_their_connection_closed);
    tcase_add_test(tc, offer_of_another_protocol_is_ignored_and_absolute_targets_are_understood);
    tcase_add_test(tc, large_body_reaches_a_slow_reader_whole);
    tcase_add_test(tc, answer_in_pieces_is_chunked_and_feels_a_slow_reader);
    tcase_add_test(tc, answer_in_pieces_to_an_old_client_ends_with_the_connection);
    tcase_add_test(tc, error_answer_has_code_and_message_and_values_cannot_smuggle_headers);
    tcase_add_test(tc, headers_set_beforehand_go_out_once_with_whatever_answer_is_given);
    tcase_add_test(tc, traceparent_gives_its_trace_id_and_rubbish_none);
    tcase_add_test(tc, paths_and_queries_are_decoded_and_bad_encoding_is_seen);
    Suite *s = suite_create("http");
    suite_add_tcase(s, tc);
    suite_add_tcase(s, http_close_tests());
    return suite_run(s);
}
