/* A worker's handles on packages' DuckDB: kept while they are used, and a minute longer; less
 * where instances themselves are kept for less. */
#include "services/gateway/boxes.h"

enum { IDLE_MS = 60000, UNUSED_MOST = 16 };

struct gw_boxes {
    struct gw_worker *w;
    struct map by_key;  /* load id, connection and its config epoch -> struct handle */
    struct map by_wh;   /* struct wh pointer as u64 -> struct handle */
    struct list unused; /* of struct handle: longest unused first */
    size_t n_unused;
    size_t n_closing;
    void (*closed)(struct gw_worker *w); /* while all close */
};
struct handle {
    struct gw_boxes *all;
    char *key;
    struct wh *wh;
    struct sandbox *box;
    unsigned users;
    bool is_replaced; /* its sandbox lacks a file, and another one was opened */
    struct loop_timer idle;
    struct list unused;
};
/* One who waits for a handle. */
struct asking {
    struct gw_worker *w;
    struct gw_conn_get *q;
    struct gw_box_get get;
    struct loop_task task;
    struct handle *known;
    char *key;
    struct arena arena; /* what is asked with */
};

struct gw_boxes *gw_boxes_new(struct gw_worker *w)
{
    struct gw_boxes *all = xcalloc(1, sizeof(*all));
    all->w = w;
    map_init(&all->by_key);
    map_init(&all->by_wh);
    list_init(&all->unused);
    return all;
}

/* ---- use ---- */
static void begin_use(struct handle *h)
{
    loop_timer_stop(&h->idle);
    if (list_linked(&h->unused)) {
        list_del(&h->unused);
        h->all->n_unused--;
    }
}

/* ---- closing ---- */
static void settle(struct gw_boxes *all)
{
    if (!all->closed || all->n_closing > 0 || map_len(&all->by_key) > 0) {
        return;
    }
    struct gw_worker *w = all->w;
    void (*closed)(struct gw_worker * w) = all->closed;
    map_fini(&all->by_key);
    map_fini(&all->by_wh);
    free(all);
    w->boxes = NULL;
    closed(w);
}

static void on_closed(void *data)
{
    struct handle *h = data;
    struct gw_boxes *all = h->all;
    wh_free(h->wh);
    gw_box_give(all->w, h->box);
    free(h->key);
    free(h);
    all->n_closing--;
    settle(all);
}

static void handle_close(struct handle *h)
{
    must(h->users == 0);
    if (!h->is_replaced) {
        map_del(&h->all->by_key, slice_of(h->key));
    }
    map_del_u64(&h->all->by_wh, (uint64_t)(uintptr_t)h->wh);
    begin_use(h); /* for the last time */
    h->all->n_closing++;
    h->wh->ops->close(h->wh, on_closed, h);
}

static void handle_replace(struct handle *h)
{
    map_del(&h->all->by_key, slice_of(h->key));
    h->is_replaced = true;
    if (h->users == 0) {
        handle_close(h);
    }
}

static void on_idle(struct loop_timer *t)
{
    handle_close(t->data);
}

void gw_boxes_close(struct gw_worker *w, void (*closed)(struct gw_worker *w))
{
    struct gw_boxes *all = w->boxes;
    all->closed = closed;
    for (struct map_iter it = map_begin(&all->by_key); map_next(&it);) {
        handle_close(it.value);
    }
    settle(all);
}

/* ---- getting ---- */
static struct handle *handle_make(struct gw_boxes *all, const char *key, struct sandbox *box)
{
    struct handle *h = xcalloc(1, sizeof(*h));
    h->all = all;
    h->key = xstrdup(key);
    h->box = box;
    list_init(&h->unused);
    h->wh = wh_duckdb_share(all->w->loop, sandbox_wh(box));
    loop_timer_init(&h->idle, all->w->loop, on_idle, h);
    map_put(&all->by_key, slice_of(h->key), h);
    map_put_u64(&all->by_wh, (uint64_t)(uintptr_t)h->wh, h);
    return h;
}

