#include "common/json/json.h"
#include "services/planner/package/package.h"
#include "services/planner/package/publisher_config_rules.h"

/* One parse: what is collected on the way. */
struct reading {
    struct arena *arena;
    const char *(*getenv_fn)(const char *);
    bool allow_proxy;
    const char **warnings;
    size_t n_warnings, cap_warnings;
};

static void warn(struct reading *r, const char *text)
{
    if (r->n_warnings == r->cap_warnings) {
        size_t cap = r->cap_warnings ? 2 * r->cap_warnings : 8;
        const char **more = arena_alloc(r->arena, cap * sizeof *more);
        for (size_t i = 0; i < r->n_warnings; i++) {
            more[i] = r->warnings[i];
        }
        r->warnings = more;
        r->cap_warnings = cap;
    }
    r->warnings[r->n_warnings++] = text;
}

/* ---- ${NAME} ---- */

static size_t name_len(const char *at)
{
    size_t n = 0;
    while ((at[n] >= 'A' && at[n] <= 'Z') || (at[n] >= '0' && at[n] <= '9') || at[n] == '_') {
        n++;
    }
    return n;
}

static int fill_text(struct reading *r, const char *text, const char *where, struct buf *out,
                     struct err *e)
{
    const char *at = text;
    for (const char *mark; (mark = strstr(at, "${")) != NULL;) {
        size_t n = name_len(mark + 2);
        if (n == 0 || mark[2 + n] != '}') {
            buf_add(out, at, (size_t)(mark + 2 - at));
            at = mark + 2;
            continue;
        }
        const char *name = arena_strndup(r->arena, mark + 2, n);
        const char *value = r->getenv_fn(name);
        if (!value) {
            return err_set(
                e, ERR_CONF,
                "publisher.config.json uses the environment variable %s at %s, and it is not set",
                name, where);
        }
        buf_add(out, at, (size_t)(mark - at));
        buf_add_str(out, value);
        at = mark + 2 + n + 1;
    }
    buf_add_str(out, at);
    return 0;
}

static int fill_string(struct reading *r, json_t *v, const char *where, struct err *e)
{
    if (!strstr(json_string_value(v), "${")) {
        return 0;
    }
    auto_buf struct buf out = {0};
    int rc = fill_text(r, json_string_value(v), where, &out, e);
    if (rc == 0 && json_string_set(v, buf_str(&out)) != 0) {
        rc = err_set(e, ERR_CONF, "publisher.config.json: the value put in at %s is not UTF-8",
                     where);
    }
    return rc;
}

static int fill(struct reading *r, json_t *v, const char *where, struct err *e)
{
    int rc = 0;
    if (json_is_string(v)) {
        return fill_string(r, v, where, e);
    }
    if (json_is_array(v)) {
        for (size_t i = 0; i < json_array_size(v) && rc == 0; i++) {
            rc = fill(r, json_array_get(v, i), arena_printf(r->arena, "%s[%zu]", where, i), e);
        }
        return rc;
    }
    for (void *it = json_object_iter(v); it && rc == 0; it = json_object_iter_next(v, it)) {
        const char *gap = *where ? "." : "";
        const char *path = arena_printf(r->arena, "%s%s%s", where, gap, json_object_iter_key(it));
        rc = fill(r, json_object_iter_value(it), path, e);
    }
    return rc;
}

/* ---- entries ---- */

static bool is_taken(const struct config_connection *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static struct config_connection keep_connection(struct reading *r, const json_t *entry)
{
    auto_free char *text = json_text(entry);
    return (struct config_connection){.name = arena_strdup(r->arena, json_str(entry, "name", "")),
                                      .type = arena_strdup(r->arena, json_str(entry, "type", "")),
                                      .json = arena_strdup(r->arena, text)};
}

static void dropped(struct reading *r, const char *what, const char *name, const char *env,
                    const char *why)
{
    warn(r,
         arena_printf(r->arena, "publisher.config.json: %s '%s' of environment '%s' is ignored: %s",
                      what, name, env, why));
}

static int read_connections(struct reading *r, const json_t *list, struct config_environment *env,
                            struct err *e)
{
    env->connections =
        arena_zalloc(r->arena, (json_array_size(list) + 1) * sizeof *env->connections);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        const char *name = json_str(entry, "name", "");
        bool fatal = false;
        const char *fault = config_connection_fault(entry, r->allow_proxy, &fatal);
        if (fatal) {
            return err_set(e, ERR_CONF,
                           "publisher.config.json: connection '%s' of environment '%s': %s", name,
                           env->name, fault);
        }
        if (!fault && is_taken(env->connections, env->n_connections, name)) {
            fault = "an earlier connection has that name";
        }
        if (fault) {
            dropped(r, "connection", name, env->name, fault);
            continue;
        }
        env->connections[env->n_connections++] = keep_connection(r, entry);
    }
    return 0;
}

