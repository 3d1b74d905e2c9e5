#include "common/httpc/httpc.h"
#include "common/log/log.h"
#include "http_fixture.h"
#include "tests/support/suite.h"

struct answer {
    struct httpc_call call;
    int done;
    struct httpc *again; /* start once more from inside of done */
};

static void on_done(struct httpc_call *c)
{
    struct answer *a = c->data;
    a->done++;
    if (a->again) {
        struct httpc *h = a->again;
        a->again = NULL;
        buf_fini(&c->answer);
        buf_fini(&c->answer_head);
        httpc_start(h, c);
    }
}

struct setting {
    struct fixture f;
    struct httpc *h;
    char base[64];
};

static void setting_init(struct setting *s)
{
    fixture_init(&s->f, NULL);
    s->h = httpc_new(s->f.loop);
    (void)snprintf(s->base, sizeof(s->base), "http://127.0.0.1:%d", http_server_port(s->f.server));
}

static void setting_fini(struct setting *s)
{
    httpc_free(s->h);
    fixture_fini(&s->f);
}

static void ask(struct setting *s, struct answer *a, const char *method, const char *path,
                struct slice body)
{
    char *url = xasprintf("%s%s", s->base, path);
    a->call.method = method;
    a->call.url = url;
    a->call.body = body;
    a->call.done = on_done;
    a->call.data = a;
    httpc_start(s->h, &a->call);
    ck_assert_int_eq(a->done, 0);
    turn_until(s->f.loop, a->done == 1);
    free(url);
    a->call.url = NULL;
}

static void answer_fini(struct answer *a)
{
    buf_fini(&a->call.answer);
    buf_fini(&a->call.answer_head);
}

START_TEST(request_goes_out_and_its_answer_comes_with_status_head_and_body)
{
    struct setting s;
    setting_init(&s);
    const char *headers[] = {"X-Name: me", "Content-Type: text/plain", NULL};
    struct answer a = {.call.headers = headers};

    ask(&s, &a, "POST", "/p?q=1", SLICE("body"));

    ck_assert_int_eq(a.call.rc, 0);
    ck_assert_int_eq(a.call.status, 200);
    ck_assert_str_eq(buf_str(&a.call.answer), "POST /p ?q=1 [body]");
    ck_assert(slice_is(httpc_header(&a.call, "x-seen"), "me"));
    ck_assert_uint_eq(httpc_header(&a.call, "absent").len, 0);
    answer_fini(&a);
    setting_fini(&s);
}
END_TEST

START_TEST(every_method_works_and_an_error_status_is_an_answer)
{
    struct setting s;
    setting_init(&s);
    struct answer get = {0}, put = {0}, delete = {0}, head = {0}, missing = {0};

    ask(&s, &get, "GET", "/g", SLICE_NONE);
    ask(&s, &put, "PUT", "/g", SLICE_NONE);
    ask(&s, &delete, "DELETE", "/g", SLICE_NONE);
    ask(&s, &head, "HEAD", "/g", SLICE_NONE);
    ask(&s, &missing, "GET", "/error", SLICE_NONE);

    ck_assert_str_eq(buf_str(&get.call.answer), "GET /g ? []");
    ck_assert_str_eq(buf_str(&put.call.answer), "PUT /g ? []");
    ck_assert_str_eq(buf_str(&delete.call.answer), "DELETE /g ? []");
    ck_assert_uint_eq(head.call.answer.len, 0);
    ck_assert(slice_is(httpc_header(&head.call, "Content-Length"), "12"));
    ck_assert_int_eq(missing.call.rc, 0);
    ck_assert_int_eq(missing.call.status, 404);
    answer_fini(&get);
    answer_fini(&put);
    answer_fini(&delete);
    answer_fini(&head);
    answer_fini(&missing);
    setting_fini(&s);
}
END_TEST

START_TEST(nobody_behind_the_address_is_named_without_password_and_query)
{
    struct setting s;
    setting_init(&s);
    struct answer a = {.call.done = on_done, .call.method = "GET"};
    a.call.url = "http://user:hunter2@127.0.0.1:1/path?token=hunter3";
    a.call.data = &a;

    httpc_start(s.h, &a.call);
    turn_until(s.f.loop, a.done == 1);

    ck_assert_int_eq(a.call.rc, ERR_HTTP_UNREACHABLE);
    ck_assert_ptr_nonnull(strstr(a.call.err.text, "GET http://127.0.0.1:1/path: "));
    ck_assert_ptr_null(strstr(a.call.err.text, "hunter"));
    answer_fini(&a);
    setting_fini(&s);
}
END_TEST

