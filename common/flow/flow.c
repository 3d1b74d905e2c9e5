#include "common/flow/flow.h"
#include "common/log/log.h"
#include <stdio.h>

static const struct flow_step *step_of(const struct flow *f)
{
    return &f->type->steps[f->step];
}

static void kick_later(struct flow *f)
{
    if (!f->kicked) {
        f->kicked = true;
        f->env->defer(f->env, f);
    }
}

static void set_due(struct flow *f)
{
    uint32_t wait_ms = step_of(f)->wait_ms;
    f->due = wait_ms ? ms_add(f->env->now(f->env), MS(wait_ms)) : MS_NONE;
}

static void disarm(struct flow *f)
{
    if (step_of(f)->wait_ms) {
        f->env->arm(f->env, f, MS_NONE);
    }
}

/* The last act: f may be gone when this returns. The arena outlives on_end, the parent never sees
 * it. */
static void finish(struct flow *f)
{
    struct arena arena = f->arena;
    struct flow *parent = f->parent;
    void (*on_end)(struct flow *) = f->on_end;
    int rc = f->final_rc;
    struct err e = {0};
    if (parent) {
        e = f->err;
        e.code = rc;
    }
    list_del(&f->link);
    f->timer = NULL;
    f->task = NULL;
    if (on_end) {
        on_end(f);
    } else {
        arena_init(&f->arena);
    }
    if (parent) {
        flow_resume(parent, rc, rc ? &e : NULL);
    }
    arena_fini(&arena);
}

static void end(struct flow *f)
{
    f->ended = true;
    f->env->arm(f->env, f, MS_NONE);
    if (f->parent) {
        kick_later(f);
    }
    if (!f->kicked) {
        finish(f); /* else in the kick: the environment still holds a task that points at f */
    }
}

/* Ends the present wait early. The wait's owner completes it with ERR_CANCELLED; where nobody does,
 * the driver itself. */
static void end_wait(struct flow *f, int rc)
{
    const struct flow_step *s = step_of(f);
    f->ending = true;
    if (s->cancel) {
        s->cancel(f);
        return;
    }
    f->pending = true;
    f->pending_rc = rc;
    kick_later(f);
}

static void begin_wait(struct flow *f)
{
    const struct flow_step *s = step_of(f);
    must(!f->moved); /* flow_goto is followed by FLOW_AGAIN */
    if (s->wait_ms && f->timed_out) {
        set_due(f); /* a second wait after a deadline: it needs one of its own */
    }
    f->waiting = true;
    f->timed_out = false;
    f->ending = false;
    if (f->due.v != INT64_MAX) {
        f->env->arm(f->env, f, f->due);
    }
    if (f->cancel_due && !s->shielded && !f->final_rc) {
        f->cancel_due = false;
        end_wait(f, ERR_CANCELLED);
    }
}

static void give_up(struct flow *f, const char *what)
{
    log_error("flow.loop", "flow=%s id=%s step=%s resumes=%u", f->type->name, f->id,
              flow_step_name(f), f->resumes);
    f->final_rc =
        err_set(&f->err, ERR_LOOP, "flow %s %s in step %s", f->type->name, what, flow_step_name(f));
    f->step = f->type->n - 1;
    f->entered = true;
}

static void drive(struct flow *f)
{
    must(!f->running);
    f->running = true;
    f->waiting = false;
    if (++f->resumes > FLOW_MAX_RESUMES) {
        give_up(f, "was resumed too often");
    }
    for (unsigned runs = 0;; runs++) {
        if (runs > FLOW_MAX_RESUMES) {
            give_up(f, "runs in circles");
            runs = 0;
        }
        f->moved = false;
        bool is_end = f->step == f->type->n - 1;
        enum flow_next next = step_of(f)->run(f);
        must(is_end == (next == FLOW_END)); /* END, and only END, ends */
        f->entered = f->moved;
        if (next == FLOW_AGAIN) {
            continue;
        }
        f->running = false;
        if (next == FLOW_END) {
            end(f);
        } else {
            begin_wait(f);
        }
        return;
    }
}

void flow_start(struct flow *f, const struct flow_type *type, struct flow_env *env,
                struct flow *parent)
{
    must(type && env && type->n > 0 && type->n <= 64);
#ifndef KILN_RELEASE
    must(!flow_type_check(type));
#endif
    must(f != parent);
    struct flow fresh = {.type = type, .env = env, .parent = parent, .entered = true};
    fresh.on_end = f->on_end;
    memcpy(fresh.id, f->id, sizeof(fresh.id));
    arena_init(&fresh.arena);
    if (!f->ended && f->arena.head) {
        fresh.arena = f->arena;
    }
    *f = fresh;
    list_add_tail(&env->live, &f->link);
    set_due(f);
    kick_later(f);
}

