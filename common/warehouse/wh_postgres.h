/* PostgreSQL behind the warehouse interface: one connection, and what its operations share. */
#pragma once
#include "common/base/map.h"
#include "common/flow/flow.h"
#include "common/pgc/pgc.h"
#include "common/warehouse/warehouse.h"

int wh_postgres_open(struct loop *l, const struct wh_settings *s, struct wh **out,
                     struct err *e) MUST_USE;

struct wh_pg {
    struct wh base;
    struct loop *loop;
    struct pgc_pool *pool;
    char *name;
    struct map types; /* oid -> struct wh_pg_type */
    unsigned ops;     /* in flight */
    bool closing;
    void (*on_closed)(void *data);
    void *closed_data;
};

/* A type as the catalog spells it: domains unwrapped, arrays by their element. */
struct wh_pg_type {
    char *data_type;
    char *element_type; /* NULL: no array */
};

enum wh_pg_wait { WH_PG_NOTHING, WH_PG_BATCH, WH_PG_HOLD, WH_PG_DESCRIBE, WH_PG_SLEEP };
/* One operation in flight: a flow with a session, the batch it waits for, and the statements in the
 * making. */
struct wh_pg_op {
    struct flow flow;
    struct wh_op *op;
    struct wh_pg *pg;
    struct arena *arena; /* the caller's, for results */
    const char *stage;
    struct ms until; /* of the whole operation; MS_NONE: no limit */
    enum wh_pg_wait waits_for;
    struct pgc_batch batch; /* the last one; its results stay until the next */
    struct pgc_hold hold;
    struct pgc_describe describe;
    struct loop_timer sleep;
    struct pgc_conn *conn; /* held, or NULL */
    bool conn_is_broken;
    struct pgc_stmt *stmts; /* in the flow's arena */
    size_t n_stmts, cap_stmts;
    /* types that a describe or catalog meets */
    uint32_t *oids;
    size_t n_oids;
};

/* Starts an operation of `size` bytes whose first member is struct wh_pg_op. */
void *wh_pg_op_start(struct wh_op *op, size_t size, const struct flow_type *type,
                     struct ms default_timeout) MUST_USE;
struct wh_pg_op *wh_pg_op_of(struct flow *f);
void wh_pg_cancel_wait(struct flow *f);        /* for step tables */
enum flow_next wh_pg_step_end(struct flow *f); /* the END of every flow */

/* Statements of the next batch. Parameters are text arrays of the flow's arena. */
void wh_pg_clear(struct wh_pg_op *o);
void wh_pg_add(struct wh_pg_op *o, const char *fmt, ...) PRINTF_LIKE(2, 3);
void wh_pg_add_params(struct wh_pg_op *o, const char *sql, size_t n, const char *const *params);
/* A fixed text, planned once per session: the catalog's joins cost more to plan than to run. */
void wh_pg_add_prepared(struct wh_pg_op *o, const char *name, const char *sql, size_t n,
                        const char *const *params);
/* Sends them, on the held session or on any; the flow waits. */
enum flow_next wh_pg_run(struct wh_pg_op *o);
enum flow_next wh_pg_describe_start(struct wh_pg_op *o, const char *sql);
enum flow_next wh_pg_take_session(struct wh_pg_op *o);
enum flow_next wh_pg_sleep(struct wh_pg_op *o, struct ms span);
/* A wait is over: 0, or the operation ends with its error at step `end`. Also a cancel that came
 * too late ends here. */
