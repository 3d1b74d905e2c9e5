/* What workers serve, and what they ask: snapshots go to each of them and count as applied when the
 * last one has swapped; waits for that; broken tables. */
#include "common/log/log.h"
#include "services/gateway/binder/binder.h"

struct gw_unit *binder_named(const struct gw_binder *b, const char *environment, const char *name)
{
    char key[600];
    snprintf(key, sizeof(key), "%s/%s", environment, name);
    return map_get(&b->names, slice_of(key));
}

/* ---- swaps ---- */
struct gw_swap {
    struct list link;
    struct gw_binder *b;
    uint64_t unit;
    struct gw_package *p; /* counted; NULL: the unit goes */
    char *environment, *name;
};

/* Between two turns of a worker: the queries it has go on with what they hold. */
static void swap(struct gw_leg *leg)
{
    const struct gw_swap *s = leg->each->data;
    if (s->p) {
        gw_shelf_put(leg->w, gw_package_ref(s->p));
    } else {
        gw_shelf_drop(leg->w, s->unit);
    }
    gw_leg_done(leg);
}

static void note_applied(struct gw_binder *b, const struct gw_package *p)
{
    struct gw_unit *u = map_get_u64(&b->units, p->unit);
    metric_add(b->m_applied, 1);
    metric_add(b->m_auto_loaded, strcmp(p->cause, "run") == 0);
    log_info("binder.applied", "environment=%s package=%s epoch=%llu load=%s bindings=%zu cause=%s",
             p->environment, p->name, (unsigned long long)p->epoch, p->load_id, p->n_bindings,
             p->cause);
    if (u && p->epoch > u->applied) {
        u->applied = p->epoch;
        snprintf(u->applied_load, sizeof(u->applied_load), "%s", p->load_id);
        binder_report_now(b);
        binder_wake(b, u, 0);
    }
}

static void on_swapped(struct gw_each *each)
{
    struct gw_swap *s = each->data;
    struct gw_binder *b = s->b;
    list_del(&s->link);
    if (s->p) {
        note_applied(b, s->p);
    }
    gw_package_unref(s->p);
    free(s->environment);
    free(s->name);
    free(s);
    binder_settle(b);
}

void binder_serve(struct gw_unit *u, struct gw_package *p)
{
    struct gw_swap *s = xcalloc(1, sizeof(*s));
    s->b = u->g->binder;
    s->unit = u->id;
    s->p = p;
    s->environment = xstrdup(u->environment ? u->environment : "");
    s->name = xstrdup(u->name ? u->name : "");
    list_add_tail(&s->b->swaps, &s->link);
    gw_each_start(u->g, swap, on_swapped, s);
}

void binder_unserve(struct gw_unit *u)
{
    if (u->in_force) {
        binder_serve(u, NULL);
    }
}

/* Counted from when it goes to the first worker: a query there may read its tables already. */
uint64_t binder_oldest(const struct gw_binder *b, const struct gw_unit *u)
{
    list_for_each (it, &b->alive) {
        const struct gw_package *p = list_entry(it, struct gw_package, link);
        if (p->unit == u->id) {
            return p->epoch;
        }
    }
    return u->applied;
}

/* ---- waits ---- */
static bool is_served(const struct gw_unit *u, uint64_t min_epoch)
{
    return u && u->applied > 0 && u->applied >= min_epoch;
}

static bool is_leaving(const struct gw_binder *b, const struct gw_wait *q)
{
    list_for_each (it, &b->swaps) {
        const struct gw_swap *s = list_entry(it, struct gw_swap, link);
        if (strcmp(s->name, q->package) == 0 && strcmp(s->environment, q->environment) == 0) {
            return true;
        }
    }
    return false;
}

void binder_wait_over(struct gw_binder *b, struct gw_wait *q, int rc)
{
    const struct gw_unit *u = binder_named(b, q->environment, q->package);
    list_del(&q->link);
    loop_timer_stop(&q->timer);
    q->rc = is_served(u, q->min_epoch) ? 0 : rc;
    q->is_gone = !(u && u->in_force) && !is_leaving(b, q);
    snprintf(q->why, sizeof(q->why), "%s", u && u->failed_epoch ? u->failed_text : "");
    gw_errand_over(&q->errand);
}

void binder_wake(struct gw_binder *b, const struct gw_unit *u, int rc)
{
    list_for_each (it, &b->waits) {
        struct gw_wait *q = list_entry(it, struct gw_wait, link);
        bool same = binder_named(b, q->environment, q->package) == u;
        if (same && (rc || is_served(u, q->min_epoch))) {
            binder_wait_over(b, q, rc);
        }
    }
}

static void on_wait_due(struct loop_timer *t)
{
    binder_wait_over(t->data, container_of(t, struct gw_wait, timer), ERR_TIMEOUT);
}

void binder_wait(struct gw_binder *b, struct gw_wait *q)
{
    bool there = is_served(binder_named(b, q->environment, q->package), q->min_epoch);
    list_add_tail(&b->waits, &q->link);
    loop_timer_init(&q->timer, b->g->loop, on_wait_due, b);
    loop_timer_start(&q->timer, there ? MS(0) : q->wait);
    binder_get_now(b);
}

/* ---- broken tables ---- */
void binder_broken(struct gw_binder *b, const struct gw_package *p, const struct gw_binding *bind,
                   const char *code)
{
    for (size_t i = 0; i < b->n_broken; i++) {
        if (b->broken[i].unit == p->unit &&
            strcmp(b->broken[i].generation, bind->generation) == 0) {
            return;
        }
    }
    if (b->n_broken < ARRAY_LEN(b->broken)) {
        b->broken[b->n_broken++] = (struct gw_broken){p->unit, xstrdup(bind->source_id),
                                                      xstrdup(bind->generation), xstrdup(code)};
        binder_report_now(b);
    }
}
