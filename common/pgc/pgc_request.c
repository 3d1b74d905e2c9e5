/* What callers ask for: batches, describes, holds. Waiting, deadlines, cancelling, one retry, the
 * single done. */
#include "common/pgc/pgc_internal.h"

#include <strings.h>

#define DEFAULT_TIMEOUT_MS 30000

static void req_finish(struct pgc_req *r, int rc, const struct err *e);

static void on_task(struct loop_task *t)
{
    struct pgc_req *r = t->data;
    struct err e = r->work.err;
    req_finish(r, r->work.rc, &e);
}

void pgc_req_fail(struct pgc_req *r, int rc, const struct err *e)
{
    r->work.rc = rc;
    r->work.err = *e;
    r->work.failed_at = r->work.n;
    r->ended = true;
    loop_timer_stop(&r->timer);
    loop_defer(r->pool->loop, &r->task);
}

static struct ms timeout_of(const struct pgc_req *r)
{
    struct ms t = MS(0);
    if (r->kind == PGC_REQ_BATCH) {
        t = ((struct pgc_batch *)r->owner)->timeout;
    } else if (r->kind == PGC_REQ_DESCRIBE) {
        t = ((struct pgc_describe *)r->owner)->timeout;
    } else {
        t = ((struct pgc_hold *)r->owner)->timeout;
    }
    return t.v > 0 ? t : MS(DEFAULT_TIMEOUT_MS);
}

static int asked_err(const struct pgc_req *r, struct err *e)
{
    if (r->asked == ERR_CANCELLED) {
        return err_set(e, ERR_CANCELLED, "%s: the statement was cancelled", r->pool->what);
    }
    if (!r->conn) {
        return err_set(e, ERR_TIMEOUT, "%s: no session became free within %lld ms", r->pool->what,
                       (long long)timeout_of(r).v);
    }
    return err_set(e, ERR_TIMEOUT, "%s: the statement did not end within %lld ms and was cancelled",
                   r->pool->what, (long long)timeout_of(r).v);
}

/* Ends a request early, for the reason in `asked`. */
static void req_end_early(struct pgc_req *r, int why)
{
    if (r->asked || r->ended) {
        return;
    }
    r->asked = why;
    if (r->conn && r->kind != PGC_REQ_HOLD) {
        r->work.mute = true;
        pgc_conn_cancel(r->conn);
        return;
    }
    pgc_pool_dequeue(r);
    struct err e;
    int rc = asked_err(r, &e);
    pgc_req_fail(r, rc, &e);
}

static void on_timer(struct loop_timer *t)
{
    req_end_early(t->data, ERR_TIMEOUT);
}

static struct pgc_req *req_new(struct pgc_pool *p, enum pgc_req_kind kind, void *owner)
{
    loop_assert_here(p->loop);
    struct pgc_req *r = xcalloc(1, sizeof *r);
    r->kind = kind;
    r->owner = owner;
    r->pool = p;
    list_init(&r->link);
    loop_timer_init(&r->timer, p->loop, on_timer, r);
    loop_task_init(&r->task, on_task, r);
    p->n_reqs++;
    return r;
}

static void req_start(struct pgc_req *r)
{
    struct ms t = timeout_of(r);
    if (t.v != INT64_MAX) {
        loop_timer_start(&r->timer, t);
    }
    if (r->pool->closing) {
        struct err e;
        err_set(&e, ERR_SHUTDOWN, "%s: shutting down", r->pool->what);
        pgc_req_fail(r, e.code, &e);
        return;
    }
    pgc_pool_enqueue(r, false);
    pgc_pool_dispatch(r->pool);
}

void pgc_req_begin(struct pgc_req *r, struct pgc_conn *c)
{
    r->conn = c;
    if (r->kind == PGC_REQ_HOLD) {
        c->held = true;
        c->used = true;
        pgc_conn_set_state(c, PGC_CONN_HELD);
        loop_timer_stop(&r->timer);
        loop_defer(r->pool->loop, &r->task);
        return;
    }
    c->req = r;
    pgc_conn_set_state(c, PGC_CONN_BUSY);
    pgc_conn_run(c, &r->work);
}

static bool starts_with_word(const char *sql, const char *word)
{
    sql += strspn(sql, " \t\r\n(");
    size_t len = strlen(word);
    return strncasecmp(sql, word, len) == 0 && !((sql[len] | 32) >= 'a' && (sql[len] | 32) <= 'z');
}