bool wh_pg_failed(struct wh_pg_op *o, unsigned end);
/* Ends with an error that names the target. */
enum flow_next wh_pg_fail(struct wh_pg_op *o, unsigned end, int code, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* The sentence of the wait that failed, without the connection's name that wh_pg_fail puts in
 * front. */
const char *wh_pg_cause(const struct wh_pg_op *o);
const struct pgc_result *wh_pg_result(const struct wh_pg_op *o, size_t stmt);
/* Text of a cell copied into the caller's arena; NULL stays NULL. */
const char *wh_pg_copy(struct wh_pg_op *o, const struct pgc_result *r, size_t row, size_t col);

/* Names as SQL text in the flow's arena. */
const char *wh_pg_quoted(struct wh_pg_op *o, const struct wh_name *n); /* "s"."t" */
const char *wh_pg_staging(struct wh_pg_op *o, const char *schema, uint64_t token);
const char *wh_pg_fence(struct wh_pg_op *o, const char *schema);
const char *wh_pg_literal(struct wh_pg_op *o, const char *text); /* 'text', NULL gives NULL */
/* The comment of a tag, "" without one. */
const char *wh_pg_tag(struct arena *a, const char *tag) MUST_USE;
/* {"a","b"} for a text[] parameter. */
const char *wh_pg_array(struct arena *a, const char *const *items, size_t n);
const char *wh_pg_create_fence(struct wh_pg_op *o, const char *schema);
/* "someone else made it" (protocol.md 3). */
bool wh_pg_is_exists_error(const struct err *e);
/* Columns target,owner,claim,published,generation,build_id,row_count,data_as_of,relid, still there;
 * from column `col`. */
#define WH_PG_FENCE_COLUMNS                                                                        \
    "f.owner, f.claim, f.published, f.generation, f.build_id, f.row_count, "                       \
    "(extract(epoch FROM f.data_as_of) * 1000000)::bigint"
enum { WH_PG_FENCE_N = 7 };
void wh_pg_read_fence(struct wh_pg_op *o, const struct pgc_result *r, size_t row, size_t col,
                      struct wh_fence *out);

/* Types: wh_postgres_types.c. */
void wh_pg_types_init(struct wh_pg *pg);
void wh_pg_types_fini(struct wh_pg *pg);
const struct wh_pg_type *wh_pg_type_get(const struct wh_pg *pg, uint32_t oid);
/* Notes the unknown ones among oids met; true when a statement was added that asks for them. */
void wh_pg_types_note(struct wh_pg_op *o, uint32_t oid);
bool wh_pg_types_ask(struct wh_pg_op *o);
void wh_pg_types_learn(struct wh_pg_op *o, const struct pgc_result *r);
struct wh_column wh_pg_column(struct arena *a, const struct wh_pg *pg, const char *name,
                              uint32_t oid, bool nullable);
void wh_pg_columns_of(struct arena *a, const struct wh_pg *pg, const struct pgc_result *r,
                      struct wh_columns *out);

/* Looking at targets: wh_postgres_look.c; used by catalog_targets and repeated by the swap.
 * Statements for `n` names are added: what stands there, and (a probe does without) what depends on
 * it and what cannot be carried. wh_pg_look_read takes their answers, from statement `first`. */
enum { WH_PG_LOOK_STMTS = 3 };
void wh_pg_look_add(struct wh_pg_op *o, const struct wh_name *names, size_t n);
void wh_pg_look_read(struct wh_pg_op *o, size_t first, struct wh_relation *out, size_t n,
                     bool *has_fence);
void wh_pg_glance_add(struct wh_pg_op *o, const struct wh_name *names, size_t n);
void wh_pg_glance_read(struct wh_pg_op *o, size_t first, struct wh_relation *out, size_t n,
                       bool *has_fence);
/* Refuses a target for what stands at its name: 0, or the flow has moved to its END with the
 * sentence. */
int wh_pg_refuse(struct wh_pg_op *o, unsigned end, const char *target,
                 const struct wh_relation *rel) MUST_USE;
/* Without rows, surely: row security could hide some. Format: the table as a literal, again, and as
 * an identifier. */
#define WH_PG_IS_EMPTY                                                                             \
    "SELECT pg_relation_size(%s) = 0 OR (NOT row_security_active(%s) AND NOT EXISTS (SELECT FROM " \
    "%s))"
/* RESOLVE of protocol.md 3 as one statement, and its answer. */
void wh_pg_resolve_add(struct wh_pg_op *o, const struct wh_table *t, uint64_t token);
void wh_pg_resolve_read(struct wh_pg_op *o, size_t stmt, struct wh_fence *out);
/* A copy whose texts live in the caller's arena. */
struct wh_table wh_pg_table_copy(struct arena *a, const struct wh_table *t);
/* A lock that was not had: worth another try after a pause. */
bool wh_pg_is_lock_error(const struct err *e);
struct ms wh_pg_lock_pause(void); /* 50-500 ms, random */
#define WH_PG_LOCKS_MS 60000      /* a swap or drop tries for so long */
#define WH_PG_LOCKS_GRACE_MS 5000 /* and its last try may end by its lock timeout, not by ours */

/* What a swap carries over: wh_postgres_carry.c. One statement is added whose rows are (phase,
 * sql). */
void wh_pg_carry_add(struct wh_pg_op *o, const struct wh_name *target, uint64_t token);

void wh_pg_test(struct wh_op *op);
void wh_pg_catalog_tables(struct wh_op *op, const char *const *paths, size_t n);
void wh_pg_catalog_targets(struct wh_op *op, const struct wh_name *names, size_t n);
void wh_pg_describe(struct wh_op *op, const char *sql);
void wh_pg_probe(struct wh_op *op, const struct wh_table *tables, size_t n);
void wh_pg_build(struct wh_op *op, const struct wh_build *b);
void wh_pg_resolve(struct wh_op *op, const struct wh_table *t, uint64_t token);
void wh_pg_swap(struct wh_op *op, const struct wh_publish *p);
void wh_pg_drop(struct wh_op *op, const struct wh_table *t, uint64_t token);
void wh_pg_discard(struct wh_op *op, const struct wh_table *t, const uint64_t *tokens, size_t n);
void wh_pg_sweep(struct wh_op *op, const struct wh_sweep *s);
void wh_pg_query(struct wh_op *op, struct wh_query *q, struct wh_sink *sink);
void wh_pg_cancel(struct wh_op *op);
void wh_pg_progress(const struct wh_op *op, struct wh_progress *p);
/* A query is a single wait, no flow: it counts itself. */
void wh_pg_op_ended(struct wh_pg *pg);
