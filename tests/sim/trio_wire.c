/* Statements on their way to the warehouse and back. */
#include "tests/sim/trio_wire.h"

enum { LATE_LEAST_MS = 5000, LATE_MOST_MS = 30000 };

/* ---- travel ---- */
static void wire_free(struct wire *x)
{
    sim_time_unset(&x->close);
    list_del(&x->link);
    x->inner->ops->free(x->inner);
    free(x);
}

static void close_soon(struct wire *x)
{
    if (x->closing && list_empty(&x->statements)) {
        sim_time_set(&x->w->time, &x->close, MS(0));
    }
}

static void statement_free(struct statement *s)
{
    s->wire->w->log->n_busy--;
    s->wire->w->log->n_writing -= s->kind != ST_QUERY;
    sim_time_unset(&s->travel);
    list_del(&s->link);
    arena_fini(&s->arena);
    free(s);
}

static void arrive_back(struct statement *s)
{
    struct wire *x = s->wire;
    if (s->outer && ms_before(x->w->time.now, x->proc->frozen)) {
        sim_time_set(&x->w->time, &s->travel, ms_sub(x->proc->frozen, x->w->time.now));
        return;
    }
    if (s->outer) {
        struct proc *before = proc_enter(x->proc);
        wire_answer(s);
        proc_leave(before);
    }
    statement_free(s);
    if (!x->proc && list_empty(&x->statements)) {
        wire_free(x);
    } else {
        close_soon(x);
    }
}

static void go_back(struct statement *s)
{
    struct world *w = s->wire->w;
    s->phase = ST_COMING;
    sim_time_set(&w->time, &s->travel, sim_time_between(&w->time, MS(0), w->faults.wh_most));
}

static void fail(struct statement *s, int code, const char *why)
{
    s->inner.rc = err_set(&s->inner.err, code, "warehouse of the simulation: %s", why);
    go_back(s);
}

static void on_done(struct wh_op *op)
{
    struct statement *s = op->data;
    wire_log_done(s);
    if (s->fault && s->after && op->rc == 0) {
        fail(s, s->fault, "the answer was lost");
    } else {
        go_back(s);
    }
}

static int count_row(void *data, const struct slice *cells)
{
    struct statement *s = data;
    s->n_rows += cells[0].len > 0;
    return 0;
}

static void work(struct statement *s)
{
    const struct wh_ops *ops = s->wire->inner->ops;
    s->phase = ST_AT_WORK;
    switch (s->kind) {
    case ST_TARGETS:
        ops->catalog_targets(&s->inner, s->names, s->n);
        return;
    case ST_BUILD:
        ops->build(&s->inner, &s->build);
        return;
    case ST_RESOLVE:
        ops->resolve(&s->inner, &s->table, s->token);
        return;
    case ST_SWAP:
        ops->swap(&s->inner, &s->publish);
        return;
    case ST_DROP:
        ops->drop(&s->inner, &s->table, s->token);
        return;
    case ST_DISCARD:
        ops->discard(&s->inner, &s->table, s->tokens, s->n);
        return;
    case ST_SWEEP:
        ops->sweep(&s->inner, &s->sweep);
        return;
    case ST_QUERY:
        ops->query(&s->inner, &s->query, &s->sink);
        return;
    }
}

static void on_travel(struct sim_event *ev)
{
    struct statement *s = container_of(ev, struct statement, travel);
    if (s->phase == ST_COMING) {
        arrive_back(s);
    } else if (s->fault && !s->after) {
        fail(s, s->fault, "it was not done");
    } else {
        work(s);
    }
}

/* ---- sending ---- */
static void choose_fault(struct statement *s)
{
    static const int not_done[] = {ERR_WH_CONNECT, ERR_WH_LOST, ERR_WH_TRANSIENT};
    struct world *w = s->wire->w;
    const struct trio_faults *f = &w->faults;
    w->wh_ops += s->kind != ST_QUERY; /* readers come as they like */
    if (s->kind != ST_QUERY && w->wh_ops == w->wh_fail_at) {
        s->fault = w->wh_fail_code;
        s->after = w->wh_fail_after;
    } else if (sim_time_chance(&w->time, f->wh_fail)) {
        s->fault = not_done[sim_time_below(&w->time, ARRAY_LEN(not_done))];
        s->fault = s->kind == ST_BUILD && sim_time_chance(&w->time, 150) ? ERR_WH_SQL : s->fault;
        s->fault =
            s->kind == ST_SWAP && sim_time_chance(&w->time, 400) ? ERR_TARGET_BUSY : s->fault;
    } else if (sim_time_chance(&w->time, f->wh_lose)) {
        s->fault = s->kind == ST_SWAP ? ERR_WH_UNKNOWN_OUTCOME : ERR_WH_LOST;
        s->after = true;
    }
}

