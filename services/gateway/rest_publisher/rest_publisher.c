/* The way in: every request that health and metrics did not take. */
#include "services/gateway/rest_publisher/rest.h"

static void not_built(struct rest_call *c)
{
    rest_fail(c, ERR_UNSUPPORTED, "%s", c->route->doc);
}

/* Same order as rest_routes. */
static void (*const handlers[])(struct rest_call *c) = {
#define ROUTE(method, path, handler, doc) rest_##handler,
#define LATER(method, path, doc) not_built,
#include "services/gateway/rest_publisher/rest_routes.def"
#undef ROUTE
#undef LATER
};

static void cors_headers(struct http_req *r)
{
    http_answer_header(r, SLICE("Access-Control-Allow-Origin"), SLICE("*"));
    http_answer_header(
        r, SLICE("Access-Control-Expose-Headers"),
        SLICE("Kiln-Served, Kiln-Reason, Kiln-Epoch, Kiln-Generation, Location, Retry-After"));
}

static void preflight(struct http_req *r)
{
    static const struct http_header headers[] = {
        {SLICE("Access-Control-Allow-Methods"),
         SLICE("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")},
        {SLICE("Access-Control-Allow-Headers"),
         SLICE("Content-Type, Authorization, Idempotency-Key, Kiln-Mode, Kiln-Min-Epoch, "
               "traceparent")},
        {SLICE("Access-Control-Max-Age"), SLICE("600")}};
    http_reply(r, 204, headers, ARRAY_LEN(headers), SLICE_NONE);
}

static void reply_status(struct rest_call *c, int status, const char *message)
{
    json_t *v = json_object();
    json_set_int(v, "code", status);
    json_set_str(v, "message", message);
    rest_reply_json(c, status, v);
}

static void reply_unmatched(struct rest_call *c, const struct rest_match *m, const struct err *e)
{
    const char *method = arena_slice(c->a, http_method(c->r));
    const char *path = arena_slice(c->a, http_path(c->r));
    if (m->status == 400) {
        rest_fail_err(c, e);
    } else if (m->status == 405) {
        const char *allow = rest_allow_text(c->a, m->allow);
        http_answer_header(c->r, SLICE("Allow"), slice_of(allow));
        reply_status(
            c, 405,
            arena_printf(c->a, "%s is not possible on %s; it takes %s", method, path, allow));
    } else {
        rest_fail(c, ERR_NOT_FOUND, "there is nothing at %s; GET /api/v0 lists what there is",
                  path);
    }
}

static bool names_version(struct rest_call *c)
{
    return rest_query(c, "versionId") != NULL || rest_body_has_version(http_body(c->r));
}

static bool is_while_draining(const struct rest_call *c)
{
    return handlers[c->route - rest_routes] == rest_status ||
           handlers[c->route - rest_routes] == rest_root;
}

void rest_publisher_handle(struct gw_worker *w, struct http_req *r)
{
    cors_headers(r);
    if (slice_is(http_method(r), "OPTIONS")) {
        preflight(r);
        return;
    }
    struct arena *a = http_arena(r);
    struct rest_call *c = arena_zalloc(a, sizeof(*c));
    *c = (struct rest_call){.w = w, .r = r, .a = a};
    struct rest_match m;
    struct err e = {0};
    rest_match(a, http_method(r), http_path(r), &m, &e);
    if (m.status != 200) {
        reply_unmatched(c, &m, &e);
        return;
    }
    c->route = &rest_routes[m.route];
    c->environment = m.param[REST_ENVIRONMENT];
    c->package = m.param[REST_PACKAGE];
    c->connection = m.param[REST_CONNECTION];
    c->id = m.param[REST_ID];
    c->path = m.param[REST_PATH];
    if (names_version(c)) {
        rest_fail(c, ERR_UNSUPPORTED, GW_NO_VERSIONS);
    } else if (atomic_load(&w->g->draining) && !is_while_draining(c)) {
        http_answer_header(r, SLICE("Retry-After"), SLICE("1"));
        rest_fail(c, ERR_SHUTDOWN, "this gateway is draining; try again on another");
    } else {
        handlers[m.route](c);
    }
}
