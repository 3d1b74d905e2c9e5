/* The libpq driver's own session: connection, socket watch, and the pipeline in flight. */
#pragma once
#include "common/pgc/pgc_internal.h"
#include <libpq-fe.h>
#include <uv.h>

struct pgc_pq;
/* A poll handle of its own memory: it outlives the session until libuv has closed it. */
struct pgc_pq_watch {
    uv_poll_t poll;
    struct pgc_pq *pq; /* NULL once abandoned */
    int fd;
    int events;
};
struct pgc_pq_resolve; /* host names on their way to addresses */
struct pgc_pq_cancel;  /* a cancel request on the thread pool */

enum pgc_pq_slot_kind { PGC_PQ_PREPARE, PGC_PQ_EXEC, PGC_PQ_DESCRIBE };
/* One command of the pipeline; the sync that ends it is not listed. */
struct pgc_pq_slot {
    enum pgc_pq_slot_kind kind;
    size_t stmt;
    struct pgc_prepared *preparing; /* PREPARE of a named statement; freed unless it succeeds */
    bool has_columns;               /* on_columns was told */
};
struct pgc_pq {
    struct pgc_conn *c;
    PGconn *pg; /* NULL: not yet, or killed */
    struct pgc_pq_watch *watch;
    struct pgc_pq_resolve *resolve;
    struct pgc_pq_cancel *cancel;
    unsigned watches; /* handles that libuv has not closed yet */
    bool connecting, closing;
    bool is_dead;            /* a FATAL came or the socket ended */
    struct loop_task report; /* opened (failed) or closed, on the next turn */
    int open_rc;
    struct err open_err;
    /* the pipeline in flight */
    struct pgc_work *work; /* NULL: none */
    struct pgc_pq_slot *slots;
    size_t n_slots, cap_slots, at;
    bool flushed;               /* everything went into the socket */
    struct loop_task send_fail; /* sending failed at once */
    struct slice *cells;        /* scratch for a row */
    size_t cap_cells;
};

void pgc_pq_watch_set(struct pgc_pq *q, int events); /* 0: stop; follows the connection's socket */
void pgc_pq_watch_drop(struct pgc_pq *q);
void pgc_pq_report_if_closed(struct pgc_pq *q);
/* Connecting: pgc_pq_connect.c. */
void pgc_pq_connect(struct pgc_pq *q);
void pgc_pq_connect_on_socket(struct pgc_pq *q, int status);
void pgc_pq_resolve_abandon(struct pgc_pq *q);
/* Host names of a connection string resolved on libuv's threads, see pgc_pq_resolve.c. done: later,
 * on the loop. */
void pgc_pq_resolve_start(struct pgc_pq *q, const char *conninfo,
                          void (*done)(struct pgc_pq *q, int rc, const struct err *e,
                                       char *conninfo_taken));
/* Running: pgc_pq_batch.c. */
void pgc_pq_run(struct pgc_conn *c, struct pgc_work *w);
void pgc_pq_batch_on_socket(struct pgc_pq *q, int status, int events);
void pgc_pq_batch_drop(struct pgc_pq *q); /* forgets the pipeline without a report */
/* Cancelling: pgc_pq_cancel.c. */
void pgc_pq_cancel_start(struct pgc_conn *c);
void pgc_pq_cancel_abandon(struct pgc_pq *q);
/* PGresult as struct pgc_result; takes it. */
struct pgc_result *pgc_pq_result(PGresult *res);
/* One line out of libpq's message: no line breaks, no trailing blanks. */
void pgc_pq_flatten(const char *message, struct buf *out);
