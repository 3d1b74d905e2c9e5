/* A sandbox for a worker: opened if need be, then what is bound in the package on that connection
 * is bound in it. A result that is gone is left out: queries of it are answered live, and tell the
 * planner; the binder, if it is the whole root that is gone.
 */
#include "common/generation/generation.h"
#include "common/log/log.h"
#include "services/gateway/binder/binder.h"
#include "services/gateway/boxes.h"

static const char own[] = "duckdb";

static struct gw_box_get *of(struct gw_errand *e)
{
    return container_of(e, struct gw_box_get, errand);
}

static void over(struct gw_box_get *q, int rc, const struct err *e)
{
    q->rc = rc;
    if (rc) {
        q->err = *e;
        sandbox_put(q->box);
        q->box = NULL;
    }
    gw_errand_over(&q->errand);
}

static struct wh_op *op_of(struct gw_box_get *q, void (*done)(struct wh_op *op))
{
    q->op = (struct wh_op){.wh = sandbox_wh(q->box), .arena = &q->arena, .data = q, .done = done};
    return &q->op;
}

/* ---- binding ---- */
static void on_bound_rest(struct wh_op *op)
{
    struct gw_box_get *q = op->data;
    if (op->rc == 0 && q->root_err.code) {
        binder_misses_root(q->errand.w->g, q->package, err_text(&q->root_err));
    }
    over(q, op->rc, &op->err);
}

static void on_probed(struct wh_op *op)
{
    struct gw_box_get *q = op->data;
    size_t n = 0;
    for (size_t i = 0; op->rc == 0 && i < q->n_bindings; i++) {
        const struct wh_fence *f = &op->facts.relations[i].fence;
        bool is_it = f->exists && f->still_there && f->generation &&
                     strcmp(f->generation, q->bindings[i].generation) == 0;
        if (is_it) {
            q->bindings[n++] = q->bindings[i];
        }
    }
    if (op->rc) {
        over(q, op->rc, &op->err);
        return;
    }
    bool is_for_root = n < q->n_bindings && q->root_err.code;
    q->n_bindings = n;
    if (is_for_root) {
        wh_duckdb_bind_rest(op_of(q, on_bound_rest), q->bindings, n, q->package->epoch);
    } else {
        err_clear(&q->root_err);
        wh_duckdb_bind(op_of(q, on_bound_rest), q->bindings, n, q->package->epoch);
    }
}

static void probe(struct gw_box_get *q)
{
    struct wh_table *tables = arena_zalloc(&q->arena, (q->n_bindings + 1) * sizeof(*tables));
    for (size_t i = 0; i < q->n_bindings; i++) {
        tables[i] = (struct wh_table){.name = {"main", q->bindings[i].name},
                                      .owner = *bus_installation(q->errand.w->g->bus),
                                      .generation = q->bindings[i].generation,
                                      .build_id = q->bindings[i].build_id};
    }
    struct wh_op *op = op_of(q, on_probed);
    op->wh->ops->probe(op, tables, q->n_bindings);
}

static void root_offload(struct offload_job *job)
{
    struct gw_box_get *q = job->data;
    const struct gateway *g = q->errand.w->g;
    (void)!generation_root_is(g->set->generation_root, bus_installation(g->bus), &q->root,
                              &q->root_err);
}

static void on_root(struct offload_job *job)
{
    probe(job->data);
}

static void on_bound(struct wh_op *op)
{
    struct gw_box_get *q = op->data;
    if (op->rc != ERR_WH_MISSING && op->rc != ERR_GENERATION) {
        over(q, op->rc, &op->err);
        return;
    }
    log_warn("duckdb.not_bound", "environment=%s package=%s epoch=%llu error=%s",
             q->package->environment, q->package->name, (unsigned long long)q->package->epoch,
             log_q(err_text(&op->err)));
    /* Before they are looked at one by one: a root that comes back meanwhile is looked at again. */
    q->job = (struct offload_job){.work_offload = root_offload, .done = on_root, .data = q};
    loop_offload(q->errand.w->g->loop, &q->job);
}

