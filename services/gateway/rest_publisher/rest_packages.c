/* Packages: list, get, publish, PATCH, delete, reload (spec/malloy-persistence.md 7.2, 7.5;
 * decisions 3.3, 3.6). */
#include "services/gateway/rest_publisher/rest.h"

/* ---- answers ---- */
/* What is in force here; the planner's own words when this gateway has not come that far. */
static void reply_package(struct rest_call *c, const char *name, const struct rest_item *it)
{
    const struct gw_package *p = gw_shelf_find(c->w, c->environment, name);
    if (p && it->in_force) {
        rest_reply_json(c, 200, rest_package_json(c->w, p));
        return;
    }
    json_t *v = json_parse(slice_of(it->json), NULL);
    if (!v) {
        rest_fail(c, ERR_INTERNAL, "the planner's package object is no JSON");
        return;
    }
    json_set_str(v, "name", name);
    rest_add_binding(c->w, c->environment, v);
    rest_reply_json(c, 200, v);
}

static void on_changed(struct rest_chain *ch)
{
    if (!ch->c->package) {
        ch->c->package = ch->item->package; /* published: Kiln-Epoch is its own */
    }
    reply_package(ch->c, ch->item->package, ch->item);
}

static void start_change(struct rest_call *c, enum bus_kind kind, const ProtobufCMessage *request,
                         const char *package, int64_t wait_ms)
{
    struct rest_chain *ch = rest_chain_new(c, on_changed);
    struct rest_item *it = rest_chain_add(ch, kind, request);
    it->force = FORCE_EPOCH;
    it->package = package;
    it->wait = MS(wait_ms);
    rest_chain_start(ch);
}

/* ---- list and get ---- */
static void on_environment(struct rest_chain *ch)
{
    json_t *env = json_parse(slice_of(ch->item->json), NULL);
    rest_add_bindings(ch->c->w, env);
    json_t *packages = json_object_get(env, "packages");
    json_t *list = json_is_array(packages) ? json_incref(packages) : json_array();
    json_decref(env);
    rest_reply_json(ch->c, 200, list);
}

static void on_no_environment(struct rest_chain *ch, struct rest_item *it)
{
    json_t *env =
        it->rc == ERR_BUS_TIMEOUT ? rest_local_environment(ch->c->w, ch->c->environment) : NULL;
    if (!env) {
        rest_fail_item(ch->c, it);
        return;
    }
    json_t *list = json_incref(json_object_get(env, "packages"));
    json_decref(env);
    rest_reply_json(ch->c, 200, list);
}

void rest_packages_list(struct rest_call *c)
{
    struct rest_chain *ch = rest_chain_new(c, on_environment);
    ch->failed = on_no_environment;
    rest_chain_add_status(ch, c->environment, NULL)->timeout = MS(REST_READ_MS);
    rest_chain_start(ch);
}

static void on_package(struct rest_call *c, struct gw_package *p)
{
    rest_reply_json(c, 200, rest_package_json(c->w, p));
}

void rest_package_get(struct rest_call *c)
{
    if (rest_query_is(c, "reload", "true") && slice_is(http_method(c->r), "GET")) {
        Kiln__ReloadReq *q = arena_alloc(c->a, sizeof(*q));
        kiln__reload_req__init(q);
        q->environment = bus_str(c->environment);
        q->package = bus_str(c->package);
        start_change(c, BUS_RELOAD, &q->base, c->package, REST_RELOAD_MS);
        return;
    }
    rest_with_package(c, on_package);
}

/* ---- publish, PATCH, delete ---- */
void rest_package_publish(struct rest_call *c)
{
    struct rest_package body;
    struct err e = {0};
    if (!rest_take_body(c, false)) {
        return;
    }
    if (rest_body_package(c->body, &body, &e)) {
        rest_fail_err(c, &e);
        return;
    }
    Kiln__PublishReq *q = rest_publish_message(c->a, c->environment, &body);
    start_change(c, BUS_PUBLISH, &q->base, q->package, REST_CHANGE_MS);
}

void rest_package_patch(struct rest_call *c)
{
    struct err e = {0};
    if (!rest_take_body(c, false)) {
        return;
    }
    if (rest_body_package_patch(c->body, c->package, &e)) {
        rest_fail_err(c, &e);
        return;
    }
    Kiln__PatchReq *q = arena_alloc(c->a, sizeof(*q));
    kiln__patch_req__init(q);
    q->environment = bus_str(c->environment);
    q->package = bus_str(c->package);
    q->body_json = arena_slice(c->a, http_body(c->r));
    start_change(c, BUS_PATCH, &q->base, c->package, REST_CHANGE_MS);
}

static void on_deleted(struct rest_chain *ch)
{
    json_t *v = json_parse(slice_of(ch->item->json), NULL);
    rest_reply_json(ch->c, 200, v ? v : json_object());
}

void rest_package_delete(struct rest_call *c)
{
    struct rest_chain *ch = rest_chain_new(c, on_deleted);
    rest_chain_add_delete(ch, c->package);
    rest_chain_start(ch);
}

struct rest_item *rest_chain_add_delete(struct rest_chain *ch, const char *package)
{
    Kiln__DeleteReq *q = arena_alloc(ch->c->a, sizeof(*q));
    kiln__delete_req__init(q);
    q->environment = bus_str(ch->c->environment);
    q->package = bus_str(package);
    struct rest_item *it = rest_chain_add(ch, BUS_DELETE_PACKAGE, &q->base);
    it->force = FORCE_GONE;
    it->package = package;
    it->wait = MS(REST_RELOAD_MS);
    return it;
}

Kiln__PublishReq *rest_publish_message(struct arena *a, const char *environment,
                                       const struct rest_package *p)
{
    Kiln__PublishReq *q = arena_alloc(a, sizeof(*q));
    kiln__publish_req__init(q);
    q->environment = bus_str(environment);
    q->package = arena_strdup(a, p->name);
    q->location = arena_strdup(a, p->location ? p->location : "");
    q->description = arena_strdup(a, p->description ? p->description : "");
    q->has_description = p->description != NULL;
    q->source = bus_str("rest");
    return q;
}
