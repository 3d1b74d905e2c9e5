/* What this server is and how it is: root, list of routes, status, and what is always empty. */
#include "services/gateway/rest_publisher/rest.h"

static void set_new(json_t *obj, const char *key, json_t *value)
{
    must(json_object_set_new(obj, key, value) == 0);
}

void rest_root(struct rest_call *c)
{
    static const char *const links[][2] = {{"status", "/api/v0/status"},
                                           {"routes", "/api/v0"},
                                           {"environments", "/api/v0/environments"},
                                           {"ready", "/readyz"},
                                           {"metrics", "/metrics"}};
    json_t *v = json_object(), *map = json_object();
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        json_set_str(map, links[i][0], links[i][1]);
    }
    json_set_str(v, "name", "kiln");
    json_set_str(v, "version", KILN_VERSION);
    json_set_str(v, "instance", c->w->g->set->instance);
    set_new(v, "links", map);
    rest_reply_json(c, 200, v);
}

static const char *method_text(enum rest_method m)
{
    switch (m) {
    case REST_GET:
        return "GET";
    case REST_POST:
        return "POST";
    case REST_PUT:
        return "PUT";
    case REST_PATCH:
        return "PATCH";
    case REST_DELETE:
        break;
    }
    return "DELETE";
}

void rest_index(struct rest_call *c)
{
    json_t *list = json_array();
    for (size_t i = 0; i < rest_n_routes(); i++) {
        json_t *v = json_object();
        json_set_str(v, "method", method_text(rest_routes[i].method));
        json_set_str(v, "path", rest_routes[i].path);
        json_set_str(v, "about", rest_routes[i].doc);
        json_set_flag(v, "built", !rest_routes[i].is_later);
        must(json_array_append_new(list, v) == 0);
    }
    json_t *v = json_object();
    set_new(v, "routes", list);
    rest_reply_json(c, 200, v);
}

/* ---- status ---- */
static void finish_status(struct rest_call *c, json_t *v, bool planner_there)
{
    json_t *gateway = json_object();
    json_set_str(gateway, "instance", c->w->g->set->instance);
    json_set_str(gateway, "version", KILN_VERSION);
    json_set_flag(gateway, "plannerAnswers", planner_there);
    json_set_int(gateway, "queriesRunning", atomic_load(&c->w->g->queries_running));
    set_new(v, "gateway", gateway);
    if (atomic_load(&c->w->g->draining)) {
        json_set_str(v, "operationalState", "draining");
    }
    rest_reply_json(c, 200, v);
}

static void on_status(struct rest_chain *ch)
{
    json_t *v = json_parse(slice_of(ch->item->json), NULL), *env;
    size_t i;
    if (!v) {
        rest_fail(ch->c, ERR_INTERNAL, "the planner's status is no JSON");
        return;
    }
    json_array_foreach(json_object_get(v, "environments"), i, env)
    {
        rest_add_bindings(ch->c->w, env);
    }
    finish_status(ch->c, v, true);
}

static void add_away(json_t *errors, const char *environment, const struct rest_item *it)
{
    char text[ERR_TEXT_MAX + 200];
    snprintf(text, sizeof(text),
             "the planner does not answer (%s): this is what the gateway itself serves; builds and "
             "changes wait until it is back",
             it->text);
    json_t *v = json_object();
    json_set_str(v, "environment", environment);
    json_set_str(v, "message", text);
    must(json_array_append_new(errors, v) == 0);
}

/* /status always answers (spec 7.1): from what is in force here when the planner is away. */
static void on_no_status(struct rest_chain *ch, struct rest_item *it)
{
    json_t *v = json_object(), *errors = json_array(), *env;
    json_t *environments = rest_local_environments(ch->c->w);
    size_t i;
    json_array_foreach(environments, i, env)
    {
        add_away(errors, json_str(env, "name", ""), it);
    }
    if (json_array_size(environments) == 0) {
        add_away(errors, "", it);
    }
    bool serves = json_array_size(environments) > 0;
    json_set_int(v, "timestamp", loop_unix_us() / 1000);
    set_new(v, "environments", environments);
    json_set_flag(v, "initialized", serves);
    json_set_str(v, "operationalState", serves ? "serving" : "initializing");
    set_new(v, "loadErrors", errors);
    set_new(v, "staleCompileErrors", json_array());
    json_set_flag(v, "frozenConfig", false);
    set_new(v, "theme", json_object());
    finish_status(ch->c, v, false);
}

void rest_status(struct rest_call *c)
{
    struct rest_chain *ch = rest_chain_new(c, on_status);
    ch->failed = on_no_status;
    rest_chain_add_status(ch, NULL, NULL)->timeout = MS(REST_READ_MS);
    rest_chain_start(ch);
}

void rest_theme_get(struct rest_call *c)
{
    rest_reply(c, 200, SLICE("{}"));
}

void rest_watch_status(struct rest_call *c)
{
    rest_reply(c, 200, SLICE("{\"enabled\":false,\"environmentName\":\"\",\"watchingPath\":\"\"}"));
}
