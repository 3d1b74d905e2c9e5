/* The frame of every PostgreSQL operation: a flow that waits for a session, a batch, a pause. */
#include "common/warehouse/wh_postgres.h"

struct wh_pg_op *wh_pg_op_of(struct flow *f)
{
    return container_of(f, struct wh_pg_op, flow);
}

static void on_batch(struct pgc_batch *b)
{
    struct wh_pg_op *o = b->data;
    o->waits_for = WH_PG_NOTHING;
    flow_resume(&o->flow, b->rc, &b->err);
}

static void on_hold(struct pgc_hold *h)
{
    struct wh_pg_op *o = h->data;
    o->waits_for = WH_PG_NOTHING;
    o->conn = h->conn;
    flow_resume(&o->flow, h->rc, &h->err);
}

static void on_described(struct pgc_describe *d)
{
    struct wh_pg_op *o = d->data;
    o->waits_for = WH_PG_NOTHING;
    flow_resume(&o->flow, d->rc, &d->err);
}

static void on_slept(struct loop_timer *t)
{
    struct wh_pg_op *o = t->data;
    o->waits_for = WH_PG_NOTHING;
    flow_resume(&o->flow, o->flow.cancel_asked ? ERR_CANCELLED : 0, NULL);
}

static void on_end(struct flow *f)
{
    struct wh_pg_op *o = wh_pg_op_of(f);
    struct wh_op *op = o->op;
    struct wh_pg *pg = o->pg;
    op->rc = f->final_rc;
    op->err = f->err;
    op->err.code = f->final_rc;
    if (op->rc == 0) {
        err_clear(&op->err);
    }
    op->impl = NULL;
    loop_timer_stop(&o->sleep);
    free(o);
    op->done(op);
    wh_pg_op_ended(pg);
}

void *wh_pg_op_start(struct wh_op *op, size_t size, const struct flow_type *type,
                     struct ms default_timeout)
{
    struct wh_pg *pg = op->wh->impl;
    struct wh_pg_op *o = xcalloc(1, size);
    must(!op->impl && op->done && op->arena);
    o->op = op;
    o->pg = pg;
    o->arena = op->arena;
    o->stage = "waiting for a session";
    struct ms span = op->timeout.v > 0 ? op->timeout : default_timeout;
    o->until = ms_add(loop_now(pg->loop), span);
    o->flow.on_end = on_end;
    loop_timer_init(&o->sleep, pg->loop, on_slept, o);
    pg->ops++;
    op->impl = o;
    op->rc = 0;
    op->facts = (struct wh_facts){0};
    err_clear(&op->err);
    flow_start(&o->flow, type, loop_flows(pg->loop), NULL);
    return o;
}

void wh_pg_cancel_wait(struct flow *f)
{
    struct wh_pg_op *o = wh_pg_op_of(f);
    switch (o->waits_for) {
    case WH_PG_BATCH:
        pgc_batch_cancel(&o->batch);
        return;
    case WH_PG_HOLD:
        pgc_hold_cancel(&o->hold);
        return;
    case WH_PG_DESCRIBE:
        pgc_describe_cancel(&o->describe);
        return;
    case WH_PG_SLEEP:
        loop_timer_start(&o->sleep, MS(0));
        return;
    case WH_PG_NOTHING:
        return;
    }
}

enum flow_next wh_pg_step_end(struct flow *f)
{
    struct wh_pg_op *o = wh_pg_op_of(f);
    pgc_batch_fini(&o->batch);
    pgc_describe_fini(&o->describe);
    if (o->conn) {
        pgc_give(o->conn, o->conn_is_broken);
        o->conn = NULL;
    }
    return FLOW_END;
}

void wh_pg_clear(struct wh_pg_op *o)
{
    o->n_stmts = 0;
}

static struct pgc_stmt *new_stmt(struct wh_pg_op *o)
{
    if (o->n_stmts == o->cap_stmts) {
        size_t cap = o->cap_stmts ? o->cap_stmts * 2 : 16;
        struct pgc_stmt *bigger = arena_alloc(&o->flow.arena, cap * sizeof *bigger);
        if (o->n_stmts > 0) {
            memcpy(bigger, o->stmts, o->n_stmts * sizeof *bigger);
        }
        o->stmts = bigger;
        o->cap_stmts = cap;
    }
    struct pgc_stmt *s = &o->stmts[o->n_stmts++];
    *s = (struct pgc_stmt){0};
    return s;
}

void wh_pg_add(struct wh_pg_op *o, const char *fmt, ...)
{
    auto_buf struct buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    new_stmt(o)->sql = arena_strdup(&o->flow.arena, buf_str(&text));
}

