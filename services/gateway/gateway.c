/* The gateway's parts, in start order. */
#include "common/log/log.h"
#include "services/gateway/boxes.h"
#include "services/gateway/gateway_parts.h"
#include "services/gateway/port.h"

enum { MAX_CONNECTIONS = 1024 };

static struct gateway *self(struct service *s)
{
    return service_state(s);
}

/* The working directory changes once DuckDB is here: what is relative is so to the one of now. */
static void make_absolute(struct arena *a, struct gw_settings *set)
{
    set->state_dir = conf_absolute_path(a, set->state_dir);
    set->compiler_bundle = conf_absolute_path(a, set->compiler_bundle);
    if (strchr(set->node, '/')) {
        set->node = conf_absolute_path(a, set->node);
    }
    set->listen = conf_absolute_addresses(a, set->listen);
    set->redis = conf_absolute_addresses(a, set->redis);
    set->planner_call = conf_absolute_addresses(a, set->planner_call);
    set->planner_event = conf_absolute_addresses(a, set->planner_event);
}

static int base_start(struct service *s, struct err *e)
{
    struct gateway *g = self(s);
    make_absolute(service_arena(s), service_settings(s));
    g->service = s;
    g->loop = service_loop(s);
    g->set = service_settings(s);
    g->boot = uuid_random();
    map_init(&g->compiling);
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
    map_fini(&g->compiling);
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

/* ---- workers: each an HTTP server without an address, and the query half ---- */
struct probe {
    struct gw_errand errand;
    struct http_req *r;
    struct service_answer answer;
};

static void run_probe(struct gw_errand *e)
{
    struct probe *p = container_of(e, struct probe, errand);
    service_answer(e->w->g->service, http_path(p->r), &p->answer);
    gw_errand_over(e);
}

static void probe_done(struct gw_errand *e)
{
    struct probe *p = container_of(e, struct probe, errand);
    struct http_header type = {SLICE("Content-Type"), slice_of(p->answer.type)};
    struct buf body = p->answer.body; /* p goes with the answer */
    http_reply_buf(p->r, p->answer.status, &type, 1, &body);
    buf_fini(&body);
}

static void on_http(void *data, struct http_req *r)
{
    struct gw_worker *w = data;
    if (!service_is_probe(r)) {
        rest_publisher_handle(w, r);
        return;
    }
    struct probe *p = arena_zalloc(http_arena(r), sizeof(*p));
    p->r = r;
    p->errand = (struct gw_errand){.w = w, .run = run_probe, .done = probe_done};
    gw_errand_start(&p->errand);
}

static void on_connection_end(void *data)
{
    struct gw_worker *w = data;
    atomic_fetch_sub(&w->connections, 1);
    metric_add(w->n_connections, -1);
}

static void worker_open(struct gw_worker *w)
{
    struct http_handler h = {.data = w, .on_request = on_http};
    struct http_limits lim = {.connections = MAX_CONNECTIONS / w->g->workers->n + 1};
    gw_query_open(w);
    w->http = http_server_new(w->loop, &lim, &h);
    http_server_on_end(w->http, on_connection_end, w);
}

static void on_requests_answered(void *data)
{
    struct gw_worker *w = data;
    http_server_free(w->http);
    w->http = NULL;
    gw_query_close(w, w->closed);
}

static void worker_close(struct gw_worker *w)
{
    http_server_close(w->http, MS(3000), on_requests_answered, w);
}

static int workers_start(struct service *s, struct err *e)
{
    static const struct gw_worker_kind kind = {.open = worker_open, .close = worker_close};
    struct gateway *g = self(s);
    (void)e;
    gw_workers_start(g, g->set->workers ? (unsigned)g->set->workers : loop_cores(), &kind);
    return 0;
}

/* ---- the address: what is accepted goes to a worker ---- */
static void on_accepted(void *data, int fd)
{
    gw_workers_give(data, fd);
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
    struct http_handler none = {0};
    g->http = http_server_new(g->loop, NULL, &none);
    http_server_divert(g->http, on_accepted, g);
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
    atomic_store(&g->draining, true);
    http_server_close(g->http, MS(3000), on_http_closed, s);
}

static const struct service_part parts[] = {
    {"base", base_start, base_close},
    {"compiler", compiler_start, compiler_close},
    {"bus", bus_start, bus_part_close},
    {"duckdb", gw_duck_start, gw_duck_close},
    {"binder", gw_binder_start, gw_binder_close},
    {"workers", workers_start, gw_workers_part_close},
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
    .has_threads = true,
};

const struct service_desc *gateway_desc(void)
{
    return &desc;
}
