/* Warehouse connections: asked of the planner on first use (sealed), made once, shared, remade when
 * the config epoch grew. While the planner is away the old one goes on being used. */
#include "services/gateway/conns.h"
#include "common/log/log.h"
#include "services/gateway/binder/binder.h"

struct conn_wait {
    struct list link;
    struct gw_conn_get *q;
    struct gateway *g;
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
    struct gateway *g;
    struct wh *wh;
};

static void close_part_if_over(struct gateway *g)
{
    if (!g->conns->closing || g->conns->n_closing > 0) {
        return;
    }
    map_fini(&g->conns->by_key);
    map_fini(&g->conns->by_wh);
    map_fini(&g->conns->asking);
    free(g->conns);
    g->conns = NULL;
    service_part_closed(g->service);
}

static void on_wh_closed(void *data)
{
    struct wh_closing *w = data;
    struct gateway *g = w->g;
    wh_free(w->wh);
    free(w);
    g->conns->n_closing--;
    close_part_if_over(g);
}

static void conn_free(struct gateway *g, struct gw_conn *c)
{
    if (c->wh) {
        map_del_u64(&g->conns->by_wh, (uint64_t)(uintptr_t)c->wh);
        struct wh_closing *w = xcalloc(1, sizeof(*w));
        *w = (struct wh_closing){.g = g, .wh = c->wh};
        g->conns->n_closing++;
        c->wh->ops->close(c->wh, on_wh_closed, w);
    }
    free(c->key);
    free(c);
}

static void retire(struct gateway *g, struct gw_conn *c)
{
    map_del(&g->conns->by_key, slice_of(c->key));
    c->stale = true;
    if (c->users == 0) {
        conn_free(g, c);
    }
}

static struct gw_conn *conn_make(struct gateway *g, const char *key, const char *name,
                                 const Kiln__GetConnectionRep *rep, struct err *e)
{
    auto_buf struct buf plain = {0};
    struct wh *wh = NULL;
    if (gw_unseal(g, slice_make(rep->nonce.data, rep->nonce.len),
                  slice_make(rep->sealed.data, rep->sealed.len), &plain, e)) {
        return NULL;
    }
    struct wh_settings s = {.name = name,
                            .type = rep->type,
                            .config_json = buf_str(&plain),
                            .sessions = (unsigned)g->set->warehouse_sessions,
                            .statement_timeout = MS(g->set->query_timeout_ms)};
    if (wh_open(g->loop, &s, &wh, e)) {
        return NULL;
    }
    struct gw_conn *old = map_get(&g->conns->by_key, slice_of(key));
    if (old) {
        retire(g, old);
    }
    struct gw_conn *c = xcalloc(1, sizeof(*c));
    c->key = xstrdup(key);
    c->wh = wh;
    c->config_epoch = rep->config_epoch;
    map_put(&g->conns->by_key, slice_of(c->key), c);
    map_put_u64(&g->conns->by_wh, (uint64_t)(uintptr_t)wh, c);
    return c;
}

static void finish(struct gw_conn_get *q, struct gw_conn *c, int rc, const struct err *e)
{
    q->rc = rc;
    if (e) {
        q->err = *e;
    }
    q->wh = c ? c->wh : NULL;
    q->impl = NULL;
    q->done(q);
}

/* Sealed as it came: a gateway that starts while the planner is away needs it. */
static void keep(struct gateway *g, const char *key, struct slice packed)
{
    if (g->binder) {
        binder_disk_conn(g->binder, key, packed);
    }
}

void gw_conns_seed(struct gateway *g, const char *key, struct slice packed)
{
    struct arena a;
    arena_init(&a);
    struct err e = {0};
    const char *name = strchr(key, '/');
    Kiln__GetConnectionRep *rep = bus_unpack(&kiln__get_connection_rep__descriptor, &a, packed, &e);
    if (!name || !rep || !conn_make(g, key, name + 1, rep, &e)) {
        log_warn("conns.kept", "connection=%s error=%s", log_q(key), log_q(err_text(&e)));
    }
    arena_fini(&a);
}

