/* Handles, operations, and the vtable. */
#include "common/warehouse/wh_duckdb_internal.h"

/* ---- one operation ---- */

struct duck_op *duck_op_of(struct duck_job *job)
{
    return container_of(job, struct duck_op, job);
}

const char *duck_op_text(struct duck_op *o, const char *text)
{
    return arena_strdup(&o->scratch, text);
}

struct wh_table *duck_op_tables(struct duck_op *o, const struct wh_table *t, size_t n)
{
    struct wh_table *out = arena_zalloc(&o->scratch, (n + 1) * sizeof(*out));
    for (size_t i = 0; i < n; i++) {
        out[i] = t[i];
        out[i].name.schema = duck_op_text(o, t[i].name.schema);
        out[i].name.table = duck_op_text(o, t[i].name.table);
        out[i].target_key = duck_op_text(o, t[i].target_key);
        out[i].generation = duck_op_text(o, t[i].generation);
        out[i].build_id = duck_op_text(o, t[i].build_id);
    }
    o->n = n;
    return out;
}

const uint64_t *duck_op_tokens(struct duck_op *o, const uint64_t *tokens, size_t n)
{
    o->n_tokens = n;
    return n > 0 ? arena_dup(&o->scratch, tokens, n * sizeof(*tokens)) : NULL;
}

static bool misses_database(const struct err *e, const char *name)
{
    auto_free char *quoted = xasprintf("\"%s\"", name);
    auto_free char *leading = xasprintf("\"%s.", name);
    return strstr(e->text, "does not exist") &&
           (strcasestr(e->text, quoted) || strcasestr(e->text, leading));
}

bool duck_is_of_old_tables(const struct err *e)
{
    return (e->code == ERR_WH_MISSING && strstr(e->text, ": PostgreSQL: ")) ||
           strstr(e->text, "IO Error: Postgres binary reader");
}

int duck_tell_fault(struct duck_package *p, int rc, struct err *e)
{
    bool misses_file = strstr(e->text, "No files found that match") != NULL;
    if (p->fault && misses_file) {
        return err_set(e, ERR_CONF, "%s", p->fault);
    }
    for (size_t i = 0; i < p->n_lacks; i++) {
        if (misses_database(e, p->lacks[i].name)) {
            return err_set(e, p->lacks[i].code, "%s", p->lacks[i].text);
        }
    }
    if (duck_is_of_old_tables(e)) {
        atomic_store(&p->outdated, true);
    }
    return rc;
}

static void tell_closed(struct wh_duck *h)
{
    if (h->closing && h->ops == 0) {
        loop_defer(h->loop, &h->task);
    }
}

static void on_done(struct duck_job *job)
{
    struct duck_op *o = duck_op_of(job);
    struct wh_op *op = o->op;
    struct wh_duck *h = o->wh;
    if (job->rc < 0) {
        job->rc = duck_tell_fault(o->package, job->rc, &job->err);
    }
    if (o->before_done) {
        o->before_done(o);
    }
    op->rc = job->rc;
    op->err = job->err;
    duck_facts_copy(op->arena, &o->facts, &op->facts);
    op->impl = NULL;
    duck_bound_unref(o->read_under);
    arena_fini(&o->scratch);
    free(o);
    op->done(op);
    h->ops--;
    tell_closed(h);
}

struct duck_op *duck_op_new(struct wh_op *op, const char *stage,
                            int (*work)(struct duck_job *job, struct duck_conn *conn,
                                        struct err *e))
{
    struct wh_duck *h = op->wh->impl;
    must(!op->impl && op->done && op->arena && !h->closing);
    struct duck_op *o = xcalloc(1, sizeof(*o));
    o->op = op;
    o->wh = h;
    o->package = h->package;
    atomic_init(&o->stage, stage);
    arena_init(&o->scratch);
    o->job = (struct duck_job){
        .instance = h->package->instance, .loop = h->loop, .work_pool = work, .done = on_done};
    op->impl = o;
    op->rc = 0;
    op->facts = (struct wh_facts){0};
    err_clear(&op->err);
    h->ops++;
    return o;
}

