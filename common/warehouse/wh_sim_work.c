/* The work of each operation on the tables and fence rows in memory. */
#include "common/warehouse/wh_sim_work.h"

#include <inttypes.h>
#include <stdio.h>

const char *sim_text(struct sim_op *o, const char *s)
{
    return arena_strdup(o->op->arena, s);
}

int sim_fail(struct sim_op *o, int code, const char *why, const struct wh_name *n)
{
    return err_set(&o->op->err, code, "simulated warehouse: \"%s\".\"%s\": %s", n->schema, n->table,
                   why);
}

/* ---- reading ---- */

static void one_column(struct sim_op *o, struct wh_columns *out)
{
    out->n = 1;
    out->items = arena_zalloc(o->op->arena, sizeof *out->items);
    out->items[0] = (struct wh_column){.name = "n", .data_type = "integer", .nullable = true};
}

static int run_tables(struct sim_op *o)
{
    struct wh_facts *facts = &o->op->facts;
    for (size_t i = 0; i < o->n; i++) {
        struct wh_name name;
        struct err e;
        if (wh_name_parse(o->op->arena, o->paths[i], &name, &e) < 0) {
            facts->schema_errors[i] = sim_text(o, e.text);
        } else if (!sim_table_find(o->sim, name.schema[0] ? name.schema : "public", name.table)) {
            facts->schema_errors[i] =
                arena_printf(o->op->arena, "table '%s' does not exist", o->paths[i]);
        } else {
            one_column(o, &facts->schemas[i]);
        }
    }
    return 0;
}

static void read_fence(struct sim_op *o, const struct sim_fence *f, const struct sim_table *t,
                       struct wh_fence *out)
{
    *out = (struct wh_fence){.exists = true,
                             .owner = f->owner,
                             .claim = f->claim,
                             .published = f->published,
                             .generation = sim_text(o, f->generation),
                             .build_id = sim_text(o, f->build_id),
                             .rows = f->rows,
                             .data_as_of_us = f->data_as_of_us,
                             .still_there = f->relid != 0 && t && t->oid == f->relid};
}

static bool is_wanted(const char *wanted, const char *found)
{
    return !wanted || (found && strcmp(wanted, found) == 0);
}

static void look(struct sim_op *o, size_t i)
{
    const struct wh_table *asked = &o->tables[i];
    struct wh_relation *rel = &o->op->facts.relations[i];
    const char *schema = asked->name.schema[0] ? asked->name.schema : "public";
    const struct sim_table *t = sim_table_find(o->sim, schema, asked->name.table);
    const struct sim_fence *f = sim_fence_find(o->sim, schema, asked->target_key);
    rel->name = (struct wh_name){.schema = schema, .table = asked->name.table};
    rel->schema_exists = rel->schema_writable = sim_schema_exists(o->sim, schema);
    if (t) {
        rel->kind = 'r';
        rel->oid = t->oid;
        rel->is_empty = t->rows == 0;
        rel->n_dependents = t->dependent != NULL;
        const char **dependents = arena_zalloc(o->op->arena, sizeof *dependents);
        dependents[0] = sim_text(o, t->dependent);
        rel->dependents = dependents;
    }
    if (f) {
        read_fence(o, f, t, &rel->fence);
    }
    if (o->kind == SIM_PROBE) {
        struct wh_fence *fence = &rel->fence;
        fence->still_there = fence->still_there && fence->published > 0 &&
                             uuid_eq(&fence->owner, &asked->owner) &&
                             is_wanted(asked->generation, fence->generation) &&
                             is_wanted(asked->build_id, fence->build_id);
    }
}

static int run_look(struct sim_op *o)
{
    for (size_t i = 0; i < o->n; i++) {
        look(o, i);
    }
    return 0;
}

static int run_describe(struct sim_op *o)
{
    uint64_t rows;
    bool hangs;
    int rc = sim_sql_rows(o->sim, o->sql, &rows, &hangs, &o->op->err);
    if (rc == 0) {
        one_column(o, &o->op->facts.columns);
    }
    return rc;
}

/* ---- writing ---- */

static void drop_staging(struct sim_op *o, uint64_t token)
{
    char name[40];
    sim_staging_name(token, name);
    wh_sim_drop_table(o->sim, o->tables[0].name.schema, name);
}

