/* Warehouse connections: asked of the planner on first use (sealed), made once, shared, remade when
 * the config epoch grew. While the planner is away the old one goes on being used. */
#include "services/gateway/conns.h"
#include "common/log/log.h"
#include "services/gateway/boxes.h"

struct conn_wait {
    struct list link;
    struct gw_worker *w;
    struct gw_conn_get *q;
    struct loop_task task;
    struct gw_conn *conn;
};

int gw_unseal(const struct gateway *g, struct slice nonce, struct slice sealed, struct buf *out,
              struct err *e)
{
    if (nonce.len != 12 || crypto_unseal(g->secret_key, (const uint8_t *)nonce.p, sealed, out)) {
        return err_set(
            e, ERR_CONF,
            "sealed settings do not open; give gateway and planner the same KILN_SECRET_KEY");
    }
    return 0;
}

void gw_seal(const struct gateway *g, struct slice plain, uint8_t nonce[12], struct buf *out)
{
    random_bytes(nonce, 12);
    crypto_seal(g->secret_key, nonce, plain, out);
}

struct wh_closing {
    struct gw_worker *w;
    struct wh *wh;
};

static void close_if_over(struct gw_worker *w)
{
    void (*closed)(struct gw_worker * w) = w->conns->closed;
    if (!closed || w->conns->n_closing > 0 || w->boxes) {
        return;
    }
    map_fini(&w->conns->by_key);
    map_fini(&w->conns->by_wh);
    map_fini(&w->conns->asking);
    free(w->conns);
    w->conns = NULL;
    closed(w);
}

static void on_wh_closed(void *data)
{
    struct wh_closing *end = data;
    struct gw_worker *w = end->w;
    wh_free(end->wh);
    free(end);
    w->conns->n_closing--;
    close_if_over(w);
}

static void conn_free(struct gw_worker *w, struct gw_conn *c)
{
    if (c->wh) {
        map_del_u64(&w->conns->by_wh, (uint64_t)(uintptr_t)c->wh);
        struct wh_closing *end = xcalloc(1, sizeof(*end));
        *end = (struct wh_closing){.w = w, .wh = c->wh};
        w->conns->n_closing++;
        c->wh->ops->close(c->wh, on_wh_closed, end);
    }
    arena_fini(&c->arena);
    free(c->key);
    free(c);
}

static void retire(struct gw_worker *w, struct gw_conn *c)
{
    map_del(&w->conns->by_key, slice_of(c->key));
    c->stale = true;
    if (c->users == 0) {
        conn_free(w, c);
    }
}

/* What the settings open; of type duckdb nothing yet. */
static int conn_open(struct gw_worker *w, struct gw_conn *c, const char *name,
                     const Kiln__GetConnectionRep *rep, const char *settings, struct err *e)
{
    if (strcmp(rep->type, "duckdb") == 0) {
        c->digest = arena_strdup(&c->arena, rep->digest);
        return wh_attached_read(&c->arena, name, settings, &c->attached, &c->n_attached, e);
    }
    struct wh_settings s = {.name = name,
                            .type = rep->type,
                            .config_json = settings,
                            .sessions = w->sessions,
                            .statement_timeout = MS(w->g->set->query_timeout_ms)};
    return wh_open(w->loop, &s, &c->wh, e);
}

static struct gw_conn *conn_make(struct gw_worker *w, const char *key, const char *name,
                                 const Kiln__GetConnectionRep *rep, struct err *e)
{
    auto_buf struct buf plain = {0};
    if (gw_unseal(w->g, slice_make(rep->nonce.data, rep->nonce.len),
                  slice_make(rep->sealed.data, rep->sealed.len), &plain, e)) {
        return NULL;
    }
    struct gw_conn *c = xcalloc(1, sizeof(*c));
    arena_init(&c->arena);
    if (conn_open(w, c, name, rep, buf_str(&plain), e)) {
        conn_free(w, c);
        return NULL;
    }
    struct gw_conn *old = map_get(&w->conns->by_key, slice_of(key));
    if (old) {
        retire(w, old);
    }
    c->key = xstrdup(key);
    c->config_epoch = rep->config_epoch;
    map_put(&w->conns->by_key, slice_of(c->key), c);
    if (c->wh) {
        map_put_u64(&w->conns->by_wh, (uint64_t)(uintptr_t)c->wh, c);
    }
    return c;
}

static void conn_unuse(struct gw_worker *w, struct gw_conn *c)
{
    must(c->users > 0);
    if (--c->users == 0 && c->stale) {
        conn_free(w, c);
    }
}

static void finish(struct gw_worker *w, struct gw_conn_get *q, struct gw_conn *c, int rc,
                   const struct err *e)
{
    q->impl = NULL;
    if (c && !c->wh) {
        gw_boxes_get(w, q, c); /* which copies what it needs of the connection */
        conn_unuse(w, c);
        return;
    }
    q->rc = rc;
    if (e) {
        q->err = *e;
    }
    q->wh = c ? c->wh : NULL;
    q->done(q);
}

