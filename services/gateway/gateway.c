/* The gateway's parts, in start order. */
#include "common/log/log.h"
#include "services/gateway/gateway_parts.h"

static struct gateway *self(struct service *s)
{
    return service_state(s);
}

static int base_start(struct service *s, struct err *e)
{
    struct gateway *g = self(s);
    g->service = s;
    g->loop = service_loop(s);
    g->set = service_settings(s);
    g->boot = uuid_random();
    if (hex_decode(slice_of(g->set->secret_key), g->secret_key, 32)) {
        return err_set(e, ERR_CONF,
                       "KILN_SECRET_KEY must be 64 hex digits, the same as the planner's; make one "
                       "with openssl rand -hex 32");
    }
    g->has_secret_key = true;
    health_set(s, "planner", false, false, "no answer yet");
    health_set(s, "redis", false, false, "not connected yet");
    health_set(s, "packages", true, false, "binding sets not read yet");
    return 0;
}

static void base_close(struct service *s)
{
    service_part_closed(s);
}

static void on_compiler(void *data, bool ready, const char *why)
{
    struct gateway *g = data;
    health_set(g->service, "compiler", true, ready, ready ? "" : why);
}

static int compiler_start(struct service *s, struct err *e)
{
    struct gateway *g = self(s);
    (void)e;
    struct compiler_settings c = {.children = (unsigned)g->set->compiler_children,
                                  .node = g->set->node,
                                  .bundle = g->set->compiler_bundle,
                                  .self = "/proc/self/exe"};
    health_set(s, "compiler", true, false, "starting");
    g->compiler = compiler_pool_new(g->loop, &c, on_compiler, g);
    return 0;
}

static void on_compiler_closed(void *data)
{
    struct gateway *g = self(data);
    compiler_pool_free(g->compiler);
    g->compiler = NULL;
    service_part_closed(data);
}

static void compiler_close(struct service *s)
{
    compiler_pool_close(self(s)->compiler, on_compiler_closed, s);
}

static size_t split_urls(struct arena *a, const char *text, const char **urls, size_t max)
{
    struct slice rest = slice_of(text), one;
    size_t n = 0;
    while (n < max && slice_cut(&rest, ',', &one)) {
        one = slice_trim(one);
        if (one.len) {
            urls[n++] = arena_slice(a, one);
        }
    }
    return n;
}

static int bus_start(struct service *s, struct err *e)
{
    struct gateway *g = self(s);
    const char *urls[8];
    size_t n = split_urls(service_arena(s), g->set->planner_call, urls, ARRAY_LEN(urls));
    struct bus_identity me = {
        .boot = g->boot, .instance = g->set->instance, .key = slice_of(g->set->bus_key)};
    g->bus = bus_new(g->loop, &me);
    return bus_dial(g->bus, urls, n, e);
}

static void on_bus_closed(void *data)
{
    struct gateway *g = self(data);
    bus_free(g->bus);
    g->bus = NULL;
    service_part_closed(data);
}

static void bus_part_close(struct service *s)
{
    bus_close(self(s)->bus, on_bus_closed, s);
}

static void on_http(void *data, struct http_req *r)
{
    struct gateway *g = data;
    if (!service_answer_http(g->service, r)) {
        rest_publisher_handle(g, r);
    }
}

static bool listens_on_loopback(const char *address)
{
    return strncmp(address, "unix:", 5) == 0 || strncmp(address, "127.", 4) == 0 ||
           strncmp(address, "localhost", 9) == 0 || strncmp(address, "[::1]", 5) == 0;
}

static int http_start(struct service *s, struct err *e)
{
    struct gateway *g = self(s);
    if (!listens_on_loopback(g->set->listen) && !g->set->trusted_network) {
        return err_set(e, ERR_CONF,
                       "address %s is not on loopback; say trusted_network = true behind a TLS "
                       "proxy or on a closed network",
                       g->set->listen);
    }
    struct http_handler h = {.data = g, .on_request = on_http};
    struct http_limits lim = {0};
    g->http = http_server_new(g->loop, &lim, &h);
    return http_server_listen(g->http, g->set->listen, e);
}

static void on_http_closed(void *data)
{
    struct gateway *g = self(data);
    http_server_free(g->http);
    g->http = NULL;
    service_part_closed(data);
}

static void http_close(struct service *s)
{
    struct gateway *g = self(s);
    g->draining = true;
    if (!g->http) {
        service_part_closed(s);
        return;
    }
    http_server_close(g->http, MS(3000), on_http_closed, s);
}

static const struct service_part parts[] = {
    {"base", base_start, base_close},
    {"compiler", compiler_start, compiler_close},
    {"bus", bus_start, bus_part_close},
    {"connections", gw_conns_start, gw_conns_close},
    {"binder", gw_binder_start, gw_binder_close},
    {"query", gw_query_start, gw_query_close},
    {"http", http_start, http_close},
};
static const struct service_desc desc = {
    .name = "gateway",
    .conf = &gateway_conf,
    .settings_size = sizeof(struct gw_settings),
    .state_size = sizeof(struct gateway),
    .log_level_offset = offsetof(struct gw_settings, log_level),
    .log_format_offset = offsetof(struct gw_settings, log_format),
    .parts = parts,
    .n_parts = ARRAY_LEN(parts),
    .drain = {4000},
};

const struct service_desc *gateway_desc(void)
{
    return &desc;
}
