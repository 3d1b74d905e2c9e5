#include "services/planner/core/plan_internal.h"

static const json_t *envelope(const json_t *manifest)
{
    return json_object_get(manifest, "materialization");
}

static const json_t *freshness(const json_t *manifest)
{
    return json_object_get(envelope(manifest), "freshness");
}

const char *manifest_scope(const json_t *manifest)
{
    const char *scope = json_str(envelope(manifest), "scope", NULL);
    return scope ? scope : json_str(manifest, "scope", "package");
}

const char *manifest_schedule(const json_t *manifest)
{
    return json_str(envelope(manifest), "schedule", NULL);
}

const char *manifest_window(const json_t *manifest)
{
    const char *window = json_str(freshness(manifest), "window", NULL);
    return window && *window ? window : NULL;
}

bool manifest_fallback_valid(const char *text)
{
    return strcmp(text, "live") == 0 || strcmp(text, "stale_ok") == 0 || strcmp(text, "fail") == 0;
}

const char *manifest_fallback(const json_t *manifest)
{
    const char *fallback = json_str(freshness(manifest), "fallback", NULL);
    return fallback && manifest_fallback_valid(fallback) ? fallback : NULL;
}

const json_t *manifest_metadata(const json_t *manifest, const char **home)
{
    const json_t *root = json_object_get(manifest, "queryMetadata");
    if (json_is_object(root)) {
        *home = "queryMetadata in publisher.json";
        return root;
    }
    const json_t *old = json_object_get(envelope(manifest), "queryMetadata");
    *home = "materialization.queryMetadata in publisher.json";
    return json_is_object(old) ? old : NULL;
}

const char *manifest_queryable(const json_t *manifest)
{
    const char *text = json_str(manifest, "queryableSources", "declared");
    return strcmp(text, "all") == 0 ? "all" : "declared";
}

void manifest_notices(struct plan_making *m)
{
    const json_t *manifest = m->in->manifest;
    const json_t *block = envelope(manifest);
    if (block && !json_is_object(block) && !json_is_null(block)) {
        plan_warn(m, NULL, NULL, "materialization in publisher.json is no object and is ignored");
    }
    if (json_str(manifest, "scope", NULL) && !json_str(block, "scope", NULL)) {
        plan_warn(m, NULL, NULL,
                  "scope at the root of publisher.json is deprecated: write it as "
                  "materialization.scope");
    }
    const json_t *root = json_object_get(manifest, "queryMetadata");
    const json_t *old = json_object_get(block, "queryMetadata");
    if (json_is_object(old) && !json_is_object(root)) {
        plan_warn(m, NULL, NULL,
                  "materialization.queryMetadata in publisher.json is deprecated: write "
                  "queryMetadata at the root");
    } else if (json_is_object(old) && !json_equal(old, root)) {
        plan_warn(m, NULL, NULL,
                  "queryMetadata and materialization.queryMetadata in publisher.json differ: the "
                  "root one is used");
    }
    const char *uri = json_str(manifest, "manifestLocation", "");
    if (*uri) {
        plan_warn(m, NULL, NULL,
                  arena_printf(m->a,
                               "manifestLocation '%s' is not supported yet: the package stays "
                               "unbound until a run of this server",
                               uri));
    }
}

/* 0, or -1 with e: a scope that is there must be one of two words. *out: NULL when not there. */
static int read_scope(const json_t *holder, const char *place, const char **out, struct err *e)
{
    const json_t *v = json_object_get(holder, "scope");
    *out = json_string_value(v);
    if (!v || json_is_null(v)) {
        return 0;
    }
    if (*out && (strcmp(*out, "package") == 0 || strcmp(*out, "version") == 0)) {
        return 0;
    }
    err_set(e, ERR_PACKAGE, "%s \"scope\" must be \"package\" or \"version\"", place);
    return -1;
}

/* Both homes of one manifest or body; -1 with e when one is invalid or they differ. *out: NULL
 * undeclared. */
static int scope_of(const json_t *obj, const char *what, const char **out, struct err *e)
{
    const char *root, *inner;
    char place[96];
    snprintf(place, sizeof(place), "%s:", what);
    if (read_scope(obj, place, &root, e) != 0) {
        return -1;
    }
    snprintf(place, sizeof(place), "%s: materialization", what);
    if (read_scope(envelope(obj), place, &inner, e) != 0) {
        return -1;
    }
    if (root && inner && strcmp(root, inner) != 0) {
        err_set(e, ERR_PACKAGE,
                "%s: scope is \"%s\" at the root and \"%s\" in materialization: keep the one in "
                "materialization",
                what, root, inner);
        return -1;
    }
    *out = inner ? inner : root;
    return 0;
}

json_t *package_manifest_parse(struct slice text, struct err *e)
{
    json_t *manifest = json_parse(text, e);
    if (!manifest) {
        err_wrap(e, "publisher.json");
        if (e) {
            e->code = ERR_PACKAGE;
        }
        return NULL;
    }
    const char *scope;
    if (!json_is_object(manifest)) {
        err_set(e, ERR_PACKAGE, "publisher.json must hold a JSON object");
    } else if (scope_of(manifest, "publisher.json", &scope, e) == 0) {
        return manifest;
    }
    json_decref(manifest);
    return NULL;
}

static const char *type_text(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_NULL:
        return "null";
    default:
        return "true or false";
    }
}

