/* Ends of connections and servers: timeouts, clients that leave, drain, sockets and ports that are
 * taken. */
#include "http_fixture.h"
#include "http_tests.h"
#include <fcntl.h>
#include <sys/stat.h>

START_TEST(idle_connection_is_closed_and_a_slow_request_is_told_so)
{
    struct fixture f;
    struct http_limits lim = {.idle = MS(40), .read = MS(60)};
    fixture_init(&f, &lim);
    struct client slow;
    client_connect(&slow, http_server_port(f.server));
    client_send(&slow, "GET / HTTP/1.1\r\nHos");

    turn_until(f.loop, client_ended(&f.c));
    ck_assert_uint_eq(f.c.in.len, 0);
    turn_until(f.loop, client_has(&slow, "{\"code\":408,"));

    client_close(&slow);
    turn_until(f.loop, http_server_open(f.server) == 0);
    fixture_fini(&f);
}
END_TEST

START_TEST(request_in_work_is_not_idle)
{
    struct fixture f;
    struct http_limits lim = {.idle = MS(20), .read = MS(20)};
    fixture_init(&f, &lim);
    client_send(&f.c, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_until(f.loop, f.n_held == 1);
    struct ms until = ms_add(loop_now(f.loop), MS(60));
    while (ms_before(loop_now(f.loop), until)) {
        (void)loop_turn(f.loop, MS(10));
    }

    http_reply(f.held[0], 200, NULL, 0, SLICE("late"));
    turn_until(f.loop, client_has(&f.c, "late"));

    turn_until(f.loop, client_ended(&f.c));
    fixture_fini(&f);
}
END_TEST

START_TEST(client_that_hangs_up_is_noticed_while_its_request_is_worked_on)
{
    struct fixture f;
    fixture_init(&f, NULL);
    client_send(&f.c, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_until(f.loop, f.n_held == 1);
    http_on_gone(f.held[0], on_fixture_gone, &f);

    client_close(&f.c);
    turn_until(f.loop, f.gone == 1);
    ck_assert_int_eq(http_server_open(f.server), 1); /* the request lives until it is answered */
    http_reply_json(f.held[0], 200, SLICE("{}"));

    turn_until(f.loop, http_server_open(f.server) == 0);
    ck_assert_int_eq(f.gone, 1);
    fixture_fini(&f);
}
END_TEST

START_TEST(who_asks_late_still_hears_that_the_client_is_gone)
{
    struct fixture f;
    fixture_init(&f, NULL);
    client_send(&f.c, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_until(f.loop, f.n_held == 1);
    http_begin(f.held[0], 200, NULL, 0, NULL, NULL);
    client_close(&f.c);
    for (int i = 0; i < 5; i++) {
        (void)loop_turn(f.loop, MS(10));
    }

    http_on_gone(f.held[0], on_fixture_gone, &f);
    ck_assert_int_eq(f.gone, 0);
    turn_until(f.loop, f.gone == 1);

    ck_assert(http_write(f.held[0], SLICE("nobody hears this")));
    http_end(f.held[0]);
    fixture_fini(&f);
}
END_TEST

static void on_gone_answers(struct http_req *r, void *data)
{
    ((struct fixture *)data)->gone++;
    http_reply_error(r, ERR_HTTP_CLIENT_GONE, "gone");
}

START_TEST(answer_may_be_given_inside_of_the_notice)
{
    struct fixture f;
    fixture_init(&f, NULL);
    client_send(&f.c, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\nGET /x HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_until(f.loop, f.n_held == 1);
    http_on_gone(f.held[0], on_gone_answers, &f);

    client_close(&f.c);

    turn_until(f.loop, http_server_open(f.server) == 0);
    ck_assert_int_eq(f.gone, 1);
    ck_assert_int_eq(f.n_requests, 1);
    fixture_fini(&f);
}
END_TEST

START_TEST(close_ends_idle_connections_at_once_and_busy_ones_after_their_answer)
{
    struct fixture f;
    fixture_init(&f, NULL);
    struct client busy;
    client_send(&f.c, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_until(f.loop, client_has(&f.c, "GET /x ? []"));
    client_connect(&busy, http_server_port(f.server));
    client_send(&busy, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_until(f.loop, f.n_held == 1 && http_server_open(f.server) == 2);

    http_server_close(f.server, MS(60000), on_fixture_over, &f);
    turn_until(f.loop, client_ended(&f.c));
    ck_assert(!f.over);
    ck_assert(!client_ended(&busy));
    http_reply_json(f.held[0], 200, SLICE("\"done\""));
    turn_until(f.loop, f.over);

    ck_assert(client_has(&busy, "\"done\""));
    ck_assert(client_has(&busy, "Connection: close\r\n"));
    ck_assert(client_ended(&busy));
    client_close(&busy);
    fixture_fini(&f);
}
END_TEST

START_TEST(new_connection_may_still_ask_during_a_close_but_not_for_long)
{
    struct fixture f;
    fixture_init(&f, NULL);
    struct client silent;
    client_connect(&silent, http_server_port(f.server));
    turn_until(f.loop, http_server_open(f.server) == 2);

    http_server_close(f.server, MS(60000), on_fixture_over, &f);
    (void)loop_turn(f.loop, MS(10));
    client_send(&f.c, "GET /new HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_until(f.loop, f.over);

    ck_assert(client_has(&f.c, "GET /new ? []"));
    ck_assert(client_has(&f.c, "Connection: close\r\n"));
    ck_assert(client_ended(&silent));
    client_close(&silent);
    fixture_fini(&f);
}
END_TEST

START_TEST(half_sent_request_is_still_served_during_a_close)
{
    struct fixture f;
    fixture_init(&f, NULL);
    client_send(&f.c, "GET /half HTTP/1.1\r\nHo");
    turn_until(f.loop, http_server_open(f.server) == 1);
    (void)loop_turn(f.loop, MS(10));

    http_server_close(f.server, MS(60000), on_fixture_over, &f);
    (void)loop_turn(f.loop, MS(10));
    client_send(&f.c, "st: x\r\n\r\n");
    turn_until(f.loop, f.over);

    ck_assert(client_has(&f.c, "GET /half ? []"));
    fixture_fini(&f);
}
END_TEST

START_TEST(close_by_force_after_the_grace_tells_the_handler)
{
    struct fixture f;
    fixture_init(&f, NULL);
    client_send(&f.c, "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_until(f.loop, f.n_held == 1);
    http_on_gone(f.held[0], on_fixture_gone, &f);

    http_server_close(f.server, MS(20), on_fixture_over, &f);
    turn_until(f.loop, f.gone == 1);
    ck_assert(!f.over);
    http_reply_json(f.held[0], 200, SLICE("{}"));

    turn_until(f.loop, f.over);
    fixture_fini(&f);
}
END_TEST

START_TEST(connection_over_the_limit_is_told_so)
{
    struct fixture f;
    struct http_limits lim = {.connections = 1};
    fixture_init(&f, &lim);
    turn_until(f.loop, http_server_open(f.server) == 1);
    struct client second;
    client_connect(&second, http_server_port(f.server));

    turn_until(f.loop, client_has(&second, "{\"code\":503,\"message\":\"too many connections\"}"));

    client_close(&second);
    turn_until(f.loop, http_server_open(f.server) == 1);
    fixture_fini(&f);
}
END_TEST

START_TEST(taken_port_is_named_with_its_remedy)
{
    struct fixture f;
    fixture_init(&f, NULL);
    char address[64];
    (void)snprintf(address, sizeof(address), "127.0.0.1:%d", http_server_port(f.server));
    struct err e;

    ck_assert_int_eq(http_server_listen(f.server, address, &e), ERR_CONF);
    ck_assert_ptr_nonnull(strstr(e.text, address));
    ck_assert_ptr_nonnull(strstr(e.text, "the address is taken; stop the program that holds it"));
    ck_assert_int_eq(http_server_listen(f.server, "example.com:80", &e), ERR_CONF);
    ck_assert_ptr_nonnull(strstr(e.text, "write host:port"));
    ck_assert_int_eq(http_server_listen(f.server, "127.0.0.1:99999", &e), ERR_CONF);

    fixture_fini(&f);
}
END_TEST

START_TEST(unix_socket_is_private_replaces_a_dead_one_and_respects_a_live_one)
{
    struct fixture f;
    fixture_init(&f, NULL);
    char dir[] = "/tmp/http_test_XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    char path[64], address[80];
    (void)snprintf(path, sizeof(path), "%s/s", dir);
    (void)snprintf(address, sizeof(address), "unix:%s", path);
    struct client dead = {.fd = socket(AF_UNIX, SOCK_STREAM, 0)};
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(at.sun_path, path, strlen(path));
    ck_assert_int_eq(bind(dead.fd, (const void *)&at, sizeof(at)), 0);
    client_close(&dead); /* the file stays, nobody serves it */
    struct err e;

    ck_assert_int_eq(http_server_listen(f.server, address, &e), 0);
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    struct client c;
    ck_assert_int_eq(client_connect_unix(&c, path), 0);
    client_send(&c, "GET /u HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_until(f.loop, client_has(&c, "GET /u ? []"));
    client_close(&c);
    ck_assert_int_eq(http_server_listen(f.server, address, &e), ERR_CONF);
    ck_assert_ptr_nonnull(strstr(e.text, "the address is taken"));
    ck_assert_int_eq(client_connect_unix(&c, path), 0); /* and it still works */
    client_close(&c);

    fixture_fini(&f);
    ck_assert_int_eq(access(path, F_OK), -1);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

START_TEST(unix_socket_never_replaces_a_file_and_a_long_path_is_named)
{
    struct fixture f;
    fixture_init(&f, NULL);
    char path[] = "/tmp/http_test_XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
    char address[256];
    (void)snprintf(address, sizeof(address), "unix:%s", path);
    struct err e;

    ck_assert_int_eq(http_server_listen(f.server, address, &e), ERR_CONF);
    ck_assert_ptr_nonnull(strstr(e.text, "is no socket"));
    ck_assert_int_eq(access(path, F_OK), 0);
    (void)snprintf(address, sizeof(address), "unix:/tmp/%0150d", 7);
    ck_assert_int_eq(http_server_listen(f.server, address, &e), ERR_CONF);
    ck_assert_ptr_nonnull(strstr(e.text, "at most 107 bytes"));

    ck_assert_int_eq(unlink(path), 0);
    fixture_fini(&f);
}
END_TEST

static void on_diverted(void *data, int fd)
{
    struct fixture *worker = data;
    http_server_take_fd(worker->server, fd);
}

/* A server that listens and one that gets what it accepts, on one loop. */
static void diverting_init(struct fixture *f, struct fixture *worker)
{
    fixture_init(f, NULL);
    client_close(&f->c);
    turn_until(f->loop, http_server_open(f->server) == 0);
    *worker = (struct fixture){.loop = f->loop};
    struct http_handler h = {worker, on_fixture_request, NULL};
    worker->server = http_server_new(f->loop, NULL, &h);
    http_server_divert(f->server, on_diverted, worker);
}

START_TEST(accepted_socket_can_be_served_by_another_server)
{
    struct fixture f, worker;
    diverting_init(&f, &worker);

    client_connect(&f.c, http_server_port(f.server));
    client_send(&f.c, "GET /w HTTP/1.1\r\nHost: x\r\n\r\n");
    turn_until(f.loop, client_has(&f.c, "GET /w ? []"));

    ck_assert_int_eq(worker.n_requests, 1);
    ck_assert_int_eq(f.n_requests, 0);
    http_server_close(worker.server, MS(0), on_fixture_over, &worker);
    turn_until(f.loop, worker.over);
    http_server_free(worker.server);
    fixture_fini(&f);
}
END_TEST

START_TEST(what_waits_in_the_queue_is_handed_on_before_the_socket_closes)
{
    enum { WAITING = 20 };
    struct fixture f, worker;
    struct client waiting[WAITING];
    diverting_init(&f, &worker);
    for (int i = 0; i < WAITING; i++) { /* no turn of the loop between here and the close */
        client_connect(&waiting[i], http_server_port(f.server));
        client_send(&waiting[i], "GET /w HTTP/1.1\r\nHost: x\r\n\r\n");
    }

    http_server_close(f.server, MS(1000), on_fixture_over, &f);
    turn_until(f.loop, f.over);
    http_server_close(worker.server, MS(1000), on_fixture_over, &worker);
    turn_until(f.loop, worker.over);

    for (int i = 0; i < WAITING; i++) {
        ck_assert(client_has(&waiting[i], "GET /w ? []"));
        client_close(&waiting[i]);
    }
    http_server_free(worker.server);
    fixture_fini(&f);
}
END_TEST

TCase *http_close_tests(void)
{
    TCase *tc = tcase_create("close");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, idle_connection_is_closed_and_a_slow_request_is_told_so);
    tcase_add_test(tc, request_in_work_is_not_idle);
    tcase_add_test(tc, client_that_hangs_up_is_noticed_while_its_request_is_worked_on);
    tcase_add_test(tc, who_asks_late_still_hears_that_the_client_is_gone);
    tcase_add_test(tc, answer_may_be_given_inside_of_the_notice);
    tcase_add_test(tc, close_ends_idle_connections_at_once_and_busy_ones_after_their_answer);
    tcase_add_test(tc, new_connection_may_still_ask_during_a_close_but_not_for_long);
    tcase_add_test(tc, half_sent_request_is_still_served_during_a_close);
    tcase_add_test(tc, close_by_force_after_the_grace_tells_the_handler);
    tcase_add_test(tc, connection_over_the_limit_is_told_so);
    tcase_add_test(tc, taken_port_is_named_with_its_remedy);
    tcase_add_test(tc, unix_socket_is_private_replaces_a_dead_one_and_respects_a_live_one);
    tcase_add_test(tc, unix_socket_never_replaces_a_file_and_a_long_path_is_named);
    tcase_add_test(tc, accepted_socket_can_be_served_by_another_server);
    tcase_add_test(tc, what_waits_in_the_queue_is_handed_on_before_the_socket_closes);
    return tc;
}