static bool is_read_only(const struct pgc_req *r)
{
    if (r->kind == PGC_REQ_DESCRIBE) {
        return true;
    }
    const struct pgc_batch *b = r->owner;
    return b->read_only || (b->n > 0 && starts_with_word(b->stmts[0].sql, "begin") &&
                            strcasestr(b->stmts[0].sql, "read only"));
}

static bool committed_before(const struct pgc_work *w)
{
    for (size_t i = 0; i < w->failed_at && i < w->n; i++) {
        if (starts_with_word(w->stmts[i].sql, "commit") ||
            starts_with_word(w->stmts[i].sql, "end")) {
            return true;
        }
    }
    return false;
}

/* A prepared statement that the server forgot, or whose columns changed under it. */
static bool is_stale_prepared(const struct pgc_work *w)
{
    return w->failed_at < w->n && w->stmts[w->failed_at].prepare_as &&
           (strcmp(w->err.sqlstate, "0A000") == 0 || strcmp(w->err.sqlstate, "26000") == 0);
}

static bool may_retry(const struct pgc_req *r, const struct pgc_conn *c)
{
    const struct pgc_work *w = &r->work;
    if (w->rc == 0 || r->retried || r->asked || c->held || w->delivered || w->mute ||
        r->pool->closing) {
        return false;
    }
    if (c->pool->driver->txn(c) == PGC_TXN_DEAD) {
        return c->used && !w->answered && is_read_only(r);
    }
    return is_stale_prepared(w) && !committed_before(w);
}

static void clear_results(struct pgc_req *r)
{
    for (size_t i = 0; r->work.results && i < r->work.n; i++) {
        pgc_result_free(r->work.results[i]);
        r->work.results[i] = NULL;
    }
}

static void retry(struct pgc_req *r)
{
    struct pgc_pool *p = r->pool;
    clear_results(r);
    struct pgc_work *w = &r->work;
    w->rc = 0;
    w->answered = w->unknown_outcome = false;
    err_clear(&w->err);
    r->retried = true;
    r->conn = NULL;
    pgc_pool_enqueue(r, true);
    pgc_pool_dispatch(p);
}

/* The code a batch ends with: an end that was asked for explains the server's "cancelled". */
static int settle(struct pgc_req *r)
{
    struct pgc_work *w = &r->work;
    if (w->rc == 0 && !(r->asked && w->dropped)) {
        return 0;
    }
    if (r->asked) {
        char sqlstate[sizeof w->err.sqlstate];
        memcpy(sqlstate, w->err.sqlstate, sizeof sqlstate);
        w->rc = asked_err(r, &w->err);
        memcpy(w->err.sqlstate, sqlstate, sizeof sqlstate);
    } else if (w->rc == ERR_CANCELLED && strcmp(w->err.sqlstate, "57014") == 0) {
        w->rc =
            ERR_TIMEOUT; /* the server's own statement timeout, or a hand of its administrator */
        w->err.code = ERR_TIMEOUT;
    }
    pgc_pool_scrub(r->pool, &w->err);
    return w->rc;
}

void pgc_req_work_over(struct pgc_req *r)
{
    struct pgc_conn *c = r->conn;
    struct pgc_work *w = &r->work;
    bool again = may_retry(r, c);
    if (w->rc != 0 && w->failed_at < w->n && is_stale_prepared(w)) {
        pgc_prepared_forget(&c->prepared, w->stmts[w->failed_at].prepare_as);
    }
    c->req = NULL;
    c->used = true;
    if (c->held) {
        pgc_conn_set_state(c, PGC_CONN_HELD);
    }
    if (again) {
        /* In front of the queue first, so that the session freed below serves it. */
        bool dead = c->pool->driver->txn(c) == PGC_TXN_DEAD;
        retry(r);
        pgc_conn_release(c, dead);
        return;
    }
    int rc = settle(r);
    struct err e = w->err;
    if (!c->held) {
        pgc_conn_release(c, false);
    }
    req_finish(r, rc, &e);
}

static void finish_batch(struct pgc_req *r, int rc, const struct err *e)
{
    struct pgc_batch *b = r->owner;
    b->rc = rc;
    b->err = *e;
    b->failed_at = rc == 0 ? b->n : r->work.failed_at;
    b->unknown_outcome = r->work.unknown_outcome;
    b->impl = NULL;
    b->done(b);
}

