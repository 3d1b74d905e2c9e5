/* Inside of flow_run*.c: a requested run on its way to jobs. */
#pragma once
#include "services/planner/planner.h"

enum { RUN_TAKE, RUN_CATALOG, RUN_CHOOSE, RUN_SQL, RUN_PLANNED, RUN_END };

struct flow_run {
    struct flow flow;
    struct list link; /* in p->runs_planning */
    struct planner_work work;
    struct planner *p;
    struct run_preview *preview; /* NULL: a real run */
    char run[24];
    uint64_t unit_id;
    struct planner_load *load; /* counted */
    bool force_refresh, take_over, has_names;
    const char *trigger; /* NULL: a preview */
    const char *const *names;
    size_t n_names;
    bool *covered;
    bool *wanted; /* covered, or an uncovered parent whose table may be read */
    struct target_state *states;
    struct current_generation *generations;
    struct run_plan plan;
    size_t at;              /* connection or target that is being asked about */
    size_t *asked, n_asked; /* targets of the question in flight */
    struct wh_op wh;
    struct compiler_call call;
    Kiln__Mc__BuildSql build_sql;
    char *fail_text;
};

struct flow_run *run_of(struct flow *f);
bool run_gone(const struct flow_run *f); /* the planner gave its leadership up */
/* flow_run_ask.c: the CATALOG step */
enum flow_next run_step_catalog(struct flow *flow);
void run_cancel_ask(struct flow *flow);
/* The recorded result of a target whose name resolves to this; NULL: none. Borrowed for the turn.
 */
const struct core_generation *run_current(const struct flow_run *f, size_t target,
                                          const struct wh_name *name);
