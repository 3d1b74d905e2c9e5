/* What the store_*.c files share: the store, one request on any session, the commit queue on the
 * held session. */
#pragma once
#include "common/pgc/pgc.h"
#include "services/planner/store/store.h"
#include "services/planner/store/store_sql.h"

enum { STORE_INSTANCE_MAX = 128 };

/* What is in flight on the held session: rows of several commits in one transaction, or one load of
 * the coordinator. */
struct store_queue {
    struct list waiting; /* struct commit_item, in the order of the calls */
    struct list in_flight;
    struct arena arena; /* statements of what is in flight */
    struct store_stmts stmts;
    struct pgc_batch batch;
    bool busy;
    struct loop_task kick;
    struct list refused; /* given while not leading: fail on the next turn */
};
/* One try to become the leader: a flow of its own, started again by a timer. */
struct store_compete {
    struct flow flow;
    struct pgc_hold hold;
    struct pgc_batch batch;
    struct store_stmts stmts;
    struct pgc_conn *conn; /* given back at the end unless the leadership was won */
    size_t next_migration;
    bool locked, won, is_running;
    uint64_t term, beat;
    bool takes; /* the leader may be replaced */
};
struct store {
    struct loop *loop;
    struct store_events ev;
    struct pgc_pool *pool;
    struct pgc_pool
        *beat_pool; /* one session for renewing, which must never wait behind large requests */
    char *url, *instance;
    struct uuid boot;
    struct ms renew_every, takeover;
    store_pack_fn pack;
    void *pack_data;

    bool migrated, leading, closing, is_pool_closing;
    int told_state; /* -1 nothing yet, 0 down, 1 up */
    uint64_t term;  /* ours, while leading */
    struct uuid installation;
    uint64_t config_epoch;
    struct pgc_conn *conn; /* held while leading: the session of the commits */
    int lost_code;         /* losing: waits for what is in flight */
    char lost_why[ERR_TEXT_MAX];

    struct store_compete compete;
    uint64_t seen_term, seen_beat; /* of another leader, since seen_at */
    struct ms seen_at, backoff;
    struct loop_timer again;
    struct loop_timer renew_timer;
    struct pgc_batch renew;
    struct arena renew_arena;
    bool is_renewing;
    struct pgc_batch give_up;
    bool is_giving_up;
    struct store_queue queue;
    void (*closed)(void *data);
    void *closed_data;
};

/* ---- store.c ---- */
/* Leadership is over: everything that waits fails, the session is closed, on_lost is called, and a
 * new try begins soon. */
void store_lose(struct store *s, int code, const char *why);
void store_lost_now(struct store *s); /* second half, once nothing is in flight */
void store_tell_state(struct store *s, bool ok, const char *why);
void store_close_step(struct store *s); /* goes on closing when something ended */

/* ---- store_compete.c ---- */
void compete_start(struct store *s);
void store_won(struct store *s); /* store.c: called when the flow ended with the leadership */
void store_retry(struct store *s, bool failed); /* store.c: soon, later each time it failed */

/* ---- store_commit.c ---- */
void queue_init(struct store *s);
void queue_close(struct store *s); /* what waits fails with ERR_SHUTDOWN on the next turn */
void queue_fini(struct store *s);
void queue_kick(struct store *s);
void queue_fail(struct store *s, int code, const char *why); /* everything that waits */
struct commit_item {
    struct list link;
    struct store *s;
    struct store_op *op;
    const struct rows *rows; /* NULL: alone, with build and finish */
    void (*build)(struct commit_item *it, struct store_stmts *stmts);
    int (*finish)(struct commit_item *it,
                  const struct pgc_batch *b); /* results start at 1: 0 is the guard */
    struct coord *coord;
    struct coord_now now;
};
struct commit_item *queue_add(struct store *s, struct store_op *op);

/* ---- store_rows.c ---- */
void row_stmts(struct store *s, struct store_stmts *b, const struct row *r);

/* ---- store_upkeep.c ---- */
void answer_stmts(struct store_stmts *b, const struct store_answer *a);

/* ---- store_req.c ---- */
/* One request on any session: statements, then finish looks at the results. Lives in the op's
 * arena. */
struct store_req {
    struct store *s;
    struct store_op *op;
    struct store_stmts stmts;
    struct pgc_batch batch;
    int (*finish)(struct store_req *r); /* gives op->rc; NULL: 0 */
    void *out;
    size_t *n;
    uint64_t term; /* 0: reads only */
    struct loop_task refuse;
    uint64_t flag; /* the request's own */
};
struct store_req *req_read(struct store *s, struct store_op *op,
                           int (*finish)(struct store_req *)) MUST_USE;
/* Its first statement is the guard, its transaction the whole batch. */
struct store_req *req_write(struct store *s, struct store_op *op,
                            int (*finish)(struct store_req *)) MUST_USE;
void req_start(struct store_req *r);
const struct pgc_result *req_result(const struct store_req *r,
                                    size_t stmt); /* counted with the guard */
void add_guard(struct store *s, struct store_stmts *b);
/* Our code for what a batch ended with, with a sentence in *e. */
int store_fault(const struct pgc_batch *b, struct err *e);
