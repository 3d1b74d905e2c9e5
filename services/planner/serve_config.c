/* Environments and connections on behalf of people, and the status of everything
 * (spec/malloy-persistence.md 7.2, 7.3). */
#include "common/log/log.h"
#include "services/planner/planner.h"

struct config_call {
    struct planner *p;
    struct bus_request *r;
    struct store_op op;
    struct store_connection connection;
    struct store_environment environment;
    uint64_t environment_id;
    char *name;
    char *says;          /* the answer, JSON */
    json_t *connections; /* of an environment body, written one after the other */
    size_t at;
};

static void call_end(struct config_call *c)
{
    json_decref(c->connections);
    free(c);
}

static struct config_call *call_new(struct planner *p, struct bus_request *r,
                                    void (*done)(struct store_op *op))
{
    struct config_call *c = xcalloc(1, sizeof(*c));
    c->p = p;
    c->r = r;
    c->op = (struct store_op){.arena = &r->arena, .done = done, .data = c};
    return c;
}

static bool store_failed(struct config_call *c)
{
    if (c->op.rc == 0) {
        return false;
    }
    bus_reply_error(c->r, c->op.rc, err_text(&c->op.err), 100);
    call_end(c);
    return true;
}

static bool frozen(struct bus_request *r, const struct planner_environment *e)
{
    if (e && e->frozen) {
        bus_reply_error(r, ERR_FROZEN,
                        "the configuration is frozen (frozenConfig): environments and connections "
                        "cannot be changed",
                        0);
        return true;
    }
    return false;
}

/* What is answered once the change is stored, and to a repeat should that be lost. Takes v. */
static void will_say(struct config_call *c, json_t *v)
{
    auto_free char *text = json_text(v);
    json_decref(v);
    c->says = arena_strdup(&c->r->arena, text);
    Kiln__JsonRep rep = KILN__JSON_REP__INIT;
    rep.json = c->says;
    answered_note(c->r, &c->op, &rep.base);
}

static void will_say_message(struct config_call *c, const char *message)
{
    json_t *v = json_object();
    json_set_str(v, "message", message);
    will_say(c, v);
}

static void say(struct config_call *c)
{
    Kiln__JsonRep rep = KILN__JSON_REP__INIT;
    rep.json = c->says;
    bus_reply(c->r, &rep.base);
    call_end(c);
}

/* ---- connections ---- */
static void on_connection_put(struct store_op *op)
{
    struct config_call *c = op->data;
    if (op->rc == ERR_CONFLICT) {
        bus_reply_error(c->r, ERR_CONFLICT,
                        arena_printf(&c->r->arena,
                                     "connection '%s' exists already; change it with PATCH",
                                     c->connection.name),
                        0);
        call_end(c);
        return;
    }
    if (store_failed(c)) {
        return;
    }
    catalog_put_connection(c->p, &c->connection);
    say(c);
}

/* A PATCH names what changes; the rest stays. */
static char *merged_body(struct planner *p, struct bus_request *r,
                         const struct planner_connection *old, const char *body, struct err *e)
{
    auto_buf struct buf plain = {0};
    if (planner_unseal(p, old->nonce, buf_slice(&old->sealed), &plain, e)) {
        return NULL;
    }
    json_t *base = json_parse(buf_slice(&plain), e);
    json_t *change = json_parse(slice_of(body), e);
    char *text = NULL;
    if (json_is_object(base) && json_is_object(change)) {
        json_object_update_recursive(base, change);
        auto_free char *printed = json_text(base);
        text = arena_strdup(&r->arena, printed);
    } else {
        err_set(e, ERR_INVALID, "the body must be a JSON object");
    }
    json_decref(base);
    json_decref(change);
    return text;
}