static struct statement *send(struct wh_op *op, enum statement_kind kind)
{
    struct wire *x = op->wh->impl;
    struct world *w = x->w;
    must(!op->impl && op->done && op->arena && !x->closing);
    struct statement *s = xcalloc(1, sizeof(*s));
    s->wire = x;
    s->outer = op;
    s->kind = kind;
    s->travel.fn = on_travel;
    s->inner = (struct wh_op){
        .wh = x->inner, .arena = &s->arena, .timeout = op->timeout, .data = s, .done = on_done};
    arena_init(&s->arena);
    list_add_tail(&x->statements, &s->link);
    w->log->n_busy++;
    w->log->n_writing += kind != ST_QUERY;
    op->impl = s;
    op->rc = 0;
    op->facts = (struct wh_facts){0};
    err_clear(&op->err);
    choose_fault(s);
    struct ms delay = sim_time_between(&w->time, MS(0), w->faults.wh_most);
    unsigned late = w->faults.wh_late * (kind == ST_SWAP ? 4 : 1);
    if (sim_time_chance(&w->time, late)) {
        delay = sim_time_between(&w->time, MS(LATE_LEAST_MS), MS(LATE_MOST_MS));
    }
    sim_time_set(&w->time, &s->travel, delay);
    return s;
}

static void take_table(struct statement *s, const struct wh_table *t)
{
    struct arena *a = &s->arena;
    s->table = *t;
    s->table.name = wire_name(a, t->name);
    s->table.target_key = arena_strdup(a, t->target_key);
    s->table.generation = arena_strdup(a, t->generation);
    s->table.build_id = arena_strdup(a, t->build_id);
}

static void wire_targets(struct wh_op *op, const struct wh_name *names, size_t n)
{
    struct proc *before = proc_enter(NULL);
    struct statement *s = send(op, ST_TARGETS);
    s->names = arena_alloc(&s->arena, (n + 1) * sizeof(*names));
    for (size_t i = 0; i < n; i++) {
        s->names[i] = wire_name(&s->arena, names[i]);
    }
    s->n = n;
    proc_leave(before);
}

static void wire_build(struct wh_op *op, const struct wh_build *b)
{
    struct proc *before = proc_enter(NULL);
    struct statement *s = send(op, ST_BUILD);
    take_table(s, &b->table);
    s->token = b->token;
    s->build = *b;
    s->build.table = s->table;
    s->build.sql = arena_strdup(&s->arena, b->sql);
    s->build.tag = arena_strdup(&s->arena, b->tag);
    s->build.earlier = arena_dup(&s->arena, b->earlier, b->n_earlier * sizeof(*b->earlier));
    proc_leave(before);
}

static void wire_token(struct wh_op *op, enum statement_kind kind, const struct wh_table *t,
                       uint64_t token)
{
    struct proc *before = proc_enter(NULL);
    struct statement *s = send(op, kind);
    take_table(s, t);
    s->token = token;
    proc_leave(before);
}

static void wire_resolve(struct wh_op *op, const struct wh_table *t, uint64_t token)
{
    wire_token(op, ST_RESOLVE, t, token);
}

static void wire_drop(struct wh_op *op, const struct wh_table *t, uint64_t token)
{
    wire_token(op, ST_DROP, t, token);
}

static void wire_swap(struct wh_op *op, const struct wh_publish *p)
{
    struct proc *before = proc_enter(NULL);
    struct statement *s = send(op, ST_SWAP);
    take_table(s, &p->table);
    s->token = p->token;
    s->publish = *p;
    s->wire->w->swapping = s->wire->proc;
    s->publish.table = s->table;
    proc_leave(before);
}

static void wire_discard(struct wh_op *op, const struct wh_table *t, const uint64_t *tokens,
                         size_t n)
{
    struct proc *before = proc_enter(NULL);
    struct statement *s = send(op, ST_DISCARD);
    take_table(s, t);
    s->tokens = arena_dup(&s->arena, tokens, n * sizeof(*tokens));
    s->n = n;
    proc_leave(before);
}

static void wire_sweep(struct wh_op *op, const struct wh_sweep *sweep)
{
    struct proc *before = proc_enter(NULL);
    struct statement *s = send(op, ST_SWEEP);
    const char **schemas = arena_alloc(&s->arena, (sweep->n_schemas + 1) * sizeof(char *));
    for (size_t i = 0; i < sweep->n_schemas; i++) {
        schemas[i] = arena_strdup(&s->arena, sweep->schemas[i]);
    }
    s->sweep = *sweep;
    s->sweep.schemas = schemas;
    s->sweep.live = arena_dup(&s->arena, sweep->live, sweep->n_live * sizeof(*sweep->live));
    proc_leave(before);
}

