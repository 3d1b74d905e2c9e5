#include "services/planner/store/set_json.h"

#include "common/json/json.h"

static const char *text_in(struct arena *a, json_t *v)
{
    auto_buf struct buf out = {0};
    json_print(v, &out);
    json_decref(v);
    return arena_slice(a, buf_slice(&out));
}

static void put_str(json_t *obj, const char *key, const char *value)
{
    if (value) {
        json_set_str(obj, key, value);
    }
}

static void set_member(json_t *obj, const char *key, json_t *value)
{
    must(json_object_set_new(obj, key, value) == 0);
}

static void list_add_json(json_t *list, json_t *value)
{
    must(json_array_append_new(list, value) == 0);
}

static json_t *columns_to(const struct core_columns *columns)
{
    json_t *list = json_array();
    for (size_t i = 0; i < columns->n; i++) {
        json_t *v = json_object();
        put_str(v, "name", columns->items[i].name);
        put_str(v, "type", columns->items[i].data_type);
        put_str(v, "element", columns->items[i].element_type);
        json_set_flag(v, "nullable", columns->items[i].nullable);
        list_add_json(list, v);
    }
    return list;
}

static json_t *target_to(const struct core_target *t)
{
    json_t *v = json_object();
    json_set_int(v, "target", (int64_t)t->target_id);
    json_set_int(v, "place", (int64_t)t->place_id);
    put_str(v, "warehouse", t->warehouse);
    put_str(v, "connection", t->connection);
    json_set_flag(v, "inPlace", t->in_place);
    put_str(v, "schema", t->schema);
    put_str(v, "table", t->table);
    put_str(v, "physical", t->physical);
    put_str(v, "key", t->target_key);
    put_str(v, "buildId", t->build_id);
    put_str(v, "entityId", t->entity_id);
    return v;
}

static json_t *generation_to(const struct core_generation *g)
{
    json_t *v = json_object();
    put_str(v, "id", g->id);
    json_set_int(v, "token", (int64_t)g->token);
    json_set_int(v, "rows", g->rows);
    json_set_int(v, "bytes", g->bytes);
    json_set_int(v, "dataAsOf", g->data_as_of_us);
    if (!id16_is_zero(g->root.b)) {
        char root[UUID_TEXT];
        uuid_format(&g->root, root);
        put_str(v, "root", root);
    }
    set_member(v, "columns", columns_to(&g->columns));
    return v;
}

static json_t *binding_to(const struct core_binding *b)
{
    json_t *v = json_object();
    put_str(v, "sourceId", b->source_id);
    put_str(v, "sourceName", b->source_name);
    put_str(v, "model", b->model);
    set_member(v, "at", target_to(&b->target));
    set_member(v, "generation", generation_to(&b->generation));
    json_set_int(v, "window", b->window_s);
    json_set_int(v, "fallback", b->fallback);
    json_t *shared = json_array();
    for (size_t i = 0; i < b->n_shared_by; i++) {
        list_add_json(shared, json_string(b->shared_by[i]));
    }
    set_member(v, "sharedBy", shared);
    return v;
}

const char *set_json_text(struct arena *a, const struct core_binding_set *set)
{
    json_t *bindings = json_array();
    for (size_t i = 0; i < set->n; i++) {
        list_add_json(bindings, binding_to(&set->bindings[i]));
    }
    json_t *unbaked = json_array();
    for (size_t i = 0; i < set->n_unbaked; i++) {
        json_t *v = json_object();
        put_str(v, "sourceId", set->unbaked[i].source_id);
        put_str(v, "code", set->unbaked[i].code);
        put_str(v, "text", set->unbaked[i].text);
        list_add_json(unbaked, v);
    }
    json_t *root = json_object();
    set_member(root, "bindings", bindings);
    set_member(root, "unbaked", unbaked);
    return text_in(a, root);
}

const char *columns_json_text(struct arena *a, const struct core_columns *columns)
{
    return text_in(a, columns_to(columns));
}

/* ---- and back ---- */

static const char *get_str(struct arena *a, const json_t *obj, const char *key)
{
    return arena_strdup(a, json_str(obj, key, NULL));
}

static void columns_from(struct arena *a, const json_t *list, struct core_columns *out)
{
    out->n = json_array_size(list);
    out->items = arena_zalloc(a, (out->n + 1) * sizeof *out->items);
    for (size_t i = 0; i < out->n; i++) {
        const json_t *v = json_array_get(list, i);
        out->items[i] = (struct core_column){.name = get_str(a, v, "name"),
                                             .data_type = get_str(a, v, "type"),
                                             .element_type = get_str(a, v, "element"),
                                             .nullable = json_flag(v, "nullable", true)};
    }
}

