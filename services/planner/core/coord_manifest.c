/* What a run says about itself: manifest, manifest entries, metadata, error text
 * (spec/malloy-persistence.md 3.3, 3.5, 3.7). */
#include "services/planner/core/coord_internal.h"

/* ---- outcome of one target ---- */
static struct outcome outcome_failed(const char *reason, int code)
{
    return (struct outcome){
        .kind = OUT_FAILED, .rows = -1, .took_ms = -1, .reason = reason, .code = code};
}

static struct outcome outcome_recorded(enum outcome_kind kind, const struct core_generation *g)
{
    if (!g) { /* recorded once, and replaced since */
        return (struct outcome){.kind = kind, .rows = -1, .took_ms = -1};
    }
    return (struct outcome){
        .kind = kind,
        .generation = g->id,
        .rows = g->rows,
        .data_as_of_us = g->data_as_of_us,
        .took_ms = -1,
    };
}

static struct outcome outcome_of_build(const struct job *j)
{
    const struct attempt *a = job_published(j);
    must(a != NULL);
    return (struct outcome){
        .kind = OUT_BUILT,
        .generation = a->generation,
        .rows = a->facts.rows,
        .data_as_of_us = a->facts.data_as_of_us,
        .took_ms = a->facts.took_ms,
    };
}

struct outcome outcome_of(const struct coord *c, const struct plan_item *it)
{
    (void)c;
    if (it->p.action == PLAN_FAIL) {
        return outcome_failed(it->p.fail_text, it->p.fail_code);
    }
    if (it->p.action == PLAN_CARRY) {
        return outcome_recorded(OUT_CARRIED, &it->p.generation);
    }
    const struct job *j = it->job;
    if (j->state == JOB_DONE) {
        return outcome_of_build(j);
    }
    if (j->state == JOB_CARRIED) {
        const struct generation *g = target_current(it->target);
        return outcome_recorded(OUT_CARRIED, g ? &g->g : NULL);
    }
    return outcome_failed(j->error ? j->error : "not built", j->error_code);
}

struct counts run_counts(const struct coord *c, const struct run *r)
{
    struct counts n = {.refused = (int64_t)r->n_refusals};
    for (size_t i = 0; i < r->n_items; i++) {
        const struct plan_item *it = &r->items[i];
        const struct job *j = it->job;
        bool undecided = j ? !job_state_ended(j->state) || j->state == JOB_CANCELLED
                           : it->p.action == PLAN_BUILD;
        if (undecided) {
            continue;
        }
        enum outcome_kind kind = outcome_of(c, it).kind;
        n.built += kind == OUT_BUILT;
        n.reused += kind == OUT_CARRIED;
        n.failed += kind == OUT_FAILED;
    }
    return n;
}

/* ---- JSON ---- */
/* Days of the civil calendar since 1970 (proleptic Gregorian), the other way round. */
static void civil_from_days(int64_t days, int64_t *y, int64_t *m, int64_t *d)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t doe = days - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    *d = doy - (153 * mp + 2) / 5 + 1;
    *m = mp < 10 ? mp + 3 : mp - 9;
    *y = yoe + era * 400 + (*m <= 2);
}

static void set_time(json_t *v, const char *key, int64_t unix_us)
{
    int64_t ms = unix_us / 1000;
    int64_t days = ms / 86400000;
    int64_t rest = ms % 86400000;
    int64_t y, m, d;
    civil_from_days(days, &y, &m, &d);
    auto_buf struct buf text = {0};
    buf_addf(&text, "%04lld-%02lld-%02lldT%02lld:%02lld:%02lld.%03lldZ", (long long)y, (long long)m,
             (long long)d, (long long)(rest / 3600000), (long long)(rest / 60000 % 60),
             (long long)(rest / 1000 % 60), (long long)(rest % 1000));
    json_set_str(v, key, buf_str(&text));
}

static void set_int_or_null(json_t *v, const char *key, int64_t n)
{
    if (n >= 0) {
        json_set_int(v, key, n);
    } else {
        json_set_str(v, key, NULL);
    }
}

static void set_new(json_t *v, const char *key, json_t *member)
{
    must(json_object_set_new(v, key, member) == 0);
}

