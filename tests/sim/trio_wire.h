/* The wire between processes and the warehouse: a statement that was sent may be done after its
 * sender has died, late, or without its answer. trio_wire*.c and trio_check.c only. */
#pragma once
#include "common/base/map.h"
#include "common/warehouse/wh_sim_store.h"
#include "tests/sim/trio_world.h"

enum statement_kind {
    ST_TARGETS,
    ST_BUILD,
    ST_RESOLVE,
    ST_SWAP,
    ST_DROP,
    ST_DISCARD,
    ST_SWEEP,
    ST_QUERY
};
enum statement_phase { ST_GOING, ST_AT_WORK, ST_COMING };
struct wire {
    struct wh base;
    struct wh *inner;
    struct world *w;
    struct proc *proc; /* NULL: it is dead */
    struct list link;  /* proc->wires */
    struct list statements;
    bool closing;
    void (*closed)(void *data);
    void *closed_data;
    struct sim_event close;
};
struct statement {
    struct list link; /* wire->statements */
    struct wire *wire;
    struct wh_op *outer; /* NULL: nobody waits for it any more */
    struct wh_op inner;
    struct arena arena; /* arguments and answers while they travel */
    enum statement_kind kind;
    enum statement_phase phase;
    struct sim_event travel;
    int fault;  /* it ends with this code */
    bool after; /* but is done before */
    struct wh_name *names;
    size_t n;
    struct wh_table table;
    struct wh_build build;
    struct wh_publish publish;
    struct wh_sweep sweep;
    uint64_t token;
    uint64_t *tokens;
    struct wh_query query, *asked;
    struct wh_sink sink, *reader;
    uint64_t n_rows;
};
struct wire_log {
    struct map makers; /* oid -> struct made */
    struct map claims; /* "schema.table" -> struct claimed */
    struct arena mem;
    size_t n_busy, n_writing;
};
/* A statement has just been done: notes what came of it, and fails where it may not have been. */
void wire_log_done(const struct statement *s);
/* Gives what a statement brought back to the operation that asked for it, and ends that. */
void wire_answer(struct statement *s);
/* A copy. */
static inline struct wh_name wire_name(struct arena *a, struct wh_name n)
{
    return (struct wh_name){arena_strdup(a, n.schema), arena_strdup(a, n.table)};
}