static void put_connection(struct planner *p, struct bus_request *r)
{
    Kiln__PutConnectionReq *q = serve_unpack(r, &kiln__put_connection_req__descriptor);
    struct planner_environment *env = q ? serve_environment(p, r, q->environment) : NULL;
    if (!env || frozen(r, env)) {
        return;
    }
    struct err e = {0};
    auto_buf struct buf plain = {0};
    if (q->nonce.len != 12 ||
        planner_unseal(p, q->nonce.data, slice_make(q->sealed_body.data, q->sealed_body.len),
                       &plain, &e)) {
        bus_reply_error(r, ERR_CONF,
                        "gateway and planner have different KILN_SECRET_KEYs; give both the same",
                        0);
        return;
    }
    const char *body = buf_str(&plain);
    bool insert = strcmp(q->method, "POST") == 0;
    struct planner_connection *old = catalog_connection(p, env->id, q->name);
    if (!insert && !old) {
        bus_reply_error(r, ERR_NOT_FOUND,
                        arena_printf(&r->arena,
                                     "connection '%s' does not exist in environment '%s'", q->name,
                                     q->environment),
                        0);
        return;
    }
    if (strcmp(q->name, "duckdb") == 0) {
        bus_reply_error(r, ERR_INVALID,
                        "the name 'duckdb' is reserved for each package's own DuckDB connection; "
                        "choose another name",
                        0);
        return;
    }
    if (!insert) {
        body = merged_body(p, r, old, body, &e);
    }
    struct config_call *c = call_new(p, r, on_connection_put);
    int rc =
        body ? connection_row(p, &r->arena, env->id, q->name, body, &c->connection, &e) : e.code;
    if (rc) {
        bus_reply_error(r, ERR_INVALID, err_text(&e), 0);
        call_end(c);
        return;
    }
    will_say_message(c, arena_printf(&r->arena, "connection '%s' saved", q->name));
    store_put_connection(p->store, &c->op, &c->connection, insert);
}

static void on_connection_deleted(struct store_op *op)
{
    struct config_call *c = op->data;
    if (store_failed(c)) {
        return;
    }
    catalog_del_connection(c->p, c->environment_id, c->name);
    say(c);
}

static void delete_connection(struct planner *p, struct bus_request *r)
{
    Kiln__DeleteConnectionReq *q = serve_unpack(r, &kiln__delete_connection_req__descriptor);
    struct planner_environment *env = q ? serve_environment(p, r, q->environment) : NULL;
    if (!env || frozen(r, env)) {
        return;
    }
    if (!catalog_connection(p, env->id, q->name)) {
        bus_reply_error(r, ERR_NOT_FOUND,
                        arena_printf(&r->arena,
                                     "connection '%s' does not exist in environment '%s'", q->name,
                                     q->environment),
                        0);
        return;
    }
    struct config_call *c = call_new(p, r, on_connection_deleted);
    c->environment_id = env->id;
    c->name = q->name;
    will_say_message(c, arena_printf(&r->arena, "connection '%s' deleted", q->name));
    store_delete_connection(p->store, &c->op, env->id, q->name);
}

/* ---- environments ---- */
static void write_connections(struct config_call *c);

static void on_environment_connection(struct store_op *op)
{
    struct config_call *c = op->data;
    if (store_failed(c)) {
        return;
    }
    catalog_put_connection(c->p, &c->connection);
    c->at++;
    write_connections(c);
}

static void write_connections(struct config_call *c)
{
    if (c->at >= json_array_size(c->connections)) {
        struct planner_environment *e = catalog_environment_id(c->p, c->environment_id);
        serve_reply_json(c->r, environment_json(c->p, e, true));
        call_end(c);
        return;
    }
    json_t *item = json_array_get(c->connections, c->at);
    auto_free char *text = json_text(item);
    struct err e = {0};
    const char *name = json_str(item, "name", "");
    int rc = name[0] ? connection_row(c->p, &c->r->arena, c->environment_id,
                                      arena_strdup(&c->r->arena, name), text, &c->connection, &e)
                     : err_set(&e, ERR_INVALID, "every connection needs a name");
    if (rc) {
        bus_reply_error(c->r, ERR_INVALID, err_text(&e), 0);
        call_end(c);
        return;
    }
    c->op = (struct store_op){.arena = &c->r->arena, .done = on_environment_connection, .data = c};
    store_put_connection(c->p->store, &c->op, &c->connection, false);
}

static void on_environment_put(struct store_op *op)
{
    struct config_call *c = op->data;
    if (store_failed(c)) {
        return;
    }
    c->environment.id = c->environment_id;
    catalog_put_environment(c->p, &c->environment);
    write_connections(c);
}

static void on_environment_deleted(struct store_op *op)
{
    struct config_call *c = op->data;
    if (store_failed(c)) {
        return;
    }
    catalog_del_environment(c->p, c->name);
    say(c);
}

static bool has_packages(struct planner *p, uint64_t environment)
{
    for (struct map_iter it = map_begin(&p->units); map_next(&it);) {
        if (((struct planner_unit *)it.value)->environment == environment) {
            return true;
        }
    }
    return false;
}

