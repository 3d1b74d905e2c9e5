#include "services/planner/core/plan_internal.h"

#define META_MAX 20
#define META_VALUE_MAX 256
#define META_KEY_MAX 128

static const char *const reserved[] = {"class",   "environment", "package",  "model",  "source",
                                       "trigger", "run_id",      "query_id", "version"};

static bool is_key(const char *key)
{
    size_t len = strspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return len > 0 && len <= META_KEY_MAX && key[len] == '\0';
}

static bool is_reserved(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(reserved); i++) {
        if (strcmp(key, reserved[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_value_char(char c)
{
    return c >= 0x20 && c < 0x7f && c != '"';
}

static bool is_value(const char *value)
{
    size_t len = 0;
    while (value[len] && is_value_char(value[len])) {
        len++;
    }
    return value[len] == '\0' && len <= META_VALUE_MAX;
}

/* What is wrong with a property; NULL: nothing. */
static const char *problem_of(const char *key, const char *value)
{
    if (!is_key(key)) {
        return "its name must be 1 to 128 letters, digits or '_'";
    }
    if (is_reserved(key)) {
        return "its name belongs to the server";
    }
    if (!value) {
        return "its value is no string";
    }
    return is_value(value) ? NULL
                           : "its value must be at most 256 printable ASCII characters "
                             "without a double quote";
}

/* Where a layer was written, for warnings. */
struct layer {
    const char *model, *subject, *home;
};

static bool accept(struct plan_making *m, const struct layer *l, const char *key, const char *value)
{
    const char *problem = problem_of(key, value);
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
    if (json_object_size(into) >= META_MAX) {
        plan_warn(m, l->model, l->subject,
                  arena_printf(m->a, "the property '%s' of %s is dropped: a source has at most %d",
                               key, l->home, META_MAX));
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

/* A value of the server's own making may hold anything; and no value may end or open a comment. */
static void add_property(struct buf *out, const char *key, const char *value)
{
    buf_addf(out, "%s%s=\"", out->len ? "," : "", key);
    char last = '\0';
    for (const char *p = value; *p; p++) {
        if ((last == '*' && *p == '/') || (last == '/' && *p == '*')) {
            buf_add_char(out, ' ');
        }
        buf_add_char(out, is_value_char(*p) ? *p : '_');
        last = *p;
    }
    buf_add_char(out, '"');
}

char *plan_meta_tag(struct arena *a, const json_t *metadata, const char *package,
                    const char *source)
{
    auto_buf struct buf out = {0};
    void *it = json_object_iter((json_t *)(uintptr_t)metadata);
    for (; it; it = json_object_iter_next((json_t *)(uintptr_t)metadata, it)) {
        add_property(&out, json_object_iter_key(it), json_string_value(json_object_iter_value(it)));
    }
    if (out.len > 0) {
        add_property(&out, "class", "materialize");
        add_property(&out, "package", package);
        add_property(&out, "source", source);
    }
    return arena_strdup(a, buf_str(&out));
}

char *plan_meta_tag_add(struct arena *a, const char *tag, const char *key, const char *value)
{
    auto_buf struct buf out = {0};
    buf_add_str(&out, tag);
    if (*tag && value) {
        add_property(&out, key, value);
    }
    return arena_strdup(a, buf_str(&out));
}
