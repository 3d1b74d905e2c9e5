#include "common/pgc/pgc_sim.h"
#include "common/pgc/pgc_internal.h"

#include <strings.h>

struct sim_session {
    struct pgc_conn *c;
    struct loop_task report; /* opened or closed */
    struct loop_task cancel;
    struct loop_timer timer; /* the running statement's answer */
    bool dead, closing;
    enum pgc_txn txn;
    struct pgc_work *work;
    size_t at;
    struct pgc_sim_answer answer; /* of stmts[at]; its texts live in the arena */
    struct arena arena;
    int open_rc;
    struct err open_err;
    int pid;
};

struct sim_result {
    struct pgc_result base;
    struct arena arena;
    struct pgc_sim_answer a;
};

static struct pgc_sim *sim_of(const struct pgc_conn *c)
{
    return c->pool->driver_data;
}

/* ---- results ---- */

static const struct sim_result *res_of(const struct pgc_result *r)
{
    return r->impl;
}

static size_t sim_rows(const struct pgc_result *r)
{
    return res_of(r)->a.n_rows;
}

static size_t sim_cols(const struct pgc_result *r)
{
    return res_of(r)->a.n_cols;
}

static struct slice sim_cell(const struct pgc_result *r, size_t row, size_t col)
{
    const struct pgc_sim_answer *a = &res_of(r)->a;
    return slice_of(a->cells[row * a->n_cols + col]);
}

static const char *sim_col_name(const struct pgc_result *r, size_t col)
{
    return res_of(r)->a.col_names[col];
}

static uint32_t sim_col_type(const struct pgc_result *r, size_t col)
{
    const uint32_t text_oid = 25;
    const struct pgc_sim_answer *a = &res_of(r)->a;
    return a->col_types ? a->col_types[col] : text_oid;
}

static int sim_col_typmod(const struct pgc_result *r, size_t col)
{
    (void)r;
    (void)col;
    return -1;
}

static uint64_t sim_affected(const struct pgc_result *r)
{
    const struct pgc_sim_answer *a = &res_of(r)->a;
    return a->affected ? a->affected : a->n_rows;
}

static void sim_result_free(struct pgc_result *r)
{
    struct sim_result *s = r->impl;
    arena_fini(&s->arena);
    free(s);
}

static const struct pgc_result_ops sim_result_ops = {
    .rows = sim_rows,
    .cols = sim_cols,
    .cell = sim_cell,
    .col_name = sim_col_name,
    .col_type = sim_col_type,
    .col_typmod = sim_col_typmod,
    .affected = sim_affected,
    .free = sim_result_free,
};

static void copy_answer(struct arena *a, const struct pgc_sim_answer *from,
                        struct pgc_sim_answer *to)
{
    *to = *from;
    size_t n = from->n_rows * from->n_cols;
    const char **cells = arena_alloc(a, (n + 1) * sizeof *cells);
    for (size_t i = 0; i < n; i++) {
        cells[i] = arena_strdup(a, from->cells[i]);
    }
    const char **names = arena_alloc(a, (from->n_cols + 1) * sizeof *names);
    for (size_t i = 0; i < from->n_cols; i++) {
        names[i] =
            from->col_names ? arena_strdup(a, from->col_names[i]) : arena_printf(a, "c%zu", i + 1);
    }
    if (from->col_types) {
        to->col_types = arena_dup(a, from->col_types, from->n_cols * sizeof(uint32_t));
    }
    to->cells = cells;
    to->col_names = names;
    to->sqlstate = arena_strdup(a, from->sqlstate);
    to->text = arena_strdup(a, from->text ? from->text : "scripted error");
}

static struct pgc_result *result_new(const struct pgc_sim_answer *from, bool with_rows)
{
    struct sim_result *r = xcalloc(1, sizeof *r);
    arena_init(&r->arena);
    struct pgc_sim_answer a = *from;
    if (!with_rows) {
        a.affected = a.affected ? a.affected : a.n_rows;
        a.n_rows = 0;
    }
    copy_answer(&r->arena, &a, &r->a);
    r->base = (struct pgc_result){.ops = &sim_result_ops, .impl = r};
    return &r->base;
}

