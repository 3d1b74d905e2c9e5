/* Environments: list, get, create, PATCH, delete, reload (spec/malloy-persistence.md 7.2). */
#include "services/gateway/rest_publisher/rest.h"

static void set_new(json_t *obj, const char *key, json_t *value)
{
    must(json_object_set_new(obj, key, value) == 0);
}

/* ---- list and get ---- */
static void on_environments(struct rest_chain *ch)
{
    json_t *status = json_parse(slice_of(ch->item->json), NULL), *env;
    json_t *list = json_object_get(status, "environments");
    list = json_is_array(list) ? json_incref(list) : json_array();
    json_decref(status);
    size_t i;
    json_array_foreach(list, i, env)
    {
        rest_add_bindings(ch->c->w, env);
    }
    rest_reply_json(ch->c, 200, list);
}

static void on_no_environments(struct rest_chain *ch, struct rest_item *it)
{
    json_t *list = rest_local_environments(ch->c->w);
    if (it->rc != ERR_BUS_TIMEOUT || json_array_size(list) == 0) {
        json_decref(list);
        rest_fail_item(ch->c, it);
        return;
    }
    rest_reply_json(ch->c, 200, list);
}

void rest_environments_list(struct rest_call *c)
{
    struct rest_chain *ch = rest_chain_new(c, on_environments);
    ch->failed = on_no_environments;
    rest_chain_add_status(ch, NULL, NULL)->timeout = MS(REST_READ_MS);
    rest_chain_start(ch);
}

/* Packages that did not load in this call, in the shape of /status. */
static json_t *failures(const struct rest_chain *ch)
{
    json_t *list = NULL;
    list_for_each (link, &ch->over) {
        const struct rest_item *it = list_entry(link, struct rest_item, link);
        if (it->rc == 0 || it->kind == BUS_GET_STATUS) {
            continue;
        }
        json_t *v = json_object();
        json_set_str(v, "environment", ch->c->environment);
        json_set_str(v, "package", it->package);
        json_set_str(v, "message", it->text);
        list = list ? list : json_array();
        must(json_array_append_new(list, v) == 0);
    }
    return list;
}

static void on_environment(struct rest_chain *ch)
{
    json_t *env = json_parse(slice_of(ch->item->json), NULL);
    if (!json_is_object(env)) {
        json_decref(env);
        rest_fail(ch->c, ERR_INTERNAL, "the planner's environment object is no JSON");
        return;
    }
    rest_add_bindings(ch->c->w, env);
    json_t *failed = failures(ch);
    if (failed) {
        set_new(env, "loadErrors", failed);
    }
    rest_reply_json(ch->c, 200, env);
}

static void on_no_environment(struct rest_chain *ch, struct rest_item *it)
{
    json_t *env =
        it->rc == ERR_BUS_TIMEOUT ? rest_local_environment(ch->c->w, ch->c->environment) : NULL;
    if (env) {
        rest_reply_json(ch->c, 200, env);
    } else {
        rest_fail_item(ch->c, it);
    }
}

/* ---- reload and delete: the packages first, one by one ---- */
struct package_name {
    struct list link;
    const char *name;
};

/* Names of the packages that the environment's object lists. */
static void package_names(struct rest_call *c, const char *json, struct list *out)
{
    json_t *env = json_parse(slice_of(json), NULL);
    const json_t *packages = json_object_get(env, "packages"), *item;
    size_t i;
    json_array_foreach(packages, i, item)
    {
        struct package_name *n = arena_alloc(c->a, sizeof(*n));
        n->name = arena_strdup(c->a, json_str(item, "name", ""));
        list_add_tail(out, &n->link);
    }
    json_decref(env);
}

static void add_reloads(struct rest_chain *ch, struct rest_item *first)
{
    struct list names;
    list_init(&names);
    package_names(ch->c, first->json, &names);
    list_for_each (link, &names) {
        Kiln__ReloadReq *q = arena_alloc(ch->c->a, sizeof(*q));
        kiln__reload_req__init(q);
        q->environment = bus_str(ch->c->environment);
        q->package = bus_str(list_entry(link, struct package_name, link)->name);
        struct rest_item *it = rest_chain_add(ch, BUS_RELOAD, &q->base);
        it->may_fail = true;
        it->force = FORCE_EPOCH;
        it->package = q->package;
        it->wait = MS(REST_RELOAD_MS);
    }
    rest_chain_add_status(ch, ch->c->environment, NULL);
    ch->after = NULL;
}

