#include "common/pgc/pgc_internal.h"

#define REOPEN_MS 1000

static void on_reopen(struct loop_timer *t)
{
    struct pgc_pool *p = t->data;
    p->reopen_later = false;
    pgc_pool_dispatch(p);
}

static void on_closed_task(struct loop_task *t)
{
    struct pgc_pool *p = t->data;
    p->on_closed(p->closed_data);
}

static char **copy_texts(const char *const *texts)
{
    size_t n = 0;
    while (texts && texts[n]) {
        n++;
    }
    char **out = xcalloc(n + 1, sizeof *out);
    for (size_t i = 0; i < n; i++) {
        out[i] = xstrdup(texts[i]);
    }
    return out;
}

struct pgc_pool *pgc_pool_new_on(struct loop *l, const struct pgc_settings *s,
                                 const struct pgc_driver *driver, void *driver_data)
{
    struct pgc_pool *p = xcalloc(1, sizeof *p);
    p->driver = driver;
    p->driver_data = driver_data;
    p->loop = l;
    p->conninfo = xstrdup(s->conninfo ? s->conninfo : "");
    p->what = xstrdup(s->what ? s->what : "PostgreSQL");
    p->secret = xstrdup(s->secret);
    p->setup = copy_texts(s->setup);
    p->max = s->max ? s->max : 4;
    p->connect_timeout = s->connect_timeout.v > 0 ? s->connect_timeout : MS(5000);
    p->idle_close = s->idle_close;
    for (size_t i = 0; i < ARRAY_LEN(p->conns); i++) {
        list_init(&p->conns[i]);
    }
    list_init(&p->waiting);
    loop_timer_init(&p->reopen, l, on_reopen, p);
    loop_task_init(&p->closed_task, on_closed_task, p);
    return p;
}

static unsigned live_conns(const struct pgc_pool *p)
{
    unsigned n = 0;
    for (size_t i = 0; i < PGC_CONN_CLOSING; i++) {
        n += p->n_conns[i];
    }
    return n;
}

static void close_if_over(struct pgc_pool *p)
{
    bool over = p->closing && !p->closed && p->n_reqs == 0 && live_conns(p) == 0 &&
                p->n_conns[PGC_CONN_CLOSING] == 0;
    if (!over) {
        return;
    }
    p->closed = true;
    if (p->on_closed) {
        loop_defer(p->loop, &p->closed_task);
    }
}

void pgc_pool_enqueue(struct pgc_req *r, bool first)
{
    struct pgc_pool *p = r->pool;
    if (first) {
        list_add_head(&p->waiting, &r->link);
    } else {
        list_add_tail(&p->waiting, &r->link);
    }
    p->n_waiting++;
}

void pgc_pool_dequeue(struct pgc_req *r)
{
    if (list_linked(&r->link)) {
        list_del(&r->link);
        r->pool->n_waiting--;
    }
}

void pgc_pool_req_gone(struct pgc_pool *p)
{
    p->n_reqs--;
    close_if_over(p);
}

/* The session used last: it is the one whose caches are warm. */
static struct pgc_conn *take_idle(struct pgc_pool *p)
{
    while (!list_empty(&p->conns[PGC_CONN_IDLE])) {
        struct pgc_conn *c = list_entry(p->conns[PGC_CONN_IDLE].prev, struct pgc_conn, link);
        loop_timer_stop(&c->timer);
        if (p->driver->alive(c)) {
            return c;
        }
        pgc_conn_close(c);
    }
    return NULL;
}

void pgc_pool_dispatch(struct pgc_pool *p)
{
    while (!list_empty(&p->waiting)) {
        struct pgc_conn *c = take_idle(p);
        if (c) {
            struct pgc_req *r = list_entry(p->waiting.next, struct pgc_req, link);
            pgc_pool_dequeue(r);
            pgc_req_begin(r, c);
            continue;
        }
        bool more = !p->reopen_later && live_conns(p) < p->max &&
                    p->n_conns[PGC_CONN_OPENING] < p->n_waiting;
        if (!more || p->closing) {
            return;
        }
        pgc_conn_open(p);
    }
}