static int run_build(struct sim_op *o)
{
    uint64_t rows;
    bool hangs;
    const struct wh_name *n = &o->tables[0].name;
    if (!sim_schema_exists(o->sim, n->schema)) {
        return sim_fail(o, ERR_WH_MISSING, "the schema does not exist", n);
    }
    int rc = sim_sql_rows(o->sim, o->sql, &rows, &hangs, &o->op->err);
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; i < o->n_tokens; i++) {
        drop_staging(o, o->tokens[i]);
    }
    drop_staging(o, o->token);
    char name[40];
    sim_staging_name(o->token, name);
    (void)sim_table_put(o->sim, n->schema, name, rows);
    struct wh_facts *facts = &o->op->facts;
    facts->rows = rows;
    facts->bytes = rows * 36;
    facts->data_as_of_us = loop_unix_us();
    one_column(o, &facts->columns);
    return 0;
}

static int run_resolve(struct sim_op *o)
{
    const struct wh_table *t = &o->tables[0];
    struct sim_fence *f = sim_fence_find(o->sim, t->name.schema, t->target_key);
    if (!f) {
        f = sim_fence_put(o->sim, t->name.schema, t->target_key);
        f->owner = t->owner;
    }
    f->claim = f->claim > o->token ? f->claim : o->token;
    read_fence(o, f, sim_table_find(o->sim, t->name.schema, t->name.table), &o->op->facts.fence);
    return 0;
}

static bool is_older(const struct sim_op *o, const struct sim_fence *f)
{
    return f && f->claim > o->token;
}

/* May what stands at the name go? */
static int may_replace(struct sim_op *o, const struct sim_table *old, const struct sim_fence *f)
{
    const struct wh_name *n = &o->tables[0].name;
    if (is_older(o, f)) {
        return sim_fail(o, ERR_FENCED, "a newer claim holds it", n);
    }
    if (old && old->dependent) {
        return sim_fail(o, ERR_WH_DEPENDENTS, old->dependent, n);
    }
    bool is_known = f && f->published > 0;
    if (old && o->kind == SIM_SWAP && !is_known && old->rows > 0 && !o->publish.take_over) {
        return sim_fail(o, ERR_WH_TARGET, "it is a table with rows that Kiln did not make", n);
    }
    return 0;
}

static void replace(char **where, const char *with)
{
    free(*where);
    *where = xstrdup(with);
}

static int run_swap(struct sim_op *o)
{
    const struct wh_table *t = &o->tables[0];
    struct sim_table *old = sim_table_find(o->sim, t->name.schema, t->name.table);
    struct sim_fence *f = sim_fence_find(o->sim, t->name.schema, t->target_key);
    char name[40];
    sim_staging_name(o->token, name);
    struct sim_table *staging = sim_table_find(o->sim, t->name.schema, name);
    if (!staging && f && f->published == o->token) {
        read_fence(o, f, old, &o->op->facts.fence);
        return 0;
    }
    int rc = may_replace(o, old, f);
    if (rc < 0) {
        return rc;
    }
    if (!staging) {
        return sim_fail(o, ERR_WH_LOST, "its staging table is gone", &t->name);
    }
    if (old) {
        sim_table_free(old);
    }
    replace(&staging->table, t->name.table);
    f = sim_fence_put(o->sim, t->name.schema, t->target_key);
    f->owner = t->owner;
    f->claim = f->published = o->token;
    f->relid = staging->oid;
    f->rows = o->publish.rows;
    f->data_as_of_us = o->publish.data_as_of_us;
    replace(&f->generation, t->generation);
    replace(&f->build_id, t->build_id);
    read_fence(o, f, staging, &o->op->facts.fence);
    o->op->facts.rows = staging->rows;
    return 0;
}

static int run_drop(struct sim_op *o)
{
    const struct wh_table *t = &o->tables[0];
    struct sim_fence *f = sim_fence_find(o->sim, t->name.schema, t->target_key);
    if (is_older(o, f)) {
        return sim_fail(o, ERR_FENCED, "a newer claim holds it", &t->name);
    }
    struct sim_table *old = sim_table_find(o->sim, t->name.schema, t->name.table);
    bool is_there = f && f->published > 0 && old && old->oid == f->relid &&
                    uuid_eq(&f->owner, &t->owner) && is_wanted(t->generation, f->generation);
    if (is_there && old->dependent) {
        return sim_fail(o, ERR_WH_DEPENDENTS, old->dependent, &t->name);
    }
    f = sim_fence_put(o->sim, t->name.schema, t->target_key);
    if (f->claim == 0) {
        f->owner = t->owner;
    }
    f->claim = o->token;
    if (is_there) {
        sim_table_free(old);
        o->op->facts.rows = 1;
    }
    if (is_there || !old) {
        f->published = f->relid = 0;
    }
    return 0;
}

