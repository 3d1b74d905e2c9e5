/* Connections: list, get, create, PATCH, delete; what they hold in secrets never comes back,
 * as the planner does not give it (spec/malloy-persistence.md 7.2). */
#include "services/gateway/rest_publisher/rest.h"

/* ---- list and get ---- */
static json_t *take_connections(struct rest_chain *ch)
{
    json_t *env = json_parse(slice_of(ch->item->json), NULL);
    json_t *list = json_object_get(env, "connections");
    list = json_is_array(list) ? json_incref(list) : json_array();
    json_decref(env);
    return list;
}

static void on_list(struct rest_chain *ch)
{
    rest_reply_json(ch->c, 200, take_connections(ch));
}

static void on_get(struct rest_chain *ch)
{
    json_t *list = take_connections(ch), *item, *found = NULL;
    size_t i;
    json_array_foreach(list, i, item)
    {
        if (strcmp(json_str(item, "name", ""), ch->c->connection) == 0) {
            found = json_incref(item);
        }
    }
    json_decref(list);
    if (found) {
        rest_reply_json(ch->c, 200, found);
    } else {
        rest_fail(ch->c, ERR_NOT_FOUND, "connection '%s' does not exist in environment '%s'",
                  ch->c->connection, ch->c->environment);
    }
}

static void start_read(struct rest_call *c, void (*done)(struct rest_chain *ch))
{
    struct rest_chain *ch = rest_chain_new(c, done);
    rest_chain_add_status(ch, c->environment, NULL);
    rest_chain_start(ch);
}

void rest_connections_list(struct rest_call *c)
{
    start_read(c, on_list);
}

void rest_connection_get(struct rest_call *c)
{
    start_read(c, on_get);
}

/* ---- create, PATCH, delete ---- */
static void on_created(struct rest_chain *ch)
{
    rest_reply(ch->c, 201, slice_of(ch->item->json));
}

static void on_changed(struct rest_chain *ch)
{
    rest_reply(ch->c, 200, slice_of(ch->item->json));
}

static void start_put(struct rest_call *c, bool is_new)
{
    struct err e = {0};
    if (!rest_take_body(c, false)) {
        return;
    }
    if (rest_body_connection(c->body, c->connection, is_new, &e)) {
        rest_fail_err(c, &e);
        return;
    }
    Kiln__PutConnectionReq *q = arena_alloc(c->a, sizeof(*q));
    kiln__put_connection_req__init(q);
    auto_buf struct buf sealed = {0};
    q->environment = bus_str(c->environment);
    q->name = bus_str(c->connection);
    q->method = bus_str(is_new ? "POST" : "PATCH");
    q->nonce.len = 12;
    q->nonce.data = arena_alloc(c->a, 12);
    gw_seal(c->w->g, http_body(c->r), q->nonce.data, &sealed);
    q->sealed_body.len = sealed.len;
    q->sealed_body.data = arena_dup(c->a, sealed.p, sealed.len);
    struct rest_chain *ch = rest_chain_new(c, is_new ? on_created : on_changed);
    rest_chain_add(ch, BUS_PUT_CONNECTION, &q->base);
    rest_chain_start(ch);
}

void rest_connection_create(struct rest_call *c)
{
    start_put(c, true);
}

void rest_connection_patch(struct rest_call *c)
{
    start_put(c, false);
}

void rest_connection_delete(struct rest_call *c)
{
    Kiln__DeleteConnectionReq *q = arena_alloc(c->a, sizeof(*q));
    kiln__delete_connection_req__init(q);
    q->environment = bus_str(c->environment);
    q->name = bus_str(c->connection);
    struct rest_chain *ch = rest_chain_new(c, on_changed);
    rest_chain_add(ch, BUS_DELETE_CONNECTION, &q->base);
    rest_chain_start(ch);
}

/* ---- handed on ---- */
void rest_connection_test(struct rest_call *c)
{
    gw_connection_test_handle(c->w, c->r);
}

void rest_sql_query(struct rest_call *c)
{
    gw_sql_query_handle(c->w, c->r, c->environment, c->connection);
}
