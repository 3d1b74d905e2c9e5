#include "common/base/tag.h"
#include "services/planner/core/plan_internal.h"

/* Where a layer was written, for warnings. */
struct layer {
    const char *model, *subject, *home;
};

static bool accept(struct plan_making *m, const struct layer *l, const char *key, const char *value)
{
    const char *problem = tag_problem(key, value);
    if (problem) {
        plan_warn(
            m, l->model, l->subject,
            arena_printf(m->a, "the property '%s' of %s is dropped: %s", key, l->home, problem));
    }
    return !problem;
}

static void put(struct plan_making *m, const struct layer *l, json_t *into, const char *key,
                const char *value)
{
    if (!accept(m, l, key, value) || json_object_get(into, key)) {
        return;
    }
    if (json_object_size(into) >= TAG_PROPERTIES_MAX) {
        plan_warn(m, l->model, l->subject,
                  arena_printf(m->a, "the property '%s' of %s is dropped: a source has at most %d",
                               key, l->home, TAG_PROPERTIES_MAX));
        return;
    }
    json_set_str(into, key, value);
}

void plan_meta_package(struct plan_making *m)
{
    const char *home = NULL;
    const json_t *raw = manifest_metadata(m->in->manifest, &home);
    const struct layer layer = {.home = home};
    m->package_metadata = json_object();
    void *it = json_object_iter((json_t *)(uintptr_t)raw);
    for (; it; it = json_object_iter_next((json_t *)(uintptr_t)raw, it)) {
        put(m, &layer, m->package_metadata, json_object_iter_key(it),
            json_string_value(json_object_iter_value(it)));
    }
}

static void put_notes(struct plan_making *m, const struct plan_src *s, json_t *into,
                      const char *prefix)
{
    const struct layer layer = {.model = s->home->path, .home = "the '## queryMetadata' lines"};
    size_t len = strlen(prefix);
    for (size_t i = 0; i < s->home->n_notes; i++) {
        const Kiln__Mc__FreeText *note = s->home->notes[i];
        if (strncmp(note->key, prefix, len) == 0) {
            put(m, &layer, into, note->key + len, note->value);
        }
    }
}

void plan_meta_source(struct plan_making *m, struct plan_src *s)
{
    const Kiln__Mc__Source *msg = s->msg;
    const struct layer layer = {s->model->path, msg->name, "its queryMetadata"};
    json_t *all = json_object();
    for (size_t i = 0; i < msg->n_query_metadata; i++) {
        put(m, &layer, all, msg->query_metadata[i]->key, msg->query_metadata[i]->value);
    }
    put_notes(m, s, all, "queryMetadata.");
    put_notes(m, s, all, "materialization.queryMetadata.");
    const struct layer package = {.home = "publisher.json"};
    const char *key;
    json_t *value;
    json_object_foreach(m->package_metadata, key, value)
    {
        put(m, &package, all, key, json_string_value(value));
    }
    if (json_object_size(all) > 0) {
        s->metadata = all;
    } else {
        json_decref(all);
    }
}

char *plan_meta_tag(struct arena *a, const json_t *metadata, const char *package,
                    const char *source)
{
    auto_buf struct buf out = {0};
    void *it = json_object_iter((json_t *)(uintptr_t)metadata);
    for (; it; it = json_object_iter_next((json_t *)(uintptr_t)metadata, it)) {
        tag_add(&out, json_object_iter_key(it), json_string_value(json_object_iter_value(it)));
    }
    if (out.len > 0) {
        tag_add(&out, "class", "materialize");
        tag_add(&out, "package", package);
        tag_add(&out, "source", source);
    }
    return arena_strdup(a, buf_str(&out));
}

char *plan_meta_tag_add(struct arena *a, const char *tag, const char *key, const char *value)
{
    auto_buf struct buf out = {0};
    buf_add_str(&out, tag);
    if (*tag && value) {
        tag_add(&out, key, value);
    }
    return arena_strdup(a, buf_str(&out));
}
