/* A pool of sessions on a PostgreSQL of the program's own, and batches that wait for their end. */
#pragma once
#include "common/pgc/pgc.h"
#include "tests/support/pg_server.h"
#include "tests/support/turn.h"
#include <check.h>

#define PATIENCE 20000 /* ms a test waits for a condition before it fails */
#define turn_until(l, claim) turn_until_within(l, PATIENCE, claim)

extern struct pg_server server; /* of the program */
extern struct loop *loop;       /* of the test */
extern struct pgc_pool *pool;   /* of the test */

void open_pool(const char *conninfo, unsigned max, const char *const *setup);
void open_pool_of_two(void);
void close_pool(void);
void on_closed(void *data);        /* of pgc_pool_close: sets the bool it is given */
struct pgc_conn *hold(void);       /* a session, until pgc_give */
int64_t value_of(const char *sql); /* the first of its answer */

/* What a batch was told, and what it answers. */
struct told {
    int dones, columns, rows, results;
    size_t stop_after;
    int veto; /* on_result of statement veto_at */
    size_t veto_at;
    char last[64];
};
/* A batch that notes in t what it is told; the caller finishes it. */
struct pgc_batch batch_of(const struct pgc_stmt *stmts, size_t n, struct told *t);
void run_batch(struct pgc_batch *b); /* and waits for its end */
/* One statement without parameters; the caller finishes b. */
void run_sql(struct pgc_batch *b, struct told *t, const struct pgc_stmt *stmt);
