/* A worker's way to the main loop: what it asks there (protocol.md 14). The structs are the
 * caller's and stay untouched until done, which comes on the worker's loop, once, never inside of
 * the start. Memory that the main loop reads goes over with the item and comes back with it. */
#pragma once
#include "services/gateway/worker.h"

/* ---- port.c: an errand goes to the main loop, is worked off there, and comes back ---- */
struct gw_errand {
    struct gw_worker *w;
    void (*run)(struct gw_errand *e);  /* main loop; it or what it starts says gw_errand_over */
    void (*stop)(struct gw_errand *e); /* main loop, before the end only: makes it end soon */
    void (*done)(struct gw_errand *e); /* worker */
    /* its own */
    struct inbox_item go, halt;
    unsigned out; /* worker: items under way */
    bool halted;  /* worker */
    bool over;    /* main loop */
};
void gw_errand_start(struct gw_errand *e);
void gw_errand_cancel(
    struct gw_errand *e); /* idempotent, nothing after done; done still comes. Worker */
void gw_errand_over(struct gw_errand *e); /* main loop */
/* For what nobody waits for: fn is called on the main loop and frees the item. */
void gw_tell_main(struct gw_worker *w, struct inbox_item *item,
                  void (*fn)(struct inbox_item *item));

/* ---- port_calls.c: the planner and the compiler ---- */
struct gw_call {
    struct bus_call call; /* as for bus_call_start */
    struct gw_errand errand;
    struct bus_call at_main;
    struct buf reply;
};
void gw_call_start(struct gw_worker *w, struct gw_call *c);
void gw_call_cancel(struct gw_call *c);

struct gw_compiling {
    struct compiler_call call; /* as for compiler_call_start, but `request` must stay */
    const struct sha256 *key;  /* equal ones of all workers share one compile; NULL: alone */
    struct gw_errand errand;
    struct gw_shared_compile *shared; /* main loop */
    struct list link;                 /* main loop */
    char reply_kind[24];
    struct buf reply, frame;
};
void gw_compiling_start(struct gw_worker *w, struct gw_compiling *c);
void gw_compiling_cancel(struct gw_compiling *c);

/* ---- port_binder.c: the binder ---- */
/* Until the package is in force on every worker with an epoch >= min (0: with any), or until `wait`
 * is over; the planner is asked for news at once. */
struct gw_wait {
    char environment[128], package[128];
    uint64_t min_epoch;
    struct ms wait;
    void (*done)(struct gw_wait *w); /* rc 0, ERR_TIMEOUT or ERR_CANCELLED */
    void *data;
    int rc;
    bool is_gone;  /* no worker has it, nor will have */
    char why[512]; /* why its newest set could not be applied; "": it could, or is being loaded */
    struct gw_errand errand;
    struct list link; /* main loop: in the binder's `waits` */
    struct loop_timer timer;
};
void gw_wait_start(struct gw_worker *w, struct gw_wait *q);
void gw_wait_cancel(struct gw_wait *q);
/* A baked table was missing or superseded at query time: the planner is told with the next report.
 * `code` is constant text. */
void gw_tell_broken(struct gw_worker *w, struct gw_package *p, const struct gw_binding *b,
                    const char *code);
/* A connection as the planner sent it, for the disk; nothing: it is gone. */
void gw_tell_conn(struct gw_worker *w, const char *key, struct slice packed);
