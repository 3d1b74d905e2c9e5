/* Hints, and the addresses that ends serve on. */
#include "tests/conformance/bus_conformance_fixture.h"
#include "tests/conformance/bus_conformance_suites.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- hints ---- */
struct heard {
    int n;
    char topic[5];
    uint64_t epoch;
};

static void on_hint(void *data, const char topic[4], struct slice packed)
{
    struct heard *h = data;
    struct arena a;
    arena_init(&a);
    Kiln__Event *ev = bus_unpack(&kiln__event__descriptor, &a, packed, NULL);
    ck_assert(ev != NULL);
    memcpy(h->topic, topic, 4);
    h->epoch = ev->epoch;
    h->n++;
    arena_fini(&a);
}

START_TEST(hints_arrive_with_their_topic_and_only_when_signed)
{
    struct rig r;
    rig_init(&r, _i);
    struct err e = {0};
    struct heard good = {0};
    struct heard keyless = {0};
    struct heard stranger = {0};
    struct bus *planner = rig_end(&r, "planner-1", "key", 7);
    ck_assert_msg(bus_publish_on(planner, r.url[1], &e) == 0, "%s", e.text);
    struct bus *g1 = rig_end(&r, "gateway-1", "key", 7);
    struct bus *g2 = rig_end(&r, "gateway-2", "other", 7);
    struct bus *g3 = rig_end(&r, "gateway-3", "key", 8);
    ck_assert_int_eq(bus_subscribe(g1, r.url[1], on_hint, &good, &e), 0);
    ck_assert_int_eq(bus_subscribe(g2, r.url[1], on_hint, &keyless, &e), 0);
    ck_assert_int_eq(bus_subscribe(g3, r.url[1], on_hint, &stranger, &e), 0);

    Kiln__Event ev = KILN__EVENT__INIT;
    ev.epoch = 77;
    struct ms limit = ms_add(rig_now(&r), MS(PATIENCE_MS));
    while (!good.n) { /* hints before the connection stands are lost, as they may be */
        ck_assert(ms_before(rig_now(&r), limit));
        bus_publish(planner, "bind", &ev.base);
        rig_step(&r);
    }

    rig_wait(&r, 100);
    ck_assert_str_eq(good.topic, "bind");
    ck_assert_uint_eq(good.epoch, 77);
    ck_assert_int_eq(keyless.n, 0);
    ck_assert_int_eq(stranger.n, 0);
    rig_fini(&r);
}
END_TEST

/* ---- addresses ---- */
START_TEST(bad_addresses_are_refused_in_one_sentence)
{
    struct rig r;
    rig_init(&r, _i);
    struct server s = {0};
    struct err e = {0};
    struct bus *planner = rig_end(&r, "planner-1", NULL, 7);
    struct bus *second = rig_end(&r, "planner-2", NULL, 7);
    char longest[256] = "ipc:///tmp/";
    memset(longest + strlen(longest), 'x', 108 - 5);
    serve(planner, r.url[0], 2, &s);

    ck_assert_int_eq(bus_serve(second, longest, 2, on_request, &s, &e), ERR_CONF);
    ck_assert(strstr(e.text, "108 bytes long") && strstr(e.text, "shorter run directory"));
    ck_assert_int_eq(bus_serve(second, "/tmp/x", 2, on_request, &s, &e), ERR_CONF);
    ck_assert(strstr(e.text, "ipc:///path or tcp://host:port") != NULL);
    ck_assert_int_eq(bus_serve(second, r.url[0], 2, on_request, &s, &e), ERR_CONF);
    ck_assert(strstr(e.text, "taken by another process") != NULL);
    rig_fini(&r);
}
END_TEST

START_TEST(a_unix_socket_is_for_its_owner_only)
{
    struct pair p;
    struct ask a;
    pair_init(&p, NNG, NULL, NULL);
    struct stat st;
    /* a socket that closes while a peer is just connecting loses some memory in nng */
    ask_and_wait(&p.rig, &a, p.builder, "r1", 0);

    ck_assert_int_eq(stat(p.rig.url[0] + strlen("ipc://"), &st), 0);

    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    rig_fini(&p.rig);
}
END_TEST

static int free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)(const void *)&at, sizeof(at)), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)(void *)&at, &len), 0);
    close(fd);
    return ntohs(at.sin_port);
}

START_TEST(a_call_is_answered_over_tcp)
{
    struct rig r;
    struct server s = {0};
    struct ask a;
    char url[64];
    rig_init(&r, _i);
    (void)snprintf(url, sizeof(url), "tcp://localhost:%d", free_port());
    struct bus *builder = rig_end(&r, "builder-1", "key", 7);
    const char *urls[] = {url};
    serve(rig_end(&r, "planner-1", "key", 7), url, 4, &s);
    dial(builder, urls, 1);

    ask_and_wait(&r, &a, builder, "r1", 0);

    ck_assert_msg(a.call.rc == 0, "%s", a.call.err.text);
    rig_fini(&r);
}
END_TEST

TCase *bus_conformance_address_tests(void)
{
    TCase *t = tcase_create("addresses");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, hints_arrive_with_their_topic_and_only_when_signed, NNG, RIGS);
    tcase_add_loop_test(t, bad_addresses_are_refused_in_one_sentence, NNG, RIGS);
    tcase_add_test(t, a_unix_socket_is_for_its_owner_only);
    tcase_add_loop_test(t, a_call_is_answered_over_tcp, NNG, RIGS);
    return t;
}
