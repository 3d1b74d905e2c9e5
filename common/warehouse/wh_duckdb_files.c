/* What is done to generations on disk without a statement. */
#include "common/warehouse/wh_duckdb_internal.h"

/* ---- probe ---- */

static bool is_wanted(const char *wanted, const char *found)
{
    return !wanted || strcmp(wanted, found) == 0;
}

static int probe_one(struct duck_op *o, const struct wh_table *t, struct wh_relation *rel,
                     struct err *e)
{
    struct generation_ref ref;
    struct generation_manifest m;
    rel->name = t->name;
    rel->schema_exists = true;
    int rc = duck_ref_of(o, t, &ref, e);
    if (rc < 0) {
        return rc;
    }
    struct err why;
    if (generation_read(&o->scratch, &ref, &m, &why) < 0) {
        return why.code == ERR_IO ? err_set(e, ERR_IO, "%s", why.text) : 0;
    }
    rel->kind = 'r';
    rel->fence = (struct wh_fence){.exists = true,
                                   .owner = m.installation,
                                   .claim = m.token,
                                   .published = m.token,
                                   .generation = m.id,
                                   .build_id = m.build_id,
                                   .rows = (int64_t)m.rows,
                                   .data_as_of_us = m.data_as_of_us};
    rc = generation_verify(&ref, &m, GENERATION_TOUCHED, &why);
    if (rc == ERR_IO) {
        return err_set(e, ERR_IO, "%s", why.text);
    }
    rel->fence.still_there =
        rc == 0 && uuid_eq(&m.installation, &t->owner) && is_wanted(t->build_id, m.build_id);
    return 0;
}

static int work_probe(struct duck_job *job, struct duck_conn *conn, struct err *e)
{
    (void)conn;
    struct duck_op *o = duck_op_of(job);
    int rc = 0;
    for (size_t i = 0; i < o->n && rc == 0; i++) {
        rc = probe_one(o, &o->tables[i], &o->facts.relations[i], e);
    }
    return rc;
}

void duck_wh_probe(struct wh_op *op, const struct wh_table *tables, size_t n)
{
    struct duck_op *o = duck_op_new(op, "probing", work_probe);
    o->tables = duck_op_tables(o, tables, n);
    o->facts.n_relations = n;
    o->facts.relations = arena_zalloc(&o->scratch, (n + 1) * sizeof(*o->facts.relations));
    duck_op_go(o, true, MS(15000));
}

/* ---- drop, discard, sweep ---- */

static int work_drop(struct duck_job *job, struct duck_conn *conn, struct err *e)
{
    (void)conn;
    struct duck_op *o = duck_op_of(job);
    struct generation_ref ref;
    int rc = duck_ref_of(o, &o->tables[0], &ref, e);
    if (rc == 0) {
        rc = generation_drop(&ref, e);
    }
    o->facts.rows = rc > 0;
    return rc < 0 ? rc : 0;
}

void duck_wh_drop(struct wh_op *op, const struct wh_table *t, uint64_t token)
{
    (void)token; /* a generation's name is used once: there is nobody to race with */
    struct duck_op *o = duck_op_new(op, "dropping", work_drop);
    o->tables = duck_op_tables(o, t, 1);
    duck_op_go(o, false, MS(60000));
}

static int work_discard(struct duck_job *job, struct duck_conn *conn, struct err *e)
{
    (void)conn;
    struct duck_op *o = duck_op_of(job);
    const struct duck_package *p = o->package;
    int rc = p->root ? generation_discard(p->root, p->dataset, o->tokens, o->n_tokens, e) : 0;
    return rc < 0 ? rc : 0;
}

void duck_wh_discard(struct wh_op *op, const struct wh_table *t, const uint64_t *tokens, size_t n)
{
    struct duck_op *o = duck_op_new(op, "discarding", work_discard);
    o->tables = duck_op_tables(o, t, 1);
    o->tokens = duck_op_tokens(o, tokens, n);
    duck_op_go(o, true, MS(60000));
}

static int work_sweep(struct duck_job *job, struct duck_conn *conn, struct err *e)
{
    (void)conn;
    struct duck_op *o = duck_op_of(job);
    const struct duck_package *p = o->package;
    if (!p->root || !o->record.ids) {
        return err_set(
            e, ERR_ARG,
            "connection '%s': a sweep of generations needs a root and the record of those "
            "that stay",
            p->name);
    }
    struct generation_names all = {o->paths, o->n};
    int rc = o->n == 0 ? generation_datasets(&o->scratch, p->root, &all, e) : 0;
    for (size_t i = 0; i < all.n && rc == 0; i++) {
        int n = generation_sweep(p->root, all.items[i], &o->record, e);
        o->facts.rows += n > 0 ? (uint64_t)n : 0;
        rc = n < 0 ? n : duck_job_stopped(job, e);
    }
    return rc;
}

static const char **texts(struct duck_op *o, const char *const *from, size_t n)
{
    const char **out = arena_zalloc(&o->scratch, (n + 1) * sizeof(*out));
    for (size_t i = 0; i < n; i++) {
        out[i] = duck_op_text(o, from[i]);
    }
    return out;
}

void duck_wh_sweep(struct wh_op *op, const struct wh_sweep *s)
{
    struct duck_op *o = duck_op_new(op, "sweeping", work_sweep);
    o->paths = texts(o, s->schemas, s->n_schemas);
    o->n = s->n_schemas;
    o->record = (struct generation_record){
        .ids = s->generations ? texts(o, s->generations, s->n_generations) : NULL,
        .n = s->n_generations,
        .older_than_us = s->older_than_us};
    duck_op_go(o, false, MS(60000));
}
