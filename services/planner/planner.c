/* The planner's parts, in start order. */
#include "common/log/log.h"
#include "services/planner/planner_parts.h"

#define COMPILER_START_AFTER_MS 1500 /* whoever waits for this planner is served before */

static struct planner *self(struct service *s)
{
    return service_state(s);
}

static int key_bytes(const char *text, uint8_t out[32], struct err *e)
{
    if (!text[0]) {
        return err_set(e, ERR_CONF,
                       "KILN_SECRET_KEY is not set: stored credentials are sealed with it; set it "
                       "to 64 hex digits (openssl rand -hex 32)");
    }
    if (hex_decode(slice_of(text), out, 32)) {
        return err_set(
            e, ERR_CONF,
            "KILN_SECRET_KEY must be 64 hex digits (32 bytes); make one with openssl rand -hex 32");
    }
    return 0;
}

static void on_tick(struct loop_timer *t)
{
    struct planner *p = t->data;
    if (!p->open) {
        return;
    }
    struct decision *d = decision_new(p);
    coord_tick(p->coord, planner_now(p), &d->out);
    decision_commit(d, NULL, NULL);
    loop_defer(p->loop, &p->plan_task);
}

static void on_plan(struct loop_task *t)
{
    planner_plan_runs(t->data);
}

static void on_pull(struct loop_task *t)
{
    held_pulls_wake(t->data);
}

static void on_events(struct loop_task *t)
{
    planner_events_run(t->data);
}

static void on_sweep(struct loop_timer *t)
{
    struct planner *p = t->data;
    planner_sweep_due(p);
    loop_timer_start(&p->sweep, MS(p->set->sweep_every_ms));
}

static int base_start(struct service *s, struct err *e)
{
    struct planner *p = self(s);
    p->service = s;
    p->loop = service_loop(s);
    p->set = service_settings(s);
    p->boot = uuid_random();
    map_init(&p->environments);
    map_init(&p->connections);
    map_init(&p->units);
    list_init(&p->config_errors);
    list_init(&p->deciding);
    list_init(&p->held);
    list_init(&p->waiters);
    list_init(&p->asks);
    list_init(&p->runs_planning);
    list_init(&p->works);
    list_init(&p->controls);
    loop_timer_init(&p->tick, p->loop, on_tick, p);
    loop_timer_init(&p->sweep, p->loop, on_sweep, p);
    loop_timer_start(&p->sweep, MS(p->set->sweep_every_ms));
    loop_task_init(&p->plan_task, on_plan, p);
    loop_task_init(&p->pull_task, on_pull, p);
    loop_task_init(&p->event_task, on_events, p);
    health_set(s, "planner", true, false, "waits for the run store and leadership");
    return key_bytes(p->set->secret_key, p->secret_key, e);
}

static void free_errors(struct planner *p)
{
    list_for_each (it, &p->config_errors) {
        catalog_config_error_free(list_entry(it, struct planner_config_error, link));
    }
}

static void on_whs_closed(struct planner *p)
{
    p->on_whs_closed = NULL;
    service_part_closed(p->service);
}

static void base_close(struct service *s)
{
    struct planner *p = self(s);
    loop_timer_stop(&p->tick);
    loop_timer_stop(&p->sweep);
    loop_task_cancel(&p->plan_task);
    loop_task_cancel(&p->pull_task);
    loop_task_cancel(&p->event_task);
    catalog_clear(p);
    map_fini(&p->units);
    map_fini(&p->connections);
    map_fini(&p->environments);
    coord_free(p->coord);
    p->coord = NULL;
    free_errors(p);
    bus_free(p->bus); /* only now: reads of the run store answered until its end */
    p->bus = NULL;
    p->on_whs_closed = on_whs_closed;
    if (p->n_wh_closing == 0) {
        on_whs_closed(p);
    }
}

static void on_compiler(void *data, bool ready, const char *why)
{
    struct planner *p = data;
    health_set(p->service, "compiler", false, ready, ready ? "" : why);
}

static int compiler_start(struct service *s, struct err *e)
{
    struct planner *p = self(s);
    (void)e;
    struct compiler_settings c = {.children = (unsigned)p->set->compiler_children,
                                  .node = p->set->node,
                                  .bundle = p->set->compiler_bundle,
                                  .self = "/proc/self/exe",
                                  .start_after = MS(COMPILER_START_AFTER_MS)};
    /* stored loads are served without one */
    health_set(s, "compiler", false, false, "starts soon, or when a package is to be compiled");
    p->compiler = compiler_pool_new(p->loop, &c, on_compiler, p);
    return 0;
}

