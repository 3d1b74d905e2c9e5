/* Questions about warehouses that only builders reach: describe and probe jobs (protocol.md 9).
 * Asked through the warehouse interface, as everywhere; handed out before all other jobs. Nothing
 * of them is stored: a planner that ends takes whoever asked along. */
#pragma once
#include "services/planner/planner.h"

/* A package's own DuckDB as the planner has it: catalog_tables, describe, probe and cancel, and no
 * other operation. It outlives its operations. */
struct wh *asked_wh_new(struct planner *p, const char *environment, const char *package,
                        const struct sha256 *version, const struct store_file *files,
                        size_t n_files) MUST_USE;
/* The package on the duckdb connections of its environment, kept and freed with its own. */
void asked_wh_add_others(struct wh *own, const struct plan_connection *connections, size_t n);
/* Its own or another one of them; NULL: the connection is none. */
struct wh *asked_wh_find(struct wh *own, const char *connection);
void asked_wh_free(struct wh *own); /* NULL is fine */

/* A builder pulls: has it a generation root, and if not, why ("": it has been given none)? */
void asked_note_root(struct planner *p, const char *builder, bool has_root, const char *why);
/* What a builder gets of them, at most max; a repeated request gets the same again. Borrowed:
 * to be packed before the loop turns. */
size_t asked_take(struct planner *p, const struct coord_builder *b, Kiln__Job **out, size_t max);
/* True when the token is a question's: its lease is renewed. */
bool asked_renew(struct planner *p, const struct coord_builder *b, uint64_t token);
/* True when the token is a question's: it is answered. */
bool asked_finish(struct planner *p, const Kiln__FinishJobReq *q);
