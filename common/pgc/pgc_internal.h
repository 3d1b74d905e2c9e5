/* What the pool, the requests and the two drivers of pgc share; nobody outside this folder includes
 * it. */
#pragma once
#include "common/base/map.h"
#include "common/pgc/pgc.h"

enum pgc_txn { PGC_TXN_IDLE, PGC_TXN_OPEN, PGC_TXN_FAILED, PGC_TXN_DEAD };

/* A prepared statement of one session: known to callers by their name, to the server by ours. */
struct pgc_prepared {
    struct list link; /* least recently used first */
    char *name;       /* the caller's */
    char *sql;
    char server_name[16];
};
struct pgc_prepared_set {
    struct map by_name;
    struct list lru;
    struct list dropped; /* to be deallocated when the session is tidied */
    size_t n;
    unsigned last; /* number of the last server name given */
};
#define PGC_PREPARED_MAX 200
void pgc_prepared_init(struct pgc_prepared_set *s);
void pgc_prepared_fini(struct pgc_prepared_set *s);
/* The entry when this very text is prepared under the name (and marks it used), else NULL. */
struct pgc_prepared *pgc_prepared_find(struct pgc_prepared_set *s, const char *name,
                                       const char *sql);
/* A new server name; the entry is not in the set until kept. */
struct pgc_prepared *pgc_prepared_new(struct pgc_prepared_set *s, const char *name,
                                      const char *sql);
void pgc_prepared_keep(struct pgc_prepared_set *s, struct pgc_prepared *p); /* the server has it */
void pgc_prepared_free(struct pgc_prepared *p);                             /* it has not */
void pgc_prepared_forget(struct pgc_prepared_set *s, const char *name);
/* Moves entries past the limit to `dropped`. */
void pgc_prepared_trim(struct pgc_prepared_set *s);

/* One thing a session does: the statements of a batch, a describe, or the pool's own set-up and
 * tidying. */
struct pgc_work {
    const struct pgc_stmt *stmts;
    size_t n;
    struct pgc_batch *batch;     /* whose callbacks hear of it; NULL: nobody's */
    bool describe;               /* stmts[0] is described, not run */
    struct pgc_result **results; /* n of them, or NULL: not kept */
    /* written by the driver */
    int rc;
    struct err err;
    size_t failed_at;
    bool answered;        /* some answer came */
    bool delivered;       /* a row reached the caller */
    bool mute;            /* vetoed, stopped or cancelled: what still comes is dropped */
    bool dropped;         /* a row was */
    bool unknown_outcome; /* lost after everything was sent */
};

enum pgc_req_kind { PGC_REQ_BATCH, PGC_REQ_DESCRIBE, PGC_REQ_HOLD };
/* A request of a caller, from its start to its done. */
struct pgc_req {
    enum pgc_req_kind kind;
    void *owner; /* struct pgc_batch, pgc_describe or pgc_hold */
    struct pgc_pool *pool;
    struct pgc_conn *conn; /* the session it runs on; NULL while it waits */
    struct list link;      /* in pool->waiting */
    struct loop_timer timer;
    struct loop_task task;
    struct pgc_work work;
    struct pgc_stmt describe_stmt;
    struct pgc_result *described;
    int asked; /* 0, or why it is being ended: ERR_CANCELLED, ERR_TIMEOUT, ERR_SHUTDOWN */
    bool retried, ended;
};

enum pgc_conn_state {
    PGC_CONN_OPENING, /* connecting and running the set-up statements */
    PGC_CONN_IDLE,
    PGC_CONN_BUSY, /* runs a request */
    PGC_CONN_HELD, /* a caller has it, nothing runs */
    PGC_CONN_TIDY, /* ROLLBACK and DEALLOCATE before the next one */
    PGC_CONN_CLOSING,
};
struct pgc_conn {
    struct pgc_pool *pool;
    void *drv; /* the driver's part */
    enum pgc_conn_state state;
    struct list link; /* pool->conns[state] */
    struct pgc_req *req;
    bool held, used, set_up, work_over;
    unsigned tidy_tries;
    struct pgc_work own;        /* set-up and tidying */
    struct pgc_stmt *own_stmts; /* allocated */
    char **own_texts;
    struct pgc_prepared_set prepared;
    struct loop_timer timer; /* connect timeout, or idle close */
    /* ending a running statement early */
    struct loop_timer cancel_timer;
    struct ms cancel_until;
    unsigned cancels_out; /* cancel requests on their way */
    bool cancelling;      /* since the work began */
};

