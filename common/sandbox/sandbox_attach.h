/* Other databases in a sandbox: their statements, and the hold on their files. Blocking. */
#pragma once
#include "common/sandbox/sandbox.h"

/* A database file that nobody may write while it is attached. */
struct sandbox_hold {
    int fd; /* < 0: none */
    uint64_t device, inode;
    int64_t bytes, changed_ns;
};
/* A lock against writers, which outlives other descriptors of the process (DuckDB's own locks do
 * not: whoever closes the file first takes them all along). ERR_WH_CONNECT: it is missing, cannot
 * be read, or another process writes it. */
int sandbox_hold(const char *what, const struct wh_attached *at, struct sandbox_hold *out,
                 struct err *e) MUST_USE;
void sandbox_release(struct sandbox_hold *h);
/* Is there another file now, or was it changed? */
bool sandbox_hold_is_old(const struct sandbox_hold *h, const char *file);

/* Statements that attach it, NULL-terminated, in the arena; they hold its password. A server ends a
 * statement after the limit (0: never), unless the connection says other options. */
const char *const *sandbox_attach_statements(struct arena *a, const struct wh_attached *at,
                                             struct ms server_limit) MUST_USE;
/* What no statement may call beside attached databases. */
const char *const *sandbox_forbidden(void);