void duck_op_go(struct duck_op *o, bool is_urgent, struct ms default_timeout)
{
    o->job.is_urgent = is_urgent;
    o->job.timeout = o->op->timeout.v > 0 ? o->op->timeout : default_timeout;
    duck_job_start(o->package->pool, &o->job);
}

int duck_ref_of(struct duck_op *o, const struct wh_table *t, struct generation_ref *out,
                struct err *e)
{
    const struct duck_package *p = o->package;
    if (!p->root) {
        return err_set(e, ERR_UNSUPPORTED,
                       "connection '%s': this process has no generation_root, so nothing is built "
                       "for DuckDB here",
                       p->name);
    }
    if (!t->generation || !generation_is_id(t->generation)) {
        return err_set(e, ERR_ARG, "connection '%s': table %s comes without the id of a generation",
                       p->name, t->name.table);
    }
    *out = (struct generation_ref){p->root, p->dataset, t->generation};
    return 0;
}

/* ---- the small operations ---- */

static int work_test(struct duck_job *job, struct duck_conn *conn, struct err *e)
{
    const struct duck_package *p = duck_op_of(job)->package;
    if (p->n_lacks > 0) {
        return err_set(e, p->lacks[0].code, "%s", p->lacks[0].text);
    }
    return duck_exec(conn, "SELECT 1", e);
}

static void duck_wh_test(struct wh_op *op)
{
    duck_op_go(duck_op_new(op, "connecting", work_test), true, MS(10000));
}

static int work_unsupported(struct duck_job *job, struct duck_conn *conn, struct err *e)
{
    (void)conn;
    return err_set(e, ERR_UNSUPPORTED,
                   "connection '%s': DuckDB publishes by binding; nothing is swapped in place",
                   duck_op_of(job)->package->name);
}

static void duck_wh_resolve(struct wh_op *op, const struct wh_table *t, uint64_t token)
{
    (void)t;
    (void)token;
    duck_op_go(duck_op_new(op, "resolving", work_unsupported), true, MS(10000));
}

static void duck_wh_swap(struct wh_op *op, const struct wh_publish *p)
{
    (void)p;
    duck_op_go(duck_op_new(op, "swapping", work_unsupported), true, MS(10000));
}

static void duck_wh_cancel(struct wh_op *op)
{
    struct duck_op *o = op->impl;
    if (o) {
        duck_job_cancel(&o->job);
    }
}

static void duck_wh_progress(const struct wh_op *op, struct wh_progress *p)
{
    struct duck_op *o = op->impl;
    *p = (struct wh_progress){.stage = "done", .fraction = -1};
    if (o) {
        p->fraction = duck_job_progress(&o->job, &p->rows);
        p->stage = atomic_load(&o->stage);
    }
}

/* ---- handles ---- */

static void package_unref(struct duck_package *p)
{
    if (atomic_fetch_sub(&p->refs, 1) > 1) {
        return;
    }
    duck_bound_unref(p->bound);
    duck_instance_unref(p->instance);
    pthread_cond_destroy(&p->even);
    pthread_mutex_destroy(&p->lock);
    free(p->name);
    free(p->fault);
    arena_fini(&p->lacks_arena);
    free(p->root);
    free(p->dataset);
    free(p);
}

static void on_closed_task(struct loop_task *t)
{
    struct wh_duck *h = t->data;
    if (h->on_closed) {
        h->on_closed(h->closed_data);
    }
}

static void duck_wh_close(struct wh *wh, void (*done)(void *data), void *data)
{
    struct wh_duck *h = wh->impl;
    must(!h->closing);
    h->closing = true;
    h->on_closed = done;
    h->closed_data = data;
    tell_closed(h);
}

static void duck_wh_free(struct wh *wh)
{
    struct wh_duck *h = wh->impl;
    must(h->ops == 0);
    loop_task_cancel(&h->task);
    package_unref(h->package);
    free(h);
}

