/* A session's life: opening with its set-up statements, running, being cancelled, tidied, closed.
 */
#include "common/pgc/pgc_internal.h"

#define CANCEL_AGAIN_MS 200  /* protocol.md 10 */
#define CANCEL_GRACE_MS 5000 /* a server that does not react for so long is given up */
#define TIDY_TRIES 3

static void own_clear(struct pgc_conn *c)
{
    for (size_t i = 0; i < c->own.n; i++) {
        free(c->own_texts[i]);
    }
    free(c->own_texts);
    free(c->own_stmts);
    c->own_texts = NULL;
    c->own_stmts = NULL;
    c->own = (struct pgc_work){.n = 0};
}

static void own_add(struct pgc_conn *c, char *sql_taken)
{
    size_t n = c->own.n;
    c->own_texts = xrealloc(c->own_texts, (n + 1) * sizeof *c->own_texts);
    c->own_stmts = xrealloc(c->own_stmts, (n + 1) * sizeof *c->own_stmts);
    c->own_texts[n] = sql_taken;
    c->own_stmts[n] = (struct pgc_stmt){.sql = sql_taken};
    c->own.n = n + 1;
    c->own.stmts = c->own_stmts;
}

static void on_timer(struct loop_timer *t)
{
    struct pgc_conn *c = t->data;
    if (c->state != PGC_CONN_OPENING) { /* idle for long enough */
        pgc_conn_close(c);
        return;
    }
    struct err e;
    err_set(&e, ERR_WH_CONNECT, "%s: no connection within %d ms; is the server up and reachable?",
            c->pool->what, (int)c->pool->connect_timeout.v);
    pgc_conn_opened(c, e.code, &e);
}

static void finish_work(struct pgc_conn *c);

static void send_cancel(struct pgc_conn *c)
{
    if (c->cancels_out == 0) {
        c->cancels_out++;
        c->pool->driver->cancel(c);
    }
}

static void on_cancel_timer(struct loop_timer *t)
{
    struct pgc_conn *c = t->data;
    struct ms now = loop_now(c->pool->loop);
    if (ms_before(now, c->cancel_until)) {
        if (!c->work_over) {
            send_cancel(c);
        }
        loop_timer_start(&c->cancel_timer, MS(CANCEL_AGAIN_MS));
        return;
    }
    struct pgc_work *w = c->req ? &c->req->work : &c->own;
    if (!c->work_over && w->rc == 0) {
        w->rc = err_set(&w->err, ERR_WH_LOST, "%s: the server did not react to a cancel request",
                        c->pool->what);
        w->unknown_outcome = true;
    }
    /* Late cancel requests may still hit this session: nobody else gets it. */
    c->pool->driver->kill(c);
    finish_work(c);
}

void pgc_conn_open(struct pgc_pool *p)
{
    struct pgc_conn *c = xcalloc(1, sizeof *c);
    c->pool = p;
    list_init(&c->link);
    pgc_prepared_init(&c->prepared);
    loop_timer_init(&c->timer, p->loop, on_timer, c);
    loop_timer_init(&c->cancel_timer, p->loop, on_cancel_timer, c);
    pgc_conn_set_state(c, PGC_CONN_OPENING);
    loop_timer_start(&c->timer, p->connect_timeout);
    for (size_t i = 0; p->setup[i]; i++) {
        own_add(c, xstrdup(p->setup[i]));
    }
    p->driver->open(c);
}

void pgc_conn_run(struct pgc_conn *c, struct pgc_work *w)
{
    c->work_over = false;
    c->cancelling = false;
    w->failed_at = w->n;
    c->pool->driver->run(c, w);
}

void pgc_conn_cancel(struct pgc_conn *c)
{
    if (c->cancelling || c->work_over) {
        return;
    }
    c->cancelling = true;
    c->cancel_until = ms_add(loop_now(c->pool->loop), MS(CANCEL_GRACE_MS));
    send_cancel(c);
    loop_timer_start(&c->cancel_timer, MS(CANCEL_AGAIN_MS));
}

static bool is_dead(const struct pgc_conn *c)
{
    return c->pool->driver->txn(c) == PGC_TXN_DEAD;
}

