/* Packages' DuckDB, their own and on duckdb connections of the environment: the main loop opens and
 * binds them, each worker has a handle of its own (protocol.md 7, 14). */
#pragma once
#include "common/sandbox/sandbox.h"
#include "services/gateway/conns.h"

/* ---- port_duck.c: a worker asks for a package's sandbox, with the package's bindings in it ----
 */
struct gw_box_get {
    struct gw_package *package; /* the caller's count; NULL: nobody's, and nothing is bound */
    const char *connection;     /* all borrowed until done */
    const char *digest;         /* NULL: the package's own */
    const char *version;        /* with digest */
    const struct wh_attached *attached;
    size_t n_attached;
    bool is_alone; /* sandbox.h */
    void (*done)(struct gw_box_get *q);
    void *data;
    int rc;
    struct err err;
    struct sandbox *box; /* to be given back by gw_box_give */
    /* its own */
    struct gw_errand errand;
    struct sandbox_get get;
    struct wh_op op;
    struct wh_duckdb_binding *bindings;
    size_t n_bindings;
    struct uuid root; /* that they stand in; all zero: unknown */
    struct err root_err;
    struct offload_job job;
    struct arena arena;
};
void gw_box_get_start(struct gw_worker *w, struct gw_box_get *q);
void gw_box_give(struct gw_worker *w, struct sandbox *box);

/* ---- boxes.c: a worker's handles, by load. Its loop ---- */
struct gw_boxes;
struct gw_boxes *gw_boxes_new(struct gw_worker *w);
/* As gw_conn_get_start: of the package's own DuckDB (c == NULL), or of a duckdb connection, which
 * may go once this returns. */
void gw_boxes_get(struct gw_worker *w, struct gw_conn_get *q, const struct gw_conn *c);
bool gw_boxes_put(struct gw_worker *w, struct wh *wh); /* false: not one of these */
/* All were put back; closed comes later. */
void gw_boxes_close(struct gw_worker *w, void (*closed)(struct gw_worker *w));

/* ---- duck.c: the process's ---- */
int gw_duck_start(struct service *s, struct err *e);
void gw_duck_close(struct service *s);
