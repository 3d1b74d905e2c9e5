/* Flows: a chain of waits as a table of steps with one driver (models.md 4.3). Pure: knows no loop.
 */
#pragma once
#include "common/base/arena.h"
#include "common/base/list.h"
#include "common/base/ms.h"
#include "common/err/err.h"

struct flow;
enum flow_next { FLOW_AGAIN, FLOW_WAIT, FLOW_END }; /* run the (new) step now / parked / finished */

/* One state. `run` does one thing: start an operation and return FLOW_WAIT, or look at f->rc and
 * flow_goto + FLOW_AGAIN. A step that is entered is run with f->entered true; when its wait is over
 * it is run again with f->entered false and f->rc / f->err set. */
struct flow_step {
    const char *name;
    enum flow_next (*run)(struct flow *f);
    uint64_t to; /* allowed successors: FLOW_TO(STEP_A) | FLOW_TO(STEP_B) */
    /* Deadline of the wait it may enter, counted from the step's entry (waiting again in the same
     * step does not extend it; a goto to the same step does); 0: no wait here, or the operation has
     * its own deadline. */
    uint32_t wait_ms;
    /* Ends the wait early (cancel or deadline): must make the operation complete soon, which
     * resumes the flow. NULL: the driver itself resumes with ERR_CANCELLED or ERR_TIMEOUT (for
     * waits that hold no operation). */
    void (*cancel)(struct flow *f);
    const char *says; /* one line for the diagram */
    bool shielded; /* a cancel does not touch this wait (point of no return); it is seen in the next
                      step */
};
#define FLOW_TO(step) (UINT64_C(1) << (step))

struct flow_type {
    const char *name;
    const struct flow_step *steps; /* the last step is END: releases everything, returns FLOW_END */
    unsigned n;
};
/* What a flow needs of the world: implemented by loop (real) and by the simulation. */
struct flow_env {
    struct ms (*now)(struct flow_env *env);
    void (*arm)(struct flow_env *env, struct flow *f,
                struct ms at); /* MS_NONE: disarm. Calls flow_deadline(f) when due */
    void (*defer)(struct flow_env *env, struct flow *f); /* calls flow_kick(f) on the next turn */
    struct list live;                                    /* every flow that has not ended */
};
struct flow {
    const struct flow_type *type;
    struct flow_env *env;
    struct flow *parent;            /* resumed with our rc at the end, or NULL */
    void (*on_end)(struct flow *f); /* called last, after END; may free the flow; may read the
                                       arena, not allocate; NULL: none */
    unsigned step;
    bool entered; /* true on the first run of a step, false when its wait is over */
    bool waiting, running, kicked, ended;
    bool cancel_asked; /* flow_cancel was called */
    bool timed_out;    /* this wait ran into its deadline */
    int rc;            /* of the wait that is over */
    struct err err; /* its sentence; also the flow's final error: once final_rc is set, waits leave
                       it alone */
    int final_rc;   /* what the flow ends with: set by steps before END */
    unsigned resumes;   /* activations so far; past FLOW_MAX_RESUMES the flow fails with ERR_LOOP */
    struct arena arena; /* dies with the flow */
    struct list link;   /* in env->live */
    void *timer;        /* the env's */
    void *task;         /* the env's */
    char id[40];        /* for logs: run, job or request id; "" if none */
    /* the driver's own */
    bool moved;      /* the step that is running has called flow_goto */
    bool cancel_due; /* a cancel that found no wait it could end */
    bool ending;     /* cancel or deadline is already at work on this wait */
    bool pending;    /* the driver resumes with pending_rc on the next kick */
    int pending_rc;
    struct ms due; /* deadline of this step */
};
#define FLOW_MAX_RESUMES 100000

/* Prepares f (caller-allocated, usually embedded; zeroed memory, or a flow that has ended) at step
 * 0 and schedules its first run on the next turn. on_end and id may be set before or after; what
 * the caller has already put into f->arena stays. A parent must be waiting when its child ends; it
 * is resumed with the child's final_rc and err on the turn after the child's END, after the child's
 * on_end. Its wait needs a `cancel` that calls flow_cancel on the child. */
void flow_start(struct flow *f, const struct flow_type *type, struct flow_env *env,
                struct flow *parent);
/* The only writer of state: checks `to`, traces, arms the new step's deadline. Then return
 * FLOW_AGAIN. */
enum flow_next flow_goto(struct flow *f, unsigned step);
/* The only entry for completions. e may be NULL. Resuming a flow that does not wait is a bug
 * (must). */
void flow_resume(struct flow *f, int rc, const struct err *e);
/* Marks intent and ends the present wait; idempotent; never resumes inside this call. The flow
 * decides where that leads. A cancel that comes before the first run, in a running step or in a
 * shielded wait ends the next wait that is not shielded, unless the flow is on its way out by then
 * (final_rc set). One cancel ends one wait. */
void flow_cancel(struct flow *f);
/* Ends the flow with an error: sets final_rc and err, goes to `end_step`. */
enum flow_next flow_fail(struct flow *f, unsigned end_step, int rc, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* For environments only. */
void flow_deadline(struct flow *f);
void flow_kick(struct flow *f);
/* Name of the present step, for logs and health. */
const char *flow_step_name(const struct flow *f);
/* Checks a type's table: names, END last and reachable, successors in range. NULL, or what is wrong
 * (static text). */
const char *flow_type_check(const struct flow_type *t);