/* ---- running ---- */

static void run_next(struct sim_session *s);

static void work_end(struct sim_session *s)
{
    loop_timer_stop(&s->timer);
    s->work = NULL;
    pgc_conn_work_done(s->c);
}

static void follow_txn(struct sim_session *s, const char *sql)
{
    if (strncasecmp(sql, "begin", 5) == 0) {
        s->txn = PGC_TXN_OPEN;
    } else if (strncasecmp(sql, "commit", 6) == 0 || strncasecmp(sql, "rollback", 8) == 0) {
        s->txn = PGC_TXN_IDLE;
    }
}

static void fail(struct sim_session *s, const char *sqlstate, const char *text)
{
    struct pgc_work *w = s->work;
    pgc_work_error(s->c, w, s->at, pgc_code_of(sqlstate), sqlstate, text);
    if (s->txn == PGC_TXN_OPEN) {
        s->txn = PGC_TXN_FAILED;
    }
    work_end(s);
}

static void session_breaks(struct sim_session *s)
{
    struct pgc_work *w = s->work;
    bool answered = w->answered;
    pgc_work_error(s->c, w, s->at, ERR_WH_LOST, "", "the server closed the connection");
    w->answered = answered;
    w->unknown_outcome = true;
    s->dead = true;
    work_end(s);
}

static void deliver_rows(struct sim_session *s, const struct pgc_sim_answer *a)
{
    struct pgc_work *w = s->work;
    struct slice cells[64];
    must(a->n_cols <= ARRAY_LEN(cells));
    for (size_t i = 0; i < a->n_rows; i++) {
        for (size_t k = 0; k < a->n_cols; k++) {
            cells[k] = slice_of(a->cells[i * a->n_cols + k]);
        }
        pgc_work_row(s->c, w, s->at, cells);
    }
}

static void deliver(struct sim_session *s)
{
    struct pgc_work *w = s->work;
    const struct pgc_stmt *stmt = &w->stmts[s->at];
    const struct pgc_sim_answer *a = &s->answer;
    struct pgc_result *r = result_new(a, !stmt->stream && !w->describe);
    if (stmt->stream) {
        pgc_work_columns(s->c, w, s->at, r);
        deliver_rows(s, a);
    }
    if (w->rc != 0) { /* the reader stopped */
        pgc_result_free(r);
        s->txn = s->txn == PGC_TXN_OPEN ? PGC_TXN_FAILED : s->txn;
        work_end(s);
        return;
    }
    follow_txn(s, stmt->sql);
    pgc_work_result(s->c, w, s->at, r);
    if (w->rc != 0) { /* vetoed */
        s->txn = s->txn == PGC_TXN_OPEN ? PGC_TXN_FAILED : s->txn;
        work_end(s);
        return;
    }
    s->at++;
    run_next(s);
}

static void on_answer(struct loop_timer *t)
{
    struct sim_session *s = t->data;
    if (s->answer.breaks) {
        session_breaks(s);
    } else if (s->answer.sqlstate) {
        fail(s, s->answer.sqlstate, s->answer.text);
    } else {
        deliver(s);
    }
}

/* A statement in a failed transaction is refused, whatever the script says. */
static bool is_refused(const struct sim_session *s, const char *sql)
{
    return s->txn == PGC_TXN_FAILED && strncasecmp(sql, "rollback", 8) != 0;
}

static void run_next(struct sim_session *s)
{
    struct pgc_work *w = s->work;
    if (s->at == w->n) {
        work_end(s);
        return;
    }
    arena_reset(&s->arena);
    struct pgc_sim_answer a = {0};
    if (is_refused(s, w->stmts[s->at].sql)) {
        a.sqlstate = "25P02";
    } else {
        struct pgc_sim *sim = sim_of(s->c);
        sim->answer(sim, &w->stmts[s->at], &a);
    }
    copy_answer(&s->arena, &a, &s->answer);
    if (!a.hangs && !a.ignores_cancel) {
        loop_timer_start(&s->timer, a.delay);
    }
}

