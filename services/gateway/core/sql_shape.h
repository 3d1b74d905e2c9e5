/* A caller's SQL statement: is it one that only reads, by its first word, and how its rows become
 * JSON. Pure. The warehouse has the last word: one statement, in a read-only transaction. */
#pragma once
#include "common/base/arena.h"

/* True when the first word is SELECT, WITH, VALUES or TABLE; *core is the statement without blanks
 * and semicolons around it. */
bool sql_is_select(struct slice text, struct slice *core) MUST_USE;
/* The same rows, each one JSON object in one column; limit 0: all of them. */
char *sql_rows_as_json(struct arena *a, struct slice core, int64_t limit) MUST_USE;
/* The same rows and no more than the limit; 0: all of them. */
char *sql_limited(struct arena *a, struct slice core, int64_t limit) MUST_USE;
