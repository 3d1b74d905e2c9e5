/* The databases that a connection of type duckdb attaches, as Publisher's configuration writes
 * them: PostgreSQL, or a DuckDB file. Attached to be read, never written. */
#pragma once
#include "common/base/arena.h"
#include "common/err/err.h"
#include "common/json/json.h"

struct wh_attached {
    const char *name; /* by which SQL names it: an identifier */
    const char *file; /* absolute path of a DuckDB database; NULL: PostgreSQL */
    const char *host, *port, *database, *user, *password; /* "": libpq's own default */
    const char *options; /* all else of the connection string; nothing secret */
};
/* Of {"duckdbConnection": {"attachedDatabases": [..]}}, in their order, in the arena. ERR_INVALID
 * names connection, entry, and what to write. */
int wh_attached_read(struct arena *a, const char *connection, const char *config_json,
                     struct wh_attached **out, size_t *n, struct err *e) MUST_USE;
struct wh_attached wh_attached_copy(struct arena *a, const struct wh_attached *from) MUST_USE;
/* What tells one attached database from another: no secret, sorted by name. */
void wh_attached_identity(struct buf *out, const json_t *config);
/* A configuration file's relative paths, made absolute against its directory. */
char *wh_attached_locate(struct arena *a, const char *config_json, const char *base_dir) MUST_USE;