static void wire_query(struct wh_op *op, struct wh_query *q, struct wh_sink *sink)
{
    struct proc *before = proc_enter(NULL);
    struct statement *s = send(op, ST_QUERY);
    s->asked = q;
    s->reader = sink;
    s->query = *q;
    s->query.sql = arena_strdup(&s->arena, q->sql);
    s->query.baked = arena_dup(&s->arena, q->baked, q->n_baked * sizeof(*q->baked));
    for (size_t i = 0; i < q->n_baked; i++) {
        struct wh_receipt *r = &s->query.baked[i];
        r->name = wire_name(&s->arena, r->name);
        r->build_id = arena_strdup(&s->arena, r->build_id);
    }
    s->sink = (struct wh_sink){.data = s, .on_row = count_row};
    proc_leave(before);
}

/* On its way a statement is mostly called back; sometimes the cancel comes too late for it. */
static void wire_cancel(struct wh_op *op)
{
    struct statement *s = op->impl;
    if (!s || s->phase == ST_COMING) {
        return;
    }
    struct proc *before = proc_enter(NULL);
    if (s->phase == ST_AT_WORK) {
        s->inner.wh->ops->cancel(&s->inner);
    } else if (sim_time_chance(&s->wire->w->time, 700)) {
        fail(s, ERR_CANCELLED, "cancelled");
    }
    proc_leave(before);
}

static void wire_progress(const struct wh_op *op, struct wh_progress *p)
{
    *p = (struct wh_progress){.stage = op->impl ? "working" : "done", .fraction = -1};
}

/* ---- life ---- */
static void on_close(struct sim_event *ev)
{
    struct wire *x = container_of(ev, struct wire, close);
    struct proc *before = proc_enter(x->proc);
    x->closed(x->closed_data);
    proc_leave(before);
}

static void wire_close(struct wh *wh, void (*done)(void *data), void *data)
{
    struct wire *x = wh->impl;
    must(!x->closing && done);
    x->closing = true;
    x->closed = done;
    x->closed_data = data;
    close_soon(x);
}

static void wire_drop_end(struct wh *wh)
{
    struct wire *x = wh->impl;
    must(list_empty(&x->statements));
    wire_free(x);
}

static const struct wh_ops wire_ops = {
    .name = "wire",
    .cls = WH_CLASS_IN_PLACE,
    .caps = WH_CAN_RESOLVE | WH_CAN_RECEIPT,
    .catalog_targets = wire_targets,
    .build = wire_build,
    .resolve = wire_resolve,
    .swap = wire_swap,
    .drop = wire_drop,
    .discard = wire_discard,
    .sweep = wire_sweep,
    .query = wire_query,
    .cancel = wire_cancel,
    .progress = wire_progress,
    .close = wire_close,
    .free = wire_drop_end,
};

int wh_open(struct loop *l, const struct wh_settings *set, struct wh **out, struct err *e)
{
    struct proc *p = proc_now();
    (void)e;
    must(p->loop == l && strcmp(set->type, "postgres") == 0);
    struct proc *before = proc_enter(NULL);
    struct wire *x = xcalloc(1, sizeof(*x));
    x->base = (struct wh){.ops = &wire_ops, .impl = x};
    x->inner = wh_sim_open(p->w->wh);
    x->w = p->w;
    x->proc = p;
    x->close.fn = on_close;
    list_init(&x->statements);
    list_add_tail(&p->wires, &x->link);
    *out = &x->base;
    proc_leave(before);
    return 0;
}

void wh_free(struct wh *wh)
{
    if (wh) {
        wh->ops->free(wh);
    }
}

bool wh_has_driver(const char *type)
{
    return type && strcmp(type, "postgres") == 0;
}

const char *wh_dialect(const char *type)
{
    return type && strcmp(type, "duckdb") == 0 ? "duckdb" : "postgres";
}

/* What was sent goes on without its sender; half of what was on its way never arrives, some of it
 * late. */
void wires_crash(struct proc *p)
{
    for (struct list *it; (it = list_take_head(&p->wires)) != NULL;) {
        struct wire *x = list_entry(it, struct wire, link);
        x->proc = NULL;
        x->closing = false;
        list_for_each (st, &x->statements) {
            struct statement *s = list_entry(st, struct statement, link);
            s->outer = NULL;
            s->asked = NULL;
            s->reader = NULL;
            if (s->phase != ST_GOING) {
                continue;
            }
            if (sim_time_chance(&x->w->time, 500)) {
                statement_free(s);
            } else if (sim_time_chance(&x->w->time, x->w->faults.wh_late * 10)) {
                sim_time_set(&x->w->time, &s->travel,
                             sim_time_between(&x->w->time, MS(LATE_LEAST_MS), MS(LATE_MOST_MS)));
            }
        }
        if (list_empty(&x->statements)) {
            wire_free(x);
        }
    }
}

size_t wires_busy(const struct world *w)
{
    return w->log->n_busy;
}

size_t wires_writing(const struct world *w)
{
    return w->log->n_writing;
}