static int run_discard(struct sim_op *o)
{
    for (size_t i = 0; i < o->n_tokens; i++) {
        drop_staging(o, o->tokens[i]);
    }
    return 0;
}

static bool is_orphan(const struct sim_op *o, const struct sim_table *t)
{
    const struct wh_sweep *w = &o->sweep;
    bool in_schema = false;
    for (size_t i = 0; i < w->n_schemas; i++) {
        in_schema = in_schema || strcmp(w->schemas[i], t->schema) == 0;
    }
    uint64_t token = 0;
    if (!in_schema || strncmp(t->table, "_kiln_", 6) != 0 ||
        slice_to_u64(slice_of(t->table + 6), &token) < 0 || token >= (uint64_t)w->older_than_us) {
        return false;
    }
    for (size_t i = 0; i < w->n_live; i++) {
        if (w->live[i] == token) {
            return false;
        }
    }
    return true;
}

static int run_sweep(struct sim_op *o)
{
    list_for_each (it, &o->sim->tables) {
        struct sim_table *t = list_entry(it, struct sim_table, link);
        if (is_orphan(o, t)) {
            sim_table_free(t);
            o->op->facts.rows++;
        }
    }
    return 0;
}

/* ---- queries ---- */

static int read_receipt(struct sim_op *o, struct wh_receipt *r)
{
    const struct sim_table *t = sim_table_find(o->sim, r->name.schema, r->name.table);
    const struct sim_fence *f = sim_fence_find(o->sim, r->name.schema, r->name.table);
    r->ok = false;
    if (!t) {
        return sim_fail(o, ERR_WH_MISSING, "relation does not exist", &r->name);
    }
    if (f) {
        r->generation = sim_text(o, f->generation);
        r->published = f->published;
        r->data_as_of_us = f->data_as_of_us;
        r->ok = f->published > 0 && f->relid == t->oid && is_wanted(r->build_id, f->build_id);
    }
    return r->ok ? 0 : sim_fail(o, ERR_STORE_MOVED, "no longer holds that result", &r->name);
}

static int send_row(struct sim_op *o, uint64_t value)
{
    char cell[24];
    int len = snprintf(cell, sizeof cell, "%" PRIu64, value);
    struct slice cells[1] = {slice_make(cell, (size_t)len)};
    int rc = o->sink->on_row(o->sink->data, cells);
    return rc < 0 ? err_set(&o->op->err, rc, "the reader of the rows stopped") : 0;
}

static int run_query(struct sim_op *o)
{
    uint64_t rows;
    bool hangs;
    int rc = 0;
    for (size_t i = 0; i < o->query->n_baked && rc == 0; i++) {
        rc = read_receipt(o, &o->query->baked[i]);
    }
    if (rc == 0) {
        rc = sim_sql_rows(o->sim, o->sql, &rows, &hangs, &o->op->err);
    }
    if (rc < 0) {
        return rc;
    }
    one_column(o, &o->op->facts.columns);
    if (o->sink->on_columns) {
        rc = o->sink->on_columns(o->sink->data, &o->op->facts.columns);
    }
    bool counts = strstr(o->sql, "count(*)") != NULL;
    for (uint64_t i = 0; rc == 0 && i < (counts ? 1 : rows); i++) {
        rc = send_row(o, counts ? rows : i + 1);
        o->op->facts.rows += rc == 0;
    }
    return rc;
}

static int run_test(struct sim_op *o)
{
    (void)o;
    return 0;
}

static int (*const runs[SIM_N_OPS])(struct sim_op *o) = {
    [SIM_TEST] = run_test,
    [SIM_CATALOG_TABLES] = run_tables,
    [SIM_CATALOG_TARGETS] = run_look,
    [SIM_DESCRIBE] = run_describe,
    [SIM_PROBE] = run_look,
    [SIM_BUILD] = run_build,
    [SIM_RESOLVE] = run_resolve,
    [SIM_SWAP] = run_swap,
    [SIM_DROP] = run_drop,
    [SIM_DISCARD] = run_discard,
    [SIM_SWEEP] = run_sweep,
    [SIM_QUERY] = run_query,
};

int sim_run(struct sim_op *o)
{
    return runs[o->kind](o);
}
