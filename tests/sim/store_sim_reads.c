/* What the run store in memory is asked besides the coordinator's rows: environments, packages,
 * runs; each some time later, on its own. */
#include "tests/sim/store_sim.h"

static void on_read(struct loop_timer *t)
{
    struct read *r = t->data;
    struct store_op *op = r->op;
    list_del(&r->link);
    op->rc = r->fill(r);
    free(r);
    op->done(op);
}

struct read *store_sim_read(struct store *s, struct store_op *op, int (*fill)(struct read *))
{
    struct read *r = xcalloc(1, sizeof(*r));
    r->s = s;
    r->op = op;
    r->fill = fill;
    err_clear(&op->err);
    list_add_tail(&s->reads, &r->link);
    loop_timer_init(&r->timer, s->p->loop, on_read, r);
    loop_timer_start(&r->timer, store_sim_delay(s));
    return r;
}

static bool run_fits(const struct row_run *row, const struct store_run_filter *f)
{
    return (!f->unit || row->unit == f->unit) && (!f->id || strcmp(row->id, f->id) == 0);
}

static int fill_runs(struct read *r)
{
    struct world *w = r->s->p->w;
    struct store_run_rec **out = r->out;
    size_t n = 0;
    struct map_iter it = {0};
    for (const struct row_run *row; memory_run_next(&it, w->rows, &row);) {
        n += run_fits(row, &r->filter);
    }
    *out = arena_zalloc(r->op->arena, (n + 1) * sizeof(**out));
    *r->n = 0;
    it = (struct map_iter){0};
    for (const struct row_run *row; memory_run_next(&it, w->rows, &row);) {
        const struct trio_unit *u = package_unit(w, row->unit);
        if (run_fits(row, &r->filter)) {
            (*out)[(*r->n)++] = (struct store_run_rec){.r = *row,
                                                       .environment = TRIO_ENVIRONMENT,
                                                       .package = u->name,
                                                       .environment_id = 1};
        }
    }
    return 0;
}

void store_runs(struct store *s, struct store_op *op, const struct store_run_filter *f,
                struct store_run_rec **out, size_t *n)
{
    struct read *r = store_sim_read(s, op, fill_runs);
    r->filter = *f;
    r->out = out;
    r->n = n;
}

static int fill_environments(struct read *r)
{
    struct store_environment **out = r->out;
    *out = arena_zalloc(r->op->arena, sizeof(**out));
    (*out)[0] = (struct store_environment){.id = 1, .name = TRIO_ENVIRONMENT};
    *r->n = 1;
    return 0;
}

void store_environments(struct store *s, struct store_op *op, struct store_environment **out,
                        size_t *n)
{
    struct read *r = store_sim_read(s, op, fill_environments);
    r->out = out;
    r->n = n;
}

static int fill_connections(struct read *r)
{
    static const char config[] = "{\"name\":\"" TRIO_CONNECTION "\",\"type\":\"postgres\","
                                 "\"postgresConnection\":{\"host\":\"h\",\"password\":\"pw\"}}";
    struct store_connection **out = r->out;
    uint8_t key[32];
    must(hex_decode(slice_of(TRIO_KEY), key, sizeof(key)) == 0);
    *out = arena_zalloc(r->op->arena, sizeof(**out));
    (*out)[0] = (struct store_connection){.id = 1,
                                          .environment = 1,
                                          .epoch = 1,
                                          .name = TRIO_CONNECTION,
                                          .type = "postgres",
                                          .public_json = "{}",
                                          .digest = "digest"};
    auto_buf struct buf sealed = {0};
    crypto_seal(key, (*out)[0].nonce, slice_of(config), &sealed);
    (*out)[0].sealed = slice_make(arena_slice(r->op->arena, buf_slice(&sealed)), sealed.len);
    *r->n = 1;
    return 0;
}

void store_connections(struct store *s, struct store_op *op, uint64_t environment,
                       struct store_connection **out, size_t *n)
{
    (void)environment;
    struct read *r = store_sim_read(s, op, fill_connections);
    r->out = out;
    r->n = n;
}

static int fill_units(struct read *r)
{
    struct world *w = r->s->p->w;
    struct store_unit **out = r->out;
    *out = arena_zalloc(r->op->arena, TRIO_UNITS * sizeof(**out));
    *r->n = 0;
    for (size_t i = 0; i < w->n_units; i++) {
        const struct row_unit *row = memory_unit(w->rows, w->units[i].id);
        if (row) {
            (*out)[(*r->n)++] = (struct store_unit){.id = row->id,
                                                    .environment = 1,
                                                    .load = row->load,
                                                    .epoch = row->epoch,
                                                    .environment_name = TRIO_ENVIRONMENT,
                                                    .name = w->units[i].name,
                                                    .reload_emptied = row->reload_emptied};
        }
    }
    return 0;
}