/* How sessions reach a server. Every report comes on the loop, later, never inside the call. */
struct pgc_driver {
    void (*open)(struct pgc_conn *c);                    /* reports pgc_conn_opened */
    void (*run)(struct pgc_conn *c, struct pgc_work *w); /* reports pgc_conn_work_done */
    void (*cancel)(struct pgc_conn *c);                  /* reports pgc_conn_cancel_sent */
    void (*kill)(struct pgc_conn *c);  /* drops the connection now; running work is not reported */
    void (*close)(struct pgc_conn *c); /* kill, then reports pgc_conn_closed */
    bool (*alive)(struct pgc_conn *c); /* looked at before an idle session is used */
    enum pgc_txn (*txn)(const struct pgc_conn *c);
    int (*pid)(const struct pgc_conn *c);
};
extern const struct pgc_driver pgc_pq_driver;

struct pgc_pool {
    const struct pgc_driver *driver;
    void *driver_data;
    struct loop *loop;
    char *conninfo, *what, *secret;
    char *password; /* found in conninfo, for scrubbing; NULL: none */
    char **setup;   /* NULL-terminated, never NULL */
    unsigned max;
    struct ms connect_timeout, idle_close;
    struct list conns[PGC_CONN_CLOSING + 1];
    unsigned n_conns[PGC_CONN_CLOSING + 1];
    struct list waiting;
    size_t n_waiting, n_reqs;
    struct loop_timer reopen; /* opening failed while other sessions live */
    bool reopen_later;
    bool closing, closed;
    void (*on_closed)(void *data);
    void *closed_data;
    struct loop_task closed_task;
};
struct pgc_pool *pgc_pool_new_on(struct loop *l, const struct pgc_settings *s,
                                 const struct pgc_driver *driver, void *driver_data) MUST_USE;
void pgc_pool_dispatch(struct pgc_pool *p);
void pgc_pool_enqueue(struct pgc_req *r, bool first);
void pgc_pool_dequeue(struct pgc_req *r);
void pgc_pool_req_gone(struct pgc_pool *p); /* a request was freed */
void pgc_pool_scrub(const struct pgc_pool *p, struct err *e);

/* Sessions: pgc_conn.c. */
void pgc_conn_set_state(struct pgc_conn *c, enum pgc_conn_state state);
void pgc_conn_open(struct pgc_pool *p);
void pgc_conn_run(struct pgc_conn *c, struct pgc_work *w);
void pgc_conn_cancel(struct pgc_conn *c); /* ends the running work, repeating the request */
void pgc_conn_release(struct pgc_conn *c, bool broken);
void pgc_conn_close(struct pgc_conn *c);
/* Reports of drivers. */
void pgc_conn_opened(struct pgc_conn *c, int rc, const struct err *e);
void pgc_conn_work_done(struct pgc_conn *c);
void pgc_conn_cancel_sent(struct pgc_conn *c);
void pgc_conn_lost_idle(struct pgc_conn *c); /* the server went away while nothing ran */
void pgc_conn_closed(struct pgc_conn *c);    /* frees c */

/* Requests: pgc_request.c. */
void pgc_req_begin(struct pgc_req *r, struct pgc_conn *c); /* the session is the request's now */
void pgc_req_work_over(struct pgc_req *r);                 /* its work ended, session still there */
void pgc_req_fail(struct pgc_req *r, int rc, const struct err *e); /* done comes on the next turn */

/* Hearing of answers; for drivers. `c` is asked to cancel when the caller had enough. Result is
 * taken. */
void pgc_work_columns(struct pgc_conn *c, struct pgc_work *w, size_t stmt,
                      const struct pgc_result *r);
void pgc_work_row(struct pgc_conn *c, struct pgc_work *w, size_t stmt, const struct slice *cells);
void pgc_work_result(struct pgc_conn *c, struct pgc_work *w, size_t stmt, struct pgc_result *r);
void pgc_work_error(struct pgc_conn *c, struct pgc_work *w, size_t stmt, int code,
                    const char *sqlstate, const char *text);

/* Results, of either driver. */
struct pgc_result_ops {
    size_t (*rows)(const struct pgc_result *r);
    size_t (*cols)(const struct pgc_result *r);
    struct slice (*cell)(const struct pgc_result *r, size_t row, size_t col);
    const char *(*col_name)(const struct pgc_result *r, size_t col);
    uint32_t (*col_type)(const struct pgc_result *r, size_t col);
    int (*col_typmod)(const struct pgc_result *r, size_t col);
    uint64_t (*affected)(const struct pgc_result *r);
    void (*free)(struct pgc_result *r);
};
struct pgc_result {
    const struct pgc_result_ops *ops;
    void *impl;
};