static void set_shared(json_t *v, const char *own, const char *const *names, size_t n)
{
    json_t *list = json_array();
    bool skipped = false;
    for (size_t i = 0; i < n; i++) {
        if (!skipped && strcmp(names[i], own) == 0) {
            skipped = true;
            continue;
        }
        must(json_array_append_new(list, json_string(names[i])) == 0);
    }
    if (json_array_size(list) > 0) {
        set_new(v, "sharedBy", list);
    } else {
        json_decref(list);
    }
}

static const char *fallback_name(int fallback)
{
    static const char *const names[] = {"live", "stale_ok", "fail"};
    return fallback >= 0 && fallback < 3 ? names[fallback] : names[0];
}

static json_t *entry_base(const struct core_target *t, const char *name, const char *generation)
{
    json_t *v = json_object();
    json_set_str(v, "sourceEntityId", t->entity_id);
    json_set_str(v, "sourceName", name);
    json_set_str(v, "origin", "persist");
    json_set_str(v, "materializedTableId", generation);
    json_set_str(v, "physicalTableName", t->physical);
    json_set_str(v, "connectionName", t->connection);
    json_set_str(v, "realization", "COPY");
    return v;
}

static void entry_numbers(json_t *v, const struct outcome *out, uint32_t window_s, int fallback)
{
    set_int_or_null(v, "rowCount", out->rows);
    set_int_or_null(v, "buildDurationMs", out->took_ms);
    json_set_str(v, "queryCostBytes", NULL);
    if (out->data_as_of_us) {
        set_time(v, "dataAsOf", out->data_as_of_us);
    }
    if (window_s) {
        json_set_int(v, "freshnessWindowSeconds", window_s);
        json_set_str(v, "freshnessFallback", fallback_name(fallback));
    }
}

static json_t *entry_of_item(const struct plan_item *it, const struct outcome *out)
{
    const struct plan_target *p = &it->p;
    json_t *v = entry_base(&p->target, p->source_name, out->generation);
    set_shared(v, p->source_name, p->source_names, p->n_sources);
    entry_numbers(v, out, p->window_s, p->fallback);
    if (p->upstream_reuse) {
        json_set_str(v, "upstreamReuse", p->upstream_reuse);
    }
    if (p->upstream_recompute_reason) {
        json_set_str(v, "upstreamRecomputeReason", p->upstream_recompute_reason);
    }
    return v;
}

static json_t *failure_of_item(const struct plan_item *it, const struct outcome *out)
{
    json_t *v = json_object();
    json_set_str(v, "sourceEntityId", it->p.target.entity_id);
    json_set_str(v, "sourceName", it->p.source_name);
    json_set_str(v, "reason", out->reason);
    json_set_str(v, "materializedTableId", NULL);
    json_set_str(v, "physicalTableName", it->p.target.physical);
    json_set_str(v, "connectionName", it->p.target.connection);
    return v;
}

/* A binding that this run left as it was: other sources of the package, in a run that named some.
 */
static json_t *entry_of_binding(const struct core_binding *b)
{
    struct outcome out = outcome_recorded(OUT_CARRIED, &b->generation);
    json_t *v = entry_base(&b->target, b->source_name, b->generation.id);
    set_shared(v, b->source_name, b->shared_by, b->n_shared_by);
    entry_numbers(v, &out, b->window_s, b->fallback);
    return v;
}

void row_entry(struct turn *t, const struct run *r, const struct plan_item *it)
{
    struct arena *a = t->o->rows.arena;
    struct outcome out = outcome_of(t->c, it);
    bool failed = out.kind == OUT_FAILED;
    json_t *v = failed ? failure_of_item(it, &out) : entry_of_item(it, &out);
    rows_add(&t->o->rows, ROW_MANIFEST_ENTRY)->u.entry = (struct row_entry){
        .run = arena_strdup(a, r->id),
        .entity_id = arena_strdup(a, it->p.target.entity_id),
        .generation = failed ? NULL : arena_strdup(a, out.generation),
        .place = it->target->place->id,
        .source_id = arena_strdup(a, it->p.source_id),
        .outcome = failed                  ? "failed"
                   : out.kind == OUT_BUILT ? "built"
                                           : "carried",
        .entry = json_keep(a, v),
    };
}

