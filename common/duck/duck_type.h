/* Types of DuckDB: how each is spelled in SQL and how a generation keeps it exactly
 * (decisions 2.3). The table is duck_types.def. */
#pragma once
#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/duck/duck.h"

/* How HUGEINT is kept in a file: it has no Parquet type of its own. */
enum duck_wide { DUCK_WIDE_BIGINT, DUCK_WIDE_DECIMAL };

/* As a CAST takes it; field names always quoted. */
void duck_type_sql(const struct duck_type *t, struct buf *out);
/* The type that Parquet keeps without loss, or the same. ERR_UNSUPPORTED names what cannot be
 * kept. */
int duck_type_stored(const struct duck_type *t, enum duck_wide wide, struct buf *out,
                     struct err *e) MUST_USE;
bool duck_type_is_wide(const struct duck_type *t); /* holds a HUGEINT or UHUGEINT somewhere */

/* The rows of the table, for documentation and tests. */
struct duck_type_doc {
    const char *name; /* as duckdb_types() spells logical_type */
    const char *text, *json, *stored;
};
const struct duck_type_doc *duck_type_docs(size_t *n);
