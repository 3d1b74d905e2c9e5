/* What the files over duckdb.h share. */
#pragma once
#include "common/base/buf.h"
#include "common/base/list.h"
#include "common/base/map.h"
#include "common/duck/duck.h"
#include "common/duck/duck_type.h"

#include <duckdb.h>
#include <pthread.h>
#include <stdatomic.h>

/* What an instance has of its process's memory; under the budget's lock. */
struct duck_share {
    struct duck_budget *budget; /* NULL: none, the limit is fixed */
    struct list link;           /* in the budget's list of busy or idle ones */
    uint64_t bytes;
    unsigned running;       /* jobs, and the opening */
    bool is_trimmed;        /* since it last ran: to what it uses, */
    bool is_emptied;        /* and to as little as it can */
    struct duck_conn *conn; /* for moving the limit; NULL while it opens or closes */
};
struct duck_instance {
    atomic_uint refs;
    atomic_bool broken;
    char *what;
    duckdb_database db;
    pthread_mutex_t lock; /* of the list of idle connections */
    struct list idle;     /* struct duck_conn */
    unsigned connections; /* ordinary jobs at once */
    const char *const *forbidden;
    struct duck_share share;
    /* duck_pool's, under its lock */
    struct list jobs;    /* waiting: urgent ones first */
    struct list in_turn; /* in the pool's list of instances with work */
    unsigned running;    /* ordinary jobs */
    unsigned running_first;
};
struct duck_conn {
    struct duck_instance *instance;
    duckdb_connection con;
    struct list link;
    bool has_progress;
    struct map prepared; /* key -> struct duck_prepared */
    struct list by_use;  /* least lately used first */
};
struct duck_prepared {
    char *key; /* NULL: not kept */
    char *sql;
    duckdb_prepared_statement stmt;
    struct list link;
};
/* A connection for a job; there is always one for as many as the pool starts. */
struct duck_conn *duck_conn_take(struct duck_instance *i) MUST_USE;
void duck_conn_give(struct duck_conn *c);
int duck_conn_new(struct duck_instance *i, struct duck_conn **out, struct err *e) MUST_USE;
void duck_conn_free(struct duck_conn *c);

/* Before a caller's statement is bound, which some functions already act on: is it a SELECT without
 * a forbidden function? */
int duck_guard(struct duck_conn *c, const char *sql, struct err *e) MUST_USE;

/* A prepared statement, kept or new; released by duck_unprepare. */
int duck_prepare(struct duck_conn *c, const struct duck_query_ask *ask, struct duck_prepared **out,
                 struct err *e) MUST_USE;
void duck_unprepare(struct duck_prepared *p);
/* Gives up what idle connections and one's own (or NULL) keep prepared: a statement over CSV files
 * holds a buffer of 32 MiB for each. How many it were. */
size_t duck_conns_forget(struct duck_instance *i, struct duck_conn *own);

/* A share for an instance that is about to open, which counts as busy until it is joined: then the
 * connection is lent to move its limit by. ERR_QUERY_MEMORY: nothing is left. */
int duck_budget_join(struct duck_budget *b, struct duck_instance *i, struct err *e) MUST_USE;
void duck_budget_joined(struct duck_instance *i, struct duck_conn *conn);
/* Before its database closes: the connection comes back, NULL if there was none; and after. */
struct duck_conn *duck_budget_quit(struct duck_instance *i) MUST_USE;
void duck_budget_return(struct duck_instance *i);

/* An error of DuckDB as one of ours: one sentence without the excerpt of the statement. Returns the
 * code. */
int duck_error(struct duck_instance *i, duckdb_error_type type, const char *text, struct err *e);

struct duck_type_row {
    const char *name;
    int keep;
};
struct duck_type {
    duckdb_type id;
    bool is_json; /* VARCHAR by the alias JSON */
    uint8_t width, scale;
    duckdb_type internal; /* of DECIMAL and ENUM */
    uint64_t size;        /* of ARRAY */
    const char **names;   /* of STRUCT and UNION; labels of ENUM */
    size_t n_names;
    struct duck_type **parts; /* what it consists of; UNION: its members */
    size_t n_parts;
};
struct duck_type *duck_type_of(struct arena *a, duckdb_logical_type type) MUST_USE;
bool duck_type_is_unnamed(const struct duck_type *t); /* a STRUCT without names */

/* A vector of a chunk, ready to be read. */
struct duck_vector {
    const struct duck_type *type;
    void *data;
    uint64_t *validity;
    struct duck_vector *parts;
};
/* Where values go. */
struct duck_out {
    struct buf *buf;
    bool is_json;
    struct err *err;
};
void duck_vector_read(struct arena *a, const struct duck_type *t, duckdb_vector v,
                      struct duck_vector *out);
bool duck_is_null(const struct duck_vector *v, uint64_t row);
/* The value at a row, which is not NULL in text form. 0 or a code with o->err. */
int duck_put(struct duck_out *o, const struct duck_vector *v, uint64_t row) MUST_USE;

struct duck_query {
    struct duck_conn *conn;
    struct duck_prepared *prepared;
    duckdb_pending_result pending;
    duckdb_result result;
    bool has_result;
    struct arena arena; /* types, names */
    struct duck_type **types;
    const char **names; /* and the names as JSON keys, with colon */
    struct slice *keys;
    size_t n_columns;
    /* the chunk in work */
    duckdb_data_chunk chunk;
    struct arena chunk_arena;
    struct duck_vector *vectors;
    uint64_t n_rows, row;
};
