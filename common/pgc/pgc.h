/* PostgreSQL client on the loop: bounded pools, pipelined batches, streamed rows, cancel off the
 * loop. Two implementations of the same interface: pgc_pq.c (libpq, the only libpq file) and
 * pgc_sim.c (scripted). */
#pragma once
#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/loop/loop.h"

struct pgc_pool;
struct pgc_conn; /* a session taken from a pool */
struct pgc_result;

struct pgc_settings {
    const char *conninfo; /* libpq key=value or URI text; copied. host may be a name: resolved off
                             the loop */
    unsigned max;         /* sessions at most; 0: 4 */
    struct ms connect_timeout; /* 0: 5 s */
    struct ms idle_close;      /* close sessions idle for so long; 0: never */
    const char *const
        *setup;         /* statements each new session runs first, NULL-terminated; NULL: none */
    const char *what;   /* for error texts: "run store", "connection 'pg'" */
    const char *secret; /* scrubbed from every error; NULL: none */
};
struct pgc_pool *pgc_pool_new(struct loop *l,
                              const struct pgc_settings *s) MUST_USE; /* connects on first use */
/* Fails waiting requests with ERR_SHUTDOWN, closes sessions when idle, then done. */
void pgc_pool_close(struct pgc_pool *p, void (*done)(void *data), void *data);
void pgc_pool_free(struct pgc_pool *p);
void pgc_pool_counts(const struct pgc_pool *p, unsigned *open, unsigned *busy, unsigned *waiting);

/* One statement of a batch. Parameters are text; NULL value = SQL NULL. Borrowed until done. */
struct pgc_stmt {
    const char *sql;
    const char *const *params;
    int n_params;
    const char *prepare_as; /* prepared under this name on the session once, then executed by name;
                               NULL: unnamed */
    bool stream; /* rows go to on_row one by one (single-row mode) instead of into the result */
    bool binary; /* ask for binary results */
    bool flush;  /* the server sends this answer at once, not with the batch's last: for a veto
                    before a long statement */
};
enum pgc_row_next {
    PGC_ROW_MORE,
    PGC_ROW_STOP
}; /* STOP: the rest is discarded and the statement is cancelled */
/* Statements sent together in one pipeline with one sync: one implicit transaction unless they say
 * BEGIN/COMMIT themselves. After an error the later ones do not run. */
struct pgc_batch {
    /* set by the caller */
    const struct pgc_stmt *stmts;
    size_t n;
    struct pgc_conn
        *on; /* run on this held session; NULL: any session of the pool, given back afterwards */
    struct ms timeout; /* cancels the running statement, then fails with ERR_TIMEOUT; 0: 30 s;
                          includes waiting for a session */
    bool read_only;    /* harmless to send twice: run again once when the session broke before any
                          answer (BEGIN .. READ ONLY is recognized) */
    /* The columns of a streamed statement, before its first row (or before on_result when it has
     * none). NULL: none. */
    void (*on_columns)(struct pgc_batch *b, size_t stmt, const struct pgc_result *r);
    enum pgc_row_next (*on_row)(
        struct pgc_batch *b, size_t stmt,
        const struct slice *cells); /* p == NULL: SQL NULL; valid during the call */
    /* Called when statement `stmt` ended well, before the later ones' results are looked at; lets a
     * caller veto streaming: a negative return ends the batch with that code. NULL: none. */
    int (*on_result)(struct pgc_batch *b, size_t stmt, const struct pgc_result *r);
    void (*done)(struct pgc_batch *b); /* on the loop, exactly once, never inside the start */
    void *data;
    /* set when done; results live until pgc_batch_fini */
    int rc;
    struct err err;       /* err.sqlstate is set when the server spoke */
    size_t failed_at;     /* statement that failed; n if none or unknown */
    bool unknown_outcome; /* the connection was lost after everything was sent: it may have been
                             committed */
    struct pgc_result **results; /* n of them; NULL where none */
    void *impl;
};
void pgc_batch_start(struct pgc_pool *p, struct pgc_batch *b);
/* Idempotent; repeats the cancel request until the statement ends; done comes with ERR_CANCELLED,
 * or with 0 when every statement had ended well before the request arrived (what was committed is
 * never called cancelled). The same holds for the timeout. */
void pgc_batch_cancel(struct pgc_batch *b);
void pgc_batch_fini(struct pgc_batch *b); /* frees results; b may be started again */

/* Results (text form unless binary was asked). */
size_t pgc_rows(const struct pgc_result *r);
size_t pgc_cols(const struct pgc_result *r);
struct slice pgc_cell(const struct pgc_result *r, size_t row, size_t col); /* p == NULL: SQL NULL */
const char *pgc_col_name(const struct pgc_result *r, size_t col);
uint32_t pgc_col_type(const struct pgc_result *r, size_t col); /* type oid */
int pgc_col_typmod(const struct pgc_result *r, size_t col);
uint64_t pgc_affected(const struct pgc_result *r);                   /* from the command tag */
int64_t pgc_i64(const struct pgc_result *r, size_t row, size_t col); /* 0 when NULL or no number */
const char *pgc_text(const struct pgc_result *r, size_t row,
                     size_t col); /* NULL when SQL NULL; NUL-terminated */
bool pgc_bool(const struct pgc_result *r, size_t row, size_t col);

/* Of a result taken out of a batch (its place set to NULL); NULL is fine. */
void pgc_result_free(struct pgc_result *r);

/* Describes a statement without running it (PQdescribePrepared): names, type oids, typmods of its
 * columns. Same rules as a batch. */
struct pgc_describe {
    const char *sql;
    struct ms timeout;
    void (*done)(struct pgc_describe *d);
    void *data;
    int rc;
    struct err err;
    struct pgc_result *result; /* columns only; freed by pgc_describe_fini */
    void *impl;
};
void pgc_describe_start(struct pgc_pool *p, struct pgc_describe *d);
void pgc_describe_cancel(struct pgc_describe *d);
void pgc_describe_fini(struct pgc_describe *d);

/* Holding a session over several batches (transactions). */
struct pgc_hold {
    struct ms timeout; /* for getting one; 0: 30 s */
    void (*done)(struct pgc_hold *h);
    void *data;
    int rc;
    struct err err;
    struct pgc_conn *conn; /* give back with pgc_give */
    void *impl;
};
void pgc_hold_start(struct pgc_pool *p, struct pgc_hold *h);
void pgc_hold_cancel(struct pgc_hold *h);
/* Gives a session back. broken: close it instead. A session left in a transaction is rolled back
 * before anyone else gets it. */
void pgc_give(struct pgc_conn *c, bool broken);
int pgc_conn_pid(const struct pgc_conn *c); /* server process id */

/* SQLSTATE -> our code: transient 40P01 40001 57P01-03 08xxx 53xxx; 55P03 ERR_TARGET_BUSY; 42P01
 * 3F000 missing; 42501 28xxx denied; 57014 ERR_CANCELLED; everything else ERR_WH_SQL. */
int pgc_code_of(const char *sqlstate);
/* "a"."b": every dot segment of an already split name quoted. */
void pgc_quote_ident(struct buf *out, struct slice name);
void pgc_quote_literal(struct buf *out, struct slice text);
/* A setting inside a connection string or URI ("host", "password", ..); NULL when absent or the
 * string does not parse. The caller frees. */
char *pgc_conninfo_value(const char *conninfo, const char *key) MUST_USE;
/* Appends key='value' to a connection string in the making. */
void pgc_conninfo_add(struct buf *out, const char *key, const char *value);
