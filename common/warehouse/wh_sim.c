/* Operations of the simulated warehouse: each takes its delay, its fault, and then does its work at
 * once. */
#include "common/warehouse/wh_sim_work.h"

#define LOCK_AGAIN_MS 50

static void end(struct sim_op *o, int rc)
{
    struct wh_op *op = o->op;
    struct sim_conn *c = o->conn;
    loop_timer_stop(&o->timer);
    op->rc = rc;
    if (rc == 0) {
        err_clear(&op->err);
    }
    op->impl = NULL;
    free(o);
    op->done(op);
    c->ops--;
    if (c->closing && c->ops == 0) {
        loop_defer(c->sim->loop, &c->task);
    }
}

/* ---- time and faults ---- */

static bool is_locked_out(const struct sim_op *o)
{
    if (o->kind != SIM_SWAP && o->kind != SIM_DROP) {
        return false;
    }
    const struct wh_name *n = &o->tables[0].name;
    const struct sim_table *t = sim_table_find(o->sim, n->schema, n->table);
    return t && t->locked;
}

static bool hangs(const struct sim_op *o)
{
    return o->sql && strstr(o->sql, "pg_sleep(") && o->kind != SIM_DESCRIBE;
}

/* The fault that this operation meets, or NULL. */
static const struct wh_sim_fault *take_fault(struct sim_op *o)
{
    struct wh_sim_fault *f = &o->sim->faults[o->kind];
    if (f->times == 0) {
        return NULL;
    }
    if (f->skip > 0) {
        f->skip--;
        return NULL;
    }
    f->times--;
    return f;
}

static void work(struct sim_op *o)
{
    const struct wh_sim_fault *f = take_fault(o);
    if (f && !f->after) {
        end(o, err_set(&o->op->err, f->code, "simulated warehouse: scripted fault"));
        return;
    }
    int rc = sim_run(o);
    if (f && rc == 0) {
        rc = err_set(&o->op->err, f->code, "simulated warehouse: the answer was lost");
    }
    end(o, rc);
}

static void on_timer(struct loop_timer *t)
{
    struct sim_op *o = t->data;
    bool late = !ms_before(loop_now(o->sim->loop), o->until);
    if (o->cancelled) {
        end(o, err_set(&o->op->err, ERR_CANCELLED, "simulated warehouse: cancelled"));
    } else if (late && is_locked_out(o)) {
        end(o, sim_fail(o, ERR_TARGET_BUSY, "it stayed locked", &o->tables[0].name));
    } else if (late && hangs(o)) {
        end(o, err_set(&o->op->err, ERR_TIMEOUT, "simulated warehouse: took too long"));
    } else if (is_locked_out(o) || hangs(o)) {
        loop_timer_start(t, MS(LOCK_AGAIN_MS));
    } else {
        work(o);
    }
}

static struct sim_op *start(struct wh_op *op, enum sim_op_kind kind, struct ms default_timeout)
{
    struct sim_conn *c = op->wh->impl;
    struct sim_op *o = xcalloc(1, sizeof *o);
    must(!op->impl && op->done && op->arena && !c->closing);
    o->op = op;
    o->conn = c;
    o->sim = c->sim;
    o->kind = kind;
    c->ops++;
    c->sim->counts[kind]++;
    op->impl = o;
    op->rc = 0;
    op->facts = (struct wh_facts){0};
    err_clear(&op->err);
    o->until = ms_add(loop_now(c->sim->loop), op->timeout.v > 0 ? op->timeout : default_timeout);
    loop_timer_init(&o->timer, c->sim->loop, on_timer, o);
    loop_timer_start(&o->timer, c->sim->delays[kind]);
    return o;
}

static void take_tables(struct sim_op *o, const struct wh_table *tables, size_t n)
{
    struct arena *a = o->op->arena;
    o->tables = arena_dup(a, tables, n * sizeof *tables);
    o->n = n;
    for (size_t i = 0; i < n; i++) {
        struct wh_table *t = &o->tables[i];
        t->name.schema = arena_strdup(a, t->name.schema ? t->name.schema : "");
        t->name.table = arena_strdup(a, t->name.table);
        t->target_key = arena_strdup(a, t->target_key ? t->target_key : t->name.table);
        t->generation = arena_strdup(a, t->generation);
        t->build_id = arena_strdup(a, t->build_id);
    }
}

static void relations(struct sim_op *o)
{
    struct wh_facts *facts = &o->op->facts;
    facts->relations = arena_zalloc(o->op->arena, (o->n + 1) * sizeof *facts->relations);
    facts->n_relations = o->n;
}

/* ---- the table ---- */

static void sim_test(struct wh_op *op)
{
    (void)start(op, SIM_TEST, MS(10000));
}

static void sim_catalog_tables(struct wh_op *op, const char *const *paths, size_t n)
{
    struct sim_op *o = start(op, SIM_CATALOG_TABLES, MS(15000));
    o->n = n;
    o->paths = arena_zalloc(op->arena, (n + 1) * sizeof *o->paths);
    for (size_t i = 0; i < n; i++) {
        o->paths[i] = sim_text(o, paths[i]);
    }
    op->facts.n_schemas = n;
    op->facts.schemas = arena_zalloc(op->arena, (n + 1) * sizeof *op->facts.schemas);
    op->facts.schema_errors = arena_zalloc(op->arena, (n + 1) * sizeof *op->facts.schema_errors);
}