static void fail_waiting(struct pgc_pool *p, int rc, const struct err *e)
{
    while (!list_empty(&p->waiting)) {
        struct pgc_req *r = list_entry(p->waiting.next, struct pgc_req, link);
        pgc_pool_dequeue(r);
        pgc_req_fail(r, rc, e);
    }
}

void pgc_conn_opened(struct pgc_conn *c, int rc, const struct err *e)
{
    struct pgc_pool *p = c->pool;
    if (rc == 0 && !c->set_up && c->own.n > 0) {
        pgc_conn_run(c, &c->own);
        return;
    }
    if (rc == 0) {
        pgc_conn_release(c, false);
        return;
    }
    struct err why = *e; /* closing may free what e points into */
    pgc_pool_scrub(p, &why);
    pgc_conn_close(c);
    /* While others live or are on their way (a server that is full), requests wait for those. */
    if (live_conns(p) > 0) {
        p->reopen_later = true;
        loop_timer_start(&p->reopen, MS(REOPEN_MS));
        return;
    }
    fail_waiting(p, rc, &why);
}

void pgc_pool_scrub(const struct pgc_pool *p, struct err *e)
{
    if (p->secret) {
        err_scrub(e, p->secret);
    }
    if (p->password) {
        err_scrub(e, p->password);
    }
}

void pgc_conn_set_state(struct pgc_conn *c, enum pgc_conn_state state)
{
    struct pgc_pool *p = c->pool;
    if (list_linked(&c->link)) {
        list_del(&c->link);
        p->n_conns[c->state]--;
    }
    c->state = state;
    list_add_tail(&p->conns[state], &c->link);
    p->n_conns[state]++;
}

void pgc_conn_closed(struct pgc_conn *c)
{
    struct pgc_pool *p = c->pool;
    list_del(&c->link);
    p->n_conns[c->state]--;
    pgc_prepared_fini(&c->prepared);
    free(c);
    close_if_over(p);
}

static void close_all(struct pgc_pool *p, enum pgc_conn_state state)
{
    while (!list_empty(&p->conns[state])) {
        pgc_conn_close(list_entry(p->conns[state].next, struct pgc_conn, link));
    }
}

void pgc_pool_close(struct pgc_pool *p, void (*done)(void *data), void *data)
{
    must(!p->closing);
    p->closing = true;
    p->on_closed = done;
    p->closed_data = data;
    loop_timer_stop(&p->reopen);
    struct err e;
    err_set(&e, ERR_SHUTDOWN, "%s: shutting down", p->what);
    fail_waiting(p, ERR_SHUTDOWN, &e);
    close_all(p, PGC_CONN_IDLE);
    close_all(p, PGC_CONN_OPENING);
    close_if_over(p);
}

void pgc_pool_free(struct pgc_pool *p)
{
    if (!p) {
        return;
    }
    must(p->n_reqs == 0 && live_conns(p) == 0 && p->n_conns[PGC_CONN_CLOSING] == 0);
    loop_timer_stop(&p->reopen);
    loop_task_cancel(&p->closed_task);
    for (size_t i = 0; p->setup[i]; i++) {
        free(p->setup[i]);
    }
    free(p->setup);
    free(p->conninfo);
    free(p->what);
    free(p->secret);
    free(p->password);
    free(p);
}

void pgc_pool_counts(const struct pgc_pool *p, unsigned *open, unsigned *busy, unsigned *waiting)
{
    *open = live_conns(p) - p->n_conns[PGC_CONN_OPENING];
    *busy = p->n_conns[PGC_CONN_BUSY] + p->n_conns[PGC_CONN_HELD];
    *waiting = (unsigned)p->n_waiting;
}
