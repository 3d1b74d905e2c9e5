/* The workers as the main loop sees them: start, end, and what goes to each of them. */
#include "services/gateway/worker.h"
#include "common/log/log.h"
#include "services/gateway/binder/binder.h"
#include "services/gateway/conns.h"

/* ---- to each of them ---- */
static void on_leg(struct inbox_item *item)
{
    struct gw_leg *leg = container_of(item, struct gw_leg, item);
    loop_assert_here(leg->w->loop);
    leg->each->run(leg);
}

static void on_back(struct inbox_item *item)
{
    struct gw_each *each = container_of(item, struct gw_each, back);
    loop_assert_here(each->g->loop);
    each->over(each);
    free(each);
}

void gw_each_start(struct gateway *g, void (*run)(struct gw_leg *leg),
                   void (*over)(struct gw_each *each), void *data)
{
    loop_assert_here(g->loop);
    unsigned n = g->workers ? g->workers->n : 0;
    struct gw_each *each = xcalloc(1, sizeof(*each) + n * sizeof(each->legs[0]));
    each->g = g;
    each->run = run;
    each->over = over;
    each->data = data;
    each->back.fn = on_back;
    atomic_init(&each->left, n);
    if (n == 0) {
        loop_post(g->loop, &each->back);
    }
    for (unsigned i = 0; i < n; i++) {
        struct gw_worker *w = &g->workers->list[i];
        each->legs[i] = (struct gw_leg){.item.fn = on_leg, .each = each, .w = w};
        loop_post(w->loop, &each->legs[i].item);
    }
}

void gw_leg_done(struct gw_leg *leg)
{
    struct gw_each *each = leg->each;
    loop_assert_here(leg->w->loop);
    if (atomic_fetch_sub(&each->left, 1) == 1) {
        loop_post(each->g->loop, &each->back);
    }
}

/* ---- start ---- */
static bool is_main(const struct gw_worker *w)
{
    return w->loop == w->g->loop;
}

static unsigned share(int64_t whole, unsigned n, unsigned i)
{
    unsigned mine = (unsigned)whole / n + (i < (unsigned)whole % n);
    return mine ? mine : 1;
}

static void worker_open(struct gateway *g, unsigned i)
{
    struct gw_worker *w = &g->workers->list[i];
    w->g = g;
    w->loop = g->workers->n == 1 ? g->loop : loop_new();
    w->sessions = share(g->set->warehouse_sessions, g->workers->n, i);
    map_init(&w->shelf);
    char label[32];
    snprintf(label, sizeof(label), "worker=\"%u\"", i + 1);
    w->n_connections = metric_gauge("kiln_gateway_connections", label, "client connections");
    gw_conns_open(w);
    g->workers->kind->open(w);
}

void gw_workers_start(struct gateway *g, unsigned n, const struct gw_worker_kind *kind)
{
    must(n > 0 && !g->workers);
    g->workers = xcalloc(1, sizeof(*g->workers));
    g->workers->kind = kind;
    g->workers->n = n;
    g->workers->list = xcalloc(n, sizeof(struct gw_worker));
    for (unsigned i = 0; i < n; i++) {
        worker_open(g, i);
    }
    binder_disk_conns(g->binder);
    for (unsigned i = 0; i < n; i++) {
        struct gw_worker *w = &g->workers->list[i];
        if (!is_main(w)) {
            loop_thread_start(&w->thread, w->loop);
        }
    }
    log_info("workers.started", "workers=%u", n);
}

/* ---- new clients ---- */
struct gift {
    struct inbox_item item;
    struct gw_worker *w;
    int fd;
};

static void on_gift(struct inbox_item *item)
{
    struct gift *gift = container_of(item, struct gift, item);
    http_server_take_fd(gift->w->http, gift->fd);
    free(gift);
}

void gw_workers_give(struct gateway *g, int fd)
{
    struct gw_worker *least = &g->workers->list[0];
    for (unsigned i = 1; i < g->workers->n; i++) {
        struct gw_worker *w = &g->workers->list[i];
        if (atomic_load(&w->connections) < atomic_load(&least->connections)) {
            least = w;
        }
    }
    atomic_fetch_add(&least->connections, 1);
    metric_add(least->n_connections, 1);
    struct gift *gift = xcalloc(1, sizeof(*gift));
    *gift = (struct gift){.item.fn = on_gift, .w = least, .fd = fd};
    loop_post(least->loop, &gift->item);
}

/* ---- end ---- */
static void on_conns_closed(struct gw_worker *w)
{
    gw_shelf_close(w);
    gw_leg_done(w->closing);
}

static void on_requests_ended(struct gw_worker *w)
{
    gw_conns_close(w, on_conns_closed);
}

static void close_worker(struct gw_leg *leg)
{
    struct gw_worker *w = leg->w;
    w->closing = leg;
    w->closed = on_requests_ended;
    w->g->workers->kind->close(w);
}

/* The last item of a worker: after it nothing is posted there any more. */
static void stop_worker(struct gw_leg *leg)
{
    struct gw_worker *w = leg->w;
    bool stops = !is_main(w);
    gw_leg_done(leg);
    if (stops) {
        loop_stop(w->loop);
    }
}

static void on_stopped(struct gw_each *each)
{
    struct gw_workers *all = each->data;
    struct gateway *g = each->g;
    for (unsigned i = 0; i < all->n; i++) {
        struct gw_worker *w = &all->list[i];
        if (!is_main(w)) {
            loop_thread_join(&w->thread);
            loop_free(w->loop);
        }
    }
    void (*closed)(struct gateway *) = all->closed;
    free(all->list);
    free(all);
    closed(g);
}

static void on_closed(struct gw_each *each)
{
    struct gateway *g = each->g;
    gw_each_start(g, stop_worker, on_stopped, g->workers);
    g->workers = NULL;
}

void gw_workers_close(struct gateway *g, void (*closed)(struct gateway *g))
{
    g->workers->closed = closed;
    gw_each_start(g, close_worker, on_closed, NULL);
}

static void on_part_closed(struct gateway *g)
{
    service_part_closed(g->service);
}

void gw_workers_part_close(struct service *s)
{
    struct gateway *g = service_state(s);
    atomic_store(&g->draining, true);
    gw_workers_close(g, on_part_closed);
}
