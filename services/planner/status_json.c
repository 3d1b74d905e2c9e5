/* Environments, packages and connections as the REST API shows them
 * (spec/malloy-persistence.md 7.2-7.5), binding fields left to the gateway. */
#include "services/planner/planner.h"
#include <time.h>

json_t *connection_json(const struct planner_connection *c)
{
    json_t *v = c->public_json ? json_parse(slice_of(c->public_json), NULL) : NULL;
    if (!v) {
        v = json_object();
    }
    json_redact(v); /* its row may be older than what is known of secrets today */
    json_set_str(v, "name", c->name);
    json_set_str(v, "type", c->type);
    return v;
}

json_t *package_json(struct planner *p, struct planner_unit *u)
{
    (void)p;
    json_t *v = u->load && u->load->planned ? json_deep_copy(u->load->plan.package) : json_object();
    char resource[600];
    snprintf(resource, sizeof(resource), "/api/v0/environments/%s/packages/%s", u->environment_name,
             u->name);
    json_set_str(v, "resource", resource);
    json_set_str(v, "name", u->name);
    if (u->description || !json_object_get(v, "description")) {
        json_set_str(v, "description", u->description);
    }
    json_set_str(v, "location", u->location);
    return v;
}

json_t *environment_json(struct planner *p, const struct planner_environment *e, bool with_packages)
{
    json_t *v = json_object();
    char resource[400];
    snprintf(resource, sizeof(resource), "/api/v0/environments/%s", e->name);
    json_set_str(v, "resource", resource);
    json_set_str(v, "name", e->name);
    json_set_str(v, "readme", e->readme ? e->readme : "");
    json_t *connections = json_array();
    for (struct map_iter it = map_begin(&p->connections); map_next(&it);) {
        const struct planner_connection *c = it.value;
        if (c->environment == e->id) {
            json_array_append_new(connections, connection_json(c));
        }
    }
    json_object_set_new(v, "connections", connections);
    json_t *packages = json_array();
    for (struct map_iter it = map_begin(&p->units); with_packages && map_next(&it);) {
        struct planner_unit *u = it.value;
        if (u->environment == e->id && u->load) {
            json_t *pkg = package_json(p, u);
            json_object_del(pkg, "buildPlan");
            json_array_append_new(packages, pkg);
        }
    }
    json_object_set_new(v, "packages", packages);
    json_object_set_new(v, "storageDestinations", json_array());
    return v;
}

static void add_error(json_t *list, const char *environment, const char *package,
                      const char *message, int64_t failed_us)
{
    json_t *v = json_object();
    json_set_str(v, "environment", environment);
    if (package) {
        json_set_str(v, "package", package);
    }
    json_set_str(v, "message", message);
    if (failed_us) {
        time_t s = (time_t)(failed_us / 1000000);
        struct tm tm;
        char text[40];
        gmtime_r(&s, &tm);
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
        json_set_flag(v, "stale", true);
        json_set_str(v, "failedAt", text);
    }
    json_array_append_new(list, v);
}

json_t *status_json(struct planner *p)
{
    json_t *v = json_object();
    json_t *environments = json_array();
    json_t *load_errors = json_array();
    json_t *stale = json_array();
    bool frozen = false;
    for (struct map_iter it = map_begin(&p->environments); map_next(&it);) {
        const struct planner_environment *e = it.value;
        frozen = frozen || e->frozen;
        json_array_append_new(environments, environment_json(p, e, true));
    }
    for (struct map_iter it = map_begin(&p->units); map_next(&it);) {
        const struct planner_unit *u = it.value;
        if (u->load_error) {
            add_error(load_errors, u->environment_name, u->name, u->load_error, 0);
        }
        if (u->stale_error) {
            add_error(load_errors, u->environment_name, u->name, u->stale_error, u->stale_us);
            add_error(stale, u->environment_name, u->name, u->stale_error, u->stale_us);
        }
    }
    list_for_each (it, &p->config_errors) {
        const struct planner_config_error *c = list_entry(it, struct planner_config_error, link);
        add_error(load_errors, c->environment, c->package, c->message, 0);
    }
    json_set_int(v, "timestamp", loop_unix_us() / 1000);
    json_object_set_new(v, "environments", environments);
    json_set_flag(v, "initialized", p->booted);
    json_set_str(v, "operationalState", p->booted ? "serving" : "initializing");
    if (json_array_size(load_errors) > 0) {
        json_object_set(v, "loadErrors", load_errors);
    }
    json_decref(load_errors);
    json_object_set_new(v, "staleCompileErrors", stale);
    json_set_flag(v, "frozenConfig", frozen);
    json_object_set_new(v, "theme", json_object());
    return v;
}