char *run_manifest(struct turn *t, const struct run *r, const struct draft *d)
{
    json_t *entries = json_object();
    json_t *failures = json_object();
    for (size_t i = 0; i < r->n_items; i++) {
        const struct plan_item *it = &r->items[i];
        struct outcome out = outcome_of(t->c, it);
        if (out.kind == OUT_FAILED) {
            set_new(failures, it->p.target.entity_id, failure_of_item(it, &out));
        } else {
            set_new(entries, it->p.target.entity_id, entry_of_item(it, &out));
        }
    }
    for (size_t i = 0; d && i < d->n; i++) {
        const struct core_binding *b = &d->items[i];
        const char *id = b->target.entity_id;
        if (!map_get_u64(&r->by_target, b->target.target_id) && !json_object_get(entries, id)) {
            set_new(entries, id, entry_of_binding(b));
        }
    }
    json_t *v = json_object();
    set_time(v, "builtAt", t->now.unix_us);
    json_set_flag(v, "strict", false);
    set_new(v, "entries", entries);
    if (json_object_size(failures) > 0) {
        set_new(v, "failures", failures);
    } else {
        json_decref(failures);
    }
    return json_keep(t->o->rows.arena, v);
}

static json_t *refused_sources(const struct run *r)
{
    json_t *map = json_object();
    for (size_t i = 0; i < r->n_refusals; i++) {
        const struct plan_refusal *f = &r->refusals[i];
        json_t *v = json_object();
        json_set_str(v, "name", f->name);
        json_set_str(v, "sourceID", f->source_id);
        json_set_str(v, "modelPath", f->model);
        json_set_str(v, "tier", f->tier);
        json_set_str(v, "reason", f->reason);
        json_set_str(v, "message", f->message);
        set_new(map, f->source_id, v);
    }
    return map;
}

/* now_us 0: the run has only been asked for, it has no counts yet. */
char *run_metadata(struct arena *a, const struct run *r, const struct counts *n, int64_t now_us)
{
    json_t *v = json_object();
    json_set_flag(v, "forceRefresh", r->force_refresh);
    json_set_flag(v, "reseed", r->reseed);
    json_t *names = r->has_names ? json_array() : json_null();
    for (size_t i = 0; r->has_names && i < r->n_names; i++) {
        must(json_array_append_new(names, json_string(r->names[i])) == 0);
    }
    set_new(v, "sourceNames", names);
    json_set_str(v, "mode", "auto");
    json_set_str(v, "trigger", r->trigger);
    if (!now_us) {
        return json_keep(a, v);
    }
    json_set_int(v, "sourcesBuilt", n->built);
    json_set_int(v, "sourcesReused", n->reused);
    json_set_int(v, "sourcesFailed", n->failed);
    json_set_int(v, "sourcesRefused", n->refused);
    if (r->n_refusals) {
        set_new(v, "refusedSources", refused_sources(r));
    }
    int64_t since = r->started_us ? r->started_us : r->created_us;
    json_set_int(v, "durationMs", now_us > since ? (now_us - since) / 1000 : 0);
    return json_keep(a, v);
}

/* ---- texts ---- */
char *run_error_text(struct arena *a, const struct coord *c, const struct run *r)
{
    auto_buf struct buf text = {0};
    for (size_t i = 0; i < r->n_items; i++) {
        struct outcome out = outcome_of(c, &r->items[i]);
        if (out.kind == OUT_FAILED) {
            buf_addf(&text, "%s%s: %s", text.len ? "; " : "", r->items[i].p.source_name,
                     out.reason);
        }
    }
    return arena_strdup(a, buf_str(&text));
}

char *refusals_text(struct arena *a, const struct run_plan *p)
{
    auto_buf struct buf text = {0};
    for (size_t i = 0; i < p->n_refusals; i++) {
        buf_addf(&text, "%s%s: %s", text.len ? "; " : "", p->refusals[i].name,
                 p->refusals[i].message);
    }
    return arena_strdup(a, buf_str(&text));
}
