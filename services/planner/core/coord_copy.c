/* Deep copies of what crosses the coordinator's border: into the arena of a call, or interned for
 * good. */
#include "services/planner/core/coord_internal.h"

const char *const *strings_copy(struct arena *a, const char *const *list, size_t n)
{
    const char **copy = arena_alloc(a, (n + 1) * sizeof(*copy));
    for (size_t i = 0; i < n; i++) {
        copy[i] = arena_strdup(a, list[i]);
    }
    copy[n] = NULL;
    return copy;
}

struct core_target target_copy(struct arena *a, const struct core_target *t)
{
    struct core_target c = *t;
    c.warehouse = arena_strdup(a, t->warehouse);
    c.connection = arena_strdup(a, t->connection);
    c.schema = arena_strdup(a, t->schema);
    c.table = arena_strdup(a, t->table);
    c.physical = arena_strdup(a, t->physical);
    c.target_key = arena_strdup(a, t->target_key);
    c.build_id = arena_strdup(a, t->build_id);
    c.entity_id = arena_strdup(a, t->entity_id);
    return c;
}

struct core_target target_keep(struct coord *c, const struct core_target *t)
{
    struct core_target k = *t;
    k.warehouse = coord_intern(c, t->warehouse);
    k.connection = coord_intern(c, t->connection);
    k.schema = coord_intern(c, t->schema);
    k.table = coord_intern(c, t->table);
    k.physical = coord_intern(c, t->physical);
    k.target_key = coord_intern(c, t->target_key);
    k.build_id = coord_intern(c, t->build_id);
    k.entity_id = coord_intern(c, t->entity_id);
    return k;
}

struct core_columns columns_copy(struct arena *a, const struct core_columns *in)
{
    struct core_columns out = {arena_alloc(a, (in->n + 1) * sizeof(*out.items)), in->n};
    for (size_t i = 0; i < in->n; i++) {
        out.items[i] = (struct core_column){
            arena_strdup(a, in->items[i].name),
            arena_strdup(a, in->items[i].data_type),
            arena_strdup(a, in->items[i].element_type),
            in->items[i].nullable,
        };
    }
    return out;
}

struct core_columns columns_keep(struct coord *c, const struct core_columns *in)
{
    struct core_columns out = {NULL, in->n};
    if (in->n) {
        out.items = xcalloc(in->n, sizeof(*out.items));
    }
    for (size_t i = 0; i < in->n; i++) {
        out.items[i] = (struct core_column){
            coord_intern(c, in->items[i].name),
            coord_intern(c, in->items[i].data_type),
            coord_intern(c, in->items[i].element_type),
            in->items[i].nullable,
        };
    }
    return out;
}

struct core_generation generation_copy(struct arena *a, const struct core_generation *g)
{
    struct core_generation c = *g;
    c.id = arena_strdup(a, g->id);
    c.columns = columns_copy(a, &g->columns);
    return c;
}

struct core_binding binding_copy(struct arena *a, const struct core_binding *b)
{
    struct core_binding c = *b;
    c.source_id = arena_strdup(a, b->source_id);
    c.source_name = arena_strdup(a, b->source_name);
    c.model = arena_strdup(a, b->model);
    c.target = target_copy(a, &b->target);
    c.generation = generation_copy(a, &b->generation);
    c.shared_by = strings_copy(a, b->shared_by, b->n_shared_by);
    return c;
}

void set_copy(struct arena *a, const struct core_binding_set *in, struct core_binding_set *out)
{
    *out = *in;
    out->run = arena_strdup(a, in->run);
    out->cause = arena_strdup(a, in->cause);
    out->bindings = arena_alloc(a, (in->n + 1) * sizeof(*out->bindings));
    for (size_t i = 0; i < in->n; i++) {
        out->bindings[i] = binding_copy(a, &in->bindings[i]);
    }
    out->unbaked = arena_alloc(a, (in->n_unbaked + 1) * sizeof(*out->unbaked));
    for (size_t i = 0; i < in->n_unbaked; i++) {
        out->unbaked[i] = (struct core_unbaked){
            arena_strdup(a, in->unbaked[i].source_id),
            arena_strdup(a, in->unbaked[i].code),
            arena_strdup(a, in->unbaked[i].text),
        };
    }
}
