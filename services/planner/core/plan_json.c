#include "services/planner/core/plan_internal.h"

static json_t *text_or_null(const char *text)
{
    json_t *holder = json_object();
    json_set_str(holder, "v", text);
    json_t *v = json_incref(json_object_get(holder, "v"));
    json_decref(holder);
    return v;
}

static void append_text(json_t *list, const char *text)
{
    must(json_array_append_new(list, text_or_null(text)) == 0);
}

static void set_new(json_t *obj, const char *key, json_t *value)
{
    must(json_object_set_new(obj, key, value) == 0);
}

static json_t *freshness_json(const char *window, const char *fallback)
{
    if (!window && !fallback) {
        return json_null();
    }
    json_t *v = json_object();
    json_set_str(v, "window", window);
    json_set_str(v, "fallback", fallback);
    return v;
}

/* Keys with scalar text: nested ones are left out (spec 3.1). */
static json_t *fields_json(const Kiln__Mc__Source *s)
{
    json_t *v = json_object();
    for (size_t i = 0; i < s->n_tag; i++) {
        if (!strchr(s->tag[i]->key, '.')) {
            json_set_str(v, s->tag[i]->key, s->tag[i]->value);
        }
    }
    return v;
}

static json_t *columns_json(const struct core_columns *columns)
{
    json_t *list = json_array();
    for (size_t i = 0; i < columns->n; i++) {
        json_t *c = json_object();
        json_set_str(c, "name", columns->items[i].name);
        json_set_str(c, "type", columns->items[i].data_type);
        must(json_array_append_new(list, c) == 0);
    }
    return list;
}

static json_t *source_json(const struct plan_src *s)
{
    const struct planned_source *row = &s->row;
    json_t *v = json_object();
    json_set_str(v, "name", row->name);
    json_set_str(v, "sourceID", row->source_id);
    json_set_str(v, "connectionName", row->connection);
    json_set_str(v, "dialect", row->dialect);
    json_set_str(v, "origin", "persist");
    json_set_str(v, "preaggregate", NULL);
    json_set_str(v, "sourceEntityId", row->entity_id);
    json_set_str(v, "sql", row->sql);
    json_set_str(v, "refresh", s->refresh);
    set_new(v, "freshness", freshness_json(row->freshness_window, row->freshness_fallback));
    set_new(v, "queryMetadata", s->metadata ? json_incref(s->metadata) : json_null());
    set_new(v, "columns", columns_json(&row->columns));
    set_new(v, "annotationFields", fields_json(s->msg));
    json_set_str(v, "modelPath", row->model);
    return v;
}

static json_t *refusals_json(const struct package_plan *p)
{
    json_t *map = json_object();
    for (size_t i = 0; i < p->n_refusals; i++) {
        const struct plan_refusal *r = &p->refusals[i];
        json_t *v = json_object();
        json_set_str(v, "name", r->name);
        json_set_str(v, "sourceID", r->source_id);
        json_set_str(v, "modelPath", r->model);
        json_set_str(v, "tier", r->tier);
        json_set_str(v, "reason", r->reason);
        json_set_str(v, "message", r->message);
        set_new(map, r->source_id, v);
    }
    return map;
}

static bool is_listed(const struct plan_making *m, const struct plan_src *s)
{
    if (s->refused_reason || !*s->row.build_id) {
        return false;
    }
    return s->row.target < 0 || !m->out->targets[s->row.target].refused_reason;
}

/* Level 0 reads no listed source; a source's level is one more than its deepest upstream's. */
static size_t level_of(const struct plan_making *m, const size_t *levels, const struct plan_src *s)
{
    size_t level = 0;
    for (size_t i = 0; i < s->msg->n_depends_on_sources; i++) {
        const struct plan_src *up = plan_source(m, s->msg->depends_on_sources[i]);
        if (up && is_listed(m, up) && strcmp(up->row.connection, s->row.connection) == 0) {
            size_t deeper = levels[up - m->src] + 1;
            level = deeper > level ? deeper : level;
        }
    }
    return level;
}

