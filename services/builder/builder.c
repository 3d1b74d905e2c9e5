/* The builder's settings and parts, in start order. */
#include "common/log/log.h"
#include "services/builder/builder_parts.h"

#define AT(member) offsetof(struct builder_settings, member)
static const struct conf_item items[] = {
    {"log.level", CONF_ENUM, AT(log_level), "info", 0, 0, "error|warn|info|debug", "KILN_LOG_LEVEL",
     "--log-level", 0, "least level that is logged"},
    {"log.format", CONF_ENUM, AT(log_format), "auto", 0, 0, "auto|text|json", "KILN_LOG_FORMAT",
     "--log-format", 0, "form of log lines"},
    {"builder.instance", CONF_STR, AT(instance), "builder-1", 0, 0, NULL, "KILN_INSTANCE",
     "--instance", 0, "name of this process in rows and messages"},
    {"bus.call", CONF_STR, AT(planner_call), "tcp://127.0.0.1:4011", 0, 0, NULL, "KILN_BUS_CALL",
     "--bus-call", 0, "the planner's bus address for calls; several are separated by commas"},
    {"bus.event", CONF_STR, AT(planner_event), "tcp://127.0.0.1:4012", 0, 0, NULL, "KILN_BUS_EVENT",
     "--bus-event", 0, "the planner's bus address for hints"},
    {"builder.secret_key", CONF_STR, AT(secret_key), "", 0, 0, NULL, "KILN_SECRET_KEY", NULL,
     CONF_SECRET, "32 bytes as hex: opens stored credentials"},
    {"bus.key", CONF_STR, AT(bus_key), "", 0, 0, NULL, "KILN_BUS_KEY", NULL, CONF_SECRET,
     "shared key that signs bus frames"},
    {"builder.health_listen", CONF_STR, AT(health_listen), "", 0, 0, NULL, "KILN_HEALTH_LISTEN",
     "--health-listen", 0, "HTTP address for /healthz, /readyz and /metrics; empty: off"},
    {"builder.slots", CONF_INT, AT(slots), "2", 1, 16, NULL, "KILN_SLOTS", "--slots", 0,
     "jobs at once"},
    {"builder.connections", CONF_STR, AT(connections), "", 0, 0, NULL, "KILN_BUILDER_CONNECTIONS",
     "--connections", 0,
     "connections this builder reaches, as name or environment/name, separated by commas; empty: "
     "all"},
    {"builder.statement_timeout", CONF_MS, AT(statement_timeout_ms), "0", 0, 0, NULL,
     "KILN_BUILD_TIMEOUT", NULL, 0, "longest build statement; 0: no limit"},
    {"builder.package_store", CONF_STR, AT(package_store), "", 0, 0, NULL, "KILN_PACKAGE_STORE",
     "--package-store", 0,
     "directory with the data files of packages, the planner's own; empty: no DuckDB here"},
    {"builder.generation_root", CONF_STR, AT(generation_root), "", 0, 0, NULL,
     "KILN_GENERATION_ROOT", "--generation-root", 0,
     "directory that DuckDB results are built in, shared with the gateways; empty: no DuckDB here"},
    {"builder.state_dir", CONF_STR, AT(state_dir), "builder_state", 0, 0, NULL, "KILN_STATE_DIR",
     "--state-dir", 0, "DuckDB's working files lie here, under the instance's name"},
    {"builder.duckdb_memory", CONF_BYTES, AT(duckdb_memory), "0", 0, 0, NULL, "KILN_DUCKDB_MEMORY",
     "--duckdb-memory", 0, "memory for DuckDB, all packages together; 0: half of the machine's"},
    {"builder.duckdb_idle", CONF_MS, AT(duckdb_idle_ms), "5min", 100, 86400000, NULL,
     "KILN_DUCKDB_IDLE", NULL, 0,
     "a package's DuckDB that nobody has used for this long is closed; the next use opens it"},
    {"builder.trusted_network", CONF_BOOL, AT(trusted_network), "false", 0, 0, NULL,
     "KILN_TRUSTED_NETWORK", "--trusted-network", 0,
     "allow listening off loopback without TLS and a key"},
};
static const struct conf_spec conf = {
    .program = "kiln-builder",
    .summary = "Pulls build jobs and runs their SQL in the warehouse.",
    .items = items,
    .n = ARRAY_LEN(items),
    .others = "redis.url|store.url",
};

static struct builder *self(struct service *s)
{
    return service_state(s);
}

static void on_retry(struct loop_timer *t)
{
    builder_go(t->data);
}

static void read_connections(struct builder *b)
{
    struct arena *a = service_arena(b->service);
    char *text = arena_strdup(a, b->set->connections);
    b->connections = arena_zalloc(a, (strlen(text) / 2 + 2) * sizeof(char *));
    char *rest = NULL;
    for (char *w = strtok_r(text, ", ", &rest); w; w = strtok_r(NULL, ", ", &rest)) {
        b->connections[b->n_connections++] = w;
    }
}

/* The working directory changes once DuckDB is here: what is relative is so to the one of now. */
static void make_absolute(struct arena *a, struct builder_settings *set)
{
    set->state_dir = conf_absolute_path(a, set->state_dir);
    set->health_listen = conf_absolute_addresses(a, set->health_listen);
    set->planner_call = conf_absolute_addresses(a, set->planner_call);
    set->planner_event = conf_absolute_addresses(a, set->planner_event);
}