int package_manifest_check(const json_t *manifest, struct err *e)
{
    const json_t *name = json_object_get(manifest, "name");
    if (name && !json_is_string(name)) {
        return err_set(e, ERR_PACKAGE,
                       "publisher.json: \"name\" must be a string, such as \"sales\", and it is %s",
                       type_text(name));
    }
    return 0;
}

/* ---- PATCH ---- */

enum patch_kind { PATCH_TEXT, PATCH_OBJECT, PATCH_PATHS };
static const struct patch_key {
    const char *key;
    enum patch_kind kind;
    const char *want;
} patch_keys[] = {
    {"name", PATCH_TEXT, "a string"},
    {"description", PATCH_TEXT, "a string or null"},
    {"scope", PATCH_TEXT, "\"package\" or \"version\""},
    {"materialization", PATCH_OBJECT, "an object"},
    {"explores", PATCH_PATHS, "an array of model paths"},
    {"queryableSources", PATCH_TEXT, "\"declared\", \"all\" or null"},
    {"queryMetadata", PATCH_OBJECT, "an object of strings"},
    {"manifestLocation", PATCH_TEXT, "a string or null"},
    {"location", PATCH_TEXT, "a string or null"},
};

static bool is_paths(const json_t *v)
{
    bool all = json_is_array(v);
    for (size_t i = 0; all && i < json_array_size(v); i++) {
        all = json_is_string(json_array_get(v, i));
    }
    return all;
}

static bool has_kind(const json_t *v, enum patch_kind kind)
{
    switch (kind) {
    case PATCH_TEXT:
        return json_is_string(v);
    case PATCH_OBJECT:
        return json_is_object(v);
    default:
        return is_paths(v);
    }
}

/* A member that is there and says something; NULL for absent and null. */
static json_t *said(const json_t *patch, const char *key)
{
    json_t *v = json_object_get(patch, key);
    return json_is_null(v) ? NULL : v;
}

static int patch_check(const json_t *patch, struct err *e)
{
    if (!json_is_object(patch)) {
        return err_set(e, ERR_INVALID, "the body must be a JSON object");
    }
    for (size_t i = 0; i < ARRAY_LEN(patch_keys); i++) {
        const json_t *v = said(patch, patch_keys[i].key);
        if (v && !has_kind(v, patch_keys[i].kind)) {
            return err_set(e, ERR_INVALID, "'%s' must be %s", patch_keys[i].key,
                           patch_keys[i].want);
        }
    }
    const char *queryable = json_str(patch, "queryableSources", "all");
    if (strcmp(queryable, "all") != 0 && strcmp(queryable, "declared") != 0) {
        return err_set(e, ERR_INVALID, "'queryableSources' must be \"declared\", \"all\" or null");
    }
    return 0;
}

/* null clears, absent keeps, "" counts as null. */
static void set_or_clear(json_t *manifest, const json_t *patch, const char *key)
{
    json_t *v = json_object_get(patch, key);
    if (v && (json_is_null(v) || strcmp(json_string_value(v), "") == 0)) {
        json_object_del(manifest, key);
    } else if (v) {
        must(json_object_set(manifest, key, v) == 0);
    }
}

static void set_if_said(json_t *manifest, const json_t *patch, const char *key)
{
    json_t *v = said(patch, key);
    if (v) {
        must(json_object_set(manifest, key, v) == 0);
    }
}

/* The envelope, made when missing or no object. Borrowed. */
static json_t *envelope_of(json_t *manifest)
{
    json_t *block = json_object_get(manifest, "materialization");
    if (!json_is_object(block)) {
        block = json_object();
        must(json_object_set_new(manifest, "materialization", block) == 0);
    }
    return block;
}

static void patch_metadata(json_t *manifest, const json_t *patch)
{
    json_t *sent = said(patch, "queryMetadata");
    bool in_envelope = json_object_get(envelope(manifest), "queryMetadata") != NULL;
    if (!sent && said(envelope(patch), "queryMetadata")) {
        sent = said(envelope(patch), "queryMetadata");
    }
    if (!sent) {
        return;
    }
    must(json_object_set_new(manifest, "queryMetadata", json_deep_copy(sent)) == 0);
    if (in_envelope) {
        must(json_object_set_new(envelope_of(manifest), "queryMetadata", json_deep_copy(sent)) ==
             0);
    }
}

json_t *package_manifest_patch(const json_t *manifest, const json_t *patch, bool *policy_touched,
                               struct err *e)
{
    const char *scope;
    if (patch_check(patch, e) != 0) {
        return NULL;
    }
    if (scope_of(patch, "body", &scope, e) != 0) {
        if (e) {
            e->code = ERR_INVALID;
        }
        return NULL;
    }
    *policy_touched = said(patch, "scope") || said(patch, "materialization");
    json_t *out = manifest ? json_deep_copy(manifest) : json_object();
    char *kept = xstrdup(scope ? scope : manifest_scope(manifest));
    set_if_said(out, patch, "name");
    set_if_said(out, patch, "explores");
    set_or_clear(out, patch, "description");
    set_or_clear(out, patch, "queryableSources");
    set_or_clear(out, patch, "manifestLocation");
    json_t *block = said(patch, "materialization");
    if (block) {
        must(json_object_set_new(out, "materialization", json_deep_copy(block)) == 0);
    }
    patch_metadata(out, patch);
    /* A rewritten manifest says the scope in both homes (P3). */
    json_set_str(out, "scope", kept);
    json_set_str(envelope_of(out), "scope", kept);
    free(kept);
    return out;
}