void wh_pg_add_params(struct wh_pg_op *o, const char *sql, size_t n, const char *const *params)
{
    struct pgc_stmt *s = new_stmt(o);
    s->sql = sql;
    s->n_params = (int)n;
    s->params = params;
}

void wh_pg_add_prepared(struct wh_pg_op *o, const char *name, const char *sql, size_t n,
                        const char *const *params)
{
    wh_pg_add_params(o, sql, n, params);
    o->stmts[o->n_stmts - 1].prepare_as = name;
}

static struct ms time_left(const struct wh_pg_op *o)
{
    if (o->until.v == INT64_MAX) {
        return MS_NONE;
    }
    return ms_max(ms_sub(o->until, loop_now(o->pg->loop)), MS(1));
}

enum flow_next wh_pg_run(struct wh_pg_op *o)
{
    pgc_batch_fini(&o->batch);
    o->batch = (struct pgc_batch){.stmts = o->stmts,
                                  .n = o->n_stmts,
                                  .on = o->conn,
                                  .timeout = time_left(o),
                                  .done = on_batch,
                                  .data = o};
    /* The array belongs to the batch now; the next one gets its own. */
    o->stmts = NULL;
    o->n_stmts = o->cap_stmts = 0;
    o->waits_for = WH_PG_BATCH;
    pgc_batch_start(o->pg->pool, &o->batch);
    return FLOW_WAIT;
}

enum flow_next wh_pg_take_session(struct wh_pg_op *o)
{
    o->hold = (struct pgc_hold){.timeout = time_left(o), .done = on_hold, .data = o};
    o->waits_for = WH_PG_HOLD;
    pgc_hold_start(o->pg->pool, &o->hold);
    return FLOW_WAIT;
}

enum flow_next wh_pg_describe_start(struct wh_pg_op *o, const char *sql)
{
    o->describe =
        (struct pgc_describe){.sql = sql, .timeout = time_left(o), .done = on_described, .data = o};
    o->waits_for = WH_PG_DESCRIBE;
    pgc_describe_start(o->pg->pool, &o->describe);
    return FLOW_WAIT;
}

enum flow_next wh_pg_sleep(struct wh_pg_op *o, struct ms span)
{
    o->waits_for = WH_PG_SLEEP;
    loop_timer_start(&o->sleep, span);
    return FLOW_WAIT;
}

bool wh_pg_failed(struct wh_pg_op *o, unsigned end)
{
    struct flow *f = &o->flow;
    if (f->rc == 0 && !f->cancel_asked) {
        return false;
    }
    if (f->rc == 0) {
        err_set(&f->err, ERR_CANCELLED, "connection '%s': cancelled", o->pg->name);
        f->rc = ERR_CANCELLED;
    }
    f->final_rc = f->rc;
    (void)flow_goto(f, end);
    return true;
}

enum flow_next wh_pg_fail(struct wh_pg_op *o, unsigned end, int code, const char *fmt, ...)
{
    struct err e;
    va_list ap;
    va_start(ap, fmt);
    (void)err_vset(&e, code, fmt, ap);
    va_end(ap);
    return flow_fail(&o->flow, end, code, "connection '%s': %s", o->pg->name, e.text);
}

const char *wh_pg_cause(const struct wh_pg_op *o)
{
    const char *text = err_text(&o->flow.err);
    const char *name = strstr(text, o->pg->name);
    bool is_prefixed = strncmp(text, "connection '", 12) == 0 && name == text + 12 &&
                       strncmp(name + strlen(o->pg->name), "': ", 3) == 0;
    return is_prefixed ? name + strlen(o->pg->name) + 3 : text;
}

const struct pgc_result *wh_pg_result(const struct wh_pg_op *o, size_t stmt)
{
    must(stmt < o->batch.n && o->batch.results && o->batch.results[stmt]);
    return o->batch.results[stmt];
}

const char *wh_pg_copy(struct wh_pg_op *o, const struct pgc_result *r, size_t row, size_t col)
{
    struct slice s = pgc_cell(r, row, col);
    return s.p ? arena_slice(o->arena, s) : NULL;
}

void wh_pg_cancel(struct wh_op *op)
{
    struct wh_pg_op *o = op->impl;
    if (!o) {
        return;
    }
    if (!o->flow.type) { /* a query: a single batch */
        pgc_batch_cancel(&o->batch);
        return;
    }
    flow_cancel(&o->flow);
}

void wh_pg_progress(const struct wh_op *op, struct wh_progress *p)
{
    const struct wh_pg_op *o = op->impl;
    *p = (struct wh_progress){.stage = o ? o->stage : "done", .fraction = -1};
}
