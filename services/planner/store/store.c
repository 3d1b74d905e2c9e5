#include "services/planner/store/store_internal.h"

#include "common/log/log.h"
#include <stdio.h>

enum {
    RETRY_FIRST_MS = 100,
    RETRY_MOST_MS = 5000,
    RENEW_TIMEOUT_MS = 3000,
    GIVE_UP_TIMEOUT_MS = 1000
};

/* ---- leading ---- */

void store_tell_state(struct store *s, bool ok, const char *why)
{
    if (s->told_state == (ok ? 1 : 0)) {
        return;
    }
    s->told_state = ok ? 1 : 0;
    if (s->ev.on_state) {
        s->ev.on_state(s->ev.data, ok, why);
    }
}

static void on_renewed(struct pgc_batch *b)
{
    struct store *s = b->data;
    struct err e;
    int rc = store_fault(b, &e);
    s->is_renewing = false;
    pgc_batch_fini(b);
    if (s->closing) {
        store_close_step(s);
        return;
    }
    if (rc < 0) {
        store_lose(s, rc, e.text);
    }
}

static void renew_start(struct store *s)
{
    s->is_renewing = true;
    arena_reset(&s->renew_arena);
    struct store_stmts b;
    stmts_init(&b, &s->renew_arena);
    stmt_add(&b, "k_renew", "SELECT kiln.renew($1::bigint)", 1);
    stmt_num(&b, (int64_t)s->term);
    s->renew = (struct pgc_batch){
        .stmts = b.items, .n = b.n, .timeout = MS(RENEW_TIMEOUT_MS), .done = on_renewed, .data = s};
    pgc_batch_start(s->beat_pool, &s->renew);
}

static void on_renew_due(struct loop_timer *t)
{
    struct store *s = container_of(t, struct store, renew_timer);
    loop_timer_start(&s->renew_timer, s->renew_every);
    if (!s->is_renewing) {
        renew_start(s);
    }
}

void store_won(struct store *s)
{
    s->leading = true;
    s->backoff = MS(RETRY_FIRST_MS);
    loop_timer_start(&s->renew_timer, s->renew_every);
    log_info("store.leader", "term=%llu", (unsigned long long)s->term);
    s->ev.on_leader(s->ev.data, s->term);
}

void store_lost_now(struct store *s)
{
    int code = s->lost_code;
    s->lost_code = 0;
    queue_fail(s, code, s->lost_why);
    if (s->conn) {
        pgc_give(s->conn, true);
        s->conn = NULL;
    }
    log_warn("store.lost", "code=%s why=%s", err_code_name(code), log_q(s->lost_why));
    store_tell_state(s, code == ERR_STORE_LEADER, s->lost_why);
    if (!s->closing) {
        s->ev.on_lost(s->ev.data, code, s->lost_why);
    }
    store_retry(s, true);
}

void store_lose(struct store *s, int code, const char *why)
{
    if (!s->leading) {
        return;
    }
    s->leading = false;
    s->lost_code = code;
    snprintf(s->lost_why, sizeof s->lost_why, "%s", why);
    loop_timer_stop(&s->renew_timer);
    if (s->queue.busy) {
        pgc_batch_cancel(&s->queue.batch); /* its end calls store_lost_now */
        return;
    }
    store_lost_now(s);
}

/* ---- trying again ---- */

static void on_again(struct loop_timer *t)
{
    compete_start(container_of(t, struct store, again));
}

void store_retry(struct store *s, bool failed)
{
    if (s->closing) {
        store_close_step(s);
        return;
    }
    if (!failed) {
        s->backoff = MS(RETRY_FIRST_MS);
        loop_timer_start(&s->again, s->renew_every);
        return;
    }
    uint32_t random = 0;
    random_bytes(&random, sizeof random);
    loop_timer_start(
        &s->again, MS(s->backoff.v * 3 / 4 + (int64_t)(random % (uint64_t)(s->backoff.v / 2 + 1))));
    s->backoff = ms_min(MS(2 * s->backoff.v), MS(RETRY_MOST_MS));
}

/* ---- life ---- */

