/* One vtable over every engine (protocol.md 13). Operations live in the caller's struct; done comes
 * on the loop, once, later. */
#pragma once
#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/crypto.h"
#include "common/loop/loop.h"

enum wh_class { WH_CLASS_IN_PLACE = 1, WH_CLASS_BY_BINDING = 2 };
enum { WH_CAN_RESOLVE = 1, WH_CAN_PROGRESS = 2, WH_CAN_RECEIPT = 4 };

struct wh; /* an engine connection: pool and settings */
struct wh_ops;
struct wh_column {
    const char *name;
    const char *data_type;    /* as information_schema / format_type spells it; arrays "ARRAY" */
    const char *element_type; /* of arrays, else NULL */
    bool nullable;
};
struct wh_columns {
    struct wh_column *items;
    size_t n;
};
/* What the fence row (or comment, or root) says about a target (protocol.md 3). */
struct wh_fence {
    bool exists; /* there is a fence row */
    struct uuid owner;
    uint64_t claim, published;
    const char *generation, *build_id; /* NULL when nothing is published */
    int64_t rows;
    int64_t data_as_of_us; /* unix microseconds; 0 unknown */
    bool still_there;      /* relid is the relation's oid now */
};
/* A physical name, split: schema and table as the engine stores them. */
struct wh_name {
    const char *schema; /* "" for an undotted name: resolved to the current schema by catalog */
    const char *table;
};
struct wh_relation {     /* answer of catalog about one target name */
    struct wh_name name; /* schema filled in */
    char kind; /* 0 nothing there, 'r' ordinary table, 'p' partitioned, 'v' view, 'm' matview, 'f'
                  foreign, .. */
    bool schema_exists, schema_writable;
    bool is_empty; /* table without rows */
    uint64_t oid;
    const char *const
        *dependents; /* "view public.v", "foreign key on public.child", ..; n_dependents of them */
    size_t n_dependents;
    const char *const *cannot_carry; /* "column grants", "check constraint c", ..: refused by name
                                        until carried (decisions 7.4) */
    size_t n_cannot_carry;
    struct wh_fence fence;
};
struct wh_file { /* of a generation */
    const char *name;
    uint64_t bytes;
};
struct wh_facts {
    uint64_t rows, bytes;
    struct wh_file *files; /* build, by binding */
    size_t n_files;
    struct wh_columns columns;
    int64_t data_as_of_us;         /* read in the warehouse at the start of the build statement */
    struct wh_fence fence;         /* probe, resolve */
    struct wh_relation *relations; /* catalog_targets: one per name asked, same order */
    size_t n_relations;
    struct wh_columns
        *schemas; /* catalog_tables: one per path; .n == 0 with schema_errors[i] set when missing */
    const char **schema_errors;
    size_t n_schemas;
};
struct wh_op;
typedef void (*wh_done_fn)(struct wh_op *op);
struct wh_op {
    /* set by the caller */
    struct wh *wh;
    struct arena *arena; /* results live here */
    struct ms timeout;   /* 0: the operation's default of protocol.md 10 */
    void *data;
    wh_done_fn done;
    /* set when done */
    int rc;
    struct err err;
    struct wh_facts facts;
    void *impl;
};
struct wh_table { /* one target */
    struct wh_name name;
    const char *target_key; /* the fence row's key: the bare table name (decisions 7.1) */
    struct uuid owner;      /* our installation */
    const char *generation; /* probe: must be this one; NULL: any */
    const char *build_id;   /* probe: must be this one; NULL: any */
};
struct wh_build {
    struct wh_table table;
    uint64_t token;  /* staging is _kiln_<token> in the same schema */
    const char *sql; /* the query whose rows the table gets */
    const uint64_t
        *earlier; /* tokens of earlier attempts of this job: their staging is dropped first */
    size_t n_earlier;
    const char *tag; /* leading SQL comment, "" none */
};
struct wh_publish {
    struct wh_table table; /* generation and build_id are what gets published */
    uint64_t token;
    int64_t rows, data_as_of_us;
    bool take_over; /* a foreign ordinary table may be replaced (decisions 7.2) */
};
struct wh_sweep {
    const char *const *schemas; /* where to look; by binding: none means everywhere */
    size_t n_schemas;
    const uint64_t *live; /* tokens of live attempts */
    size_t n_live;
    int64_t older_than_us; /* tokens below this are orphans (the token is a time) */
    /* By binding: all live attempts' and recorded generations; what is none of them and older (an
     * id is a time, too) is an orphan. NULL is refused there: no record is not an empty record. */
    const char *const *generations;
    size_t n_generations;
};
struct wh_receipt { /* what to check and say about one baked table in a query (protocol.md 7) */
    struct wh_name name;
    const char *build_id; /* compiled against */
    struct uuid root;     /* by binding: the generation root it stands in; all zero: unknown */
    /* filled from the fence row in the query's own transaction */
    bool ok;
    bool out_of_reach; /* this process does not reach where results lie: it says nothing of them */
    const char *generation;
    uint64_t published;
    int64_t data_as_of_us;
};
/* Where a query's rows go. Loop thread. */
struct wh_sink {
    void *data;
    int (*on_columns)(
        void *data,
        const struct wh_columns *cols); /* before the first row; negative: end with it */
    int (*on_row)(void *data,
                  const struct slice
                      *cells); /* text form; negative: stop, the operation ends with that code */
};
struct wh_query {
    const char *sql;
    struct wh_receipt *baked; /* n_baked of them; 0: no transaction needed */
    size_t n_baked;
    bool read_only;  /* always for served queries: BEGIN READ ONLY */
    bool roll_back;  /* end with ROLLBACK: a caller's own SQL leaves no setting behind in a pooled
                        session */
    const char *tag; /* comment for the warehouse's own records; NULL or "": none */
    const char *correlation; /* names this one run there; NULL: none. read_only only */
    const char *prepare_as;  /* cache key for a prepared statement, NULL: none */
    bool json_rows; /* by binding: a row is one cell, the JSON object that row_to_json would make;
                       the in-place engines' statements do it themselves */
    uint64_t epoch; /* by binding, filled: of the bindings that the rows were read under */
};
struct wh_progress {
    const char *stage;
    uint64_t rows, bytes;
    double fraction; /* < 0 unknown */
};
struct wh_ops { /* one const table per engine; every starter reports only through done */
    const char *name;
    enum wh_class cls;
    uint32_t caps;
    void (*test)(struct wh_op *op); /* connects and says hello */
    /* Schemas of base tables by the author's path ("schema.table"), and relkind of each; missing
     * ones carry an error text. */
    void (*catalog_tables)(struct wh_op *op, const char *const *paths, size_t n);
    /* Everything the plan must know about target names (protocol.md 3 "Refused in the plan"). */
    void (*catalog_targets)(struct wh_op *op, const struct wh_name *names, size_t n);
    void (*describe)(struct wh_op *op,
                     const char *sql); /* columns of a statement, without running it */
    void (*probe)(struct wh_op *op, const struct wh_table *tables,
                  size_t n); /* facts.relations[i].fence; still this generation? */
    void (*build)(struct wh_op *op,
                  const struct wh_build *b); /* into staging; counts, describes, ANALYZE */
    void (*resolve)(struct wh_op *op, const struct wh_table *t, uint64_t token);
    void (*swap)(struct wh_op *op,
                 const struct wh_publish *p); /* only with a grant. ERR_FENCED, ERR_TARGET_BUSY,
                                                 ERR_WH_DEPENDENTS, ERR_WH_UNKNOWN_OUTCOME */
    void (*drop)(struct wh_op *op, const struct wh_table *t,
                 uint64_t token); /* fenced; gone already is success */
    void (*discard)(struct wh_op *op, const struct wh_table *t, const uint64_t *tokens,
                    size_t n); /* drops staging tables */
    void (*sweep)(struct wh_op *op,
                  const struct wh_sweep *s); /* facts.rows = how many were dropped */
    void (*query)(struct wh_op *op, struct wh_query *q,
                  struct wh_sink *sink); /* streamed; a baked table whose fence does not agree:
                                            nothing sent, ERR_STORE_MOVED; gone: ERR_WH_MISSING */
    void (*cancel)(struct wh_op *op);    /* idempotent; done still comes, with ERR_CANCELLED */
    void (*progress)(const struct wh_op *op, struct wh_progress *p); /* never waits */
    void (*close)(struct wh *wh, void (*done)(void *data),
                  void *data);   /* after the operations in flight; then wh_free */
    void (*free)(struct wh *wh); /* use wh_free */
};
struct wh {
    const struct wh_ops *ops;
    void *impl;
};
/* Settings of a connection as the environment's JSON has them. */
struct wh_settings {
    const char *name;        /* connection name, for texts */
    const char *type;        /* "postgres" */
    const char *config_json; /* the whole connection object; holds secrets */
    unsigned sessions;       /* pool size */
    bool builder;            /* a builder's sessions: idle_in_transaction 10 s, connection check 1 s
                                (protocol.md 3) */
    struct ms statement_timeout; /* 0: none */
};
/* Makes a connection; nothing is reached yet. ERR_WH_NO_DRIVER for engines without one, ERR_INVALID
 * for a bad object. */
int wh_open(struct loop *l, const struct wh_settings *s, struct wh **out, struct err *e) MUST_USE;
void wh_free(struct wh *wh);
/* Is there a driver for this connection type in this build? */
bool wh_has_driver(const char *type);
/* SQL dialect of a connection type ("postgres", "duckdb", "standardsql", ..) for the compiler;
 * NULL: unknown type. */
const char *wh_dialect(const char *type);
/* Identity digest of a connection: `fingerprint` verbatim, else over type, host, port, database,
 * user; never a password (spec 2.7). */
char *wh_digest(struct arena *a, const char *type, const char *config_json) MUST_USE;
/* The secret values in a connection object (password, connectionString's password, ..), for
 * scrubbing; NULL-terminated. */
const char **wh_secrets(struct arena *a, const char *config_json) MUST_USE;
/* "schema.table" or "\"s\".\"t\"" as an author wrote it -> name; -1 with e (bad quoting, three
 * parts of another database). */
int wh_name_parse(struct arena *a, const char *text, struct wh_name *out, struct err *e) MUST_USE;
/* Every segment double-quoted: "s"."t". */
char *wh_name_quoted(struct arena *a, const struct wh_name *n) MUST_USE;