static int base_start(struct service *s, struct err *e)
{
    struct builder *b = self(s);
    make_absolute(service_arena(s), service_settings(s));
    b->service = s;
    b->loop = service_loop(s);
    b->set = service_settings(s);
    b->boot = uuid_random();
    b->lease_ms = 10000;
    read_connections(b);
    map_init(&b->conns);
    list_init(&b->jobs);
    loop_timer_init(&b->renew_timer, b->loop, builder_renew_due, b);
    loop_timer_init(&b->retry_timer, b->loop, on_retry, b);
    b->m_jobs_ok = metric_counter("kiln_builder_jobs_total", "outcome=\"succeeded\"", "jobs ended");
    b->m_jobs_failed = metric_counter("kiln_builder_jobs_total", "outcome=\"other\"", "jobs ended");
    b->m_rows = metric_counter("kiln_builder_rows_total", "", "rows built");
    health_set(s, "planner", true, false, "no answer yet");
    if (hex_decode(slice_of(b->set->secret_key), b->secret_key, 32)) {
        return err_set(e, ERR_CONF,
                       "KILN_SECRET_KEY must be 64 hex digits, the same as the planner's; make one "
                       "with openssl rand -hex 32");
    }
    return builder_duck_start(b, e);
}

static void on_duck_closed(void *data)
{
    service_part_closed(data);
}

static void on_conns_closed(void *data)
{
    builder_duck_close(self(data), on_duck_closed, data);
}

static void base_close(struct service *s)
{
    struct builder *b = self(s);
    loop_timer_stop(&b->renew_timer);
    loop_timer_stop(&b->retry_timer);
    builder_conns_close(b, on_conns_closed, s);
}

static void on_hint(void *data, const char topic[4], struct slice packed)
{
    (void)topic;
    (void)packed;
    (void)data; /* a PullJob is held at the planner whenever a slot is free: hints only matter to
                   gateways */
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
    struct builder *b = self(s);
    const char *urls[8];
    size_t n = split_urls(service_arena(s), b->set->planner_call, urls, ARRAY_LEN(urls));
    struct bus_identity me = {
        .boot = b->boot, .instance = b->set->instance, .key = slice_of(b->set->bus_key)};
    b->bus = bus_new(b->loop, &me);
    int rc = bus_dial(b->bus, urls, n, e);
    if (rc == 0 && b->set->planner_event[0]) {
        rc = bus_subscribe(b->bus, b->set->planner_event, on_hint, b, e);
    }
    if (rc == 0) {
        loop_timer_start(&b->retry_timer, MS(0));
        loop_timer_start(&b->renew_timer, MS(1000));
    }
    return rc;
}

static void on_bus_closed(void *data)
{
    struct builder *b = self(data);
    bus_free(b->bus);
    b->bus = NULL;
    service_part_closed(data);
}

static void on_drained(void *data)
{
    bus_close(self(data)->bus, on_bus_closed, data);
}

/* Running jobs are stopped and reported, so that another builder takes them at once. No new ones
 * come in: what was asked for is called back before anything closes. */
static void bus_part_close(struct service *s)
{
    struct builder *b = self(s);
    b->draining = true;
    b->drained = on_drained;
    b->drained_data = s;
    builder_leave(b);
    list_for_each (it, &b->jobs) {
        flow_job_stop(list_entry(it, struct flow_job, link), false);
    }
    builder_go(b);
}

static void on_http(void *data, struct http_req *r)
{
    struct builder *b = data;
    if (!service_answer_http(b->service, r)) {
        http_reply_error(r, ERR_NOT_FOUND, "only /healthz, /readyz and /metrics are here");
    }
}

static int http_start(struct service *s, struct err *e)
{
    struct builder *b = self(s);
    if (!b->set->health_listen[0]) {
        return 0;
    }
    struct http_handler h = {.data = b, .on_request = on_http};
    struct http_limits lim = {0};
    b->http = http_server_new(b->loop, &lim, &h);
    return http_server_listen(b->http, b->set->health_listen, e);
}

static void on_http_closed(void *data)
{
    struct builder *b = self(data);
    http_server_free(b->http);
    b->http = NULL;
    service_part_closed(data);
}

static void http_close(struct service *s)
{
    if (!self(s)->http) {
        service_part_closed(s);
        return;
    }
    http_server_close(self(s)->http, MS(500), on_http_closed, s);
}

static const struct service_part parts[] = {
    {"base", base_start, base_close},
    {"bus", bus_start, bus_part_close},
    {"http", http_start, http_close},
};
static const struct service_desc desc = {
    .name = "builder",
    .conf = &conf,
    .settings_size = sizeof(struct builder_settings),
    .state_size = sizeof(struct builder),
    .log_level_offset = offsetof(struct builder_settings, log_level),
    .log_format_offset = offsetof(struct builder_settings, log_format),
    .parts = parts,
    .n_parts = ARRAY_LEN(parts),
    .drain = {30000},
};

const struct service_desc *builder_desc(void)
{
    return &desc;
}
