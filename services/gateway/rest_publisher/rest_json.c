/* Package and environment objects as this gateway sees them: what a binding is, is told by what is
 * in force here (spec/malloy-persistence.md 4.2, 7.5). */
#include "services/gateway/rest_publisher/rest.h"

static void set_new(json_t *obj, const char *key, json_t *value)
{
    must(json_object_set_new(obj, key, value) == 0);
}

/* Entries of a manifest are keyed by identity: sources that share a table count once. */
static size_t count_entries(const struct gw_package *p)
{
    struct map seen;
    map_init(&seen);
    for (size_t i = 0; i < p->n_bindings; i++) {
        const char *id = p->bindings[i].entity_id;
        map_put(&seen, slice_of(id && id[0] ? id : p->bindings[i].build_id), &seen);
    }
    size_t n = map_len(&seen);
    map_fini(&seen);
    return n;
}

static bool has_plannable(const struct gw_package *p)
{
    for (size_t i = 0; i < p->n_sources; i++) {
        if (!p->sources[i].refused_reason) {
            return true;
        }
    }
    return false;
}

static void advise(json_t *package, const char *message)
{
    json_t *list = json_object_get(package, "advisories");
    if (!json_is_array(list)) {
        list = json_array();
        set_new(package, "advisories", list);
    }
    json_t *item = json_object();
    json_set_str(item, "message", message);
    json_set_str(item, "severity", "info");
    must(json_array_append_new(list, item) == 0);
}

static void set_binding(const struct gw_worker *w, const struct gw_package *p, json_t *v)
{
    size_t n = p ? count_entries(p) : 0;
    json_set_str(v, "manifestBindingStatus", n ? "bound" : "unbound");
    json_set_int(v, "manifestEntryCount", (int64_t)n);
    json_set_str(v, "boundManifestUri", NULL);
    if (p && n == 0 && strcmp(p->cause, "reload") == 0 && has_plannable(p)) {
        advise(v, "unbound by reload: run a build; unchanged tables are reused and bound again");
    }
    if (!p) {
        char text[200];
        snprintf(text, sizeof(text), "not in force on gateway %s yet", w->g->set->instance);
        advise(v, text);
    }
}

json_t *rest_package_json(const struct gw_worker *w, const struct gw_package *p)
{
    json_t *v = json_parse(slice_of(p->package_json), NULL);
    if (!json_is_object(v)) {
        json_decref(v);
        v = json_object();
        json_set_str(v, "name", p->name);
    }
    set_binding(w, p, v);
    return v;
}

void rest_add_binding(struct gw_worker *w, const char *environment, json_t *package)
{
    const char *name = json_str(package, "name", NULL);
    if (name) {
        set_binding(w, gw_shelf_find(w, environment, name), package);
    }
}

void rest_add_bindings(struct gw_worker *w, json_t *environment)
{
    const char *name = json_str(environment, "name", "");
    json_t *packages = json_object_get(environment, "packages"), *item;
    size_t i;
    json_array_foreach(packages, i, item)
    {
        rest_add_binding(w, name, item);
    }
}

/* ---- while the planner is away ---- */
static json_t *environment_shell(const char *name)
{
    json_t *v = json_object();
    char resource[200];
    snprintf(resource, sizeof(resource), "/api/v0/environments/%s", name);
    json_set_str(v, "resource", resource);
    json_set_str(v, "name", name);
    json_set_str(v, "readme", "");
    set_new(v, "connections", json_array());
    set_new(v, "packages", json_array());
    set_new(v, "storageDestinations", json_array());
    return v;
}

static json_t *find_named(json_t *list, const char *name)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        if (strcmp(json_str(item, "name", ""), name) == 0) {
            return item;
        }
    }
    return NULL;
}

static json_t *local_environments(struct gw_worker *w, const char *only)
{
    struct gw_package **list = xcalloc(REST_PACKAGES_MAX, sizeof(struct gw_package *));
    size_t n = gw_shelf_list(w, only, list, REST_PACKAGES_MAX);
    json_t *environments = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *env = find_named(environments, list[i]->environment);
        if (!env) {
            env = environment_shell(list[i]->environment);
            must(json_array_append_new(environments, env) == 0);
        }
        json_t *package = rest_package_json(w, list[i]);
        json_object_del(package, "buildPlan");
        must(json_array_append_new(json_object_get(env, "packages"), package) == 0);
    }
    free(list);
    return environments;
}

json_t *rest_local_environments(struct gw_worker *w)
{
    return local_environments(w, NULL);
}

json_t *rest_local_environment(struct gw_worker *w, const char *name)
{
    json_t *all = local_environments(w, name);
    json_t *env = json_incref(json_array_get(all, 0));
    json_decref(all);
    return env;
}