static const struct wh_ops ops = {
    .name = "duckdb",
    .cls = WH_CLASS_BY_BINDING,
    .caps = WH_CAN_PROGRESS | WH_CAN_RECEIPT,
    .test = duck_wh_test,
    .catalog_tables = duck_wh_catalog_tables,
    .catalog_targets = duck_wh_catalog_targets,
    .describe = duck_wh_describe,
    .probe = duck_wh_probe,
    .build = duck_wh_build,
    .resolve = duck_wh_resolve,
    .swap = duck_wh_swap,
    .drop = duck_wh_drop,
    .discard = duck_wh_discard,
    .sweep = duck_wh_sweep,
    .query = duck_wh_query,
    .cancel = duck_wh_cancel,
    .progress = duck_wh_progress,
    .close = duck_wh_close,
    .free = duck_wh_free,
};

static struct wh *handle_of(struct loop *l, struct duck_package *p)
{
    struct wh_duck *h = xcalloc(1, sizeof(*h));
    h->base = (struct wh){.ops = &ops, .impl = h};
    h->loop = l;
    h->package = p;
    loop_task_init(&h->task, on_closed_task, h);
    return &h->base;
}

/* DuckDB takes these for patterns in file names, and has no way to write them literally. */
static int check_root(const struct wh_duckdb_settings *s, struct err *e)
{
    if (!s->root) {
        return 0;
    }
    if (s->root[0] != '/' || strpbrk(s->root, "*?[")) {
        return err_set(
            e, ERR_CONF,
            "connection '%s': generation_root '%s' must be an absolute path without *, ? "
            "and [",
            s->name, s->root);
    }
    if (!s->dataset || !generation_is_dataset(s->dataset)) {
        return err_set(e, ERR_CONF, "connection '%s': '%s' is no name for a folder of generations",
                       s->name, s->dataset ? s->dataset : "");
    }
    return 0;
}

static void copy_lacks(struct duck_package *p, const struct wh_duckdb_settings *s)
{
    arena_init(&p->lacks_arena);
    p->lacks = arena_zalloc(&p->lacks_arena, (s->n_lacks + 1) * sizeof(*p->lacks));
    for (size_t i = 0; i < s->n_lacks; i++) {
        const struct wh_duckdb_lack *from = &s->lacks[i];
        p->lacks[i] = (struct wh_duckdb_lack){arena_strdup(&p->lacks_arena, from->name), from->code,
                                              arena_strdup(&p->lacks_arena, from->text)};
    }
    p->n_lacks = s->n_lacks;
    atomic_init(&p->outdated, false);
}

int wh_duckdb_open(struct loop *l, const struct wh_duckdb_settings *s, struct wh **out,
                   struct err *e)
{
    int rc = check_root(s, e);
    if (rc < 0) {
        return rc;
    }
    struct duck_package *p = xcalloc(1, sizeof(*p));
    atomic_init(&p->refs, 1);
    p->name = xstrdup(s->name);
    p->pool = s->pool;
    p->instance = duck_instance_ref(s->instance);
    p->root = xstrdup(s->root);
    p->dataset = xstrdup(s->dataset);
    p->installation = s->installation;
    p->resident_bytes = s->resident_bytes;
    p->fault = xstrdup(s->fault);
    copy_lacks(p, s);
    must(pthread_mutex_init(&p->lock, NULL) == 0 && pthread_cond_init(&p->even, NULL) == 0);
    *out = handle_of(l, p);
    return 0;
}

bool wh_duckdb_is_lacking(const struct wh *wh)
{
    const struct duck_package *p = ((const struct wh_duck *)wh->impl)->package;
    return p->fault || p->n_lacks > 0;
}

bool wh_duckdb_is_outdated(const struct wh *wh)
{
    return atomic_load(&((struct wh_duck *)wh->impl)->package->outdated);
}

struct wh *wh_duckdb_share(struct loop *l, struct wh *of)
{
    struct duck_package *p = ((struct wh_duck *)of->impl)->package;
    atomic_fetch_add(&p->refs, 1);
    return handle_of(l, p);
}