static struct core_target target_from(struct arena *a, const json_t *v)
{
    return (struct core_target){.target_id = (uint64_t)json_int(v, "target", 0),
                                .place_id = (uint64_t)json_int(v, "place", 0),
                                .warehouse = get_str(a, v, "warehouse"),
                                .connection = get_str(a, v, "connection"),
                                .in_place = json_flag(v, "inPlace", false),
                                .schema = get_str(a, v, "schema"),
                                .table = get_str(a, v, "table"),
                                .physical = get_str(a, v, "physical"),
                                .target_key = get_str(a, v, "key"),
                                .build_id = get_str(a, v, "buildId"),
                                .entity_id = get_str(a, v, "entityId")};
}

static struct core_generation generation_from(struct arena *a, const json_t *v)
{
    struct core_generation g = {.id = get_str(a, v, "id"),
                                .token = (uint64_t)json_int(v, "token", 0),
                                .rows = json_int(v, "rows", 0),
                                .bytes = json_int(v, "bytes", 0),
                                .data_as_of_us = json_int(v, "dataAsOf", 0)};
    (void)!uuid_parse(slice_of(json_str(v, "root", "")), &g.root);
    columns_from(a, json_object_get(v, "columns"), &g.columns);
    return g;
}

static struct core_binding binding_from(struct arena *a, const json_t *v)
{
    const json_t *shared = json_object_get(v, "sharedBy");
    struct core_binding b = {.source_id = get_str(a, v, "sourceId"),
                             .source_name = get_str(a, v, "sourceName"),
                             .model = get_str(a, v, "model"),
                             .target = target_from(a, json_object_get(v, "at")),
                             .generation = generation_from(a, json_object_get(v, "generation")),
                             .window_s = (uint32_t)json_int(v, "window", 0),
                             .fallback = (int)json_int(v, "fallback", 0),
                             .n_shared_by = json_array_size(shared)};
    const char **names = arena_zalloc(a, (b.n_shared_by + 1) * sizeof *names);
    for (size_t i = 0; i < b.n_shared_by; i++) {
        names[i] = arena_strdup(a, json_string_value(json_array_get(shared, i)));
    }
    b.shared_by = names;
    return b;
}

static void set_from(struct arena *a, const json_t *root, struct core_binding_set *out)
{
    const json_t *bindings = json_object_get(root, "bindings");
    out->n = json_array_size(bindings);
    out->bindings = arena_zalloc(a, (out->n + 1) * sizeof *out->bindings);
    for (size_t i = 0; i < out->n; i++) {
        out->bindings[i] = binding_from(a, json_array_get(bindings, i));
    }
    const json_t *unbaked = json_object_get(root, "unbaked");
    out->n_unbaked = json_array_size(unbaked);
    out->unbaked = arena_zalloc(a, (out->n_unbaked + 1) * sizeof *out->unbaked);
    for (size_t i = 0; i < out->n_unbaked; i++) {
        const json_t *v = json_array_get(unbaked, i);
        out->unbaked[i] = (struct core_unbaked){get_str(a, v, "sourceId"), get_str(a, v, "code"),
                                                get_str(a, v, "text")};
    }
}

static int not_ours(const char *what, const json_t *v, struct err *e)
{
    return err_set(e, ERR_STORE_SCHEMA,
                   "run store: %s of another shape than this version writes%s%s", what,
                   v ? "" : ": ", v ? "" : err_text(e));
}

int set_json_parse(struct arena *a, struct slice text, struct core_binding_set *out, struct err *e)
{
    json_t *root = json_parse(text, e);
    if (!json_is_array(json_object_get(root, "bindings"))) {
        int rc = not_ours("a binding set is", root, e);
        json_decref(root);
        return rc;
    }
    set_from(a, root, out);
    json_decref(root);
    return 0;
}

int columns_json_parse(struct arena *a, struct slice text, struct core_columns *out, struct err *e)
{
    json_t *list = json_parse(text, e);
    if (!json_is_array(list)) {
        int rc = not_ours("columns are", list, e);
        json_decref(list);
        return rc;
    }
    columns_from(a, list, out);
    json_decref(list);
    return 0;
}
