/* The fixture of the bus conformance tests. */
#include "tests/conformance/bus_conformance_fixture.h"

#include <stdio.h>
#include <unistd.h>

void rig_init(struct rig *r, int which)
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

struct ms rig_now(struct rig *r)
{
    return r->is_sim ? r->time.now : loop_now(r->loop);
}

void rig_step(struct rig *r)
{
    if (!r->is_sim) {
        (void)loop_turn(r->loop, MS(50));
    } else if (!sim_time_step(&r->time)) {
        sim_time_pass(&r->time, MS(50));
    }
}

void rig_wait(struct rig *r, int64_t ms)
{
    if (r->is_sim) {
        sim_time_pass(&r->time, MS(ms));
        return;
    }
    struct ms start = rig_now(r);
    until(r, rig_now(r).v - start.v > ms);
}

struct bus *rig_end(struct rig *r, const char *instance, const char *key, uint8_t site)
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

void on_closed(void *data)
{
    *(bool *)data = true;
}

void rig_close(struct rig *r, struct bus *b)
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

void rig_fini(struct rig *r)
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

void dial(struct bus *b, const char *const *urls, size_t n)
{
    struct err e = {0};
    ck_assert_msg(bus_dial(b, urls, n, &e) == 0, "%s", e.text);
}

/* ---- the server ---- */
static void answer(struct bus_request *r)
{
    struct err e = {0};
    Kiln__GetRunReq *req = bus_unpack(&kiln__get_run_req__descriptor, &r->arena, r->payload, &e);
    ck_assert_msg(req != NULL, "%s", e.text);
    Kiln__RunRep rep = KILN__RUN_REP__INIT;
    rep.run_json = arena_printf(&r->arena, "run %s", req->id);
    bus_reply(r, &rep.base);
}

void on_request(void *data, struct bus_request *r)
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

void serve(struct bus *b, const char *url, unsigned held, struct server *s)
{
    struct err e = {0};
    ck_assert_msg(bus_serve(b, url, held, on_request, s, &e) == 0, "%s", e.text);
}

void release(struct server *s)
{
    for (int i = 0; i < s->n_held; i++) {
        answer(s->held[i]);
    }
    s->n_held = 0;
}

/* ---- calls ---- */
void on_done(struct bus_call *c)
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

void ask_start(struct ask *a, struct bus *b, const char *id, int64_t timeout_ms)
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

void ask_and_wait(struct rig *r, struct ask *a, struct bus *b, const char *id, int64_t ms)
{
    ask_start(a, b, id, ms);
    until(r, a->n_done == 1);
}

void pair_init(struct pair *p, int which, const char *server_key, const char *caller_key)
{
    *p = (struct pair){0};
    rig_init(&p->rig, which);
    p->planner = rig_end(&p->rig, "planner-1", server_key, 7);
    p->builder = rig_end(&p->rig, "builder-1", caller_key, 7);
    serve(p->planner, p->rig.url[0], 4, &p->server);
    const char *urls[] = {p->rig.url[0]};
    dial(p->builder, urls, 1);
}

void pair_with_held_call(struct pair *p, struct ask *a, int which, int64_t timeout_ms)
{
    pair_init(p, which, NULL, NULL);
    p->server.holds = true;
    ask_start(a, p->builder, "r1", timeout_ms);
    until(&p->rig, p->server.n_held == 1);
}
