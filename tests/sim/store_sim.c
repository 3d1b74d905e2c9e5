/* store.h over rows in memory: commits strictly in order, each some time before it is done and some
 * time before its answer is there; leadership by waiting. What it cannot do in this world, it says.
 */
#include "tests/sim/store_sim.h"

#include <stdio.h>

enum { TAKEOVER_LEAST_MS = 1000, TAKEOVER_MOST_MS = 6000 };

struct item { /* a commit, or the read of the whole coordinator */
    struct list link;
    struct store_op *op;
    const struct rows *rows;
    struct coord *coord;
    struct coord_now now;
};
/* ---- leadership ---- */
struct ms store_sim_delay(struct store *s)
{
    return sim_time_between(&s->p->w->time, MS(0), s->p->w->faults.store_most);
}

static void on_leader(struct loop_timer *t)
{
    struct store *s = t->data;
    s->leading = true;
    s->ev.on_state(s->ev.data, true, "");
    s->ev.on_leader(s->ev.data, ++s->p->w->term);
}

static void on_end(struct loop_task *t);
static void on_step(struct loop_timer *t);

struct store *store_open(struct loop *l, const struct store_settings *set,
                         const struct store_events *ev)
{
    struct store *s = xcalloc(1, sizeof(*s));
    (void)set;
    s->p = proc_now();
    s->p->store = s;
    s->ev = *ev;
    list_init(&s->queue);
    list_init(&s->reads);
    loop_timer_init(&s->step, l, on_step, s);
    loop_timer_init(&s->leader, l, on_leader, s);
    loop_task_init(&s->end, on_end, s);
    bool first = s->p->n_starts == 1; /* later ones wait until the old one's row has stood still */
    struct ms wait =
        first ? MS(10)
              : sim_time_between(&s->p->w->time, MS(TAKEOVER_LEAST_MS), MS(TAKEOVER_MOST_MS));
    loop_timer_start(&s->leader, wait);
    return s;
}

const struct uuid *store_installation(const struct store *s)
{
    return &s->p->w->installation;
}

uint64_t store_config_epoch(const struct store *s)
{
    (void)s;
    return 1;
}

void store_set_pack(struct store *s, store_pack_fn pack, void *data)
{
    (void)s;
    (void)data;
    must(pack);
}

/* ---- the queue ---- */
static void end_item(struct store *s, int rc, const char *why)
{
    struct item *it = list_entry(list_take_head(&s->queue), struct item, link);
    struct store_op *op = it->op;
    free(it);
    op->rc = rc ? err_set(&op->err, rc, "run store: %s", why) : 0;
    op->done(op);
}

static void kick(struct store *s)
{
    if (!s->stepping && !list_empty(&s->queue)) {
        s->stepping = true;
        s->applied = false;
        loop_timer_start(&s->step, store_sim_delay(s));
    }
}

/* A commit whose answer is bad: done or not, its planner must not go on. */
static void lose(struct store *s)
{
    s->lost = true;
    s->leading = false;
    while (!list_empty(&s->queue)) {
        end_item(s, ERR_STORE, "the connection was lost");
    }
    s->ev.on_lost(s->ev.data, ERR_STORE, "the connection was lost");
}

static void load(struct item *it, struct world *w)
{
    memory_store_load(w->rows, it->coord, it->now);
    struct map_iter at = {0};
    for (const struct row_run *r; memory_run_next(&at, w->rows, &r);) {
        if (!run_state_active(r->state) && memory_unit(w->rows, r->unit)) {
            coord_load_run(it->coord, r); /* ended ones too, as the run store gives them */
        }
    }
}

static void apply(struct store *s, const struct item *it)
{
    struct proc *before = proc_enter(NULL);
    if (it->op->answer) {
        store_sim_keep(s->p->w, it->op->answer);
    }
    const char *wrong = memory_store_apply(s->p->w->rows, it->rows);
    proc_leave(before);
    if (wrong) {
        trio_fail("the run store refuses: %s", wrong);
    }
}

static void on_step(struct loop_timer *t)
{
    struct store *s = t->data;
    struct world *w = s->p->w;
    struct item *it = list_entry(s->queue.next, struct item, link);
    bool loses = !s->applied && it->rows && sim_time_chance(&w->time, w->faults.store_lose);
    if (!s->applied && it->rows && (!loses || sim_time_chance(&w->time, 500))) {
        apply(s, it);
    }
    if (loses) {
        lose(s);
        return;
    }
    if (!s->applied) {
        s->applied = true;
        loop_timer_start(&s->step, store_sim_delay(s));
        return;
    }
    if (it->coord) {
        load(it, w);
    }
    s->stepping = false;
    end_item(s, 0, NULL);
    kick(s);
}

/* Refused ones end on the next turn too. */
static void on_end(struct loop_task *t)
{
    struct store *s = t->data;
    while (!list_empty(&s->queue)) {
        end_item(s, s->closing ? ERR_SHUTDOWN : ERR_STORE_LEADER, "not the leader");
    }
    while (s->closing && !list_empty(&s->reads)) {
        struct read *r = list_entry(list_take_head(&s->reads), struct read, link);
        struct store_op *op = r->op;
        loop_timer_stop(&r->timer);
        free(r);
        op->rc = err_set(&op->err, ERR_SHUTDOWN, "run store: shutting down");
        op->done(op);
    }
    if (s->closing && s->closed) {
        void (*closed)(void *) = s->closed;
        s->closed = NULL;
        closed(s->closed_data);
    }
}

static struct item *add(struct store *s, struct store_op *op)
{
    struct item *it = xcalloc(1, sizeof(*it));
    it->op = op;
    err_clear(&op->err);
    list_add_tail(&s->queue, &it->link);
    if (!s->leading || s->closing || s->lost) {
        loop_defer(s->p->loop, &s->end);
    } else {
        kick(s);
    }
    return it;
}

void store_commit(struct store *s, struct store_op *op, const struct rows *rows)
{
    add(s, op)->rows = rows;
}

void store_load_coord(struct store *s, struct store_op *op, struct coord *c, struct coord_now now)
{
    struct item *it = add(s, op);
    it->coord = c;
    it->now = now;
}

void store_close(struct store *s, void (*done)(void *data), void *data)
{
    s->closing = true;
    s->closed = done;
    s->closed_data = data;
    loop_timer_stop(&s->step);
    loop_timer_stop(&s->leader);
    loop_defer(s->p->loop, &s->end);
}

void store_free(struct store *s)
{
    must(list_empty(&s->queue) && list_empty(&s->reads));
    loop_timer_stop(&s->step);
    loop_timer_stop(&s->leader);
    loop_task_cancel(&s->end);
    s->p->store = NULL;
    free(s);
}

bool store_sim_idle(const struct proc *p)
{
    return p->store && p->store->leading && list_empty(&p->store->queue);
}

void store_sim_crash(struct proc *p)
{
    p->store = NULL; /* what was not applied never will be: a new term shuts it out */
}