static void bind(struct gw_box_get *q)
{
    const struct gw_package *p = q->package;
    q->bindings = arena_zalloc(&q->arena, (p->n_bindings + 1) * sizeof(*q->bindings));
    bool is_out_of_reach = !q->errand.w->g->set->generation_root[0]; /* all is answered live */
    for (size_t i = 0; i < p->n_bindings && !is_out_of_reach; i++) {
        const struct gw_binding *b = &p->bindings[i];
        if (strcmp(b->connection, q->connection) == 0) {
            q->bindings[q->n_bindings++] =
                (struct wh_duckdb_binding){b->name.table, b->generation, b->build_id};
            q->root = b->root;
        }
    }
    wh_duckdb_bind(op_of(q, on_bound), q->bindings, q->n_bindings, p->epoch);
}

/* ---- opening ---- */
static void on_box(struct sandbox_get *get)
{
    struct gw_box_get *q = get->data;
    q->box = get->box;
    if (get->rc) {
        over(q, get->rc, &get->err);
    } else if (!q->package || wh_duckdb_epoch(sandbox_wh(q->box)) >= q->package->epoch) {
        over(q, 0, NULL);
    } else {
        bind(q);
    }
}

static const char *digest_of(const Kiln__GetPackageRep *rep, const char *connection)
{
    for (size_t i = 0; i < rep->n_connections; i++) {
        if (strcmp(rep->connections[i]->name, connection) == 0) {
            return rep->connections[i]->digest;
        }
    }
    return "";
}

/* Its own: what lies in its files. */
static void take_package(struct gw_box_get *q)
{
    const Kiln__GetPackageRep *rep = q->package->load->rep;
    struct sandbox_file *files = arena_zalloc(&q->arena, (rep->n_files + 1) * sizeof(*files));
    size_t n = 0;
    for (size_t i = 0; i < rep->n_files; i++) {
        const Kiln__PackageFile *f = rep->files[i];
        if (f->is_data && f->sha256.len == sizeof(files[n].sha256.b)) {
            files[n].path = f->path;
            files[n].bytes = f->bytes;
            memcpy(files[n++].sha256.b, f->sha256.data, f->sha256.len);
        }
    }
    q->get.digest = digest_of(rep, own);
    q->get.version = rep->version;
    q->get.files = files;
    q->get.n_files = n;
}

static void run_get(struct gw_errand *e)
{
    struct gw_box_get *q = of(e);
    struct gateway *g = e->w->g;
    if (!g->sandboxes) {
        struct err none;
        int rc = err_set(&none, ERR_CONF,
                         "this gateway has no package store: set gateway.package_store and "
                         "gateway.generation_root to serve packages on DuckDB");
        over(q, rc, &none);
        return;
    }
    q->get = (struct sandbox_get){.connection = q->connection,
                                  .digest = q->digest,
                                  .version = q->version,
                                  .attached = q->attached,
                                  .n_attached = q->n_attached,
                                  .is_alone = q->is_alone,
                                  .done = on_box,
                                  .data = q};
    if (!q->digest) {
        take_package(q);
    } else if (q->package) {
        /* Results lie where they were built, whatever the connection is by now. */
        const char *digest = digest_of(q->package->load->rep, q->connection);
        q->get.digest = digest[0] ? digest : q->digest;
    }
    sandboxes_installation(g->sandboxes,
                           bus_installation(g->bus)); /* known since the first hello */
    sandbox_get_start(g->sandboxes, &q->get);
}

static void get_done(struct gw_errand *e)
{
    struct gw_box_get *q = of(e);
    arena_fini(&q->arena);
    q->done(q);
}

void gw_box_get_start(struct gw_worker *w, struct gw_box_get *q)
{
    arena_init(&q->arena);
    q->n_bindings = 0;
    q->box = NULL;
    q->root = (struct uuid){0};
    err_clear(&q->root_err);
    q->errand = (struct gw_errand){.w = w, .run = run_get, .done = get_done};
    gw_errand_start(&q->errand);
}

struct giving {
    struct inbox_item item;
    struct sandbox *box;
};

static void on_given(struct inbox_item *item)
{
    struct giving *give = container_of(item, struct giving, item);
    sandbox_put(give->box);
    free(give);
}

void gw_box_give(struct gw_worker *w, struct sandbox *box)
{
    struct giving *give = xcalloc(1, sizeof(*give));
    give->box = box;
    gw_tell_main(w, &give->item, on_given);
}
