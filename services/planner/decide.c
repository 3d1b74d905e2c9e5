/* Decide, commit, tell: the one way in which the coordinator's decisions become durable and known.
 */
#include "common/log/log.h"
#include "services/planner/planner.h"

struct coord_now planner_now(struct planner *p)
{
    struct coord_now now = {.mono = loop_now(p->loop), .unix_us = loop_unix_us()};
    random_bytes(now.random, sizeof(now.random));
    return now;
}

struct decision *decision_new(struct planner *p)
{
    struct decision *d = xcalloc(1, sizeof(*d));
    d->p = p;
    list_init(&d->link);
    arena_init(&d->arena);
    coord_out_init(&d->out, &d->arena);
    d->op.arena = &d->arena;
    d->op.data = d;
    return d;
}

void decision_drop(struct decision *d)
{
    arena_fini(&d->arena);
    free(d);
}

static void finish(struct decision *d)
{
    if (d->done) {
        d->done(d);
    }
    decision_drop(d);
}

static void publish_hint(struct planner *p, const char topic[4], const struct coord_note *n)
{
    Kiln__Event ev = KILN__EVENT__INIT;
    char name[5] = {0};
    memcpy(name, topic, 4);
    ev.topic = name;
    ev.package = n->unit;
    ev.epoch = n->epoch;
    ev.run = bus_str(n->run);
    ev.state = bus_str(n->kind == NOTE_RUN ? run_state_name(n->state) : NULL);
    bus_publish(p->bus, topic, &ev.base);
}

static bool note_ends_wait(const struct coord_note *n, const struct planner_wait *w)
{
    switch (w->kind) {
    case WAIT_RUN_ENDED:
        return n->kind == NOTE_RUN && !run_state_active(n->state) && strcmp(n->run, w->run) == 0;
    case WAIT_UNIT_REPORTED:
        return n->kind == NOTE_UNIT_REPORTED && n->unit == w->unit && n->epoch >= w->epoch;
    case WAIT_JOB_ENDED:
        return n->kind == NOTE_JOB_ENDED && n->job == w->job;
    }
    return false;
}

static void wait_end(struct planner_wait *w, int rc)
{
    list_del(&w->link);
    loop_timer_stop(&w->timer);
    w->rc = rc;
    w->done(w);
}

static void tell(struct planner *p, const struct coord_note *n)
{
    switch (n->kind) {
    case NOTE_JOBS:
        publish_hint(p, "jobs", n);
        break;
    case NOTE_BIND:
        publish_hint(p, "bind", n);
        break;
    case NOTE_RUN:
        publish_hint(p, "runs", n);
        log_info("run.state", "run=%s state=%s trace=%s", n->run, run_state_name(n->state),
                 log_id(n->trace.b));
        if (!run_state_active(n->state)) {
            loop_defer(p->loop, &p->event_task);
        }
        break;
    case NOTE_NOBODY:
        log_warn("job.no_capable_builder",
                 "job=%llu run=%s connection=%s remedy=\"start a builder that reaches it\"",
                 (unsigned long long)n->job, n->run, log_q(n->connection));
        break;
    case NOTE_JOB_ENDED:
    case NOTE_CANCEL:
    case NOTE_UNIT_REPORTED:
        break;
    }
    list_for_each (it, &p->waiters) {
        struct planner_wait *w = list_entry(it, struct planner_wait, link);
        if (note_ends_wait(n, w)) {
            wait_end(w, 0);
        }
    }
}

static void rearm_tick(struct planner *p)
{
    struct ms due = p->coord ? coord_next_due(p->coord) : MS_NONE;
    if (due.v == INT64_MAX) {
        loop_timer_stop(&p->tick);
        return;
    }
    loop_timer_start(&p->tick, ms_max(ms_sub(due, loop_now(p->loop)), MS(1)));
}

/* The next one in line, if it made no rows: what it speaks of is durable by now. */
static void tell_next(struct planner *p)
{
    struct decision *d =
        list_empty(&p->deciding) ? NULL : list_entry(p->deciding.next, struct decision, link);
    if (d && d->out.rows.n == 0) {
        loop_defer(p->loop, &d->task);
    }
}

static void on_committed(struct store_op *op)
{
    struct decision *d = op->data;
    struct planner *p = d->p;
    d->rc = op->rc;
    d->err = op->err;
    list_del(&d->link);
    if (d->rc == 0) {
        planner_count_runs(&d->out.rows);
        for (size_t i = 0; i < d->out.n_notes; i++) {
            tell(p, &d->out.notes[i]);
        }
    } else {
        p->decide_rc = d->rc;
    }
    finish(d);
    tell_next(p);
    planner_settle(p);
}

static void on_nothing_to_commit(struct loop_task *t)
{
    struct decision *d = container_of(t, struct decision, task);
    d->op.rc = d->p->decide_rc;
    if (d->op.rc) {
        err_set(&d->op.err, d->op.rc, "what this was decided on could not be stored");
    }
    on_committed(&d->op);
}

/* What the decision makes possible is begun at once. Commits keep their order and replies wait for
 * their own, so nobody hears of what is not durable; and what is decided in this turn shares the
 * transaction. */
static void begin_what_follows(struct planner *p, const struct coord_out *o)
{
    for (size_t i = 0; i < o->n_notes; i++) {
        const struct coord_note *n = &o->notes[i];
        if (n->kind == NOTE_JOBS) {
            loop_defer(p->loop, &p->pull_task);
        } else if (n->kind == NOTE_RUN && n->state == RUN_REQUESTED) {
            loop_defer(p->loop, &p->plan_task);
        }
    }
}

void decision_commit(struct decision *d, void (*done)(struct decision *d), void *data)
{
    struct planner *p = d->p;
    d->done = done;
    d->data = data;
    d->op.done = on_committed;
    rearm_tick(p);
    begin_what_follows(p, &d->out);
    list_add_tail(&p->deciding, &d->link);
    if (d->out.rows.n == 0) {
        loop_task_init(&d->task, on_nothing_to_commit, d);
        tell_next(p);
        return;
    }
    store_commit(p->store, &d->op, &d->out.rows);
}

static void on_wait_over(struct loop_timer *t)
{
    struct planner_wait *w = container_of(t, struct planner_wait, timer);
    wait_end(w, ERR_TIMEOUT);
}

void planner_wait_start(struct planner *p, struct planner_wait *w)
{
    w->p = p;
    list_add_tail(&p->waiters, &w->link);
    loop_timer_init(&w->timer, p->loop, on_wait_over, w);
    loop_timer_start(&w->timer, service_is_draining(p->service) ? MS(0) : w->wait);
}

void planner_wait_cancel(struct planner_wait *w)
{
    if (list_linked(&w->link)) {
        list_del(&w->link);
        loop_timer_stop(&w->timer);
    }
}

void planner_waits_fail(struct planner *p)
{
    struct list *it;
    while ((it = p->waiters.next) != &p->waiters) {
        wait_end(list_entry(it, struct planner_wait, link), ERR_NOT_LEADER);
    }
}