static void finish_describe(struct pgc_req *r, int rc, const struct err *e)
{
    struct pgc_describe *d = r->owner;
    d->rc = rc;
    d->err = *e;
    d->result = rc == 0 ? r->described : NULL;
    if (rc != 0) {
        pgc_result_free(r->described);
    }
    d->impl = NULL;
    d->done(d);
}

static void finish_hold(struct pgc_req *r, int rc, const struct err *e)
{
    struct pgc_hold *h = r->owner;
    h->rc = rc;
    h->err = *e;
    h->conn = rc == 0 ? r->conn : NULL;
    if (rc != 0 && r->conn) {
        pgc_conn_release(r->conn, false);
    }
    h->impl = NULL;
    h->done(h);
}

static void req_finish(struct pgc_req *r, int rc, const struct err *e)
{
    struct pgc_pool *p = r->pool;
    loop_timer_stop(&r->timer);
    loop_task_cancel(&r->task);
    /* The done may close the pool; the request counts until it is freed, so p outlives this. */
    if (r->kind == PGC_REQ_BATCH) {
        finish_batch(r, rc, e);
    } else if (r->kind == PGC_REQ_DESCRIBE) {
        finish_describe(r, rc, e);
    } else {
        finish_hold(r, rc, e);
    }
    free(r);
    pgc_pool_req_gone(p);
}

void pgc_batch_start(struct pgc_pool *p, struct pgc_batch *b)
{
    must(b->n > 0 && b->done && !b->impl);
    pgc_batch_fini(b);
    struct pgc_req *r = req_new(p, PGC_REQ_BATCH, b);
    b->impl = r;
    b->rc = 0;
    err_clear(&b->err);
    b->failed_at = b->n;
    b->unknown_outcome = false;
    b->results = xcalloc(b->n, sizeof(struct pgc_result *));
    r->work = (struct pgc_work){
        .stmts = b->stmts, .n = b->n, .batch = b, .results = b->results, .failed_at = b->n};
    if (!b->on) {
        req_start(r);
        return;
    }
    must(b->on->pool == p && b->on->state == PGC_CONN_HELD && !b->on->req);
    if (timeout_of(r).v != INT64_MAX) {
        loop_timer_start(&r->timer, timeout_of(r));
    }
    pgc_req_begin(r, b->on);
}

void pgc_batch_cancel(struct pgc_batch *b)
{
    if (b->impl) {
        req_end_early(b->impl, ERR_CANCELLED);
    }
}

void pgc_batch_fini(struct pgc_batch *b)
{
    must(!b->impl);
    for (size_t i = 0; b->results && i < b->n; i++) {
        pgc_result_free(b->results[i]);
    }
    free(b->results);
    b->results = NULL;
}

void pgc_describe_start(struct pgc_pool *p, struct pgc_describe *d)
{
    must(d->sql && d->done && !d->impl);
    struct pgc_req *r = req_new(p, PGC_REQ_DESCRIBE, d);
    d->impl = r;
    d->rc = 0;
    err_clear(&d->err);
    d->result = NULL;
    r->describe_stmt = (struct pgc_stmt){.sql = d->sql};
    r->work = (struct pgc_work){.stmts = &r->describe_stmt,
                                .n = 1,
                                .describe = true,
                                .results = &r->described,
                                .failed_at = 1};
    req_start(r);
}

void pgc_describe_cancel(struct pgc_describe *d)
{
    if (d->impl) {
        req_end_early(d->impl, ERR_CANCELLED);
    }
}

void pgc_describe_fini(struct pgc_describe *d)
{
    must(!d->impl);
    pgc_result_free(d->result);
    d->result = NULL;
}

void pgc_hold_start(struct pgc_pool *p, struct pgc_hold *h)
{
    must(h->done && !h->impl);
    struct pgc_req *r = req_new(p, PGC_REQ_HOLD, h);
    h->impl = r;
    h->rc = 0;
    err_clear(&h->err);
    h->conn = NULL;
    req_start(r);
}

void pgc_hold_cancel(struct pgc_hold *h)
{
    if (h->impl) {
        req_end_early(h->impl, ERR_CANCELLED);
    }
}

void pgc_give(struct pgc_conn *c, bool broken)
{
    must(c->held && !c->req && c->state == PGC_CONN_HELD);
    pgc_conn_release(c, broken);
}
