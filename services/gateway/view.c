#include "services/gateway/view.h"
#include "common/json/json.h"

static const struct gw_source *source_of_build(const struct gw_package *p, const char *build_id)
{
    for (size_t i = 0; i < p->n_sources; i++) {
        if (p->sources[i].build_id && strcmp(p->sources[i].build_id, build_id) == 0) {
            return &p->sources[i];
        }
    }
    return NULL;
}

/* A table is only offered where its source is: on the same connection. */
static bool fits(const struct gw_package *p, const struct gw_binding *b)
{
    const struct gw_source *s = source_of_build(p, b->build_id);
    return !s || strcmp(s->connection, b->connection) == 0;
}

static void add_bindings(struct gw_package *p, struct gw_view *v)
{
    struct decide_binding *list = arena_zalloc(&p->arena, (p->n_bindings + 1) * sizeof(*list));
    v->bound = arena_zalloc(&p->arena, (p->n_bindings + 1) * sizeof(*v->bound));
    for (size_t i = 0; i < p->n_bindings; i++) {
        const struct gw_binding *b = &p->bindings[i];
        if (!fits(p, b)) {
            continue;
        }
        v->bound[v->facts.n_bindings] = b;
        list[v->facts.n_bindings++] =
            (struct decide_binding){.source_id = b->source_id,
                                    .build_id = b->build_id,
                                    .table = b->physical,
                                    .generation = b->generation,
                                    .data_as_of_us = b->data_as_of_us,
                                    .window_s = b->window_s,
                                    .fallback = (enum decide_fallback)b->fallback,
                                    .is_by_binding = b->is_by_binding};
        v->facts.has_by_binding = v->facts.has_by_binding || b->is_by_binding;
        v->facts.has_windows = v->facts.has_windows || b->window_s > 0;
    }
    v->facts.bindings = list;
}

static void add_unbaked(struct gw_package *p, struct gw_view *v)
{
    struct decide_unbaked *list = arena_zalloc(&p->arena, (p->n_unbaked + 1) * sizeof(*list));
    for (size_t i = 0; i < p->n_unbaked; i++) {
        const struct gw_unbaked *u = &p->unbaked[i];
        list[i] = (struct decide_unbaked){u->source_id, u->code, u->text};
    }
    v->facts.unbaked = list;
    v->facts.n_unbaked = p->n_unbaked;
}

static bool is_stored(const json_t *package, const char *source_id)
{
    const json_t *sources = json_object_get(json_object_get(package, "buildPlan"), "sources");
    const json_t *tag = json_object_get(json_object_get(sources, source_id), "annotationFields");
    return json_str(tag, "storage", "")[0] != '\0';
}

static void add_planned(struct gw_package *p, struct gw_view *v, const json_t *package)
{
    struct decide_planned *list = arena_zalloc(&p->arena, (p->n_sources + 1) * sizeof(*list));
    for (size_t i = 0; i < p->n_sources; i++) {
        const struct gw_source *s = &p->sources[i];
        list[i] = (struct decide_planned){.source_id = s->source_id,
                                          .name = s->name,
                                          .build_id = s->build_id ? s->build_id : "",
                                          .refused = s->refused_reason,
                                          .is_stored = is_stored(package, s->source_id)};
    }
    v->facts.planned = list;
    v->facts.n_planned = p->n_sources;
}

/* The plan advises about annotated files without the flag that no flagged model reaches. */
static bool has_flagless(const json_t *package)
{
    bool found = false;
    size_t i;
    json_t *advice;
    json_array_foreach(json_object_get(package, "advisories"), i, advice)
    {
        found = found || strstr(json_str(advice, "message", ""), "##! experimental.persistence");
    }
    return found;
}

void gw_view_make(struct gw_package *p)
{
    json_t *package = json_parse(slice_of(p->package_json), NULL);
    struct gw_view *v = arena_zalloc(&p->arena, sizeof(*v));
    add_bindings(p, v);
    add_unbaked(p, v);
    add_planned(p, v, package);
    v->facts.has_flagless = has_flagless(package);
    gw_properties_of_package(&v->said, &p->arena, package);
    json_decref(package);
    p->view = v;
}