static void sim_run(struct pgc_conn *c, struct pgc_work *w)
{
    struct sim_session *s = c->drv;
    s->work = w;
    s->at = 0;
    if (s->dead) {
        s->answer = (struct pgc_sim_answer){.breaks = true};
        loop_timer_start(&s->timer, MS(0));
        return;
    }
    run_next(s);
}

/* ---- session ---- */

static void on_report(struct loop_task *t)
{
    struct sim_session *s = t->data;
    struct pgc_conn *c = s->c;
    if (!s->closing) {
        pgc_conn_opened(c, s->open_rc, &s->open_err);
        return;
    }
    arena_fini(&s->arena);
    free(s);
    pgc_conn_closed(c);
}

static void on_cancel(struct loop_task *t)
{
    struct sim_session *s = t->data;
    if (s->work && !s->answer.ignores_cancel) {
        loop_timer_stop(&s->timer);
        fail(s, "57014", "canceling statement due to user request");
    }
    pgc_conn_cancel_sent(s->c);
}

static void sim_open(struct pgc_conn *c)
{
    struct pgc_sim *sim = sim_of(c);
    struct sim_session *s = xcalloc(1, sizeof *s);
    c->drv = s;
    s->c = c;
    s->pid = (int)++sim->opened;
    arena_init(&s->arena);
    loop_task_init(&s->report, on_report, s);
    loop_task_init(&s->cancel, on_cancel, s);
    loop_timer_init(&s->timer, c->pool->loop, on_answer, s);
    if (sim->refuse_sqlstate) {
        int code = sim->refuse_sqlstate[0] ? pgc_code_of(sim->refuse_sqlstate) : ERR_WH_CONNECT;
        s->open_rc = err_set(&s->open_err, code, "%s: scripted refusal", c->pool->what);
    }
    loop_defer(c->pool->loop, &s->report);
}

static void sim_cancel(struct pgc_conn *c)
{
    struct sim_session *s = c->drv;
    sim_of(c)->cancels++;
    loop_defer(c->pool->loop, &s->cancel);
}

static void sim_kill(struct pgc_conn *c)
{
    struct sim_session *s = c->drv;
    s->dead = true;
    s->work = NULL;
    loop_timer_stop(&s->timer);
    loop_task_cancel(&s->cancel);
}

static void sim_close(struct pgc_conn *c)
{
    struct sim_session *s = c->drv;
    sim_kill(c);
    s->closing = true;
    loop_defer(c->pool->loop, &s->report);
}

static bool sim_alive(struct pgc_conn *c)
{
    const struct sim_session *s = c->drv;
    return !s->dead;
}

static enum pgc_txn sim_txn(const struct pgc_conn *c)
{
    const struct sim_session *s = c->drv;
    return s->dead ? PGC_TXN_DEAD : s->txn;
}

static int sim_pid(const struct pgc_conn *c)
{
    const struct sim_session *s = c->drv;
    return s->pid;
}

static const struct pgc_driver sim_driver = {
    .open = sim_open,
    .run = sim_run,
    .cancel = sim_cancel,
    .kill = sim_kill,
    .close = sim_close,
    .alive = sim_alive,
    .txn = sim_txn,
    .pid = sim_pid,
};

struct pgc_pool *pgc_sim_pool_new(struct loop *l, const struct pgc_settings *s, struct pgc_sim *sim)
{
    return pgc_pool_new_on(l, s, &sim_driver, sim);
}

void pgc_sim_drop_idle(struct pgc_pool *p)
{
    must(p->driver == &sim_driver);
    list_for_each (it, &p->conns[PGC_CONN_IDLE]) {
        struct sim_session *s = list_entry(it, struct pgc_conn, link)->drv;
        s->dead = true;
    }
}