START_TEST(answer_that_does_not_come_in_time_is_a_timeout)
{
    struct setting s;
    setting_init(&s);
    struct answer a = {.call.timeout = MS(50)};

    ask(&s, &a, "GET", "/hold", SLICE_NONE);

    ck_assert_int_eq(a.call.rc, ERR_TIMEOUT);
    answer_fini(&a);
    http_reply_json(s.f.held[0], 200, SLICE("{}"));
    setting_fini(&s);
}
END_TEST

START_TEST(answer_over_the_cap_is_refused)
{
    struct setting s;
    setting_init(&s);
    struct answer a = {.call.max_bytes = 1000}, b = {.call.max_bytes = 100000};

    ask(&s, &a, "GET", "/bytes?1001", SLICE_NONE);
    ask(&s, &b, "GET", "/bytes?100000", SLICE_NONE);

    ck_assert_int_eq(a.call.rc, ERR_HTTP_TOO_LARGE);
    ck_assert_int_eq(b.call.rc, 0);
    ck_assert_uint_eq(b.call.answer.len, 100000);
    answer_fini(&a);
    answer_fini(&b);
    setting_fini(&s);
}
END_TEST

START_TEST(cancelled_call_ends_once_on_a_later_turn)
{
    struct setting s;
    setting_init(&s);
    char *url = xasprintf("%s/hold", s.base);
    struct answer a = {.call.done = on_done, .call.method = "GET", .call.url = url};
    a.call.data = &a;
    httpc_start(s.h, &a.call);
    turn_until(s.f.loop, s.f.n_held == 1);

    httpc_cancel(&a.call);
    httpc_cancel(&a.call);
    ck_assert_int_eq(a.done, 0);
    turn_until(s.f.loop, a.done == 1);
    httpc_cancel(&a.call);
    (void)loop_turn(s.f.loop, MS(5));

    ck_assert_int_eq(a.done, 1);
    ck_assert_int_eq(a.call.rc, ERR_CANCELLED);
    answer_fini(&a);
    free(url);
    http_reply_json(s.f.held[0], 200, SLICE("{}"));
    setting_fini(&s);
}
END_TEST

START_TEST(call_may_be_started_again_from_its_own_end)
{
    struct setting s;
    setting_init(&s);
    char *url = xasprintf("%s/x", s.base);
    struct answer a = {.call.done = on_done, .call.method = "GET", .call.url = url};
    a.call.data = &a;
    a.again = s.h;

    httpc_start(s.h, &a.call);
    turn_until(s.f.loop, a.done == 2);

    ck_assert_str_eq(buf_str(&a.call.answer), "GET /x ? []");
    answer_fini(&a);
    free(url);
    setting_fini(&s);
}
END_TEST

START_TEST(unix_socket_is_reached_and_a_wrong_one_is_an_error)
{
    struct setting s;
    setting_init(&s);
    char dir[] = "/tmp/httpc_test_XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    char path[64], address[80];
    (void)snprintf(path, sizeof(path), "%s/s", dir);
    (void)snprintf(address, sizeof(address), "unix:%s", path);
    struct err e;
    ck_assert_int_eq(http_server_listen(s.f.server, address, &e), 0);
    struct answer good = {.call.unix_socket = path}, bad = {.call.unix_socket = "/tmp/no/such"};

    ask(&s, &good, "GET", "/u", SLICE_NONE);
    ask(&s, &bad, "GET", "/u", SLICE_NONE);

    ck_assert_str_eq(buf_str(&good.call.answer), "GET /u ? []");
    ck_assert_int_eq(bad.call.rc, ERR_HTTP_UNREACHABLE);
    answer_fini(&good);
    answer_fini(&bad);
    setting_fini(&s);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

int main(void)
{
    log_setup("httpc_test", LOG_ERROR, LOG_FORM_TEXT);
    TCase *tc = tcase_create("httpc");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, request_goes_out_and_its_answer_comes_with_status_head_and_body);
    tcase_add_test(tc, every_method_works_and_an_error_status_is_an_answer);
    tcase_add_test(tc, nobody_behind_the_address_is_named_without_password_and_query);
    tcase_add_test(tc, answer_that_does_not_come_in_time_is_a_timeout);
    tcase_add_test(tc, answer_over_the_cap_is_refused);
    tcase_add_test(tc, cancelled_call_ends_once_on_a_later_turn);
    tcase_add_test(tc, call_may_be_started_again_from_its_own_end);
    tcase_add_test(tc, unix_socket_is_reached_and_a_wrong_one_is_an_error);
    Suite *s = suite_create("httpc");
    suite_add_tcase(s, tc);
    return suite_run(s);
}
