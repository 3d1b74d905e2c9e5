/* A run as the REST API shows it (spec/malloy-persistence.md 3.3, 3.7). */
#include "services/planner/planner.h"
#include <time.h>

static void set_time(json_t *obj, const char *key, int64_t us)
{
    if (us == 0) {
        json_object_set_new(obj, key, json_null());
        return;
    }
    time_t s = (time_t)(us / 1000000);
    struct tm tm;
    char date[32], text[48];
    gmtime_r(&s, &tm);
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text, sizeof(text), "%s.%03dZ", date, (int)(us / 1000 % 1000));
    json_set_str(obj, key, text);
}

static void set_parsed(json_t *obj, const char *key, const char *text)
{
    json_t *v = text ? json_parse(slice_of(text), NULL) : NULL;
    json_object_set_new(obj, key, v ? v : json_null());
}

/* Metadata of a run that has not written its own yet. */
static json_t *first_metadata(const struct row_run *r)
{
    json_t *m = json_object();
    json_set_flag(m, "forceRefresh", r->force_refresh);
    json_set_flag(m, "reseed", r->reseed);
    json_t *names = r->has_names ? json_array() : json_null();
    for (size_t i = 0; i < r->n_names; i++) {
        json_array_append_new(names, json_string(r->names[i]));
    }
    json_object_set_new(m, "sourceNames", names);
    json_set_str(m, "mode", "auto");
    json_set_str(m, "trigger", r->trigger ? r->trigger : "ON_DEMAND");
    return m;
}

json_t *run_json(const struct store_run_rec *rec, struct planner *p)
{
    const struct row_run *r = &rec->r;
    json_t *v = json_object();
    char env_id[32];
    snprintf(env_id, sizeof(env_id), "%llu", (unsigned long long)rec->environment_id);
    json_set_str(v, "id", r->id);
    json_set_str(v, "environmentId", env_id);
    json_set_str(v, "environmentName", rec->environment);
    json_set_str(v, "packageName", rec->package);
    json_set_str(v, "status", run_state_rest(r->state));
    set_parsed(v, "manifest", r->manifest);
    json_t *metadata =
        r->metadata && r->metadata[0] ? json_parse(slice_of(r->metadata), NULL) : NULL;
    if (!metadata || json_object_size(metadata) == 0) {
        json_decref(metadata);
        metadata = first_metadata(r);
    }
    json_object_set_new(v, "metadata", metadata);
    set_time(v, "startedAt", r->started_us);
    set_time(v, "completedAt", r->completed_us);
    json_set_str(v, "error", r->error);
    set_time(v, "createdAt", r->created_us);
    set_time(v, "updatedAt", rec->updated_us ? rec->updated_us : r->created_us);
    if (run_state_active(r->state) && p->coord) {
        struct arena a;
        arena_init(&a);
        char *progress = coord_run_progress(p->coord, r->id, &a);
        if (progress) {
            set_parsed(v, "progress", progress);
        }
        arena_fini(&a);
    }
    return v;
}