enum flow_next flow_goto(struct flow *f, unsigned step)
{
    must(f->running && !f->moved);
    must(step < f->type->n && (step_of(f)->to & FLOW_TO(step)));
    if (log_on(LOG_DEBUG)) {
        log_debug("flow.step", "flow=%s id=%s from=%s to=%s rc=%d", f->type->name, f->id,
                  flow_step_name(f), f->type->steps[step].name, f->rc);
    }
    f->step = step;
    f->moved = true;
    f->timed_out = false;
    set_due(f);
    return FLOW_AGAIN;
}

/* What a wait ended with. A deadline reaches the operation as a cancel, so its ERR_CANCELLED is
 * really a timeout. */
static void take_result(struct flow *f, int rc, const struct err *e)
{
    bool late = f->timed_out && (rc == ERR_CANCELLED || rc == ERR_TIMEOUT);
    f->rc = late ? ERR_TIMEOUT : rc;
    if (f->final_rc) {
        return; /* the first cause stays */
    }
    if (late && (rc == ERR_CANCELLED || !e || !e->text[0])) {
        (void)err_set(&f->err, ERR_TIMEOUT, "%s: %s took longer than %u ms", f->type->name,
                      flow_step_name(f), (unsigned)step_of(f)->wait_ms);
        return;
    }
    if (rc && e) {
        f->err = *e;
    } else {
        err_clear(&f->err);
    }
    f->err.code = rc;
}

void flow_resume(struct flow *f, int rc, const struct err *e)
{
    must(f->waiting && !f->running && !f->ended);
    f->waiting = false;
    f->pending = false;
    disarm(f);
    take_result(f, rc, e);
    drive(f);
}

void flow_cancel(struct flow *f)
{
    if (f->ended || f->cancel_asked) {
        return;
    }
    f->cancel_asked = true;
    if (f->waiting && f->ending) {
        return; /* a deadline is already ending this wait, and its timeout leads the same way */
    }
    if (!f->waiting || step_of(f)->shielded) {
        f->cancel_due = true;
        return;
    }
    end_wait(f, ERR_CANCELLED);
}

enum flow_next flow_fail(struct flow *f, unsigned end_step, int rc, const char *fmt, ...)
{
    must(rc < 0);
    struct err e; /* apart from f->err, which the caller may quote */
    va_list ap;
    va_start(ap, fmt);
    (void)err_vset(&e, rc, fmt, ap);
    va_end(ap);
    if (f->err.code == rc) {
        memcpy(e.sqlstate, f->err.sqlstate, sizeof(e.sqlstate));
    }
    f->err = e;
    f->final_rc = rc;
    return flow_goto(f, end_step);
}

void flow_deadline(struct flow *f)
{
    if (!f->waiting || f->ending) {
        return;
    }
    f->timed_out = true;
    end_wait(f, ERR_TIMEOUT);
}

void flow_kick(struct flow *f)
{
    must(f->kicked && !f->running);
    f->kicked = false;
    if (f->ended) {
        finish(f);
    } else if (f->resumes == 0) {
        drive(f);
    } else if (f->pending) {
        flow_resume(f, f->pending_rc, NULL);
    }
}

const char *flow_step_name(const struct flow *f)
{
    return step_of(f)->name;
}

static uint64_t reachable(const struct flow_type *t)
{
    uint64_t seen = 1;
    for (uint64_t before = 0; before != seen;) {
        before = seen;
        for (unsigned i = 0; i < t->n; i++) {
            if (seen & FLOW_TO(i)) {
                seen |= t->steps[i].to;
            }
        }
    }
    return seen;
}

const char *flow_type_check(const struct flow_type *t)
{
    if (!t->name || !t->name[0]) {
        return "the flow has no name";
    }
    if (t->n == 0 || t->n > 64) {
        return "a flow has 1 to 64 steps";
    }
    uint64_t known = t->n == 64 ? UINT64_MAX : FLOW_TO(t->n) - 1;
    for (unsigned i = 0; i < t->n; i++) {
        const struct flow_step *s = &t->steps[i];
        if (!s->name || !s->name[0] || !s->run) {
            return "a step lacks its name or its function";
        }
        if (s->to & ~known) {
            return "a successor is no step of the flow";
        }
        if (i + 1 < t->n && !s->to) {
            return "a step before END leads nowhere";
        }
    }
    if (t->steps[t->n - 1].to || t->steps[t->n - 1].wait_ms) {
        return "the last step is END: it has no successor and no wait";
    }
    if (reachable(t) != known) {
        return "a step, or END, cannot be reached from the first step";
    }
    return NULL;
}
