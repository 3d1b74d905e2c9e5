/* One suite for both transports of the bus: nng over unix sockets, and the simulated network. */
#include "common/bus/bus_sim.h"
#include "common/log/log.h"
#include "proto/gateway.pb-c.h"
#include "proto/planner.pb-c.h"
#include "tests/support/suite.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NNG, SIM, RIGS };
enum { PATIENCE_MS = 15000, ENDS_MOST = 6 };

struct rig {
    bool is_sim;
    struct loop *loop;
    struct sim_time time;
    struct bus_world *world;
    char dir[32];
    char url[3][64];
    struct bus *ends[ENDS_MOST];
    size_t n_ends;
};

static void rig_init(struct rig *r, int which)
{
    *r = (struct rig){.is_sim = which == SIM};
    (void)snprintf(r->dir, sizeof(r->dir), "/tmp/kbusXXXXXX");
    ck_assert(mkdtemp(r->dir) != NULL);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(r->url[i], sizeof(r->url[i]), "ipc://%s/%d", r->dir, i);
    }
    if (r->is_sim) {
        sim_time_init(&r->time, 42);
        r->world = bus_world_new(&r->time);
    } else {
        r->loop = loop_new();
    }
}

static struct ms rig_now(struct rig *r)
{
    return r->is_sim ? r->time.now : loop_now(r->loop);
}

static void rig_step(struct rig *r)
{
    if (!r->is_sim) {
        (void)loop_turn(r->loop, MS(50));
    } else if (!sim_time_step(&r->time)) {
        sim_time_pass(&r->time, MS(50));
    }
}

