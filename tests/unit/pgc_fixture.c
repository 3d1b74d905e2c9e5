/* The fixture of the pgc tests. */
#include "tests/unit/pgc_fixture.h"

#include <stdio.h>

struct pg_server server;
struct loop *loop;
struct pgc_pool *pool;

void on_closed(void *data)
{
    *(bool *)data = true;
}

void open_pool(const char *conninfo, unsigned max, const char *const *setup)
{
    loop = loop_new();
    pool = pgc_pool_new(loop, &(struct pgc_settings){.conninfo = conninfo,
                                                     .max = max,
                                                     .setup = setup,
                                                     .what = "test store",
                                                     .secret = "hunter22"});
}

void close_pool(void)
{
    bool closed = false;
    pgc_pool_close(pool, on_closed, &closed);
    turn_until(loop, closed);
    pgc_pool_free(pool);
    loop_free(loop);
}

void open_pool_of_two(void)
{
    open_pool(pg_server_conninfo(&server, "postgres"), 2, NULL);
}

static void on_done(struct pgc_batch *b)
{
    ((struct told *)b->data)->dones++;
}

static void on_columns(struct pgc_batch *b, size_t stmt, const struct pgc_result *r)
{
    (void)stmt;
    ck_assert_uint_gt(pgc_cols(r), 0);
    ((struct told *)b->data)->columns++;
}

static enum pgc_row_next on_row(struct pgc_batch *b, size_t stmt, const struct slice *cells)
{
    (void)stmt;
    struct told *t = b->data;
    t->rows++;
    snprintf(t->last, sizeof t->last, "%.*s", SLICE_FMT(cells[0]));
    return t->stop_after && (size_t)t->rows >= t->stop_after ? PGC_ROW_STOP : PGC_ROW_MORE;
}

static int on_result(struct pgc_batch *b, size_t stmt, const struct pgc_result *r)
{
    (void)r;
    struct told *t = b->data;
    t->results++;
    return t->veto && stmt == t->veto_at ? t->veto : 0;
}

struct pgc_batch batch_of(const struct pgc_stmt *stmts, size_t n, struct told *t)
{
    return (struct pgc_batch){.stmts = stmts,
                              .n = n,
                              .on_columns = on_columns,
                              .on_row = on_row,
                              .on_result = on_result,
                              .done = on_done,
                              .data = t};
}

void run_batch(struct pgc_batch *b)
{
    struct told *t = b->data;
    int before = t->dones;
    pgc_batch_start(pool, b);
    ck_assert_int_eq(t->dones, before); /* never inside the start */
    turn_until(loop, t->dones > before);
}

void run_sql(struct pgc_batch *b, struct told *t, const struct pgc_stmt *stmt)
{
    *b = batch_of(stmt, 1, t);
    run_batch(b);
}

int64_t value_of(const char *sql)
{
    struct told t = {0};
    struct pgc_batch b;
    run_sql(&b, &t, &(struct pgc_stmt){.sql = sql});
    ck_assert_msg(b.rc == 0, "%s: %s", sql, err_text(&b.err));
    int64_t v = pgc_i64(b.results[0], 0, 0);
    pgc_batch_fini(&b);
    return v;
}

static void on_held(struct pgc_hold *h)
{
    *(int *)h->data += 1;
}

struct pgc_conn *hold(void)
{
    int held = 0;
    struct pgc_hold h = {.done = on_held, .data = &held};
    pgc_hold_start(pool, &h);
    ck_assert_int_eq(held, 0);
    turn_until(loop, held);
    ck_assert_msg(h.rc == 0, "%s", err_text(&h.err));
    return h.conn;
}
