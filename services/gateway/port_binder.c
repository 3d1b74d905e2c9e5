/* What workers ask and tell the binder. */
#include "services/gateway/binder/binder.h"
#include "services/gateway/port.h"

/* ---- waits ---- */
static void run_wait(struct gw_errand *e)
{
    binder_wait(e->w->g->binder, container_of(e, struct gw_wait, errand));
}

static void stop_wait(struct gw_errand *e)
{
    binder_wait_over(e->w->g->binder, container_of(e, struct gw_wait, errand), ERR_CANCELLED);
}

static void wait_done(struct gw_errand *e)
{
    struct gw_wait *q = container_of(e, struct gw_wait, errand);
    q->done(q);
}

void gw_wait_start(struct gw_worker *w, struct gw_wait *q)
{
    q->errand = (struct gw_errand){.w = w, .run = run_wait, .stop = stop_wait, .done = wait_done};
    gw_errand_start(&q->errand);
}

void gw_wait_cancel(struct gw_wait *q)
{
    gw_errand_cancel(&q->errand);
}

/* ---- broken tables ---- */
struct broken {
    struct inbox_item item;
    struct gateway *g;
    struct gw_package *p; /* counted */
    const struct gw_binding *b;
    const char *code;
};

static void on_broken(struct inbox_item *item)
{
    struct broken *t = container_of(item, struct broken, item);
    if (t->g->binder) {
        binder_broken(t->g->binder, t->p, t->b, t->code);
    }
    gw_package_unref(t->p);
    free(t);
}

void gw_tell_broken(struct gw_worker *w, struct gw_package *p, const struct gw_binding *b,
                    const char *code)
{
    struct broken *t = xcalloc(1, sizeof(*t));
    *t = (struct broken){.g = w->g, .p = gw_package_ref(p), .b = b, .code = code};
    gw_tell_main(w, &t->item, on_broken);
}

/* ---- connections, for the disk ---- */
struct told_conn {
    struct inbox_item item;
    struct gateway *g;
    char *key;
    struct buf packed;
};

static void on_conn(struct inbox_item *item)
{
    struct told_conn *t = container_of(item, struct told_conn, item);
    if (t->g->binder) {
        binder_disk_conn(t->g->binder, t->key, buf_slice(&t->packed));
    }
    free(t->key);
    buf_fini(&t->packed);
    free(t);
}

void gw_tell_conn(struct gw_worker *w, const char *key, struct slice packed)
{
    struct told_conn *t = xcalloc(1, sizeof(*t));
    t->g = w->g;
    t->key = xstrdup(key);
    buf_add_slice(&t->packed, packed);
    gw_tell_main(w, &t->item, on_conn);
}
