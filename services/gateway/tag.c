#include "services/gateway/tag.h"

static bool has(const struct gw_properties *p, const char *key)
{
    for (size_t i = 0; i < p->n; i++) {
        if (strcmp(p->items[i].key, key) == 0) {
            return true;
        }
    }
    return false;
}

void gw_properties_put(struct gw_properties *p, struct arena *a, const char *key, const char *value)
{
    if (tag_problem(key, value) || has(p, key) || p->n == TAG_PROPERTIES_MAX) {
        return;
    }
    p->items[p->n++] = (struct gw_property){arena_strdup(a, key), arena_strdup(a, value)};
}

void gw_properties_put_all(struct gw_properties *p, struct arena *a,
                           const struct gw_properties *weaker)
{
    for (size_t i = 0; i < weaker->n; i++) {
        gw_properties_put(p, a, weaker->items[i].key, weaker->items[i].value);
    }
}

void gw_properties_of_package(struct gw_properties *p, struct arena *a, const json_t *package)
{
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(package, "queryMetadata"), key, value)
    {
        gw_properties_put(p, a, key, json_string_value(value));
    }
}

/* ---- a request ---- */
static int read_properties(const json_t *v, struct arena *a, struct gw_properties *out,
                           struct err *e)
{
    const char *key;
    json_t *value;
    if (v && !json_is_null(v) && !json_is_object(v)) {
        return err_set(e, ERR_INVALID, "'queryMetadata' must be an object of strings");
    }
    if (json_object_size(v) > TAG_PROPERTIES_MAX) {
        return err_set(e, ERR_INVALID, "'queryMetadata' has more than %d properties",
                       TAG_PROPERTIES_MAX);
    }
    json_object_foreach((json_t *)(uintptr_t)v, key, value)
    {
        const char *problem = tag_problem(key, json_string_value(value));
        if (problem) {
            return err_set(e, ERR_INVALID, "'queryMetadata.%.40s': %s", key, problem);
        }
        gw_properties_put(out, a, key, json_string_value(value));
    }
    return 0;
}

static int read_class(const json_t *v, const char **out, struct err *e)
{
    static const char *const classes[] = {"interactive", "materialize", "index", "ops"};
    const char *text = json_string_value(v);
    if (!v || json_is_null(v)) {
        return 0;
    }
    for (size_t i = 0; text && i < ARRAY_LEN(classes); i++) {
        if (strcmp(classes[i], text) == 0) {
            *out = classes[i];
            return 0;
        }
    }
    return err_set(e, ERR_INVALID,
                   "'queryClass' must be \"interactive\", \"materialize\", \"index\" or \"ops\"");
}

int gw_tag_read(const json_t *body, struct arena *a, struct gw_tag_ask *out, struct err *e)
{
    *out = (struct gw_tag_ask){0};
    int rc = read_properties(json_object_get(body, "queryMetadata"), a, &out->said, e);
    return rc ? rc : read_class(json_object_get(body, "queryClass"), &out->class_name, e);
}

/* ---- the comment ---- */
static void add(struct buf *out, const char *key, const char *value)
{
    if (value && value[0]) {
        tag_add(out, key, value);
    }
}

const char *gw_tag_text(struct arena *a, const struct gw_properties *p,
                        const struct gw_tag_about *about)
{
    auto_buf struct buf out = {0};
    if (p->n == 0) {
        return NULL;
    }
    for (size_t i = 0; i < p->n; i++) {
        tag_add(&out, p->items[i].key, p->items[i].value);
    }
    add(&out, "class", about->class_name ? about->class_name : "interactive");
    add(&out, "environment", about->environment);
    add(&out, "package", about->package);
    add(&out, "model", about->model);
    add(&out, "source", about->source);
    return arena_slice(a, buf_slice(&out));
}
