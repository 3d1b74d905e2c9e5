#include "services/gateway/rest_publisher/rest_body.h"
#include "common/base/crypto.h"
#include "services/gateway/rest_publisher/rest_routes.h"

json_t *rest_body_parse(struct slice text, bool may_be_empty, struct err *e)
{
    if (slice_trim(text).len == 0) {
        if (may_be_empty) {
            return json_object();
        }
        err_set(e, ERR_INVALID, "the request needs a body with a JSON object");
        return NULL;
    }
    json_t *v = json_parse(text, e);
    if (!v) {
        err_set(e, ERR_INVALID, "the body is not JSON: %s", err_text(e));
        return NULL;
    }
    if (!json_is_object(v)) {
        json_decref(v);
        err_set(e, ERR_INVALID, "the body must be a JSON object");
        return NULL;
    }
    return v;
}

bool rest_body_has_version(struct slice text)
{
    static const char word[] = "\"versionId\"";
    if (text.len < sizeof(word) || !memmem(text.p, text.len, word, sizeof(word) - 1)) {
        return false;
    }
    json_t *v = json_parse(text, NULL);
    const json_t *version = json_object_get(v, "versionId");
    bool has = version && !json_is_null(version);
    json_decref(v);
    return has;
}

/* ---- fields ---- */
enum kind { FLAG, TEXT, OBJECT, LIST };
static const char *const kind_names[] = {[FLAG] = "true or false",
                                         [TEXT] = "a string",
                                         [OBJECT] = "an object",
                                         [LIST] = "a list of strings"};

static bool is_kind(const json_t *v, enum kind k)
{
    size_t i;
    const json_t *item;
    switch (k) {
    case FLAG:
        return json_is_boolean(v);
    case TEXT:
        return json_is_string(v);
    case OBJECT:
        return json_is_object(v);
    case LIST:
        break;
    }
    json_array_foreach(v, i, item)
    {
        if (!json_is_string(item)) {
            return false;
        }
    }
    return json_is_array(v);
}

/* Absent and null pass. */
static int check(const json_t *body, const char *field, enum kind k, struct err *e)
{
    const json_t *v = json_object_get(body, field);
    if (!v || json_is_null(v) || is_kind(v, k)) {
        return 0;
    }
    return err_set(e, ERR_INVALID, "'%s' must be %s", field, kind_names[k]);
}

struct field {
    const char *name;
    enum kind kind;
};

static int check_all(const json_t *body, const struct field *fields, size_t n, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = check(body, fields[i].name, fields[i].kind, e);
    }
    return rc;
}

static const json_t *present(const json_t *body, const char *field)
{
    const json_t *v = json_object_get(body, field);
    return json_is_null(v) ? NULL : v;
}

/* A name in the body must be the one of the path. */
static int same_name(const json_t *body, const char *name, const char *what, struct err *e)
{
    const char *given = json_str(body, "name", name);
    if (strcmp(given, name) != 0) {
        return err_set(e, ERR_INVALID,
                       "'name' is '%s' but the path names %s '%s'; renaming is not possible", given,
                       what, name);
    }
    return 0;
}

/* ---- runs ---- */
enum { RUN_ID_MAX = 256 };

static int check_run_context(const json_t *context, struct err *e)
{
    static const char *const triggers[] = {"publish", "on_demand", "scheduler"};
    const json_t *trigger = present(context, "trigger"), *id = present(context, "runId");
    bool known = !trigger;
    for (size_t i = 0; trigger && json_is_string(trigger) && i < ARRAY_LEN(triggers); i++) {
        known = known || strcmp(json_string_value(trigger), triggers[i]) == 0;
    }
    if (!known) {
        return err_set(e, ERR_INVALID,
                       "'runContext.trigger' must be publish, on_demand or scheduler");
    }
    const char *text = json_string_value(id);
    bool is_good = !id || (text && strlen(text) <= RUN_ID_MAX);
    for (const char *p = text; is_good && p && *p; p++) {
        is_good = *p >= 0x20 && *p < 0x7f && *p != '"';
    }
    return is_good ? 0
                   : err_set(e, ERR_INVALID,
                             "'runContext.runId' must be printable ASCII without double quotes, "
                             "%d characters at most",
                             RUN_ID_MAX);
}

int rest_body_run(struct arena *a, const json_t *body, struct rest_run *out, struct err *e)
{
    static const struct field fields[] = {{"forceRefresh", FLAG}, {"reseed", FLAG},
                                          {"takeOver", FLAG},     {"sourceNames", LIST},
                                          {"runContext", OBJECT}, {"buildInstructions", OBJECT}};
    *out = (struct rest_run){0};
    const json_t *context = present(body, "runContext"), *names = present(body, "sourceNames");
    int rc = check_all(body, fields, ARRAY_LEN(fields), e);
    if (rc == 0 && context) {
        rc = check_run_context(context, e);
    }
    if (rc) {
        return rc;
    }
    if (present(body, "buildInstructions")) {
        return err_set(e, ERR_UNSUPPORTED,
                       "'buildInstructions' (orchestrated runs) are not built yet and come in a "
                       "later version; leave them out and the server plans the run itself");
    }
    out->force_refresh = json_flag(body, "forceRefresh", false);
    out->reseed = json_flag(body, "reseed", false);
    out->take_over = json_flag(body, "takeOver", false);
    out->has_names = names != NULL;
    out->names = arena_zalloc(a, (json_array_size(names) + 1) * sizeof(*out->names));
    for (size_t i = 0; i < json_array_size(names); i++) {
        out->names[out->n_names++] = json_string_value(json_array_get(names, i));
    }
    if (context) {
        auto_free char *text = json_text(context);
        out->run_context = arena_strdup(a, text);
    }
    return 0;
}