#define until(r, claim)                                                                            \
    do {                                                                                           \
        struct ms limit = ms_add(rig_now(r), MS(PATIENCE_MS));                                     \
        while (!(claim)) {                                                                         \
            ck_assert_msg(ms_before(rig_now(r), limit), "never: " #claim);                         \
            rig_step(r);                                                                           \
        }                                                                                          \
    } while (0)

/* Lets time pass, and whatever is due in it. */
static void rig_wait(struct rig *r, int64_t ms)
{
    if (r->is_sim) {
        sim_time_pass(&r->time, MS(ms));
        return;
    }
    struct ms start = rig_now(r);
    until(r, rig_now(r).v - start.v > ms);
}

static struct bus *rig_end(struct rig *r, const char *instance, const char *key, uint8_t site)
{
    struct bus_identity me = {.boot = uuid_random(), .instance = instance, .key = slice_of(key)};
    memset(me.installation.b, site, sizeof(me.installation.b));
    struct bus *b = r->is_sim ? bus_sim_new(r->world, &me) : bus_new(r->loop, &me);
    for (size_t i = 0; i < ENDS_MOST; i++) {
        if (!r->ends[i]) {
            r->ends[i] = b;
            return b;
        }
    }
    ck_abort_msg("too many ends");
    return NULL;
}

static void on_closed(void *data)
{
    *(bool *)data = true;
}

static void rig_close(struct rig *r, struct bus *b)
{
    bool is_closed = false;
    bus_close(b, on_closed, &is_closed);
    ck_assert(!is_closed);
    until(r, is_closed);
    for (size_t i = 0; i < ENDS_MOST; i++) {
        if (r->ends[i] == b) {
            r->ends[i] = NULL;
        }
    }
    bus_free(b);
}

static void rig_fini(struct rig *r)
{
    for (size_t i = 0; i < ENDS_MOST; i++) {
        if (r->ends[i]) {
            rig_close(r, r->ends[i]);
        }
    }
    if (r->is_sim) {
        bus_world_free(r->world);
    } else {
        loop_free(r->loop);
    }
    for (int i = 0; i < 3; i++) {
        (void)unlink(r->url[i] + strlen("ipc://"));
    }
    ck_assert_int_eq(rmdir(r->dir), 0);
}

static void dial(struct bus *b, const char *const *urls, size_t n)
{
    struct err e = {0};
    ck_assert_msg(bus_dial(b, urls, n, &e) == 0, "%s", e.text);
}

/* ---- a server that does what it is told ---- */
struct server {
    int answers_with;  /* an error, or 0 */
    int failures_left; /* answers with the error that often, then well */
    uint32_t retry_after_ms;
    bool holds; /* keeps requests in held */
    struct bus_request *held[32];
    int n_held, n_calls;
    uint8_t last_id[16];
    char last_instance[32];
    struct ms last_budget; /* deadline */
    bool ids_differ;
};

static void answer(struct bus_request *r)
{
    struct err e = {0};
    Kiln__GetRunReq *req = bus_unpack(&kiln__get_run_req__descriptor, &r->arena, r->payload, &e);
    ck_assert_msg(req != NULL, "%s", e.text);
    Kiln__RunRep rep = KILN__RUN_REP__INIT;
    rep.run_json = arena_printf(&r->arena, "run %s", req->id);
    bus_reply(r, &rep.base);
}

static void on_request(void *data, struct bus_request *r)
{
    struct server *s = data;
    if (s->n_calls && memcmp(s->last_id, r->request_id, 16) != 0) {
        s->ids_differ = true;
    }
    s->n_calls++;
    memcpy(s->last_id, r->request_id, 16);
    (void)snprintf(s->last_instance, sizeof(s->last_instance), "%s", r->instance);
    s->last_budget = r->deadline;
    if (s->answers_with && s->failures_left-- > 0) {
        bus_reply_error(r, s->answers_with, "the server's sentence", s->retry_after_ms);
    } else if (s->holds) {
        ck_assert_int_lt(s->n_held, 32);
        s->held[s->n_held++] = r;
    } else {
        answer(r);
    }
}

static void serve(struct bus *b, const char *url, unsigned held, struct server *s)
{
    struct err e = {0};
    ck_assert_msg(bus_serve(b, url, held, on_request, s, &e) == 0, "%s", e.text);
}

static void release(struct server *s)
{
    for (int i = 0; i < s->n_held; i++) {
        answer(s->held[i]);
    }
    s->n_held = 0;
}

/* ---- a call ---- */
struct ask {
    struct bus_call call;
    Kiln__GetRunReq req;
    int n_done;
    char reply[64];
};

static void on_done(struct bus_call *c)
{
    struct ask *a = c->data;
    a->n_done++;
    if (c->rc == 0) {
        struct arena arena;
        arena_init(&arena);
        Kiln__RunRep *rep = bus_unpack(&kiln__run_rep__descriptor, &arena, c->reply, NULL);
        ck_assert(rep != NULL);
        (void)snprintf(a->reply, sizeof(a->reply), "%s", rep->run_json);
        arena_fini(&arena);
    }
}

static void ask_start(struct ask *a, struct bus *b, const char *id, int64_t timeout_ms)
{
    union {
        const char *in;
        char *out;
    } u = {.in = id};
    *a = (struct ask){.req = KILN__GET_RUN_REQ__INIT};
    a->req.id = u.out;
    a->call = (struct bus_call){.kind = BUS_GET_RUN,
                                .request = &a->req.base,
                                .timeout = MS(timeout_ms),
                                .done = on_done,
                                .data = a};
    ck_assert_int_eq(bus_call_start(b, &a->call), 0);
    ck_assert_int_eq(a->n_done, 0); /* never inside of the start */
}

static void ask_and_wait(struct rig *r, struct ask *a, struct bus *b, const char *id, int64_t ms)
{
    ask_start(a, b, id, ms);
    until(r, a->n_done == 1);
}

/* Two ends, one server, one caller. */
struct pair {
    struct rig rig;
    struct server server;
    struct bus *planner, *builder;
};

static void pair_init(struct pair *p, int which, const char *server_key, const char *caller_key)
{
    *p = (struct pair){0};
    rig_init(&p->rig, which);
    p->planner = rig_end(&p->rig, "planner-1", server_key, 7);
    p->builder = rig_end(&p->rig, "builder-1", caller_key, 7);
    serve(p->planner, p->rig.url[0], 4, &p->server);
    const char *urls[] = {p->rig.url[0]};
    dial(p->builder, urls, 1);
}

START_TEST(a_call_is_answered)
{
    struct pair p;
    pair_init(&p, _i, NULL, NULL);
    struct ask a;

    ask_and_wait(&p.rig, &a, p.builder, "r1", 0);

    ck_assert_msg(a.call.rc == 0, "%s", a.call.err.text);
    ck_assert_str_eq(a.reply, "run r1");
    ck_assert_str_eq(p.server.last_instance, "builder-1");
    ck_assert_int_le(p.server.last_budget.v, rig_now(&p.rig).v + 5000);
    ck_assert_int_gt(p.server.last_budget.v, rig_now(&p.rig).v);
    rig_fini(&p.rig);
}
END_TEST

START_TEST(a_signed_call_is_answered)
{
    struct pair p;
    pair_init(&p, _i, "secret", "secret");
    struct ask a;

    ask_and_wait(&p.rig, &a, p.builder, "r1", 0);

    ck_assert_msg(a.call.rc == 0, "%s", a.call.err.text);
    rig_fini(&p.rig);
}
END_TEST

static void refused_by_mac(int which, const char *server_key, const char *caller_key)
{
    struct pair p;
    pair_init(&p, which, server_key, caller_key);
    struct ask a;

    ask_and_wait(&p.rig, &a, p.builder, "r1", 0);

    ck_assert_int_eq(a.call.rc, ERR_MAC);
    ck_assert(strstr(a.call.err.text, "KILN_BUS_KEY") != NULL);
    ck_assert(strstr(a.call.err.text, "secret") == NULL);
    rig_fini(&p.rig);
}

START_TEST(a_wrong_key_is_refused)
{
    refused_by_mac(_i, "secret-1", "secret-2");
}
END_TEST

START_TEST(a_missing_key_is_refused)
{
    refused_by_mac(_i, "secret-1", NULL);
}
END_TEST

START_TEST(an_unsigned_answer_is_refused)
{
    refused_by_mac(_i, NULL, "secret-2");
}
END_TEST

START_TEST(another_installation_is_refused)
{
    struct rig r;
    rig_init(&r, _i);
    struct server s = {0};
    serve(rig_end(&r, "planner-1", NULL, 7), r.url[0], 4, &s);
    struct bus *stranger = rig_end(&r, "builder-9", NULL, 8);
    const char *urls[] = {r.url[0]};
    dial(stranger, urls, 1);
    struct ask a;

    ask_and_wait(&r, &a, stranger, "r1", 0);

    ck_assert_int_eq(a.call.rc, ERR_INSTALLATION);
    ck_assert_int_eq(s.n_calls, 0);
    rig_fini(&r);
}
END_TEST

START_TEST(the_installation_is_learned_from_the_first_answer)
{
    struct rig r;
    rig_init(&r, _i);
    struct server s = {0};
    struct bus *planner = rig_end(&r, "planner-1", NULL, 7);
    serve(planner, r.url[0], 4, &s);
    struct bus *newcomer = rig_end(&r, "builder-1", NULL, 0);
    const char *urls[] = {r.url[0]};
    dial(newcomer, urls, 1);
    struct ask a;

    ask_and_wait(&r, &a, newcomer, "r1", 0);

    ck_assert_int_eq(a.call.rc, 0);
    ck_assert(uuid_eq(bus_installation(newcomer), bus_installation(planner)));
    rig_fini(&r);
}
END_TEST

START_TEST(a_permanent_error_comes_back_with_its_sentence)
{
    struct pair p;
    pair_init(&p, _i, NULL, NULL);
    p.server.answers_with = ERR_NOT_FOUND;
    p.server.failures_left = 1000;
    struct ask a;

    ask_and_wait(&p.rig, &a, p.builder, "r1", 0);

    ck_assert_int_eq(a.call.rc, ERR_NOT_FOUND);
    ck_assert_int_eq(a.call.err.code, ERR_NOT_FOUND);
    ck_assert_str_eq(a.call.err.text, "the server's sentence");
    ck_assert_int_eq(p.server.n_calls, 1);
    rig_fini(&p.rig);
}
END_TEST

START_TEST(a_transient_error_is_tried_again_under_the_same_id)
{
    struct pair p;
    pair_init(&p, _i, NULL, NULL);
    p.server.answers_with = ERR_STORE;
    p.server.failures_left = 2;
    struct ask a;

    ask_and_wait(&p.rig, &a, p.builder, "r1", 5000);

    ck_assert_msg(a.call.rc == 0, "%s", a.call.err.text);
    ck_assert_int_eq(p.server.n_calls, 3);
    ck_assert(!p.server.ids_differ);
    rig_fini(&p.rig);
}
END_TEST

START_TEST(a_lasting_transient_error_ends_with_the_servers_reason)
{
    struct pair p;
    pair_init(&p, _i, NULL, NULL);
    p.server.answers_with = ERR_STORE;
    p.server.failures_left = 1000;
    p.server.retry_after_ms = 9000;
    struct ask a;

    ask_and_wait(&p.rig, &a, p.builder, "r1", 700);

    ck_assert_int_eq(a.call.rc, ERR_STORE);
    ck_assert_uint_eq(a.call.retry_after_ms, 9000);
    rig_fini(&p.rig);
}
END_TEST

START_TEST(a_follower_sends_the_call_to_the_next_address)
{
    struct rig r;
    rig_init(&r, _i);
    struct server follower = {.answers_with = ERR_NOT_LEADER, .failures_left = 1000};
    struct server leader = {0};
    serve(rig_end(&r, "planner-1", NULL, 7), r.url[0], 4, &follower);
    serve(rig_end(&r, "planner-2", NULL, 7), r.url[1], 4, &leader);
    struct bus *builder = rig_end(&r, "builder-1", NULL, 7);
    const char *urls[] = {r.url[0], r.url[1]};
    dial(builder, urls, 2);
    struct ask a;

    ask_and_wait(&r, &a, builder, "r1", 0);
    int told = follower.n_calls;
    for (int i = 0; i < 4; i++) {
        ask_and_wait(&r, &a, builder, "r1", 0);
        ck_assert_msg(a.call.rc == 0, "%s", a.call.err.text);
    }

    ck_assert_int_eq(leader.n_calls, 5);
    ck_assert_int_eq(follower.n_calls, told); /* the leader is remembered */
    rig_fini(&r);
}
END_TEST

START_TEST(a_call_to_nobody_ends_at_its_deadline)
{
    struct rig r;
    rig_init(&r, _i);
    struct bus *builder = rig_end(&r, "builder-1", NULL, 7);
    const char *urls[] = {r.url[0]};
    dial(builder, urls, 1);
    struct ms start = rig_now(&r);
    struct ask a;

    ask_and_wait(&r, &a, builder, "r1", 300);

    ck_assert_int_eq(a.call.rc, ERR_BUS_TIMEOUT);
    ck_assert(strstr(a.call.err.text, "not connected") != NULL);
    ck_assert(strstr(a.call.err.text, r.url[0]) != NULL);
    ck_assert_int_ge(rig_now(&r).v - start.v, 299);
    rig_fini(&r);
}
END_TEST

START_TEST(a_call_that_is_held_too_long_ends_and_may_still_be_answered)
{
    struct pair p;
    pair_init(&p, _i, NULL, NULL);
    p.server.holds = true;
    struct ask a;
    ask_start(&a, p.builder, "r1", 400);
    until(&p.rig, p.server.n_held == 1);
    until(&p.rig, a.n_done == 1);
    ck_assert_int_eq(a.call.rc, ERR_BUS_TIMEOUT);

    release(&p.server);
    p.server.holds = false;
    struct ask b;
    ask_and_wait(&p.rig, &b, p.builder, "r2", 0);

    ck_assert_int_eq(b.call.rc, 0);
    ck_assert_str_eq(b.reply, "run r2");
    ck_assert_int_eq(a.n_done, 1);
    rig_fini(&p.rig);
}
END_TEST

START_TEST(a_repeat_of_a_held_call_is_joined)
{
    struct pair p;
    pair_init(&p, _i, NULL, NULL);
    p.server.holds = true;
    struct ask a;
    ask_start(&a, p.builder, "r1", 4000); /* repeated after a third of it */
    until(&p.rig, p.server.n_held == 1);
    rig_wait(&p.rig, 1700);
    ck_assert_int_eq(p.server.n_calls, 1);
    release(&p.server);
    until(&p.rig, a.n_done == 1);

    ck_assert_msg(a.call.rc == 0, "%s", a.call.err.text);
    rig_fini(&p.rig);
}
END_TEST

START_TEST(a_cancelled_call_ends_later_with_cancelled)
{
    struct pair p;
    pair_init(&p, _i, NULL, NULL);
    p.server.holds = true;
    struct ask a;
    ask_start(&a, p.builder, "r1", 5000);
    until(&p.rig, p.server.n_held == 1);

    bus_call_cancel(&a.call);
    bus_call_cancel(&a.call);
    ck_assert_int_eq(a.n_done, 0);
    until(&p.rig, a.n_done == 1);

    ck_assert_int_eq(a.call.rc, ERR_CANCELLED);
    release(&p.server);
    p.server.holds = false;
    struct ask b;
    ask_and_wait(&p.rig, &b, p.builder, "r2", 0);
    ck_assert_str_eq(b.reply, "run r2");
    ck_assert_int_eq(a.n_done, 1);
    rig_fini(&p.rig);
}
END_TEST

START_TEST(closing_ends_calls_with_shutdown)
{
    struct pair p;
    pair_init(&p, _i, NULL, NULL);
    p.server.holds = true;
    struct ask a;
    struct ask b;
    ask_start(&a, p.builder, "r1", 5000);
    until(&p.rig, p.server.n_held == 1);

    bool is_closed = false;
    bus_close(p.builder, on_closed, &is_closed);
    b = (struct ask){.call = {.kind = BUS_GET_RUN, .done = on_done, .data = &b}};
    ck_assert_int_eq(bus_call_start(p.builder, &b.call), ERR_SHUTDOWN);
    until(&p.rig, is_closed);

    ck_assert_int_eq(a.n_done, 1);
    ck_assert_int_eq(a.call.rc, ERR_SHUTDOWN);
    ck_assert_int_eq(b.n_done, 0);
    bus_free(p.builder);
    p.rig.ends[1] = NULL;
    rig_fini(&p.rig);
}
END_TEST

START_TEST(a_server_may_close_with_calls_held)
{
    struct pair p;
    pair_init(&p, _i, NULL, NULL);
    p.server.holds = true;
    struct ask a;
    ask_start(&a, p.builder, "r1", 600);
    until(&p.rig, p.server.n_held == 1);

    bool is_closed = false;
    bus_close(p.planner, on_closed, &is_closed);
    release(&p.server); /* too late: only gives the request back */
    until(&p.rig, is_closed && a.n_done == 1);

    ck_assert_int_eq(a.call.rc, ERR_BUS_TIMEOUT);
    bus_free(p.planner);
    p.rig.ends[0] = NULL;
    rig_fini(&p.rig);
}
END_TEST

START_TEST(a_call_survives_a_restart_of_its_server)
{
    struct pair p;
    pair_init(&p, _i, NULL, NULL);
    p.server.holds = true;
    struct ask a;
    ask_start(&a, p.builder, "r1", 10000);
    until(&p.rig, p.server.n_held == 1);

    rig_close(&p.rig, p.planner);
    struct server reborn = {0};
    serve(rig_end(&p.rig, "planner-1", NULL, 7), p.rig.url[0], 4, &reborn);
    until(&p.rig, a.n_done == 1);

    ck_assert_msg(a.call.rc == 0, "%s", a.call.err.text);
    ck_assert_int_ge(reborn.n_calls, 1);
    ck_assert_mem_eq(reborn.last_id, p.server.last_id, 16);
    rig_fini(&p.rig);
}
END_TEST

START_TEST(a_lost_server_is_left_for_the_next_address)
{
    struct rig r;
    rig_init(&r, _i);
    struct server first = {.holds = true};
    struct server second = {0};
    struct bus *one = rig_end(&r, "planner-1", NULL, 7);
    serve(one, r.url[0], 4, &first);
    struct bus *builder = rig_end(&r, "builder-1", NULL, 7);
    const char *urls[] = {r.url[0], r.url[1]};
    dial(builder, urls, 2);
    struct ask a;
    ask_start(&a, builder, "r1", 10000);
    until(&r, first.n_held == 1);

    serve(rig_end(&r, "planner-2", NULL, 7), r.url[1], 4, &second);
    rig_close(&r, one);
    until(&r, a.n_done == 1);

    ck_assert_msg(a.call.rc == 0, "%s", a.call.err.text);
    ck_assert_int_eq(second.n_calls, 1);
    rig_fini(&r);
}
END_TEST

START_TEST(a_call_waits_until_its_server_listens)
{
    struct rig r;
    rig_init(&r, _i);
    struct bus *builder = rig_end(&r, "builder-1", NULL, 7);
    const char *urls[] = {r.url[0]};
    dial(builder, urls, 1);
    struct ask a;
    ask_start(&a, builder, "r1", 10000);
    rig_wait(&r, 150);

    struct server s = {0};
    serve(rig_end(&r, "planner-1", NULL, 7), r.url[0], 4, &s);
    until(&r, a.n_done == 1);

    ck_assert_msg(a.call.rc == 0, "%s", a.call.err.text);
    ck_assert_int_eq(s.n_calls, 1);
    rig_fini(&r);
}
END_TEST

START_TEST(no_more_calls_are_held_than_asked_for)
{
    struct pair p;
    pair_init(&p, _i, NULL, NULL); /* holds 4 */
    p.server.holds = true;
    struct ask a[6];
    for (size_t i = 0; i < ARRAY_LEN(a); i++) {
        ask_start(&a[i], p.builder, "r", 9000);
    }
    until(&p.rig, p.server.n_held == 4);
    rig_wait(&p.rig, 100);
    ck_assert_int_eq(p.server.n_held, 4);

    release(&p.server);
    until(&p.rig, p.server.n_held == 2);
    release(&p.server);

    for (size_t i = 0; i < ARRAY_LEN(a); i++) {
        until(&p.rig, a[i].n_done == 1);
        ck_assert_int_eq(a[i].call.rc, 0);
    }
    rig_fini(&p.rig);
}
END_TEST

/* ---- large messages ---- */
struct bytes_call {
    struct bus_call call;
    size_t reply_len;
    bool is_done;
};

static void on_bytes_done(struct bus_call *c)
{
    struct bytes_call *b = c->data;
    b->reply_len = c->reply.len;
    b->is_done = true;
}

static void on_bytes_request(void *data, struct bus_request *r)
{
    const size_t *len = data;
    char *answer_bytes = xcalloc(1, *len);
    bus_reply_packed(r, slice_make(answer_bytes, *len));
    free(answer_bytes);
}

static void call_for_bytes(int which, size_t reply_len, struct bytes_call *c)
{
    struct rig r;
    rig_init(&r, which);
    struct err e = {0};
    struct bus *planner = rig_end(&r, "planner-1", "key", 7);
    ck_assert_int_eq(bus_serve(planner, r.url[0], 2, on_bytes_request, &reply_len, &e), 0);
    struct bus *gateway = rig_end(&r, "gateway-1", "key", 7);
    const char *urls[] = {r.url[0]};
    dial(gateway, urls, 1);
    *c = (struct bytes_call){.call = {.kind = BUS_GET_PACKAGE, .done = on_bytes_done, .data = c}};
    ck_assert_int_eq(bus_call_start(gateway, &c->call), 0);
    until(&r, c->is_done);
    rig_fini(&r);
}

START_TEST(an_answer_of_eight_mebibytes_passes)
{
    struct bytes_call c;

    call_for_bytes(_i, (size_t)8 << 20, &c);

    ck_assert_msg(c.call.rc == 0, "%s", c.call.err.text);
    ck_assert_uint_eq(c.reply_len, (size_t)8 << 20);
}
END_TEST

START_TEST(an_answer_over_the_cap_becomes_an_error)
{
    struct bytes_call c;

    call_for_bytes(_i, (size_t)16 << 20, &c);

    ck_assert_int_eq(c.call.rc, ERR_LIMIT);
}
END_TEST

START_TEST(a_request_over_the_cap_is_refused_at_once)
{
    struct pair p;
    pair_init(&p, _i, NULL, NULL);
    struct ask a;
    /* nng 1.5.2 leaks a connection that is being made when its listener closes: let it stand first.
     */
    ask_and_wait(&p.rig, &a, p.builder, "r1", 0);
    Kiln__GetFileRep big = KILN__GET_FILE_REP__INIT;
    big.data.len = (size_t)16 << 20;
    big.data.data = xcalloc(1, big.data.len);
    struct bytes_call c = {
        .call = {.kind = BUS_GET_FILE, .request = &big.base, .done = on_bytes_done, .data = &c}};

    ck_assert_int_eq(bus_call_start(p.builder, &c.call), ERR_LIMIT);

    free(big.data.data);
    ck_assert(!c.is_done);
    rig_fini(&p.rig);
}
END_TEST

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
    pair_init(&p, NNG, NULL, NULL);
    struct stat st;

    ck_assert_int_eq(stat(p.rig.url[0] + strlen("ipc://"), &st), 0);

    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    rig_fini(&p.rig);
}
END_TEST

