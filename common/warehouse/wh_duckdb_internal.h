/* What the files of the DuckDB warehouse share. */
#pragma once
#include "common/generation/generation.h"
#include "common/warehouse/wh_duckdb.h"

#include <pthread.h>
#include <stdatomic.h>

/* A data file as it was when it was bound. */
struct duck_bound_file {
    const char *path;
    uint64_t inode;
    int64_t bytes, changed_ns;
};
/* The bindings in force: immutable, counted by whoever reads them. */
struct duck_bound {
    atomic_uint refs;
    uint64_t epoch;
    bool lacks_root; /* names are left out: the root was not reachable */
    struct arena arena;
    struct duck_bound_item {
        const char *name, *generation, *build_id;
        uint64_t token, rows, bytes;
        int64_t data_as_of_us;
        bool is_resident;
        struct duck_bound_file *files;
        size_t n_files;
    } * items;
    size_t n;
};
/* One package in this process. */
struct duck_package {
    atomic_uint refs; /* handles */
    char *name;
    struct duck_pool *pool;
    struct duck_instance *instance;
    char *root, *dataset; /* NULL: none */
    struct uuid installation;
    uint64_t resident_bytes;
    char *fault; /* NULL: all data files are here */
    struct wh_duckdb_lack *lacks;
    size_t n_lacks;
    struct arena lacks_arena;
    atomic_bool outdated;
    pthread_mutex_t lock;
    pthread_cond_t even;
    uint64_t sequence; /* odd while a swap of views commits */
    bool binding;      /* one bind at a time */
    struct duck_bound *bound;
};
struct wh_duck {
    struct wh base;
    struct loop *loop;
    struct duck_package *package;
    unsigned ops;
    bool closing;
    void (*on_closed)(void *data);
    void *closed_data;
    struct loop_task task;
};
/* One operation in flight. Arguments are copied; results lie in the scratch until done. */
struct duck_op {
    struct duck_job job;
    struct wh_op *op;
    struct wh_duck *wh;
    struct duck_package *package;
    struct arena scratch; /* the pool thread's while it works */
    struct wh_facts facts;
    _Atomic(const char *) stage;
    void (*before_done)(struct duck_op *o); /* on the loop */
    /* arguments */
    const char *sql;
    const char **paths;
    struct wh_table *tables;
    size_t n;
    uint64_t token;
    const uint64_t *tokens;
    size_t n_tokens;
    struct generation_record record;
    struct wh_duckdb_binding *bindings;
    uint64_t epoch;
    bool lacks_root;
    /* a query's */
    struct wh_query *query;
    struct wh_sink *sink;
    bool json_rows, read_only, columns_sent;
    const char *prepare_as;
    struct uuid *roots; /* of the tables */
    struct duck_bound *read_under;
    bool out_of_reach;
};
struct duck_op *duck_op_of(struct duck_job *job);
/* Copies nothing but checks and counts; the caller fills arguments, then calls duck_op_go. */
struct duck_op *duck_op_new(struct wh_op *op, const char *stage,
                            int (*work)(struct duck_job *job, struct duck_conn *conn,
                                        struct err *e)) MUST_USE;
void duck_op_go(struct duck_op *o, bool is_urgent, struct ms default_timeout);
const char *duck_op_text(struct duck_op *o, const char *text); /* into the scratch; NULL stays */
struct wh_table *duck_op_tables(struct duck_op *o, const struct wh_table *t, size_t n);
const uint64_t *duck_op_tokens(struct duck_op *o, const uint64_t *tokens, size_t n);

/* A server's tables are read once: they are other ones by now. */
bool duck_is_of_old_tables(const struct err *e);
/* DuckDB only says that there is no such file or database; if one could not be had, this says why.
 * Returns the code. */
int duck_tell_fault(struct duck_package *p, int rc, struct err *e);
/* Results out of the scratch into the caller's arena. */
void duck_facts_copy(struct arena *a, const struct wh_facts *from, struct wh_facts *to);

/* The generation a table names. ERR_ARG: it names none, or there is no root. */
int duck_ref_of(struct duck_op *o, const struct wh_table *t, struct generation_ref *out,
                struct err *e) MUST_USE;

struct duck_bound *duck_bound_get(struct duck_package *p); /* referenced */
void duck_bound_unref(struct duck_bound *b);
/* Are the files still those that were bound? ERR_WH_MISSING: someone else took or changed one. */
int duck_bound_check(const struct duck_package *p, const struct duck_bound_item *item,
                     struct err *e) MUST_USE;
const struct duck_bound_item *duck_bound_find(const struct duck_bound *b, const char *name);

void duck_wh_describe(struct wh_op *op, const char *sql);
void duck_wh_catalog_tables(struct wh_op *op, const char *const *paths, size_t n);
void duck_wh_catalog_targets(struct wh_op *op, const struct wh_name *names, size_t n);
void duck_wh_probe(struct wh_op *op, const struct wh_table *tables, size_t n);
void duck_wh_build(struct wh_op *op, const struct wh_build *b);
void duck_wh_drop(struct wh_op *op, const struct wh_table *t, uint64_t token);
void duck_wh_discard(struct wh_op *op, const struct wh_table *t, const uint64_t *tokens, size_t n);
void duck_wh_sweep(struct wh_op *op, const struct wh_sweep *s);
void duck_wh_query(struct wh_op *op, struct wh_query *q, struct wh_sink *sink);
