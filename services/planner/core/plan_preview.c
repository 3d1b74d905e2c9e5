#include "services/planner/core/plan_internal.h"

static void append(json_t *list, json_t *item)
{
    must(json_array_append_new(list, item) == 0);
}

static void set_new(json_t *obj, const char *key, json_t *value)
{
    must(json_object_set_new(obj, key, value) == 0);
}

static void append_text(json_t *list, const char *text)
{
    json_t *holder = json_object();
    json_set_str(holder, "v", text);
    must(json_array_append(list, json_object_get(holder, "v")) == 0);
    json_decref(holder);
}

static json_t *names_json(const struct plan_target *t)
{
    json_t *list = json_array();
    for (size_t i = 1; i < t->n_sources; i++) {
        append_text(list, t->source_names[i]);
    }
    return list;
}

static json_t *parents_json(const struct run_plan *p, const struct plan_target *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->n_parents; i++) {
        append_text(list, p->targets[t->parents[i]].source_name);
    }
    return list;
}

static json_t *target_json(const struct run_plan *p, const struct plan_target *t)
{
    static const char *const actions[] = {
        [PLAN_BUILD] = "build", [PLAN_CARRY] = "reuse", [PLAN_FAIL] = "fail"};
    json_t *v = json_object();
    json_set_str(v, "action", actions[t->action]);
    json_set_str(v, "sourceName", t->source_name);
    json_set_str(v, "sourceID", t->source_id);
    json_set_str(v, "modelPath", t->model);
    json_set_str(v, "connectionName", t->target.connection);
    json_set_str(v, "physicalTableName", t->target.physical);
    json_set_str(v, "sourceEntityId", t->target.entity_id);
    set_new(v, "sharedBy", names_json(t));
    set_new(v, "after", parents_json(p, t));
    json_set_str(v, "why", t->action == PLAN_FAIL ? t->fail_text : t->why);
    if (t->upstream_reuse) {
        json_set_str(v, "upstreamReuse", t->upstream_reuse);
        json_set_str(v, "upstreamRecomputeReason", t->upstream_recompute_reason);
    }
    if (t->action == PLAN_CARRY) {
        json_set_str(v, "generation", t->generation.id);
        json_set_int(v, "rowCount", t->generation.rows);
    }
    return v;
}

static json_t *refusal_json(const struct plan_refusal *r)
{
    json_t *v = json_object();
    json_set_str(v, "sourceName", r->name);
    json_set_str(v, "sourceID", r->source_id);
    json_set_str(v, "modelPath", r->model);
    json_set_str(v, "tier", r->tier);
    json_set_str(v, "reason", r->reason);
    json_set_str(v, "message", r->message);
    return v;
}

static json_t *skipped_json(const struct package_plan *package)
{
    json_t *list = json_array();
    for (size_t i = 0; i < package->n_sources; i++) {
        const struct planned_source *s = &package->sources[i];
        if (s->skipped) {
            json_t *v = json_object();
            json_set_str(v, "sourceName", s->name);
            json_set_str(v, "sourceID", s->source_id);
            json_set_str(v, "modelPath", s->model);
            json_set_str(v, "why", "its storage= is ignored, it is served live");
            append(list, v);
        }
    }
    return list;
}

json_t *run_plan_preview(const struct run_plan *p, const struct package_plan *package)
{
    json_t *targets = json_array(), *refused = json_array(), *warnings = json_array();
    for (size_t i = 0; i < p->n; i++) {
        append(targets, target_json(p, &p->targets[i]));
    }
    for (size_t i = 0; i < p->n_refusals; i++) {
        append(refused, refusal_json(&p->refusals[i]));
    }
    for (size_t i = 0; i < p->n_warnings; i++) {
        append_text(warnings, p->warnings[i]);
    }
    json_t *v = json_object();
    set_new(v, "targets", targets);
    set_new(v, "refused", refused);
    set_new(v, "skipped", skipped_json(package));
    set_new(v, "warnings", warnings);
    json_set_str(v, "fails", p->fail);
    return v;
}
