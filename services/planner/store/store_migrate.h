/* The numbered migrations: which are applied, which must still run (protocol.md; design.md 4). */
#pragma once
#include "common/err/err.h"
#include "services/planner/store/store_sql.h"

/* Makes schema and table of the migrations when they are not there, and reads what is applied
 * (statement migrate_look_at). */
enum { MIGRATE_LOOK_AT = 2 };
void migrate_look_stmts(struct store_stmts *b);
/* How many are applied. ERR_STORE_SCHEMA: one was changed after it was applied, or the store
 * belongs to a newer Kiln. */
int migrate_check(const struct pgc_result *applied, size_t *n, struct err *e) MUST_USE;
size_t migrate_count(void);
/* The statements of migration `at` (from 0) and its record. Run as one transaction. */
void migrate_stmts(struct store_stmts *b, size_t at);