/* What must be run before someone else may have the session; false: nothing. */
static bool tidy(struct pgc_conn *c)
{
    pgc_prepared_trim(&c->prepared);
    enum pgc_txn txn = c->pool->driver->txn(c);
    /* A cancel request that arrives late must hit this, not the next statement. */
    bool absorb = c->cancelling;
    if (txn == PGC_TXN_IDLE && !absorb && list_empty(&c->prepared.dropped)) {
        return false;
    }
    own_clear(c);
    if (txn != PGC_TXN_IDLE) {
        own_add(c, xstrdup("ROLLBACK"));
    } else if (absorb) {
        own_add(c, xstrdup("SELECT 1"));
    }
    struct list *it;
    while ((it = list_take_head(&c->prepared.dropped)) != NULL) {
        struct pgc_prepared *p = list_entry(it, struct pgc_prepared, link);
        own_add(c, xasprintf("DEALLOCATE %s", p->server_name));
        pgc_prepared_free(p);
    }
    pgc_conn_set_state(c, PGC_CONN_TIDY);
    pgc_conn_run(c, &c->own);
    return true;
}

static void go_idle(struct pgc_conn *c)
{
    struct pgc_pool *p = c->pool;
    pgc_conn_set_state(c, PGC_CONN_IDLE);
    if (p->idle_close.v > 0) {
        loop_timer_start(&c->timer, p->idle_close);
    }
    pgc_pool_dispatch(p);
}

void pgc_conn_release(struct pgc_conn *c, bool broken)
{
    loop_timer_stop(&c->timer);
    c->held = false;
    if (broken || c->pool->closing || is_dead(c)) {
        pgc_conn_close(c);
        pgc_pool_dispatch(c->pool);
        return;
    }
    c->tidy_tries = 0;
    if (!tidy(c)) {
        c->cancelling = false;
        go_idle(c);
    }
}

static void own_work_over(struct pgc_conn *c)
{
    struct err e = c->own.err;
    int rc = c->own.rc;
    bool opening = c->state == PGC_CONN_OPENING;
    own_clear(c);
    if (opening) {
        c->set_up = true;
        pgc_conn_opened(c, rc, &e);
        return;
    }
    c->cancelling = false;
    if (rc == 0 && !is_dead(c)) {
        if (c->pool->closing) {
            pgc_conn_close(c);
            return;
        }
        go_idle(c);
        return;
    }
    if (is_dead(c) || c->tidy_tries++ >= TIDY_TRIES) {
        struct pgc_pool *p = c->pool;
        pgc_conn_close(c);
        pgc_pool_dispatch(p);
        return;
    }
    if (!tidy(c)) {
        go_idle(c);
    }
}

static void finish_work(struct pgc_conn *c)
{
    c->work_over = true;
    loop_timer_stop(&c->cancel_timer);
    if (c->req) {
        pgc_req_work_over(c->req);
        return;
    }
    own_work_over(c);
}

void pgc_conn_work_done(struct pgc_conn *c)
{
    c->work_over = true;
    if (c->cancels_out > 0 && !is_dead(c)) {
        return; /* pgc_conn_cancel_sent or the grace timer goes on */
    }
    finish_work(c);
}

void pgc_conn_cancel_sent(struct pgc_conn *c)
{
    c->cancels_out--;
    if (c->state != PGC_CONN_CLOSING && c->cancelling && c->work_over &&
        (c->req || c->state == PGC_CONN_TIDY)) {
        finish_work(c);
    }
}

void pgc_conn_lost_idle(struct pgc_conn *c)
{
    if (c->state == PGC_CONN_IDLE) {
        pgc_conn_close(c);
    }
}

void pgc_conn_close(struct pgc_conn *c)
{
    if (c->state == PGC_CONN_CLOSING) {
        return;
    }
    loop_timer_stop(&c->timer);
    loop_timer_stop(&c->cancel_timer);
    pgc_conn_set_state(c, PGC_CONN_CLOSING);
    c->pool->driver->close(c);
    own_clear(c);
}

int pgc_conn_pid(const struct pgc_conn *c)
{
    return c->pool->driver->pid(c);
}