static void sim_catalog_targets(struct wh_op *op, const struct wh_name *names, size_t n)
{
    struct sim_op *o = start(op, SIM_CATALOG_TARGETS, MS(15000));
    struct wh_table *tables = arena_zalloc(op->arena, (n + 1) * sizeof *tables);
    for (size_t i = 0; i < n; i++) {
        tables[i].name = names[i];
    }
    take_tables(o, tables, n);
    relations(o);
}

static void sim_describe(struct wh_op *op, const char *sql)
{
    struct sim_op *o = start(op, SIM_DESCRIBE, MS(15000));
    o->sql = sim_text(o, sql);
}

static void sim_probe(struct wh_op *op, const struct wh_table *tables, size_t n)
{
    struct sim_op *o = start(op, SIM_PROBE, MS(15000));
    take_tables(o, tables, n);
    relations(o);
}

static void sim_build(struct wh_op *op, const struct wh_build *b)
{
    struct sim_op *o = start(op, SIM_BUILD, MS_NONE);
    take_tables(o, &b->table, 1);
    o->token = b->token;
    o->sql = sim_text(o, b->sql);
    o->tokens = arena_dup(op->arena, b->earlier, b->n_earlier * sizeof *b->earlier);
    o->n_tokens = b->n_earlier;
}

static void sim_resolve(struct wh_op *op, const struct wh_table *t, uint64_t token)
{
    struct sim_op *o = start(op, SIM_RESOLVE, MS(30000));
    take_tables(o, t, 1);
    o->token = token;
}

static void sim_swap(struct wh_op *op, const struct wh_publish *p)
{
    struct sim_op *o = start(op, SIM_SWAP, MS(60000));
    take_tables(o, &p->table, 1);
    o->publish = *p;
    o->token = p->token;
}

static void sim_drop(struct wh_op *op, const struct wh_table *t, uint64_t token)
{
    struct sim_op *o = start(op, SIM_DROP, MS(60000));
    take_tables(o, t, 1);
    o->token = token;
}

static void sim_discard(struct wh_op *op, const struct wh_table *t, const uint64_t *tokens,
                        size_t n)
{
    struct sim_op *o = start(op, SIM_DISCARD, MS(60000));
    take_tables(o, t, 1);
    o->tokens = arena_dup(op->arena, tokens, n * sizeof *tokens);
    o->n_tokens = n;
}

static void sim_sweep(struct wh_op *op, const struct wh_sweep *w)
{
    struct sim_op *o = start(op, SIM_SWEEP, MS(120000));
    const char **schemas = arena_zalloc(op->arena, (w->n_schemas + 1) * sizeof *schemas);
    for (size_t i = 0; i < w->n_schemas; i++) {
        schemas[i] = sim_text(o, w->schemas[i]);
    }
    o->sweep = *w;
    o->sweep.schemas = schemas;
    o->sweep.live = arena_dup(op->arena, w->live, w->n_live * sizeof *w->live);
}

static void sim_query(struct wh_op *op, struct wh_query *q, struct wh_sink *sink)
{
    struct sim_op *o = start(op, SIM_QUERY, MS(30000));
    o->query = q;
    o->sink = sink;
    o->sql = sim_text(o, q->sql);
}

static void sim_cancel(struct wh_op *op)
{
    struct sim_op *o = op->impl;
    if (o && !o->cancelled) {
        o->cancelled = true;
        loop_timer_start(&o->timer, MS(0));
    }
}

static void sim_progress(const struct wh_op *op, struct wh_progress *p)
{
    *p = (struct wh_progress){.stage = op->impl ? "working" : "done", .fraction = -1};
}

static void on_closed_task(struct loop_task *t)
{
    struct sim_conn *c = t->data;
    if (c->on_closed) {
        c->on_closed(c->closed_data);
    }
}

static void sim_close(struct wh *wh, void (*done)(void *data), void *data)
{
    struct sim_conn *c = wh->impl;
    must(!c->closing);
    c->closing = true;
    c->on_closed = done;
    c->closed_data = data;
    if (c->ops == 0) {
        loop_defer(c->sim->loop, &c->task);
    }
}

static void sim_free(struct wh *wh)
{
    struct sim_conn *c = wh->impl;
    must(c->ops == 0);
    loop_task_cancel(&c->task);
    free(c);
}

static const struct wh_ops ops = {
    .name = "sim",
    .cls = WH_CLASS_IN_PLACE,
    .caps = WH_CAN_RESOLVE | WH_CAN_RECEIPT,
    .test = sim_test,
    .catalog_tables = sim_catalog_tables,
    .catalog_targets = sim_catalog_targets,
    .describe = sim_describe,
    .probe = sim_probe,
    .build = sim_build,
    .resolve = sim_resolve,
    .swap = sim_swap,
    .drop = sim_drop,
    .discard = sim_discard,
    .sweep = sim_sweep,
    .query = sim_query,
    .cancel = sim_cancel,
    .progress = sim_progress,
    .close = sim_close,
    .free = sim_free,
};

struct wh *wh_sim_open(struct wh_sim *s)
{
    struct sim_conn *c = xcalloc(1, sizeof *c);
    c->base = (struct wh){.ops = &ops, .impl = c};
    c->sim = s;
    loop_task_init(&c->task, on_closed_task, c);
    return &c->base;
}
