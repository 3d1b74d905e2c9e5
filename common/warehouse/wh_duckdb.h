/* DuckDB behind the warehouse interface, for builder and gateway. By binding: a build makes a
 * generation under the root, and the author's name is a view over the one that is bound.
 *
 * A handle (struct wh) belongs to one loop; the handles of one package share instance and views. A
 * table's `generation` is its ULID everywhere; `name.table` is the author's name, `name.schema` is
 * "" or "main". `swap` and `resolve` end with ERR_UNSUPPORTED. */
#pragma once
#include "common/duck/duck_pool.h"
#include "common/warehouse/warehouse.h"

/* A database that could not be attached; told when something misses it. */
struct wh_duckdb_lack {
    const char *name;
    int code;
    const char *text;
};
struct wh_duckdb_settings {
    const char *name;               /* connection name, for texts */
    struct duck_pool *pool;         /* the process's; outlives every handle */
    struct duck_instance *instance; /* the package's; referenced */
    const char *root;               /* generation root, absolute; NULL: builds are refused */
    const char *dataset;            /* the package's folder in it */
    struct uuid installation;
    uint64_t resident_bytes; /* small results up to so many bytes of files are read into memory when
                                they are bound; 0: none */
    const char *fault; /* why a data file is not here, told when something misses it; NULL: all are
                          here */
    const struct wh_duckdb_lack *lacks; /* copied */
    size_t n_lacks;
};
/* ERR_CONF: root or dataset that no file name can be made of. */
int wh_duckdb_open(struct loop *l, const struct wh_duckdb_settings *s, struct wh **out,
                   struct err *e) MUST_USE;
/* A handle for another loop (its thread, or any before that loop runs) on the same package. */
struct wh *wh_duckdb_share(struct loop *l, struct wh *of) MUST_USE;

/* Something is missing, or what was read of servers and roots is old: another one, opened now, may
 * do better. Any thread. */
bool wh_duckdb_is_lacking(const struct wh *wh);
bool wh_duckdb_is_outdated(const struct wh *wh);
/* The root is reachable again. Where names were left out for it, this one is outdated: what an
 * instance may read was settled when it was opened. Any thread. */
void wh_duckdb_root_is_back(struct wh *wh);

struct wh_duckdb_binding {
    const char *name; /* the author's */
    const char *generation, *build_id;
};
/* Exposes exactly these generations under their names, in one step between two queries; names of
 * before that are not among them go. An epoch not above the one in force changes nothing.
 * ERR_WH_MISSING (the generation is not there), ERR_GENERATION (it is not what was built): the
 * bindings in force stay. */
void wh_duckdb_bind(struct wh_op *op, const struct wh_duckdb_binding *bindings, size_t n,
                    uint64_t epoch);
/* The same, of a set whose other names are left out because the generation root is not reachable:
 * queries of them end with ERR_WH_MISSING and receipts that are out of reach. */
void wh_duckdb_bind_rest(struct wh_op *op, const struct wh_duckdb_binding *bindings, size_t n,
                         uint64_t epoch);
uint64_t wh_duckdb_epoch(const struct wh *wh); /* in force; any thread */
/* The FROM text of a table path as an author writes it: a quoted file name, an identifier path, or
 * a bare file name that is quoted then (as the compiler does). NULL: none of these. */
char *wh_duckdb_table(struct arena *a, const char *path) MUST_USE;