static void finish(struct asking *a, struct handle *h, int rc, const struct err *e)
{
    struct gw_conn_get *q = a->q;
    q->rc = rc;
    if (rc) {
        q->err = *e;
    } else {
        begin_use(h);
        h->users++;
    }
    q->wh = rc ? NULL : h->wh;
    q->impl = NULL;
    arena_fini(&a->arena);
    free(a);
    q->done(q);
}

static void on_box(struct gw_box_get *get)
{
    struct asking *a = get->data;
    struct gw_boxes *all = a->w->boxes;
    struct handle *h = map_get(&all->by_key, slice_of(a->key));
    if (get->rc == 0 && h && h->box != get->box) {
        handle_replace(h);
        h = NULL;
    }
    if (get->rc == 0 && h) {
        gw_box_give(a->w, get->box); /* it has its own count */
    } else if (get->rc == 0) {
        h = handle_make(all, a->key, get->box);
    }
    int rc = get->rc;
    struct err e = get->err;
    if (get->package) {
        gw_package_unref(get->package);
    }
    finish(a, h, rc, &e);
}

static void on_known(struct loop_task *t)
{
    struct asking *a = t->data;
    a->known->users--;
    finish(a, a->known, 0, NULL);
}

static void copy_connection(struct asking *a, const struct gw_conn *c, const char *load_id)
{
    struct gw_box_get *get = &a->get;
    struct wh_attached *list = arena_dup(&a->arena, c->attached, c->n_attached * sizeof(*list));
    for (size_t i = 0; i < c->n_attached; i++) {
        list[i] = wh_attached_copy(&a->arena, &c->attached[i]);
    }
    get->digest = arena_strdup(&a->arena, c->digest);
    get->version = arena_printf(&a->arena, "%s/%llu", load_id, (unsigned long long)c->config_epoch);
    get->attached = list;
    get->n_attached = c->n_attached;
}

static void use_known(struct asking *a, struct handle *h)
{
    begin_use(h);
    h->users++; /* until it is told */
    a->known = h;
    loop_task_init(&a->task, on_known, a);
    loop_defer(a->w->loop, &a->task);
}

void gw_boxes_get(struct gw_worker *w, struct gw_conn_get *q, const struct gw_conn *c)
{
    struct asking *a = xcalloc(1, sizeof(*a));
    const char *load_id = q->package ? q->package->load_id : "";
    uint64_t epoch = q->package ? q->package->epoch : 0;
    a->w = w;
    a->q = q;
    q->impl = a;
    arena_init(&a->arena);
    a->key = arena_printf(&a->arena, "%s/%s/%s/%llu", load_id, q->package ? "" : q->environment,
                          q->name, (unsigned long long)(c ? c->config_epoch : 0));
    struct handle *h = map_get(&w->boxes->by_key, slice_of(a->key));
    if (h && wh_duckdb_epoch(h->wh) >= epoch && !sandbox_may_change(h->box)) {
        use_known(a, h);
        return;
    }
    a->get = (struct gw_box_get){.package = q->package ? gw_package_ref(q->package) : NULL,
                                 .connection = arena_strdup(&a->arena, q->name),
                                 .done = on_box,
                                 .data = a};
    if (c) {
        copy_connection(a, c, load_id);
    }
    gw_box_get_start(w, &a->get);
}

bool gw_boxes_put(struct gw_worker *w, struct wh *wh)
{
    struct handle *h = map_get_u64(&w->boxes->by_wh, (uint64_t)(uintptr_t)wh);
    if (!h) {
        return false;
    }
    must(h->users > 0);
    if (--h->users == 0 && h->is_replaced) {
        handle_close(h);
    } else if (h->users == 0) {
        loop_timer_start(&h->idle, ms_min(MS(IDLE_MS), MS(w->g->set->duckdb_idle_ms)));
        list_add_tail(&w->boxes->unused, &h->unused);
        if (++w->boxes->n_unused > UNUSED_MOST) {
            handle_close(list_entry(w->boxes->unused.next, struct handle, unused));
        }
    }
    return true;
}