void rest_environment_get(struct rest_call *c)
{
    struct rest_chain *ch = rest_chain_new(c, on_environment);
    bool reload = rest_query_is(c, "reload", "true") && slice_is(http_method(c->r), "GET");
    ch->failed = reload ? NULL : on_no_environment;
    ch->after = reload ? add_reloads : NULL;
    struct rest_item *it = rest_chain_add_status(ch, c->environment, NULL);
    it->timeout = MS(reload ? 0 : REST_READ_MS);
    rest_chain_start(ch);
}

/* Connections travel sealed: the bus is not encrypted. */
static struct rest_item *add_put(struct rest_chain *ch, const char *name, const char *method)
{
    struct rest_call *c = ch->c;
    Kiln__PutEnvironmentReq *q = arena_alloc(c->a, sizeof(*q));
    kiln__put_environment_req__init(q);
    q->name = bus_str(name);
    q->method = bus_str(method);
    if (c->body) {
        auto_buf struct buf plain = {0}, sealed = {0};
        json_print(c->body, &plain);
        q->nonce.len = 12;
        q->nonce.data = arena_alloc(c->a, 12);
        gw_seal(c->w->g, buf_slice(&plain), q->nonce.data, &sealed);
        q->sealed_body.len = sealed.len;
        q->sealed_body.data = arena_dup(c->a, sealed.p, sealed.len);
    }
    return rest_chain_add(ch, BUS_PUT_ENVIRONMENT, &q->base);
}

/* A repeat finds fewer packages, or no environment any more: its calls are told apart by what they
 * are about, not by their place, and the last one is asked for its answer in any case. */
static void add_deletes(struct rest_chain *ch, struct rest_item *first)
{
    struct list names;
    list_init(&names);
    ch->after = NULL;
    if (first->rc && first->rc != ERR_NOT_FOUND) {
        first->may_fail = false;
        return;
    }
    if (first->rc == 0) {
        package_names(ch->c, first->json, &names);
    }
    list_for_each (link, &names) {
        const char *name = list_entry(link, struct package_name, link)->name;
        rest_chain_add_delete(ch, name)->part = arena_printf(ch->c->a, "package %s", name);
    }
    add_put(ch, ch->c->environment, "DELETE")->part = "";
}

void rest_environment_delete(struct rest_call *c)
{
    struct rest_chain *ch = rest_chain_new(c, on_environment);
    ch->after = add_deletes;
    rest_chain_add_status(ch, c->environment, NULL)->may_fail = true;
    rest_chain_start(ch);
}

/* ---- create and PATCH ---- */
static void add_publishes(struct rest_chain *ch)
{
    struct rest_call *c = ch->c;
    const json_t *list = json_object_get(c->body, "packages"), *item;
    size_t i;
    json_array_foreach(list, i, item)
    {
        struct rest_package p;
        struct err e = {0};
        must(rest_body_package(item, &p, &e) == 0); /* checked with the body */
        Kiln__PublishReq *q = rest_publish_message(c->a, c->environment, &p);
        struct rest_item *it = rest_chain_add(ch, BUS_PUBLISH, &q->base);
        it->may_fail = true;
        it->force = FORCE_EPOCH;
        it->package = q->package;
        it->wait = MS(REST_CHANGE_MS);
    }
    if (json_array_size(list) > 0) {
        rest_chain_add_status(ch, c->environment, NULL);
    }
}

void rest_environment_create(struct rest_call *c)
{
    struct err e = {0};
    if (!rest_take_body(c, false)) {
        return;
    }
    if (rest_body_environment(c->body, NULL, &e)) {
        rest_fail_err(c, &e);
        return;
    }
    c->environment = arena_strdup(c->a, json_str(c->body, "name", ""));
    struct rest_chain *ch = rest_chain_new(c, on_environment);
    add_put(ch, c->environment, "POST");
    add_publishes(ch);
    rest_chain_start(ch);
}

void rest_environment_patch(struct rest_call *c)
{
    struct err e = {0};
    if (!rest_take_body(c, false)) {
        return;
    }
    if (rest_body_environment(c->body, c->environment, &e)) {
        rest_fail_err(c, &e);
        return;
    }
    struct rest_chain *ch = rest_chain_new(c, on_environment);
    add_put(ch, c->environment, "PATCH");
    rest_chain_start(ch);
}