/* ---- packages ---- */
int rest_body_package(const json_t *body, struct rest_package *out, struct err *e)
{
    static const struct field fields[] = {
        {"name", TEXT}, {"location", TEXT}, {"description", TEXT}};
    int rc = check_all(body, fields, ARRAY_LEN(fields), e);
    if (rc) {
        return rc;
    }
    *out = (struct rest_package){.name = json_str(body, "name", NULL),
                                 .location = json_str(body, "location", NULL),
                                 .description = json_str(body, "description", NULL)};
    if (!out->name) {
        return err_set(e, ERR_INVALID, "'name' is missing: the body must name the package");
    }
    if (strcmp(out->name, "materializations") == 0) {
        return err_set(
            e, ERR_INVALID,
            "'name' must not be materializations: that name is reserved, choose another");
    }
    return rest_name_check("package name", out->name, e);
}

int rest_body_package_patch(const json_t *body, const char *package, struct err *e)
{
    static const struct field fields[] = {{"name", TEXT},
                                          {"description", TEXT},
                                          {"location", TEXT},
                                          {"resource", TEXT},
                                          {"scope", TEXT},
                                          {"materialization", OBJECT},
                                          {"explores", LIST},
                                          {"queryableSources", TEXT},
                                          {"queryMetadata", OBJECT},
                                          {"manifestLocation", TEXT}};
    int rc = check_all(body, fields, ARRAY_LEN(fields), e);
    return rc ? rc : same_name(body, package, "package", e);
}

/* ---- environments and connections ---- */
static int check_connections(const json_t *list, struct err *e)
{
    size_t i;
    const json_t *item;
    json_array_foreach(list, i, item)
    {
        const char *name = json_str(item, "name", NULL);
        if (!name) {
            return err_set(e, ERR_INVALID, "'connections[%zu].name' must be a string", i);
        }
        int rc = rest_name_check("connection name", name, e);
        rc = rc ? rc : rest_body_connection(item, name, true, e);
        if (rc) {
            return err_wrap(e, "connections[%zu]", i);
        }
    }
    return 0;
}

static int check_packages(const json_t *list, struct err *e)
{
    size_t i;
    const json_t *item;
    json_array_foreach(list, i, item)
    {
        struct rest_package p;
        if (!json_is_object(item)) {
            return err_set(e, ERR_INVALID, "'packages[%zu]' must be an object", i);
        }
        if (rest_body_package(item, &p, e)) {
            return err_wrap(e, "packages[%zu]", i);
        }
    }
    return 0;
}

int rest_body_environment(const json_t *body, const char *name, struct err *e)
{
    static const struct field fields[] = {{"name", TEXT}, {"readme", TEXT}};
    static const char *const lists[] = {"connections", "packages", "storageDestinations"};
    int rc = check_all(body, fields, ARRAY_LEN(fields), e);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(lists); i++) {
        const json_t *v = present(body, lists[i]);
        if (v && !json_is_array(v)) {
            rc = err_set(e, ERR_INVALID, "'%s' must be a list of objects", lists[i]);
        }
    }
    if (rc == 0 && name) {
        rc = same_name(body, name, "environment", e);
    } else if (rc == 0) {
        const char *given = json_str(body, "name", NULL);
        rc = given
                 ? rest_name_check("environment name", given, e)
                 : err_set(e, ERR_INVALID, "'name' is missing: the body must name the environment");
    }
    rc = rc ? rc : check_connections(present(body, "connections"), e);
    return rc ? rc : check_packages(present(body, "packages"), e);
}

int rest_body_connection(const json_t *body, const char *name, bool is_new, struct err *e)
{
    static const struct field fields[] = {{"name", TEXT}, {"type", TEXT}};
    int rc = check_all(body, fields, ARRAY_LEN(fields), e);
    if (rc == 0 && is_new && !json_str(body, "type", NULL)) {
        rc = err_set(e, ERR_INVALID, "'type' is missing: a connection needs one, such as postgres");
    }
    return rc ? rc : same_name(body, name, "connection", e);
}

/* ---- the rest ---- */
int rest_paging_number(const char *what, const char *text, uint32_t *out, struct err *e)
{
    uint64_t n = 0;
    if (text[0] == '\0' || strspn(text, "0123456789") != strlen(text)) {
        return err_set(e, ERR_INVALID, "'%s' must be a non-negative integer", what);
    }
    bool fits = slice_to_u64(slice_of(text), &n) == 0 && n <= UINT32_MAX;
    *out = fits ? (uint32_t)n : UINT32_MAX;
    return 0;
}

void rest_request_id(struct slice key, const char *part, uint8_t out[16])
{
    auto_buf struct buf text = {0};
    buf_add_slice(&text, key);
    if (part[0]) {
        buf_addf(&text, "\n%s", part);
    }
    struct sha256 h = sha256_of(buf_str(&text), text.len);
    memcpy(out, h.b, 16);
}