static void read_destinations(struct reading *r, const json_t *list, struct config_environment *env)
{
    env->destinations =
        arena_zalloc(r->arena, (json_array_size(list) + 1) * sizeof *env->destinations);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        const char *name = json_str(entry, "name", "");
        auto_buf struct buf text = {0};
        const char *fault = config_destination_fault(entry, &text);
        if (!fault && is_taken(env->destinations, env->n_destinations, name)) {
            fault = "an earlier destination has that name";
        }
        if (fault) {
            dropped(r, "storage destination", name, env->name, fault);
            continue;
        }
        env->destinations[env->n_destinations++] = keep_connection(r, entry);
    }
}

static const char *package_fault(const struct config_environment *env, const char *name,
                                 const char *location)
{
    if (!name[0] || strchr(name, '/')) {
        return name[0] ? "a name has no '/'" : "it has no name";
    }
    if (!location[0]) {
        return "it has no location";
    }
    for (size_t i = 0; i < env->n_packages; i++) {
        if (strcmp(env->packages[i].name, name) == 0) {
            return "an earlier package has that name";
        }
    }
    return NULL;
}

static void read_packages(struct reading *r, const json_t *list, struct config_environment *env)
{
    env->packages = arena_zalloc(r->arena, (json_array_size(list) + 1) * sizeof *env->packages);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        const char *name = json_str(entry, "name", "");
        const char *location = json_str(entry, "location", "");
        const char *fault = package_fault(env, name, location);
        if (fault) {
            dropped(r, "package", name, env->name, fault);
            continue;
        }
        env->packages[env->n_packages++] =
            (struct config_package){arena_strdup(r->arena, name), arena_strdup(r->arena, location)};
    }
}

static const char *environment_fault(const struct publisher_config *out, const char *name)
{
    if (!name[0] || strchr(name, '/')) {
        return name[0] ? "a name has no '/'" : "it has no name";
    }
    for (size_t i = 0; i < out->n; i++) {
        if (strcmp(out->environments[i].name, name) == 0) {
            return "an earlier environment has that name";
        }
    }
    return NULL;
}

static int read_environment(struct reading *r, const json_t *v, struct publisher_config *out,
                            struct err *e)
{
    const char *name = json_str(v, "name", "");
    const char *fault = environment_fault(out, name);
    if (fault) {
        warn(r, arena_printf(r->arena, "publisher.config.json: environment '%s' is ignored: %s",
                             name, fault));
        return 0;
    }
    struct config_environment *env = &out->environments[out->n++];
    env->name = arena_strdup(r->arena, name);
    env->readme = arena_strdup(r->arena, json_str(v, "readme", NULL));
    read_packages(r, json_object_get(v, "packages"), env);
    read_destinations(r, json_object_get(v, "storageDestinations"), env);
    return read_connections(r, json_object_get(v, "connections"), env, e);
}

/* ---- the whole ---- */

static json_t *environments_of(struct reading *r, const json_t *root)
{
    json_t *list = json_object_get(root, "environments");
    if (!list && (list = json_object_get(root, "projects")) != NULL) {
        warn(r, "publisher.config.json: 'projects' is the old spelling; write 'environments'");
    }
    return list;
}

static bool env_flag(const char *value)
{
    return value && (strcmp(value, "1") == 0 || strcmp(value, "true") == 0 ||
                     strcmp(value, "yes") == 0 || strcmp(value, "on") == 0);
}

static int read_root(struct reading *r, json_t *root, struct publisher_config *out, struct err *e)
{
    if (!json_is_object(root)) {
        return err_set(e, ERR_CONF, "publisher.config.json is no JSON object");
    }
    int rc = fill(r, root, "", e);
    if (rc < 0) {
        return rc;
    }
    const json_t *list = environments_of(r, root);
    if (list && !json_is_array(list)) {
        return err_set(e, ERR_CONF, "publisher.config.json: 'environments' is no array");
    }
    out->frozen = json_flag(root, "frozenConfig", false);
    out->environments =
        arena_zalloc(r->arena, (json_array_size(list) + 1) * sizeof *out->environments);
    for (size_t i = 0; i < json_array_size(list) && rc == 0; i++) {
        rc = read_environment(r, json_array_get(list, i), out, e);
    }
    return rc;
}

int publisher_config_parse(struct arena *a, struct slice text, const char *base_dir,
                           const char *(*getenv_fn)(const char *), struct publisher_config *out,
                           struct err *e)
{
    struct reading r = {.arena = a, .getenv_fn = getenv_fn};
    r.allow_proxy = env_flag(getenv_fn("PUBLISHER_ALLOW_PROXY_CONNECTIONS"));
    json_t *root = json_parse(text, e);
    if (!root) {
        return err_set(e, ERR_CONF, "publisher.config.json does not parse: %s",
                       e ? e->text : "no JSON");
    }
    struct publisher_config made = {.base_dir = arena_strdup(a, base_dir)};
    int rc = read_root(&r, root, &made, e);
    json_decref(root);
    if (rc == 0) {
        made.warnings = r.warnings;
        made.n_warnings = r.n_warnings;
        *out = made;
    }
    return rc;
}
