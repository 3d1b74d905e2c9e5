/* Everything the plan must know about target names, and whether a name still holds a generation. */
#include "common/warehouse/wh_postgres.h"

enum { TARGETS_LOOK, TARGETS_FENCES, TARGETS_END };

struct op_targets {
    struct wh_pg_op o;
    struct wh_name *names;
    const char **keys;             /* of the fence rows */
    const struct wh_table *wanted; /* probe: what must be there; NULL: catalog */
    size_t n;
    bool *has_fence;
};

static struct op_targets *targets_of(struct flow *f)
{
    return container_of(wh_pg_op_of(f), struct op_targets, o);
}

static enum flow_next step_look(struct flow *f)
{
    struct op_targets *t = targets_of(f);
    if (f->entered) {
        t->o.stage = "reading the catalog";
        if (t->wanted) {
            wh_pg_glance_add(&t->o, t->names, t->n);
        } else {
            wh_pg_look_add(&t->o, t->names, t->n);
        }
        return wh_pg_run(&t->o);
    }
    if (wh_pg_failed(&t->o, TARGETS_END)) {
        return FLOW_AGAIN;
    }
    struct wh_relation *relations = t->o.op->facts.relations;
    if (t->wanted) {
        wh_pg_glance_read(&t->o, 0, relations, t->n, t->has_fence);
    } else {
        wh_pg_look_read(&t->o, 0, relations, t->n, t->has_fence);
    }
    return flow_goto(f, TARGETS_FENCES);
}

/* One statement for each name that has a fence table in its schema, one for each table that may be
 * read. The second batch of a look: neither the fence nor the table is assumed to exist. */
static bool add_fences(struct op_targets *t)
{
    struct wh_pg_op *o = &t->o;
    for (size_t i = 0; i < t->n; i++) {
        struct wh_relation *rel = &o->op->facts.relations[i];
        if (t->has_fence[i]) {
            wh_pg_add(o,
                      "SELECT " WH_PG_FENCE_COLUMNS ", f.relid IS NOT NULL AND f.relid = %llu "
                      "FROM %s f WHERE f.target = %s",
                      (unsigned long long)rel->oid, wh_pg_fence(o, rel->name.schema),
                      wh_pg_literal(o, t->keys[i]));
        }
        rel->is_empty = rel->is_empty && !t->wanted; /* a probe does not ask */
        if (rel->is_empty) {
            const char *table = wh_pg_quoted(o, &rel->name);
            const char *text = wh_pg_literal(o, table);
            wh_pg_add(o, WH_PG_IS_EMPTY, text, text, table);
        }
    }
    return o->n_stmts > 0;
}

static void read_fences(struct op_targets *t)
{
    struct wh_pg_op *o = &t->o;
    size_t at = 0;
    for (size_t i = 0; i < t->n; i++) {
        struct wh_relation *rel = &o->op->facts.relations[i];
        if (t->has_fence[i]) {
            const struct pgc_result *r = wh_pg_result(o, at++);
            if (pgc_rows(r) > 0) {
                wh_pg_read_fence(o, r, 0, 0, &rel->fence);
            }
        }
        if (rel->is_empty) {
            rel->is_empty = pgc_bool(wh_pg_result(o, at++), 0, 0);
        }
    }
}

static bool is_wanted(const char *wanted, const char *found)
{
    return !wanted || (found && strcmp(wanted, found) == 0);
}

/* A probe's answer: the very generation that was asked for, in the very table that was published.
 */
static void judge(struct op_targets *t)
{
    for (size_t i = 0; t->wanted && i < t->n; i++) {
        struct wh_fence *fence = &t->o.op->facts.relations[i].fence;
        fence->still_there = fence->still_there && fence->published > 0 &&
                             uuid_eq(&fence->owner, &t->wanted[i].owner) &&
                             is_wanted(t->wanted[i].generation, fence->generation) &&
                             is_wanted(t->wanted[i].build_id, fence->build_id);
    }
}

static enum flow_next step_fences(struct flow *f)
{
    struct op_targets *t = targets_of(f);
    if (f->entered && add_fences(t)) {
        return wh_pg_run(&t->o);
    }
    if (!f->entered) {
        if (f->rc == ERR_WH_MISSING && !f->cancel_asked) {
            return flow_goto(f, TARGETS_LOOK); /* dropped between the two batches */
        }
        if (wh_pg_failed(&t->o, TARGETS_END)) {
            return FLOW_AGAIN;
        }
        read_fences(t);
    }
    judge(t);
    return flow_goto(f, TARGETS_END);
}

static const struct flow_step targets_steps[] = {
    {.name = "LOOK",
     .run = step_look,
     .to = FLOW_TO(TARGETS_FENCES) | FLOW_TO(TARGETS_END),
     .cancel = wh_pg_cancel_wait,
     .says = "what stands at the names, and what depends on it"},
    {.name = "FENCES",
     .run = step_fences,
     .to = FLOW_TO(TARGETS_LOOK) | FLOW_TO(TARGETS_END),
     .cancel = wh_pg_cancel_wait,
     .says = "fence rows; which tables are empty"},
    {.name = "END", .run = wh_pg_step_end, .says = "report"},
};
static const struct flow_type targets_flow = {"wh_targets", targets_steps,
                                              ARRAY_LEN(targets_steps)};

static struct op_targets *start(struct wh_op *op, size_t n)
{
    struct op_targets *t = wh_pg_op_start(op, sizeof *t, &targets_flow, MS(15000));
    t->n = n;
    t->names = arena_zalloc(op->arena, (n + 1) * sizeof *t->names);
    t->keys = arena_zalloc(op->arena, (n + 1) * sizeof *t->keys);
    t->has_fence = arena_zalloc(op->arena, n + 1);
    op->facts.relations = arena_zalloc(op->arena, (n + 1) * sizeof *op->facts.relations);
    op->facts.n_relations = n;
    return t;
}

static void set_name(struct op_targets *t, size_t i, const struct wh_name *name, const char *key)
{
    struct arena *a = t->o.arena;
    t->names[i] = (struct wh_name){.schema = arena_strdup(a, name->schema ? name->schema : ""),
                                   .table = arena_strdup(a, name->table)};
    t->keys[i] = arena_strdup(a, key);
    t->o.op->facts.relations[i].name = t->names[i];
}

void wh_pg_catalog_targets(struct wh_op *op, const struct wh_name *names, size_t n)
{
    struct op_targets *t = start(op, n);
    for (size_t i = 0; i < n; i++) {
        set_name(t, i, &names[i], names[i].table);
    }
}

void wh_pg_probe(struct wh_op *op, const struct wh_table *tables, size_t n)
{
    struct op_targets *t = start(op, n);
    struct wh_table *wanted = arena_dup(op->arena, tables, n * sizeof *tables);
    for (size_t i = 0; i < n; i++) {
        set_name(t, i, &tables[i].name, tables[i].target_key);
        wanted[i].generation = arena_strdup(op->arena, tables[i].generation);
        wanted[i].build_id = arena_strdup(op->arena, tables[i].build_id);
    }
    t->wanted = wanted;
}