static void on_compiler_closed(void *data)
{
    struct service *s = data;
    struct planner *p = self(s);
    compiler_pool_free(p->compiler);
    p->compiler = NULL;
    service_part_closed(s);
}

static void compiler_close(struct service *s)
{
    compiler_pool_close(self(s)->compiler, on_compiler_closed, s);
}

static bool off_loopback(const char *url)
{
    return strncmp(url, "tcp://", 6) == 0 && strncmp(url, "tcp://127.", 10) != 0 &&
           strncmp(url, "tcp://localhost", 15) != 0;
}

static int bus_start(struct service *s, struct err *e)
{
    struct planner *p = self(s);
    if ((off_loopback(p->set->call_listen) || off_loopback(p->set->event_listen)) &&
        !p->set->trusted_network) {
        return err_set(e, ERR_CONF,
                       "bus address %s is not on loopback; say trusted_network = true if the "
                       "network is closed (TLS comes later)",
                       p->set->call_listen);
    }
    struct bus_identity me = {
        .boot = p->boot, .instance = p->set->instance, .key = slice_of(p->set->bus_key)};
    p->bus = bus_new(p->loop, &me);
    int rc = bus_serve(p->bus, p->set->call_listen, 256, planner_serve, p, e);
    return rc ? rc : bus_publish_on(p->bus, p->set->event_listen, e);
}

static void on_bus_closed(void *data)
{
    service_part_closed(data);
}

void planner_settle(struct planner *p)
{
    struct service *s = p->closing;
    bool at_rest = list_empty(&p->works) && list_empty(&p->deciding) && p->n_answering == 0;
    if (s && at_rest) {
        p->closing = NULL;
        bus_close(p->bus, on_bus_closed, s);
    }
}

void planner_work_begin(struct planner *p, struct planner_work *w, struct flow *f)
{
    w->flow = f;
    list_add_tail(&p->works, &w->link);
}

void planner_work_end(struct planner *p, struct planner_work *w)
{
    list_del(&w->link);
    planner_settle(p);
}

static void bus_part_close(struct service *s)
{
    struct planner *p = self(s);
    p->open = false;
    p->closing = s;
    held_pulls_fail(p);
    list_for_each (it, &p->works) {
        flow_cancel(list_entry(it, struct planner_work, link)->flow);
    }
    planner_waits_fail(p);
    planner_settle(p);
}

static void on_store_state(void *data, bool ok, const char *why)
{
    struct planner *p = data;
    health_set(p->service, "run_store", true, ok, ok ? "" : why);
}

static int store_start(struct service *s, struct err *e)
{
    struct planner *p = self(s);
    (void)e;
    struct store_settings set = {.url = p->set->store_url,
                                 .instance = p->set->instance,
                                 .boot = p->boot,
                                 .renew = MS(1000),
                                 .takeover = MS(5000)};
    struct store_events ev = {.data = p,
                              .on_leader = planner_on_leader,
                              .on_lost = planner_on_lost,
                              .on_state = on_store_state};
    health_set(s, "run_store", true, false, "connecting");
    p->store = store_open(p->loop, &set, &ev);
    store_set_pack(p->store, planner_pack_set, p);
    return 0;
}

static void on_store_closed(void *data)
{
    struct service *s = data;
    store_free(self(s)->store);
    self(s)->store = NULL;
    service_part_closed(s);
}

static void store_part_close(struct service *s)
{
    store_close(self(s)->store, on_store_closed, s);
}

static void on_http(void *data, struct http_req *r)
{
    struct planner *p = data;
    if (!service_answer_http(p->service, r)) {
        webhook_handle(p, r);
    }
}

#define ARCHIVE_CAP (256U << 20)
static size_t body_cap(void *data, const struct http_req *r)
{
    (void)data;
    return slice_starts(http_path(r), SLICE("/hooks/")) ? ARCHIVE_CAP : 0;
}

static bool listens_on_loopback(const char *address)
{
    return strncmp(address, "unix:", 5) == 0 || strncmp(address, "127.", 4) == 0 ||
           strncmp(address, "localhost", 9) == 0 || strncmp(address, "[::1]", 5) == 0;
}