struct store *store_open(struct loop *l, const struct store_settings *set,
                         const struct store_events *ev)
{
    /* A reply goes out because a commit is on disk, whatever the server's default says. Compiling a
     * query to machine code takes longer (0.25 s seen) than any of ours runs. */
    static const char *const setup[] = {"SET TimeZone = 'UTC'",
                                        "SET client_min_messages = warning",
                                        "SET synchronous_commit = on",
                                        "SET jit = off",
                                        "SET idle_in_transaction_session_timeout = '10s'",
                                        NULL};
    struct store *s = xcalloc(1, sizeof *s);
    s->loop = l;
    s->ev = *ev;
    s->url = xstrdup(set->url);
    s->instance = xstrdup(set->instance);
    s->boot = set->boot;
    s->renew_every = set->renew.v ? set->renew : MS(1000);
    s->takeover = set->takeover.v ? set->takeover : MS(5000);
    s->backoff = MS(RETRY_FIRST_MS);
    s->told_state = -1;
    struct pgc_settings pg = {.conninfo = s->url, .max = 4, .setup = setup, .what = "run store"};
    s->pool = pgc_pool_new(l, &pg);
    pg.max = 1;
    s->beat_pool = pgc_pool_new(l, &pg);
    arena_init(&s->renew_arena);
    queue_init(s);
    loop_timer_init(&s->again, l, on_again, s);
    loop_timer_init(&s->renew_timer, l, on_renew_due, s);
    loop_timer_start(&s->again, MS(0));
    return s;
}

static void on_beat_pool_closed(void *data)
{
    struct store *s = data;
    s->closed(s->closed_data);
}

static void on_pool_closed(void *data)
{
    struct store *s = data;
    pgc_pool_close(s->beat_pool, on_beat_pool_closed, s);
}

static void on_given_up(struct pgc_batch *b)
{
    struct store *s = b->data;
    if (b->rc < 0) {
        log_warn("store.give_up", "why=%s", log_q(err_text(&b->err)));
    }
    pgc_batch_fini(b);
    s->is_giving_up = false;
    store_close_step(s);
}

static void give_up(struct store *s)
{
    s->leading = false;
    s->is_giving_up = true;
    arena_reset(&s->renew_arena);
    struct store_stmts b;
    stmts_init(&b, &s->renew_arena);
    stmt_add(&b, NULL, "SELECT kiln.give_up($1::uuid, $2::bigint)", 2);
    stmt_uuid(&b, &s->boot);
    stmt_num(&b, (int64_t)s->term);
    s->give_up = (struct pgc_batch){.stmts = b.items,
                                    .n = b.n,
                                    .on = s->conn,
                                    .timeout = MS(GIVE_UP_TIMEOUT_MS),
                                    .done = on_given_up,
                                    .data = s};
    pgc_batch_start(s->pool, &s->give_up);
}

void store_close_step(struct store *s)
{
    if (s->compete.is_running || s->queue.busy || s->is_renewing || s->is_giving_up) {
        return;
    }
    if (s->leading) {
        give_up(s);
        return;
    }
    if (s->is_pool_closing) {
        return;
    }
    s->is_pool_closing = true;
    if (s->conn) {
        pgc_give(s->conn, false);
        s->conn = NULL;
    }
    pgc_pool_close(s->pool, on_pool_closed, s);
}

void store_close(struct store *s, void (*done)(void *data), void *data)
{
    must(!s->closing);
    s->closing = true;
    s->closed = done;
    s->closed_data = data;
    loop_timer_stop(&s->again);
    loop_timer_stop(&s->renew_timer);
    if (s->compete.is_running) {
        flow_cancel(&s->compete.flow);
    }
    queue_close(s);
    store_close_step(s);
}

void store_free(struct store *s)
{
    if (!s) {
        return;
    }
    loop_timer_stop(&s->again);
    loop_timer_stop(&s->renew_timer);
    queue_fini(s);
    pgc_pool_free(s->pool);
    pgc_pool_free(s->beat_pool);
    arena_fini(&s->renew_arena);
    free(s->url);
    free(s->instance);
    free(s);
}

const struct uuid *store_installation(const struct store *s)
{
    return &s->installation;
}

uint64_t store_config_epoch(const struct store *s)
{
    return s->config_epoch;
}

void store_set_pack(struct store *s, store_pack_fn pack, void *data)
{
    s->pack = pack;
    s->pack_data = data;
}
