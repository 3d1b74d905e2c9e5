/* Results of an operation, copied from its scratch into the caller's arena. */
#include "common/warehouse/wh_duckdb_internal.h"

static void copy_columns(struct arena *a, const struct wh_columns *from, struct wh_columns *to)
{
    to->n = from->n;
    to->items = arena_zalloc(a, (from->n + 1) * sizeof(*to->items));
    for (size_t i = 0; i < from->n; i++) {
        to->items[i] = (struct wh_column){
            .name = arena_strdup(a, from->items[i].name),
            .data_type = arena_strdup(a, from->items[i].data_type),
            .element_type = arena_strdup(a, from->items[i].element_type),
            .nullable = from->items[i].nullable,
        };
    }
}

static void copy_fence(struct arena *a, const struct wh_fence *from, struct wh_fence *to)
{
    *to = *from;
    to->generation = arena_strdup(a, from->generation);
    to->build_id = arena_strdup(a, from->build_id);
}

static void copy_relations(struct arena *a, const struct wh_facts *from, struct wh_facts *to)
{
    to->n_relations = from->n_relations;
    to->relations = arena_zalloc(a, (from->n_relations + 1) * sizeof(*to->relations));
    for (size_t i = 0; i < from->n_relations; i++) {
        to->relations[i] = from->relations[i];
        to->relations[i].name.schema = arena_strdup(a, from->relations[i].name.schema);
        to->relations[i].name.table = arena_strdup(a, from->relations[i].name.table);
        copy_fence(a, &from->relations[i].fence, &to->relations[i].fence);
    }
}

static void copy_schemas(struct arena *a, const struct wh_facts *from, struct wh_facts *to)
{
    to->n_schemas = from->n_schemas;
    to->schemas = arena_zalloc(a, (from->n_schemas + 1) * sizeof(*to->schemas));
    to->schema_errors = arena_zalloc(a, (from->n_schemas + 1) * sizeof(*to->schema_errors));
    for (size_t i = 0; i < from->n_schemas; i++) {
        copy_columns(a, &from->schemas[i], &to->schemas[i]);
        to->schema_errors[i] = arena_strdup(a, from->schema_errors[i]);
    }
}

static void copy_files(struct arena *a, const struct wh_facts *from, struct wh_facts *to)
{
    to->files = arena_zalloc(a, (from->n_files + 1) * sizeof(*to->files));
    for (size_t i = 0; i < from->n_files; i++) {
        to->files[i] = (struct wh_file){arena_strdup(a, from->files[i].name), from->files[i].bytes};
    }
}

void duck_facts_copy(struct arena *a, const struct wh_facts *from, struct wh_facts *to)
{
    *to = *from;
    copy_columns(a, &from->columns, &to->columns);
    copy_fence(a, &from->fence, &to->fence);
    copy_relations(a, from, to);
    copy_schemas(a, from, to);
    copy_files(a, from, to);
}
