/* Rows of kiln.run and friends as the core's structs. */
#pragma once
#include "services/planner/store/store_internal.h"

/* What run_read expects, from a table named r. */
#define RUN_COLUMNS                                                                                \
    "r.id, r.unit, r.load, r.epoch, r.state, r.trigger, r.force_refresh, r.reseed, r.take_over, "  \
    "to_json(r.source_names), "                                                                    \
    "r.run_context, r.request_id, r.event, r.plan, r.manifest, r.metadata, r.error, "              \
    "kiln.us(r.created_at), "                                                                      \
    "kiln.us(r.started_at), kiln.us(r.completed_at), r.stop_requested, r.trace"
enum { RUN_N_COLUMNS = 22 };

/* ERR_STORE_SCHEMA for a state this version does not know. */
int run_read(struct arena *a, const struct pgc_result *r, size_t row, struct row_run *out,
             struct err *e) MUST_USE;
int state_fault(const char *what, const char *state, struct err *e);