static json_t *node_json(const struct plan_src *s)
{
    json_t *node = json_object();
    json_t *depends = json_array();
    for (size_t i = 0; i < s->msg->n_depends_on_sources; i++) {
        append_text(depends, s->msg->depends_on_sources[i]);
    }
    json_set_str(node, "sourceID", s->row.source_id);
    set_new(node, "dependsOn", depends);
    return node;
}

static json_t *graph_of(json_t *graphs, const char *connection)
{
    size_t i;
    json_t *graph;
    json_array_foreach(graphs, i, graph)
    {
        if (strcmp(json_str(graph, "connectionName", ""), connection) == 0) {
            return graph;
        }
    }
    graph = json_object();
    json_set_str(graph, "connectionName", connection);
    set_new(graph, "nodes", json_array());
    must(json_array_append_new(graphs, graph) == 0);
    return graph;
}

static json_t *graphs_json(const struct plan_making *m)
{
    json_t *graphs = json_array();
    size_t *levels = arena_zalloc(m->a, (m->n_src + 1) * sizeof(*levels));
    for (size_t i = 0; i < m->n_src; i++) {
        const struct plan_src *s = &m->src[i];
        if (!is_listed(m, s)) {
            continue;
        }
        levels[i] = level_of(m, levels, s);
        json_t *nodes = json_object_get(graph_of(graphs, s->row.connection), "nodes");
        while (json_array_size(nodes) <= levels[i]) {
            must(json_array_append_new(nodes, json_array()) == 0);
        }
        must(json_array_append_new(json_array_get(nodes, levels[i]), node_json(s)) == 0);
    }
    return graphs;
}

json_t *plan_json_build(const struct plan_making *m)
{
    if (m->n_src == 0) {
        return json_null();
    }
    json_t *plan = json_object();
    json_t *sources = json_object();
    for (size_t i = 0; i < m->n_src; i++) {
        if (is_listed(m, &m->src[i])) {
            set_new(sources, m->src[i].row.source_id, source_json(&m->src[i]));
        }
    }
    set_new(plan, "graphs", graphs_json(m));
    set_new(plan, "sources", sources);
    set_new(plan, "refusedSources", refusals_json(m->out));
    return plan;
}

static json_t *materialization_json(const json_t *manifest)
{
    const json_t *block = json_object_get(manifest, "materialization");
    if (!json_is_object(block)) {
        return json_null();
    }
    json_t *v = json_object();
    const json_t *metadata = json_object_get(block, "queryMetadata");
    json_set_str(v, "schedule", manifest_schedule(manifest));
    set_new(v, "freshness", freshness_json(manifest_window(manifest), manifest_fallback(manifest)));
    set_new(v, "queryMetadata", json_is_object(metadata) ? json_deep_copy(metadata) : json_null());
    return v;
}

json_t *plan_json_package(struct plan_making *m)
{
    const struct plan_input *in = m->in;
    const json_t *manifest = in->manifest;
    const char *uri = json_str(manifest, "manifestLocation", "");
    const json_t *explores = json_object_get(manifest, "explores");
    const char *home;
    const json_t *metadata = manifest_metadata(manifest, &home);
    json_t *v = json_object();
    json_set_str(
        v, "resource",
        arena_printf(m->a, "/api/v0/environments/%s/packages/%s", in->environment, in->package));
    json_set_str(v, "name", in->package);
    json_set_str(v, "description", m->out->description);
    json_set_str(v, "location", in->location);
    json_set_str(v, "scope", manifest_scope(manifest));
    if (json_is_array(explores)) {
        set_new(v, "explores", json_deep_copy(explores));
    }
    set_new(v, "exploresWarnings", explores_list(manifest, in->paths, in->n_files));
    set_new(v, "warnings", json_incref(m->out->warnings));
    set_new(v, "advisories", json_incref(m->out->advisories));
    json_set_str(v, "queryableSources", manifest_queryable(manifest));
    json_set_str(v, "manifestLocation", *uri ? uri : NULL);
    set_new(v, "queryMetadata", metadata ? json_deep_copy(metadata) : json_null());
    set_new(v, "materialization", materialization_json(manifest));
    set_new(v, "buildPlan", json_incref(m->out->build_plan));
    return v;
}
