/* Inside of asked*.c: a question to builders, and the warehouse that asks it. */
#pragma once
#include "services/planner/asked.h"

enum { ASK_MS = 15000 };
struct asked_wh {
    struct wh wh;
    struct planner *p;
    struct arena arena;
    char *environment, *package, *version;
    char *connection, *digest;
    Kiln__FileRef **files;
    size_t n_files;
    struct asked_wh
        *next; /* another connection of the same package; its arena is the first one's */
};
struct ask {
    const struct asked_wh *wh;
    struct wh_op *op;
    struct list link; /* planner->asks, oldest first */
    struct arena arena;
    Kiln__Job *job;
    Kiln__Target target;
    size_t n;      /* of tables asked about */
    size_t *asked; /* probe: which of them each of the job's is */
    bool answered; /* without a builder: ends on the next turn */
    /* The answer into the operation's facts; ERR_INTERNAL when it does not fit. */
    int (*take)(struct ask *k, const Kiln__FinishJobReq *q);
    bool given; /* to a builder */
    char builder[64];
    struct uuid boot;
    uint8_t pull_request[16];
    struct ms lease_until;
    struct loop_timer deadline;
    struct loop_task end; /* cancelled, or answered */
};
struct asked_wh *asked_of(const struct wh *wh);
/* Queued; done comes later. The caller fills in the job in the same turn. */
struct ask *ask_new(struct wh_op *op, Kiln__JobKind kind);
void ask_answer(struct ask *k); /* there is nothing to ask: it ends on the next turn */
void ask_cancel(struct wh_op *op);