void store_units(struct store *s, struct store_op *op, struct store_unit **out, size_t *n)
{
    struct read *r = store_sim_read(s, op, fill_units);
    r->out = out;
    r->n = n;
}

/* ---- loads ---- */
static struct slice model_text(struct arena *a, const struct trio_unit *u, unsigned version)
{
    return slice_of(arena_printf(a, "// %s, version %u\n", u->name, version));
}

static int fill_load(struct read *r)
{
    struct arena *a = r->op->arena;
    struct store_load *out = r->out;
    const struct trio_load *l = package_load(r->s->p->w, r->id);
    if (!l) {
        return err_set(&r->op->err, ERR_NOT_FOUND, "no such load");
    }
    const struct trio_unit *u = package_unit(r->s->p->w, l->unit);
    struct slice text = model_text(a, u, l->version);
    struct slice loaded = package_loaded(a, u, l->version);
    *out = (struct store_load){.id = l->id,
                               .unit = l->unit,
                               .version = sha256_of(text.p, text.len),
                               .compiler_version = "0.0.1",
                               .manifest_json = "{\"name\":\"p\"}",
                               .package_json = "{}",
                               .plan_json = "null",
                               .default_connection = "duckdb",
                               .loaded_packed = loaded.p,
                               .loaded_len = loaded.len,
                               .n_files = 1};
    out->files = arena_zalloc(a, sizeof(*out->files));
    out->files[0] = (struct store_file){.path = TRIO_MODEL,
                                        .content = text,
                                        .bytes = text.len,
                                        .sha256 = sha256_of(text.p, text.len)};
    return 0;
}

void store_get_load(struct store *s, struct store_op *op, uint64_t id, bool with_content,
                    struct store_load *out)
{
    (void)with_content;
    struct read *r = store_sim_read(s, op, fill_load);
    r->id = id;
    r->out = out;
}

static int fill_file(struct read *r)
{
    struct world *w = r->s->p->w;
    for (size_t i = 0; i < w->n_loads; i++) {
        struct slice text =
            model_text(r->op->arena, package_unit(w, w->loads[i].unit), w->loads[i].version);
        struct sha256 id = sha256_of(text.p, text.len);
        if (memcmp(id.b, r->sha256.b, sizeof(id.b)) == 0) {
            *(struct slice *)r->out = text;
            return 0;
        }
    }
    return err_set(&r->op->err, ERR_NOT_FOUND, "no such file");
}

void store_get_file(struct store *s, struct store_op *op, const struct sha256 *id,
                    struct slice *out)
{
    struct read *r = store_sim_read(s, op, fill_file);
    r->sha256 = *id;
    r->out = out;
}

static int fill_put_unit(struct read *r)
{
    const struct store_unit *in = r->in;
    const struct trio_unit *u = package_named(r->s->p->w, in->name, strlen(in->name));
    if (!u || !memory_unit(r->s->p->w->rows, u->id)) {
        trio_fail("a load is to be stored for package '%s', which was removed", in->name);
    }
    *(uint64_t *)r->out = u->id;
    return 0;
}

void store_put_unit(struct store *s, struct store_op *op, const struct store_unit *u,
                    uint64_t *out_id)
{
    struct read *r = store_sim_read(s, op, fill_put_unit);
    r->in = u;
    r->out = out_id;
}

static int fill_put_load(struct read *r)
{
    struct world *w = r->s->p->w;
    const struct store_load *in = r->in;
    struct trio_unit *u = package_unit(w, in->unit);
    struct arena a;
    arena_init(&a);
    for (unsigned v = 0; v <= u->version; v++) {
        struct slice loaded = package_loaded(&a, u, v);
        if (slice_eq(loaded, slice_make(in->loaded_packed, in->loaded_len))) {
            *(uint64_t *)r->out = package_load_add(w, u, v)->id;
        }
    }
    arena_fini(&a);
    return 0;
}

void store_put_load(struct store *s, struct store_op *op, const struct store_load *l,
                    uint64_t *out_id)
{
    struct read *r = store_sim_read(s, op, fill_put_load);
    r->in = l;
    r->out = out_id;
}

static int fill_nothing(struct read *r)
{
    if (r->n) {
        *r->n = 0;
    }
    return 0;
}

void store_unit_error(struct store *s, struct store_op *op, uint64_t unit, const char *load_error,
                      const char *stale_error)
{
    (void)unit;
    (void)load_error;
    (void)stale_error;
    (void)store_sim_read(s, op, fill_nothing);
}

void store_events_open(struct store *s, struct store_op *op, struct store_event **out, size_t *n)
{
    (void)out; /* nobody publishes by webhook here */
    store_sim_read(s, op, fill_nothing)->n = n;
}

void store_prune(struct store *s, struct store_op *op)
{
    (void)store_sim_read(s, op, fill_nothing);
}
