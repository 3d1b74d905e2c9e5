/* What the simulated warehouse's operations share: their arguments, and the work of each kind. */
#pragma once
#include "common/warehouse/wh_sim_store.h"

struct sim_conn {
    struct wh base;
    struct wh_sim *sim;
    unsigned ops;
    bool closing;
    void (*on_closed)(void *data);
    void *closed_data;
    struct loop_task task;
};
struct sim_op {
    struct wh_op *op;
    struct sim_conn *conn;
    struct wh_sim *sim;
    enum sim_op_kind kind;
    struct loop_timer timer;
    struct ms until;
    bool cancelled;
    /* arguments; texts in the caller's arena */
    const char *sql;
    const char **paths;
    struct wh_table *tables;
    size_t n;
    uint64_t token;
    const uint64_t *tokens;
    size_t n_tokens;
    struct wh_publish publish;
    struct wh_sweep sweep;
    struct wh_query *query;
    struct wh_sink *sink;
};

/* A copy in the caller's arena. */
const char *sim_text(struct sim_op *o, const char *s);
int sim_fail(struct sim_op *o, int code, const char *why, const struct wh_name *n);
/* Does the operation's work at once; 0 or a code with op->err. */
int sim_run(struct sim_op *o);
