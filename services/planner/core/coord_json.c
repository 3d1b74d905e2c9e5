/* JSON that the core keeps in the run store for itself: targets, facts of attempts, the plan of a
 * run, what an ended run names. */
#include "services/planner/core/coord_internal.h"

char *json_keep(struct arena *a, json_t *v)
{
    auto_free char *text = json_text(v);
    json_decref(v);
    return arena_strdup(a, text);
}

static void set_opt(json_t *v, const char *key, const char *text)
{
    if (text) {
        json_set_str(v, key, text);
    }
}

static void set_nonzero(json_t *v, const char *key, int64_t n)
{
    if (n) {
        json_set_int(v, key, n);
    }
}

static void set_new(json_t *v, const char *key, json_t *member)
{
    must(json_object_set_new(v, key, member) == 0);
}

static const char *keep_str(struct coord *c, const json_t *v, const char *key)
{
    return coord_intern(c, json_str(v, key, NULL));
}

json_t *target_to_json(const struct core_target *t)
{
    json_t *v = json_object();
    json_set_int(v, "id", (int64_t)t->target_id);
    json_set_int(v, "place", (int64_t)t->place_id);
    json_set_flag(v, "inPlace", t->in_place);
    set_opt(v, "warehouse", t->warehouse);
    set_opt(v, "connection", t->connection);
    set_opt(v, "schema", t->schema);
    set_opt(v, "table", t->table);
    set_opt(v, "physical", t->physical);
    set_opt(v, "key", t->target_key);
    set_opt(v, "buildId", t->build_id);
    set_opt(v, "entityId", t->entity_id);
    return v;
}

struct core_target target_from_json(struct coord *c, const json_t *v)
{
    return (struct core_target){
        .target_id = (uint64_t)json_int(v, "id", 0),
        .place_id = (uint64_t)json_int(v, "place", 0),
        .in_place = json_flag(v, "inPlace", false),
        .warehouse = keep_str(c, v, "warehouse"),
        .connection = keep_str(c, v, "connection"),
        .schema = keep_str(c, v, "schema"),
        .table = keep_str(c, v, "table"),
        .physical = keep_str(c, v, "physical"),
        .target_key = keep_str(c, v, "key"),
        .build_id = keep_str(c, v, "buildId"),
        .entity_id = keep_str(c, v, "entityId"),
    };
}

json_t *columns_to_json(const struct core_columns *in)
{
    json_t *list = json_array();
    for (size_t i = 0; i < in->n; i++) {
        json_t *v = json_object();
        json_set_str(v, "name", in->items[i].name);
        json_set_str(v, "type", in->items[i].data_type);
        set_opt(v, "element", in->items[i].element_type);
        json_set_flag(v, "nullable", in->items[i].nullable);
        must(json_array_append_new(list, v) == 0);
    }
    return list;
}

static struct core_columns columns_from_json(struct coord *c, const json_t *list)
{
    struct core_columns out = {NULL, json_array_size(list)};
    if (out.n) {
        out.items = xcalloc(out.n, sizeof(*out.items));
    }
    for (size_t i = 0; i < out.n; i++) {
        const json_t *v = json_array_get(list, i);
        out.items[i] = (struct core_column){
            keep_str(c, v, "name"),
            keep_str(c, v, "type"),
            keep_str(c, v, "element"),
            json_flag(v, "nullable", true),
        };
    }
    return out;
}

/* An attempt's progress column: stage and counts while it works, the facts once it was granted or
 * has finished. */
char *facts_text(struct arena *a, const struct attempt *at)
{
    json_t *v = json_object();
    set_opt(v, "stage", at->stage);
    json_set_int(v, "rows", at->has_facts ? at->facts.rows : (int64_t)at->rows);
    json_set_int(v, "bytes", at->has_facts ? at->facts.bytes : (int64_t)at->bytes);
    if (at->has_facts) {
        set_nonzero(v, "asOfUs", at->facts.data_as_of_us);
        if (at->facts.took_ms >= 0) {
            json_set_int(v, "tookMs", at->facts.took_ms);
        }
        set_new(v, "columns", columns_to_json(&at->facts.columns));
    }
    return json_keep(a, v);
}