static void on_answer(struct bus_call *call)
{
    struct gw_conn_ask *ask = call->data;
    struct gateway *g = ask->g;
    struct err e = call->err;
    int rc = call->rc;
    struct gw_conn *c = NULL;
    if (rc == 0) {
        struct arena a;
        arena_init(&a);
        Kiln__GetConnectionRep *rep =
            bus_unpack(&kiln__get_connection_rep__descriptor, &a, call->reply, &e);
        c = rep ? conn_make(g, ask->key, ask->name, rep, &e) : NULL;
        rc = c ? 0 : (e.code ? e.code : ERR_INTERNAL);
        arena_fini(&a);
        keep(g, ask->key, c ? call->reply : SLICE_NONE);
    } else if (rc == ERR_NOT_FOUND) {
        c = map_get(&g->conns->by_key, slice_of(ask->key));
        if (c) {
            retire(g, c);
            c = NULL;
        }
        keep(g, ask->key, SLICE_NONE);
    } else {
        c = map_get(&g->conns->by_key, slice_of(ask->key));
        if (c) {
            rc = 0;
        } else {
            err_wrap(&e, "connection '%s' is not known here yet and the planner does not answer",
                     ask->name);
        }
    }
    map_del(&g->conns->asking, slice_of(ask->key));
    struct list *it;
    while ((it = list_take_head(&ask->waiting)) != NULL) {
        struct conn_wait *w = list_entry(it, struct conn_wait, link);
        if (c) {
            c->users++;
        }
        finish(w->q, c, rc, &e);
        free(w);
    }
    free(ask->key);
    free(ask->environment);
    free(ask->name);
    free(ask);
}

static void on_known(struct loop_task *t)
{
    struct conn_wait *w = container_of(t, struct conn_wait, task);
    finish(w->q, w->conn, 0, NULL);
    free(w);
}

static void ask_planner(struct gateway *g, struct gw_conn_get *q, const char *key,
                        struct conn_wait *w)
{
    struct gw_conn_ask *ask = map_get(&g->conns->asking, slice_of(key));
    if (!ask) {
        ask = xcalloc(1, sizeof(*ask));
        ask->g = g;
        ask->key = xstrdup(key);
        ask->environment = xstrdup(q->environment);
        ask->name = xstrdup(q->name);
        list_init(&ask->waiting);
        map_put(&g->conns->asking, slice_of(ask->key), ask);
        kiln__get_connection_req__init(&ask->req);
        ask->req.environment = ask->environment;
        ask->req.name = ask->name;
        ask->call = (struct bus_call){.kind = BUS_GET_CONNECTION,
                                      .request = &ask->req.base,
                                      .timeout = MS(3000),
                                      .done = on_answer,
                                      .data = ask};
        must(bus_call_start(g->bus, &ask->call) == 0);
    }
    list_add_tail(&ask->waiting, &w->link);
}

void gw_conn_get_start(struct gateway *g, struct gw_conn_get *q)
{
    char key[600];
    snprintf(key, sizeof(key), "%s/%s", q->environment, q->name);
    struct conn_wait *w = xcalloc(1, sizeof(*w));
    w->q = q;
    w->g = g;
    q->impl = w;
    struct gw_conn *c = map_get(&g->conns->by_key, slice_of(key));
    if (!c || c->config_epoch < g->binder->config_epoch) {
        ask_planner(g, q, key, w);
        return;
    }
    c->users++;
    w->conn = c;
    loop_task_init(&w->task, on_known, w);
    loop_defer(g->loop, &w->task);
}

void gw_conn_put(struct gateway *g, struct wh *wh)
{
    struct gw_conn *c = map_get_u64(&g->conns->by_wh, (uint64_t)(uintptr_t)wh);
    must(c != NULL && c->users > 0);
    if (--c->users == 0 && c->stale) {
        conn_free(g, c);
    }
}

int gw_conns_start(struct service *s, struct err *e)
{
    struct gateway *g = service_state(s);
    (void)e;
    g->conns = xcalloc(1, sizeof(*g->conns));
    map_init(&g->conns->by_key);
    map_init(&g->conns->by_wh);
    map_init(&g->conns->asking);
    return 0;
}

void gw_conns_close(struct service *s)
{
    struct gateway *g = service_state(s);
    for (struct map_iter it = map_begin(&g->conns->by_key); map_next(&it);) {
        struct gw_conn *c = it.value;
        map_del(&g->conns->by_key, it.key);
        conn_free(g, c);
    }
    g->conns->closing = true;
    close_part_if_over(g);
}