START_TEST(many_calls_run_side_by_side)
{
    struct pair p;
    pair_init(&p, _i, "key", "key");
    enum { CALLS = 200 };
    struct ask *a = xcalloc(CALLS, sizeof(*a));

    for (int i = 0; i < CALLS; i++) {
        ask_start(&a[i], p.builder, "r", 9000);
    }
    for (int i = 0; i < CALLS; i++) {
        until(&p.rig, a[i].n_done == 1);
        ck_assert_msg(a[i].call.rc == 0, "%s", a[i].call.err.text);
    }

    free(a);
    rig_fini(&p.rig);
}
END_TEST

/* The cancel meets the call in every state: waiting, being sent, held, answered, its answer in the
 * inbox. */
START_TEST(calls_cancelled_at_any_moment_end_once)
{
    struct pair p;
    pair_init(&p, _i, "key", "key");
    enum { CALLS = 300 };
    struct ask *a = xcalloc(CALLS, sizeof(*a));
    int n_cancelled = 0;

    for (int i = 0; i < CALLS; i++) {
        ask_start(&a[i], p.builder, "r", 9000);
        for (int steps = i % 7; steps > 0 && !a[i].n_done; steps--) {
            rig_step(&p.rig);
        }
        bus_call_cancel(&a[i].call);
    }
    for (int i = 0; i < CALLS; i++) {
        until(&p.rig, a[i].n_done);
        ck_assert(a[i].call.rc == 0 || a[i].call.rc == ERR_CANCELLED);
        n_cancelled += a[i].call.rc == ERR_CANCELLED;
    }
    rig_wait(&p.rig, 50);
    for (int i = 0; i < CALLS; i++) {
        ck_assert_int_eq(a[i].n_done, 1);
    }

    ck_assert_int_gt(n_cancelled, 0);
    struct ask last;
    ask_and_wait(&p.rig, &last, p.builder, "r2", 0);
    ck_assert_str_eq(last.reply, "run r2");
    free(a);
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

/* Printed, not judged: 2 cores shared by many. */
START_TEST(the_rate_over_a_unix_socket_is_printed)
{
    struct pair p;
    pair_init(&p, NNG, "key", "key");
    for (int at_once = 1; at_once <= 16; at_once *= 16) {
        struct ask a[16];
        int n = 0;
        struct ms start = rig_now(&p.rig);
        while (rig_now(&p.rig).v - start.v < 300) {
            for (int i = 0; i < at_once; i++) {
                ask_start(&a[i], p.builder, "r", 9000);
            }
            for (int i = 0; i < at_once; i++) {
                until(&p.rig, a[i].n_done == 1);
            }
            n += at_once;
        }
        int64_t took = rig_now(&p.rig).v - start.v;
        (void)printf("bus: %d calls in %lld ms, %d at once: %lld/s (both ends on one loop)\n", n,
                     (long long)took, at_once, (long long)(n * 1000 / took));
        ck_assert_int_gt(n, 0);
    }
    rig_fini(&p.rig);
}
END_TEST

int main(void)
{
    log_setup("test", LOG_ERROR, LOG_FORM_TEXT);
    Suite *s = suite_create("bus conformance");
    TCase *t = tcase_create("both");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_call_is_answered, NNG, RIGS);
    tcase_add_loop_test(t, a_signed_call_is_answered, NNG, RIGS);
    tcase_add_loop_test(t, a_wrong_key_is_refused, NNG, RIGS);
    tcase_add_loop_test(t, a_missing_key_is_refused, NNG, RIGS);
    tcase_add_loop_test(t, an_unsigned_answer_is_refused, NNG, RIGS);
    tcase_add_loop_test(t, another_installation_is_refused, NNG, RIGS);
    tcase_add_loop_test(t, the_installation_is_learned_from_the_first_answer, NNG, RIGS);
    tcase_add_loop_test(t, a_permanent_error_comes_back_with_its_sentence, NNG, RIGS);
    tcase_add_loop_test(t, a_transient_error_is_tried_again_under_the_same_id, NNG, RIGS);
    tcase_add_loop_test(t, a_lasting_transient_error_ends_with_the_servers_reason, NNG, RIGS);
    tcase_add_loop_test(t, a_follower_sends_the_call_to_the_next_address, NNG, RIGS);
    tcase_add_loop_test(t, a_call_to_nobody_ends_at_its_deadline, NNG, RIGS);
    tcase_add_loop_test(t, a_call_that_is_held_too_long_ends_and_may_still_be_answered, NNG, RIGS);
    tcase_add_loop_test(t, a_repeat_of_a_held_call_is_joined, NNG, RIGS);
    tcase_add_loop_test(t, a_cancelled_call_ends_later_with_cancelled, NNG, RIGS);
    tcase_add_loop_test(t, closing_ends_calls_with_shutdown, NNG, RIGS);
    tcase_add_loop_test(t, a_server_may_close_with_calls_held, NNG, RIGS);
    tcase_add_loop_test(t, a_call_survives_a_restart_of_its_server, NNG, RIGS);
    tcase_add_loop_test(t, a_lost_server_is_left_for_the_next_address, NNG, RIGS);
    tcase_add_loop_test(t, a_call_waits_until_its_server_listens, NNG, RIGS);
    tcase_add_loop_test(t, no_more_calls_are_held_than_asked_for, NNG, RIGS);
    tcase_add_loop_test(t, an_answer_of_eight_mebibytes_passes, NNG, RIGS);
    tcase_add_loop_test(t, an_answer_over_the_cap_becomes_an_error, NNG, RIGS);
    tcase_add_loop_test(t, a_request_over_the_cap_is_refused_at_once, NNG, RIGS);
    tcase_add_loop_test(t, hints_arrive_with_their_topic_and_only_when_signed, NNG, RIGS);
    tcase_add_loop_test(t, bad_addresses_are_refused_in_one_sentence, NNG, RIGS);
    tcase_add_test(t, a_unix_socket_is_for_its_owner_only);
    tcase_add_loop_test(t, many_calls_run_side_by_side, NNG, RIGS);
    tcase_add_loop_test(t, calls_cancelled_at_any_moment_end_once, NNG, RIGS);
    tcase_add_loop_test(t, a_call_is_answered_over_tcp, NNG, RIGS);
    tcase_add_test(t, the_rate_over_a_unix_socket_is_printed);
    suite_add_tcase(s, t);
    return suite_run(s);
}