static int http_start(struct service *s, struct err *e)
{
    struct planner *p = self(s);
    if (!p->set->webhook_listen[0]) {
        return 0;
    }
    if (!listens_on_loopback(p->set->webhook_listen) && !p->set->trusted_network) {
        return err_set(e, ERR_CONF,
                       "webhook address %s is not on loopback; say trusted_network = true behind a "
                       "TLS proxy or on a closed network",
                       p->set->webhook_listen);
    }
    struct http_handler h = {.data = p, .on_request = on_http, .body_cap = body_cap};
    struct http_limits lim = {0};
    p->http = http_server_new(p->loop, &lim, &h);
    return http_server_listen(p->http, p->set->webhook_listen, e);
}

static void on_http_closed(void *data)
{
    struct service *s = data;
    http_server_free(self(s)->http);
    self(s)->http = NULL;
    service_part_closed(s);
}

static void http_close(struct service *s)
{
    if (!self(s)->http) {
        service_part_closed(s);
        return;
    }
    http_server_close(self(s)->http, MS(2000), on_http_closed, s);
}

static const struct service_part parts[] = {
    {"base", base_start, base_close},         {"compiler", compiler_start, compiler_close},
    {"store", store_start, store_part_close}, {"bus", bus_start, bus_part_close},
    {"http", http_start, http_close},
};
static const struct service_desc desc = {
    .name = "planner",
    .conf = &planner_conf,
    .settings_size = sizeof(struct planner_settings),
    .state_size = sizeof(struct planner),
    .log_level_offset = offsetof(struct planner_settings, log_level),
    .log_format_offset = offsetof(struct planner_settings, log_format),
    .parts = parts,
    .n_parts = ARRAY_LEN(parts),
    .drain = {10000},
};

const struct service_desc *planner_desc(void)
{
    return &desc;
}

struct sweeping {
    const char *connection, *schema, *warehouse; /* schema NULL: all there is */
    int64_t age_ms;                              /* what is younger stays */
};

static void sweep(struct decision *d, const struct planner_unit *u, const struct sweeping *w)
{
    struct planner *p = d->p;
    json_t *spec = json_object();
    json_set_str(spec, "environment", u->environment_name);
    json_set_str(spec, "connection", w->connection);
    json_set_str(spec, "warehouse", w->warehouse);
    json_object_set_new(spec, "schemas", w->schema ? json_pack("[s]", w->schema) : json_array());
    json_set_int(spec, "olderThanUs", loop_unix_us() - w->age_ms * 1000);
    auto_free char *text = json_text(spec);
    json_decref(spec);
    coord_sweep(p->coord, planner_now(p), u->id, text, &d->out);
}

/* The generation root, once and whole: a package whose first build was cut off, or that was
 * deleted, has left something, too (protocol.md 8). Any package stands for it. */
static void sweep_root(struct decision *d, int64_t age_ms)
{
    struct map_iter it = map_begin(&d->p->units);
    if (d->p->set->package_store[0] && map_next(&it)) { /* without a store there is no DuckDB */
        const struct planner_unit *u = it.value;
        sweep(
            d, u,
            &(struct sweeping){.connection = "duckdb",
                               .warehouse = duckdb_digest(&d->arena, u->environment_name, u->name),
                               .age_ms = age_ms});
    }
}

/* Staging tables without a live attempt, per connection that has targets. */
static void sweep_unit(struct decision *d, const struct planner_unit *u)
{
    const struct core_binding_set *set = coord_unit_set(d->p->coord, u->id);
    struct map seen;
    map_init(&seen);
    for (size_t i = 0; set && i < set->n; i++) {
        const struct core_target *t = &set->bindings[i].target;
        char *key = arena_printf(&d->arena, "%s/%s", t->connection, t->schema);
        if (!t->in_place || map_get(&seen, slice_of(key))) {
            continue;
        }
        map_put(&seen, slice_of(key), key);
        sweep(d, u,
              &(struct sweeping){t->connection, t->schema, t->warehouse, d->p->set->sweep_age_ms});
    }
    map_fini(&seen);
}

void planner_sweep_due(struct planner *p)
{
    if (!p->open) {
        return;
    }
    struct decision *d = decision_new(p);
    sweep_root(d, p->set->sweep_age_ms);
    for (struct map_iter it = map_begin(&p->units); map_next(&it);) {
        sweep_unit(d, it.value);
    }
    decision_commit(d, NULL, NULL);
}

void planner_sweep_root(struct planner *p)
{
    struct decision *d = decision_new(p);
    sweep_root(d, 0);
    decision_commit(d, NULL, NULL);
}