void facts_from_text(struct coord *c, const char *text, struct attempt *at)
{
    json_t *v = text ? json_parse(slice_of(text), NULL) : NULL;
    at->stage = keep_str(c, v, "stage");
    at->rows = (uint64_t)json_int(v, "rows", 0);
    at->bytes = (uint64_t)json_int(v, "bytes", 0);
    const json_t *columns = json_object_get(v, "columns");
    if (columns) {
        at->has_facts = true;
        at->facts = (struct facts){
            .rows = (int64_t)at->rows,
            .bytes = (int64_t)at->bytes,
            .data_as_of_us = json_int(v, "asOfUs", 0),
            .took_ms = json_int(v, "tookMs", -1),
            .columns = columns_from_json(c, columns),
        };
    }
    json_decref(v);
}

static json_t *strings_to_json(const char *const *list, size_t n)
{
    json_t *v = json_array();
    for (size_t i = 0; i < n; i++) {
        must(json_array_append_new(v, json_string(list[i])) == 0);
    }
    return v;
}

static const char *const *strings_from_json(struct coord *c, struct arena *a, const json_t *v,
                                            size_t *n)
{
    *n = json_array_size(v);
    const char **list = arena_alloc(a, (*n + 1) * sizeof(*list));
    for (size_t i = 0; i < *n; i++) {
        list[i] = coord_intern(c, json_string_value(json_array_get(v, i)));
    }
    return list;
}

static json_t *item_to_json(const struct plan_item *it)
{
    const struct plan_target *p = &it->p;
    json_t *v = json_object();
    json_set_int(v, "action", p->action);
    set_new(v, "target", target_to_json(&p->target));
    set_opt(v, "sourceId", p->source_id);
    set_opt(v, "sourceName", p->source_name);
    set_opt(v, "model", p->model);
    set_new(v, "ids", strings_to_json(p->source_ids, p->n_sources));
    set_new(v, "names", strings_to_json(p->source_names, p->n_sources));
    set_new(v, "models", strings_to_json(p->source_models, p->n_sources));
    set_opt(v, "generation", p->generation.id);
    set_nonzero(v, "rows", p->generation.rows);
    set_nonzero(v, "asOfUs", p->generation.data_as_of_us);
    set_opt(v, "failText", p->fail_text);
    set_nonzero(v, "failCode", p->fail_code);
    set_opt(v, "upstreamReuse", p->upstream_reuse);
    set_opt(v, "upstreamRecomputeReason", p->upstream_recompute_reason);
    set_nonzero(v, "windowS", p->window_s);
    set_nonzero(v, "fallback", p->fallback);
    if (it->left_out) {
        json_set_flag(v, "leftOut", true);
    }
    return v;
}

static void item_from_json(struct coord *c, struct arena *a, const json_t *v, struct plan_item *it)
{
    struct plan_target *p = &it->p;
    p->action = (enum plan_action)json_int(v, "action", PLAN_FAIL);
    p->target = target_from_json(c, json_object_get(v, "target"));
    p->source_id = keep_str(c, v, "sourceId");
    p->source_name = keep_str(c, v, "sourceName");
    p->model = keep_str(c, v, "model");
    p->source_ids = strings_from_json(c, a, json_object_get(v, "ids"), &p->n_sources);
    p->source_names = strings_from_json(c, a, json_object_get(v, "names"), &p->n_sources);
    p->source_models = strings_from_json(c, a, json_object_get(v, "models"), &p->n_sources);
    p->generation.id = arena_strdup(a, json_str(v, "generation", NULL));
    p->generation.rows = json_int(v, "rows", 0);
    p->generation.data_as_of_us = json_int(v, "asOfUs", 0);
    p->fail_text = arena_strdup(a, json_str(v, "failText", NULL));
    p->fail_code = (int)json_int(v, "failCode", 0);
    p->upstream_reuse = keep_str(c, v, "upstreamReuse");
    p->upstream_recompute_reason = arena_strdup(a, json_str(v, "upstreamRecomputeReason", NULL));
    p->window_s = (uint32_t)json_int(v, "windowS", 0);
    p->fallback = (int)json_int(v, "fallback", 0);
    it->left_out = json_flag(v, "leftOut", false);
    it->target = target_by_id(c, p->target.target_id);
}

static json_t *refusal_to_json(const struct plan_refusal *f)
{
    json_t *v = json_object();
    set_opt(v, "sourceId", f->source_id);
    set_opt(v, "name", f->name);
    set_opt(v, "model", f->model);
    set_opt(v, "tier", f->tier);
    set_opt(v, "reason", f->reason);
    set_opt(v, "message", f->message);
    json_set_flag(v, "authored", f->authored);
    return v;
}