static void delete_environment(struct planner *p, struct bus_request *r, const char *name)
{
    struct planner_environment *env = serve_environment(p, r, name);
    if (!env || frozen(r, env)) {
        return;
    }
    if (has_packages(p, env->id)) {
        bus_reply_error(
            r, ERR_CONFLICT,
            arena_printf(&r->arena, "environment '%s' still has packages; delete them first", name),
            0);
        return;
    }
    struct config_call *c = call_new(p, r, on_environment_deleted);
    c->name = arena_strdup(&r->arena, name);
    will_say(c, environment_json(p, env, false));
    store_delete_environment(p->store, &c->op, env->id);
}

/* frozenConfig is said for the whole file: it covers environments that are not in it as well. */
static const struct planner_environment *any_frozen(const struct planner *p)
{
    for (struct map_iter it = map_begin(&p->environments); map_next(&it);) {
        const struct planner_environment *e = it.value;
        if (e->frozen) {
            return e;
        }
    }
    return NULL;
}

static void put_environment(struct planner *p, struct bus_request *r)
{
    Kiln__PutEnvironmentReq *q = serve_unpack(r, &kiln__put_environment_req__descriptor);
    if (!q) {
        return;
    }
    if (strcmp(q->method, "DELETE") == 0) {
        delete_environment(p, r, q->name);
        return;
    }
    if (frozen(r, any_frozen(p))) {
        return;
    }
    if (strcmp(q->method, "PATCH") == 0 && !serve_environment(p, r, q->name)) {
        return;
    }
    struct err e = {0};
    auto_buf struct buf plain = {0};
    if (q->nonce.len != 12 ||
        planner_unseal(p, q->nonce.data, slice_make(q->sealed_body.data, q->sealed_body.len),
                       &plain, &e)) {
        bus_reply_error(r, ERR_CONF,
                        "gateway and planner have different KILN_SECRET_KEYs; give both the same",
                        0);
        return;
    }
    json_t *body = json_parse(buf_slice(&plain), &e);
    if (!json_is_object(body)) {
        bus_reply_error(
            r, ERR_INVALID,
            "the body must be a JSON object with name, and optionally readme and connections", 0);
        json_decref(body);
        return;
    }
    struct config_call *c = call_new(p, r, on_environment_put);
    c->environment = (struct store_environment){
        .name = q->name, .readme = arena_strdup(&r->arena, json_str(body, "readme", NULL))};
    json_t *connections = json_object_get(body, "connections");
    c->connections = json_is_array(connections) ? json_incref(connections) : json_array();
    json_decref(body);
    store_put_environment(p->store, &c->op, &c->environment, &c->environment_id);
}

/* ---- status ---- */
/* Why a package of the configuration file is not there; NULL: it is not in the file, or loaded. */
static const char *config_error(const struct planner *p, const char *environment,
                                const char *package)
{
    list_for_each (it, &p->config_errors) {
        const struct planner_config_error *c = list_entry(it, struct planner_config_error, link);
        if (c->package && strcmp(c->package, package) == 0 &&
            strcmp(c->environment, environment) == 0) {
            return c->message;
        }
    }
    return NULL;
}

static void get_package_status(struct planner *p, struct bus_request *r, const char *environment,
                               const char *package)
{
    const struct planner_unit *known = catalog_unit(p, environment, package);
    const char *why =
        known ? (known->load ? NULL : known->load_error) : config_error(p, environment, package);
    if (why) {
        bus_reply_error(r, ERR_PACKAGE,
                        arena_printf(&r->arena, "package '%s' is not loaded: %s", package, why), 0);
        return;
    }
    struct planner_unit *u = serve_unit(p, r, environment, package);
    if (u) {
        serve_reply_json(r, package_json(p, u));
    }
}

static void get_status(struct planner *p, struct bus_request *r)
{
    Kiln__GetStatusReq *q = serve_unpack(r, &kiln__get_status_req__descriptor);
    if (!q) {
        return;
    }
    if (!q->environment[0]) {
        serve_reply_json(r, status_json(p));
        return;
    }
    struct planner_environment *env = serve_environment(p, r, q->environment);
    if (!env) {
        return;
    }
    if (!q->package[0]) {
        serve_reply_json(r, environment_json(p, env, true));
        return;
    }
    get_package_status(p, r, q->environment, q->package);
}

void serve_config(struct planner *p, struct bus_request *r)
{
    switch (r->kind) {
    case BUS_PUT_CONNECTION:
        put_connection(p, r);
        return;
    case BUS_DELETE_CONNECTION:
        delete_connection(p, r);
        return;
    case BUS_PUT_ENVIRONMENT:
        put_environment(p, r);
        return;
    default:
        get_status(p, r);
        return;
    }
}