void gw_conns_seed(struct gw_worker *w, const char *key, struct slice packed)
{
    struct arena a;
    arena_init(&a);
    struct err e = {0};
    const char *name = strchr(key, '/');
    Kiln__GetConnectionRep *rep = bus_unpack(&kiln__get_connection_rep__descriptor, &a, packed, &e);
    if (!name || !rep || !conn_make(w, key, name + 1, rep, &e)) {
        log_warn("conns.kept", "connection=%s error=%s", log_q(key), log_q(err_text(&e)));
    }
    arena_fini(&a);
}

static void on_answer(struct bus_call *call)
{
    struct gw_conn_ask *ask = call->data;
    struct gw_worker *w = ask->w;
    struct err e = call->err;
    int rc = call->rc;
    struct gw_conn *c = NULL;
    if (rc == 0) {
        struct arena a;
        arena_init(&a);
        Kiln__GetConnectionRep *rep =
            bus_unpack(&kiln__get_connection_rep__descriptor, &a, call->reply, &e);
        c = rep ? conn_make(w, ask->key, ask->name, rep, &e) : NULL;
        rc = c ? 0 : (e.code ? e.code : ERR_INTERNAL);
        arena_fini(&a);
        gw_tell_conn(w, ask->key, c ? call->reply : SLICE_NONE); /* sealed as it came */
    } else if (rc == ERR_NOT_FOUND) {
        c = map_get(&w->conns->by_key, slice_of(ask->key));
        if (c) {
            retire(w, c);
            c = NULL;
        }
        gw_tell_conn(w, ask->key, SLICE_NONE);
    } else {
        c = map_get(&w->conns->by_key, slice_of(ask->key));
        if (c) {
            rc = 0;
        } else {
            err_wrap(&e, "connection '%s' is not known here yet and the planner does not answer",
                     ask->name);
        }
    }
    map_del(&w->conns->asking, slice_of(ask->key));
    struct list *it;
    while ((it = list_take_head(&ask->waiting)) != NULL) {
        struct conn_wait *wait = list_entry(it, struct conn_wait, link);
        if (c) {
            c->users++;
        }
        finish(w, wait->q, c, rc, &e);
        free(wait);
    }
    free(ask->key);
    free(ask->environment);
    free(ask->name);
    free(ask);
}

static void on_known(struct loop_task *t)
{
    struct conn_wait *wait = container_of(t, struct conn_wait, task);
    finish(wait->w, wait->q, wait->conn, 0, NULL);
    free(wait);
}

static void ask_planner(struct gw_worker *w, struct gw_conn_get *q, const char *key,
                        struct conn_wait *wait)
{
    struct gw_conn_ask *ask = map_get(&w->conns->asking, slice_of(key));
    if (!ask) {
        ask = xcalloc(1, sizeof(*ask));
        ask->w = w;
        ask->key = xstrdup(key);
        ask->environment = xstrdup(q->environment);
        ask->name = xstrdup(q->name);
        list_init(&ask->waiting);
        map_put(&w->conns->asking, slice_of(ask->key), ask);
        kiln__get_connection_req__init(&ask->req);
        ask->req.environment = ask->environment;
        ask->req.name = ask->name;
        ask->call.call = (struct bus_call){.kind = BUS_GET_CONNECTION,
                                           .request = &ask->req.base,
                                           .timeout = MS(3000),
                                           .done = on_answer,
                                           .data = ask};
        gw_call_start(w, &ask->call);
    }
    list_add_tail(&ask->waiting, &wait->link);
}

void gw_conn_get_start(struct gw_worker *w, struct gw_conn_get *q)
{
    if (q->package && strcmp(q->name, "duckdb") == 0) {
        gw_boxes_get(w, q, NULL);
        return;
    }
    char key[600];
    snprintf(key, sizeof(key), "%s/%s", q->environment, q->name);
    struct conn_wait *wait = xcalloc(1, sizeof(*wait));
    wait->w = w;
    wait->q = q;
    q->impl = wait;
    struct gw_conn *c = map_get(&w->conns->by_key, slice_of(key));
    if (!c || c->config_epoch < atomic_load(&w->g->config_epoch)) {
        ask_planner(w, q, key, wait);
        return;
    }
    c->users++;
    wait->conn = c;
    loop_task_init(&wait->task, on_known, wait);
    loop_defer(w->loop, &wait->task);
}

void gw_conn_put(struct gw_worker *w, struct wh *wh)
{
    if (gw_boxes_put(w, wh)) {
        return;
    }
    struct gw_conn *c = map_get_u64(&w->conns->by_wh, (uint64_t)(uintptr_t)wh);
    must(c != NULL);
    conn_unuse(w, c);
}

void gw_conns_open(struct gw_worker *w)
{
    w->conns = xcalloc(1, sizeof(*w->conns));
    map_init(&w->conns->by_key);
    map_init(&w->conns->by_wh);
    map_init(&w->conns->asking);
    w->boxes = gw_boxes_new(w);
}

static void on_boxes_closed(struct gw_worker *w)
{
    close_if_over(w);
}

void gw_conns_close(struct gw_worker *w, void (*closed)(struct gw_worker *w))
{
    for (struct map_iter it = map_begin(&w->conns->by_key); map_next(&it);) {
        struct gw_conn *c = it.value;
        map_del(&w->conns->by_key, it.key);
        conn_free(w, c);
    }
    w->conns->closed = closed;
    gw_boxes_close(w, on_boxes_closed);
}
