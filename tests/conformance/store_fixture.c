#include "tests/conformance/store_fixture.h"

#include <stdio.h>

struct pg_server server;
struct arena arena;
struct planner_peer one, two;
static int n_databases;
static char database[32];

void fresh_database(void)
{
    arena_init(&arena);
    snprintf(database, sizeof database, "t%d", ++n_databases);
    pg_server_exec(&server, "postgres", arena_printf(&arena, "CREATE DATABASE %s", database));
}

void end_database(void)
{
    peer_close(&one);
    peer_close(&two);
    arena_fini(&arena);
}

void sql(const char *text)
{
    pg_server_exec(&server, database, text);
}

const char *value(const char *text)
{
    auto_free char *got = pg_server_value(&server, database, text);
    return arena_strdup(&arena, got);
}

static void on_leader(void *data, uint64_t term)
{
    struct planner_peer *p = data;
    p->leaders++;
    p->term = term;
}

static void on_lost(void *data, int code, const char *why)
{
    struct planner_peer *p = data;
    p->losts++;
    p->lost_code = code;
    snprintf(p->why, sizeof p->why, "%s", why);
}

static void on_state(void *data, bool ok, const char *why)
{
    struct planner_peer *p = data;
    p->is_up = ok;
    p->heard = true;
    snprintf(p->why, sizeof p->why, "%s", why);
}

static void pack_plainly(const struct core_binding_set *set, struct buf *out, void *data)
{
    (void)data;
    buf_addf(out, "set %llu", (unsigned long long)set->epoch);
}

void peer_open(struct planner_peer *p, const char *instance, int renew_ms, int takeover_ms)
{
    *p = (struct planner_peer){.loop = loop_new()};
    struct store_settings set = {.url = pg_server_conninfo(&server, database),
                                 .instance = instance,
                                 .boot = uuid_random(),
                                 .renew = MS(renew_ms),
                                 .takeover = MS(takeover_ms)};
    struct store_events ev = {p, on_leader, on_lost, on_state};
    p->s = store_open(p->loop, &set, &ev);
    store_set_pack(p->s, pack_plainly, NULL);
}

void peer_lead(struct planner_peer *p)
{
    turn_until(p->loop, p->leaders > p->losts);
}

static void on_closed(void *data)
{
    *(bool *)data = true;
}

void peer_close(struct planner_peer *p)
{
    if (!p->s) {
        return;
    }
    bool closed = false;
    store_close(p->s, on_closed, &closed);
    turn_until(p->loop, closed);
    store_free(p->s);
    loop_free(p->loop);
    p->s = NULL;
}

static void on_op(struct store_op *op)
{
    *(bool *)op->data = true;
}

struct store_op *op_new(void)
{
    struct store_op *op = arena_zalloc(&arena, sizeof *op);
    op->arena = &arena;
    op->done = on_op;
    op->data = arena_zalloc(&arena, sizeof(bool));
    op->rc = 1;
    return op;
}

int op_wait_on(struct planner_peer *p, struct store_op *op)
{
    turn_until(p->loop, *(bool *)op->data);
    return op->rc;
}

int op_wait(struct store_op *op)
{
    return op_wait_on(&one, op);
}

struct rows rows_new(void)
{
    return (struct rows){.arena = &arena};
}

int commit(const struct rows *rows)
{
    struct store_op *op = op_new();
    store_commit(one.s, op, rows);
    return op_wait(op);
}

uint64_t make_unit(const char *environment, const char *name)
{
    uint64_t env = 0, unit = 0;
    struct store_op *op = op_new();
    store_put_environment(one.s, op, &(struct store_environment){.name = environment}, &env);
    ck_assert_msg(op_wait(op) == 0, "%s", op->err.text);
    op = op_new();
    store_put_unit(one.s, op, &(struct store_unit){.environment = env, .name = name}, &unit);
    ck_assert_msg(op_wait(op) == 0, "%s", op->err.text);
    return unit;
}

uint64_t make_load(uint64_t unit)
{
    uint64_t id = 0;
    struct store_load l = {.unit = unit, .compiler_version = "c1", .version = sha256_of("v", 1)};
    struct store_op *op = op_new();
    store_put_load(one.s, op, &l, &id);
    ck_assert_msg(op_wait(op) == 0, "%s", op->err.text);
    return id;
}
