/* The libpq driver: a session's socket, watched by the loop, and its end. */
#include "common/pgc/pgc_pq.h"

#include <errno.h>
#include <sys/socket.h>

static void on_watch_closed(uv_handle_t *h)
{
    struct pgc_pq_watch *w = container_of((uv_poll_t *)(void *)h, struct pgc_pq_watch, poll);
    struct pgc_pq *q = w->pq;
    free(w);
    q->watches--;
    pgc_pq_report_if_closed(q);
}

void pgc_pq_watch_drop(struct pgc_pq *q)
{
    struct pgc_pq_watch *w = q->watch;
    if (!w) {
        return;
    }
    q->watch = NULL;
    uv_poll_stop(&w->poll);
    uv_close((uv_handle_t *)&w->poll, on_watch_closed);
}

static void on_poll(uv_poll_t *h, int status, int events)
{
    struct pgc_pq_watch *w = container_of(h, struct pgc_pq_watch, poll);
    struct pgc_pq *q = w->pq;
    if (q->watch != w) {
        return;
    }
    if (q->connecting) {
        pgc_pq_connect_on_socket(q, status);
        return;
    }
    pgc_pq_batch_on_socket(q, status, events);
}

void pgc_pq_watch_set(struct pgc_pq *q, int events)
{
    int fd = q->pg ? PQsocket(q->pg) : -1;
    if (q->watch && (q->watch->fd != fd || fd < 0)) {
        pgc_pq_watch_drop(q);
    }
    if (fd < 0) {
        return;
    }
    if (!q->watch) {
        struct pgc_pq_watch *w = xcalloc(1, sizeof *w);
        w->pq = q;
        w->fd = fd;
        must(uv_poll_init(loop_uv(q->c->pool->loop), &w->poll, fd) == 0);
        q->watches++;
        q->watch = w;
    }
    if (q->watch->events == events) {
        return;
    }
    q->watch->events = events;
    if (events == 0) {
        uv_poll_stop(&q->watch->poll);
        return;
    }
    must(uv_poll_start(&q->watch->poll, events, on_poll) == 0);
}

void pgc_pq_report_if_closed(struct pgc_pq *q)
{
    if (q->closing && q->watches == 0) {
        loop_defer(q->c->pool->loop, &q->report);
    }
}

static void on_report(struct loop_task *t)
{
    struct pgc_pq *q = t->data;
    struct pgc_conn *c = q->c;
    if (!q->closing) {
        pgc_conn_opened(c, q->open_rc, &q->open_err);
        return;
    }
    free(q->slots);
    free(q->cells);
    free(q);
    pgc_conn_closed(c);
}

static void on_send_fail(struct loop_task *t)
{
    struct pgc_pq *q = t->data;
    pgc_pq_batch_on_socket(q, UV_EPIPE, 0);
}

static void pq_open(struct pgc_conn *c)
{
    struct pgc_pq *q = xcalloc(1, sizeof *q);
    c->drv = q;
    q->c = c;
    q->connecting = true;
    loop_task_init(&q->report, on_report, q);
    loop_task_init(&q->send_fail, on_send_fail, q);
    pgc_pq_connect(q);
}

static void pq_kill(struct pgc_conn *c)
{
    struct pgc_pq *q = c->drv;
    pgc_pq_resolve_abandon(q);
    pgc_pq_cancel_abandon(q);
    pgc_pq_batch_drop(q);
    loop_task_cancel(&q->send_fail);
    pgc_pq_watch_drop(q);
    if (q->pg) {
        PQfinish(q->pg);
        q->pg = NULL;
    }
    q->is_dead = true;
}

static void pq_close(struct pgc_conn *c)
{
    struct pgc_pq *q = c->drv;
    pq_kill(c);
    loop_task_cancel(&q->report);
    q->closing = true;
    pgc_pq_report_if_closed(q);
}

/* Is the socket of an idle session still open? Takes in what the server said meanwhile (notices,
 * its farewell). */
static bool pq_alive(struct pgc_conn *c)
{
    struct pgc_pq *q = c->drv;
    for (int i = 0; i < 4 && q->pg && !q->is_dead; i++) {
        char byte = 0;
        ssize_t n = recv(PQsocket(q->pg), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return true;
        }
        if (n <= 0 || !PQconsumeInput(q->pg)) {
            return false;
        }
        (void)PQisBusy(q->pg); /* parses, so that a farewell reaches the notice receiver */
    }
    return q->pg && !q->is_dead;
}

static enum pgc_txn pq_txn(const struct pgc_conn *c)
{
    const struct pgc_pq *q = c->drv;
    if (!q->pg || q->is_dead || PQstatus(q->pg) == CONNECTION_BAD) {
        return PGC_TXN_DEAD;
    }
    switch (PQtransactionStatus(q->pg)) {
    case PQTRANS_IDLE:
        return PGC_TXN_IDLE;
    case PQTRANS_INERROR:
        return PGC_TXN_FAILED;
    case PQTRANS_UNKNOWN:
        return PGC_TXN_DEAD;
    case PQTRANS_ACTIVE:
    case PQTRANS_INTRANS:
        break;
    }
    return PGC_TXN_OPEN;
}

static int pq_pid(const struct pgc_conn *c)
{
    const struct pgc_pq *q = c->drv;
    return q->pg ? PQbackendPID(q->pg) : 0;
}

const struct pgc_driver pgc_pq_driver = {
    .open = pq_open,
    .run = pgc_pq_run,
    .cancel = pgc_pq_cancel_start,
    .kill = pq_kill,
    .close = pq_close,
    .alive = pq_alive,
    .txn = pq_txn,
    .pid = pq_pid,
};

char *pgc_conninfo_value(const char *conninfo, const char *key)
{
    char *found = NULL;
    PQconninfoOption *opts = PQconninfoParse(conninfo, NULL);
    for (PQconninfoOption *o = opts; o && o->keyword; o++) {
        if (o->val && strcmp(o->keyword, key) == 0) {
            found = xstrdup(o->val);
        }
    }
    PQconninfoFree(opts);
    return found;
}

/* Every value may stand in quotes with backslashes. */
void pgc_conninfo_add(struct buf *out, const char *key, const char *value)
{
    buf_addf(out, " %s='", key);
    for (const char *p = value; *p; p++) {
        if (*p == '\'' || *p == '\\') {
            buf_add_char(out, '\\');
        }
        buf_add_char(out, *p);
    }
    buf_add_char(out, '\'');
}

struct pgc_pool *pgc_pool_new(struct loop *l, const struct pgc_settings *s)
{
    struct pgc_pool *p = pgc_pool_new_on(l, s, &pgc_pq_driver, NULL);
    p->password = pgc_conninfo_value(p->conninfo, "password");
    return p;
}

void pgc_pq_flatten(const char *message, struct buf *out)
{
    for (const char *p = message; *p; p++) {
        bool blank = *p == '\n' || *p == '\t' || *p == ' ' || *p == '\r';
        if (!blank) {
            buf_add_char(out, *p);
        } else if (out->len > 0 && out->p[out->len - 1] != ' ') {
            buf_add_char(out, ' ');
        }
    }
    while (out->len > 0 && out->p[out->len - 1] == ' ') {
        out->p[--out->len] = '\0';
    }
}
