/* Inside of the run store in memory: its queue (store_sim.c) and its reads (store_sim_reads.c). */
#pragma once
#include "services/planner/store/store.h"
#include "tests/sim/trio_world.h"

struct read { /* anything else */
    struct list link;
    struct store *s;
    struct store_op *op;
    struct loop_timer timer;
    int (*fill)(struct read *r);
    struct store_run_filter filter;
    uint64_t id;
    struct sha256 sha256;
    const void *in;
    void *out;
    size_t *n;
};
struct store {
    struct proc *p;
    struct store_events ev;
    struct list queue; /* of struct item */
    struct list reads; /* of struct read */
    struct loop_timer step, leader;
    struct loop_task end;
    bool leading, closing, lost, applied, stepping;
    void (*closed)(void *data);
    void *closed_data;
};

/* store_sim_answered.c: in the run store, whoever dies */
void store_sim_keep(struct world *w, const struct store_answer *a);
struct read *store_sim_read(struct store *s, struct store_op *op, int (*fill)(struct read *r));
struct ms store_sim_delay(struct store *s);
