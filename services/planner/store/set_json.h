/* Binding sets and columns as JSON: what the coordinator reads back from kiln.binding_set.bindings
 * and kiln.generation.columns. */
#pragma once
#include "common/err/err.h"
#include "services/planner/core/rows.h"

/* {"bindings": [..], "unbaked": [..]}: unit, epoch, load, run and cause are columns of their own.
 * In the arena. */
const char *set_json_text(struct arena *a, const struct core_binding_set *set);
/* Fills bindings and unbaked. ERR_STORE_SCHEMA when the text is none of ours. */
int set_json_parse(struct arena *a, struct slice text, struct core_binding_set *out,
                   struct err *e) MUST_USE;
const char *columns_json_text(struct arena *a, const struct core_columns *columns);
int columns_json_parse(struct arena *a, struct slice text, struct core_columns *out,
                       struct err *e) MUST_USE;