static void refusal_from_json(struct arena *a, const json_t *v, struct plan_refusal *f)
{
    *f = (struct plan_refusal){
        .source_id = arena_strdup(a, json_str(v, "sourceId", NULL)),
        .name = arena_strdup(a, json_str(v, "name", NULL)),
        .model = arena_strdup(a, json_str(v, "model", NULL)),
        .tier = arena_strdup(a, json_str(v, "tier", NULL)),
        .reason = arena_strdup(a, json_str(v, "reason", NULL)),
        .message = arena_strdup(a, json_str(v, "message", NULL)),
        .authored = json_flag(v, "authored", false),
    };
}

char *run_plan_text(struct arena *a, const struct run *r)
{
    json_t *v = json_object();
    json_t *items = json_array();
    for (size_t i = 0; i < r->n_items; i++) {
        must(json_array_append_new(items, item_to_json(&r->items[i])) == 0);
    }
    json_t *refusals = json_array();
    for (size_t i = 0; i < r->n_refusals; i++) {
        must(json_array_append_new(refusals, refusal_to_json(&r->refusals[i])) == 0);
    }
    set_opt(v, "compilerVersion", r->compiler_version);
    set_new(v, "items", items);
    set_new(v, "refusals", refusals);
    return json_keep(a, v);
}

void plan_from_text(struct coord *c, struct run *r, const char *text)
{
    json_t *v = text ? json_parse(slice_of(text), NULL) : NULL;
    const json_t *items = json_object_get(v, "items");
    const json_t *refusals = json_object_get(v, "refusals");
    r->compiler_version = keep_str(c, v, "compilerVersion");
    r->n_items = json_array_size(items);
    r->items = arena_zalloc(&r->mem, (r->n_items + 1) * sizeof(*r->items));
    for (size_t i = 0; i < r->n_items; i++) {
        item_from_json(c, &r->mem, json_array_get(items, i), &r->items[i]);
        must(r->items[i].target != NULL);
        map_put_u64(&r->by_target, r->items[i].p.target.target_id, &r->items[i]);
    }
    r->n_refusals = json_array_size(refusals);
    r->refusals = arena_zalloc(&r->mem, (r->n_refusals + 1) * sizeof(*r->refusals));
    for (size_t i = 0; i < r->n_refusals; i++) {
        refusal_from_json(&r->mem, json_array_get(refusals, i), &r->refusals[i]);
    }
    json_decref(v);
}

char *held_text(struct arena *a, const struct run *r)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->n_held; i++) {
        const struct core_binding *b = &r->held[i];
        json_t *v = json_object();
        set_new(v, "target", target_to_json(&b->target));
        set_opt(v, "sourceId", b->source_id);
        set_opt(v, "sourceName", b->source_name);
        set_opt(v, "model", b->model);
        set_opt(v, "generation", b->generation.id);
        set_nonzero(v, "windowS", b->window_s);
        set_nonzero(v, "fallback", b->fallback);
        set_new(v, "sharedBy", strings_to_json(b->shared_by, b->n_shared_by));
        must(json_array_append_new(list, v) == 0);
    }
    json_t *v = json_object();
    set_new(v, "held", list);
    return json_keep(a, v);
}

void held_from_text(struct coord *c, struct run *r, const char *text)
{
    json_t *doc = text ? json_parse(slice_of(text), NULL) : NULL;
    const json_t *list = json_object_get(doc, "held");
    r->n_held = json_array_size(list);
    r->held = arena_zalloc(&r->mem, (r->n_held + 1) * sizeof(*r->held));
    for (size_t i = 0; i < r->n_held; i++) {
        const json_t *v = json_array_get(list, i);
        struct core_binding *b = &r->held[i];
        b->target = target_from_json(c, json_object_get(v, "target"));
        b->source_id = keep_str(c, v, "sourceId");
        b->source_name = keep_str(c, v, "sourceName");
        b->model = keep_str(c, v, "model");
        b->generation.id = arena_strdup(&r->mem, json_str(v, "generation", NULL));
        b->window_s = (uint32_t)json_int(v, "windowS", 0);
        b->fallback = (int)json_int(v, "fallback", 0);
        b->shared_by =
            strings_from_json(c, &r->mem, json_object_get(v, "sharedBy"), &b->n_shared_by);
    }
    json_decref(doc);
}
