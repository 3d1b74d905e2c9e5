/* Flow: the planner takes over. WIPE if asked, read the COORDinator's rows, ENVIRONMENTS,
 * CONNECTIONS, UNITS, RESTORE each unit's load, STARTED (sets emptied by a reload are bound again;
 * from here calls are served), then seed what publisher.config.json has and the store lacks:
 * SEED_ENVIRONMENT, SEED_CONNECTION, SEED_PACKAGE, END (decisions 3.3,
 * spec/malloy-persistence.md 1.4). */
#include "common/log/log.h"
#include "common/warehouse/wh_attached.h"
#include "services/planner/package/package.h"
#include "services/planner/planner.h"
#include <stdio.h>

enum {
    WIPE,
    COORD,
    ENVIRONMENTS,
    CONNECTIONS,
    UNITS,
    RESTORE,
    STARTED,
    SEED_ENVIRONMENT,
    SEED_CONNECTION,
    SEED_PACKAGE,
    END
};

struct flow_boot {
    struct flow flow;
    struct planner_work work;
    struct planner *p;
    struct coord *coord;
    struct store_op op;
    struct store_environment *environments;
    struct store_connection *connections;
    struct store_unit *units;
    size_t n, at;
    struct publisher_config config;
    size_t at_environment, at_item;
    bool environment_is_new;
    struct store_environment row_environment;
    struct store_connection row_connection;
    uint64_t id;
    struct load_request load;
};

static struct flow_boot *of(struct flow *f)
{
    return container_of(f, struct flow_boot, flow);
}

static void on_op(struct store_op *op)
{
    struct flow_boot *f = op->data;
    flow_resume(&f->flow, op->rc, &op->err);
}

static struct store_op *op_of(struct flow_boot *f)
{
    f->op = (struct store_op){.arena = &f->flow.arena, .done = on_op, .data = f};
    return &f->op;
}

static enum flow_next lost(struct flow *flow)
{
    return flow_fail(flow, END, flow->rc, "%s", err_text(&flow->err));
}

/* Asked before each thing that is begun. */
static bool is_to_end(const struct flow_boot *f)
{
    return service_is_draining(f->p->service);
}

static enum flow_next give_up(struct flow *flow)
{
    return flow_fail(flow, END, ERR_SHUTDOWN, "the planner is to end");
}

static enum flow_next step_wipe(struct flow *flow)
{
    struct flow_boot *f = of(flow);
    if (flow->entered && f->p->set->init && !f->p->wiped) {
        log_info("store.wipe", "reason=--init");
        store_wipe(f->p->store, op_of(f));
        return FLOW_WAIT;
    }
    if (!flow->entered && flow->rc) {
        return lost(flow);
    }
    f->p->wiped = true;
    return flow_goto(flow, COORD);
}

static enum flow_next step_coord(struct flow *flow)
{
    struct flow_boot *f = of(flow);
    if (flow->entered) {
        struct coord_limits lim = {.lease = MS(f->p->set->lease_ms),
                                   .attempts = 3,
                                   .bound_wait = MS(10000),
                                   .bound_wait_loading = MS(600000),
                                   .gateway_live = MS(5000),
                                   .gateway_gone = MS(60000),
                                   .gateway_comes = MS(5000)};
        f->coord = coord_new(store_installation(f->p->store), &lim);
        store_load_coord(f->p->store, op_of(f), f->coord, planner_now(f->p));
        return FLOW_WAIT;
    }
    return flow->rc ? lost(flow) : flow_goto(flow, ENVIRONMENTS);
}

static enum flow_next step_environments(struct flow *flow)
{
    struct flow_boot *f = of(flow);
    if (flow->entered) {
        catalog_clear(f->p);
        store_environments(f->p->store, op_of(f), &f->environments, &f->n);
        return FLOW_WAIT;
    }
    for (size_t i = 0; flow->rc == 0 && i < f->n; i++) {
        catalog_put_environment(f->p, &f->environments[i]);
    }
    return flow->rc ? lost(flow) : flow_goto(flow, CONNECTIONS);
}

static enum flow_next step_connections(struct flow *flow)
{
    struct flow_boot *f = of(flow);
    if (flow->entered) {
        store_connections(f->p->store, op_of(f), 0, &f->connections, &f->n);
        return FLOW_WAIT;
    }
    for (size_t i = 0; flow->rc == 0 && i < f->n; i++) {
        catalog_put_connection(f->p, &f->connections[i]);
    }
    return flow->rc ? lost(flow) : flow_goto(flow, UNITS);
}

static enum flow_next step_units(struct flow *flow)
{
    struct flow_boot *f = of(flow);
    if (flow->entered) {
        store_units(f->p->store, op_of(f), &f->units, &f->n);
        return FLOW_WAIT;
    }
    for (size_t i = 0; flow->rc == 0 && i < f->n; i++) {
        catalog_put_unit(f->p, &f->units[i]);
    }
    f->at = 0;
    return flow->rc ? lost(flow) : flow_goto(flow, RESTORE);
}

static void on_restored(void *data, int rc, const struct err *e)
{
    struct flow_boot *f = data;
    flow_resume(&f->flow, rc, e);
}

static enum flow_next step_restore(struct flow *flow)
{
    struct flow_boot *f = of(flow);
    if (!flow->entered) {
        if (flow->rc) {
            log_error("load.restore_failed", "package=%s error=%s", f->units[f->at].name,
                      log_q(err_text(&flow->err)));
        }
        f->at++;
        return flow_goto(flow, RESTORE);
    }
    if (is_to_end(f)) {
        return give_up(flow);
    }
    while (f->at < f->n && f->units[f->at].load == 0) {
        f->at++;
    }
    if (f->at >= f->n) {
        return flow_goto(flow, STARTED);
    }
    struct planner_unit *u = catalog_unit_id(f->p, f->units[f->at].id);
    flow_restore_start(f->p, u, f->units[f->at].load, on_restored, f);
    return FLOW_WAIT;
}

static void on_started(struct decision *d)
{
    struct flow_boot *f = d->data;
    flow_resume(&f->flow, d->rc, &d->err);
}

static const char *environment_variable(const char *name)
{
    return getenv(name);
}

static char *read_whole(struct arena *a, const char *path)
{
    FILE *in = fopen(path, "re");
    if (!in) {
        return NULL;
    }
    auto_buf struct buf text = {0};
    char piece[8192];
    size_t n;
    while ((n = fread(piece, 1, sizeof(piece), in)) > 0) {
        buf_add(&text, piece, n);
    }
    fclose(in);
    return arena_strdup(a, buf_str(&text));
}

static void config_error(struct planner *p, const char *environment, const char *package,
                         const char *location, const char *message)
{
    struct planner_config_error *c = xcalloc(1, sizeof(*c));
    c->location = xstrdup(location);
    c->environment = xstrdup(environment);
    c->package = xstrdup(package);
    c->message = xstrdup(message);
    list_add_tail(&p->config_errors, &c->link);
    log_error("config.error", "environment=%s package=%s error=%s", log_q(environment),
              log_q(package), log_q(message));
}

/* An unreadable configuration is logged and the planner serves what it has (spec 1.4). */
static void read_config(struct flow_boot *f)
{
    const char *path = f->p->set->config;
    if (!path[0]) {
        return;
    }
    struct err e = {0};
    char *text = read_whole(&f->flow.arena, path);
    const char *slash = strrchr(path, '/');
    char *base = slash ? arena_strndup(&f->flow.arena, path, (size_t)(slash - path))
                       : arena_strdup(&f->flow.arena, ".");
    int rc = text ? publisher_config_parse(&f->flow.arena, slice_of(text), base,
                                           environment_variable, &f->config, &e)
                  : err_set(&e, ERR_CONF, "cannot be read");
    if (rc) {
        memset(&f->config, 0, sizeof(f->config));
        config_error(f->p, "", NULL, NULL,
                     arena_printf(&f->flow.arena, "%s: %s", path, err_text(&e)));
    }
    for (size_t i = 0; i < f->config.n_warnings; i++) {
        log_warn("config.warning", "text=%s", log_q(f->config.warnings[i]));
    }
}

static enum flow_next step_started(struct flow *flow)
{
    struct flow_boot *f = of(flow);
    struct planner *p = f->p;
    if (is_to_end(f)) {
        return give_up(flow);
    }
    if (flow->entered) {
        p->coord = f->coord;
        f->coord = NULL;
        struct decision *d = decision_new(p);
        coord_started(p->coord, planner_now(p), &d->out);
        decision_commit(d, on_started, f);
        return FLOW_WAIT;
    }
    if (flow->rc) {
        return lost(flow);
    }
    p->open = true;
    bus_set_installation(p->bus, store_installation(p->store));
    log_info("planner.open", "term=%llu packages=%zu", (unsigned long long)p->term,
             map_len(&p->units));
    loop_defer(p->loop, &p->plan_task);
    loop_defer(p->loop, &p->event_task);
    planner_sweep_root(p);
    read_config(f);
    return flow_goto(flow, SEED_ENVIRONMENT);
}

/* ---- seeding ---- */
static enum flow_next step_seed_environment(struct flow *flow)
{
    struct flow_boot *f = of(flow);
    if (flow->entered) {
        if (is_to_end(f)) {
            return give_up(flow);
        }
        if (f->at_environment >= f->config.n) {
            return flow_goto(flow, END);
        }
        const struct config_environment *c = &f->config.environments[f->at_environment];
        f->environment_is_new = catalog_environment(f->p, c->name) == NULL;
        f->row_environment = (struct store_environment){
            .name = c->name, .readme = c->readme, .frozen = f->config.frozen};
        store_put_environment(f->p->store, op_of(f), &f->row_environment, &f->id);
        return FLOW_WAIT;
    }
    if (flow->rc) {
        return lost(flow);
    }
    f->row_environment.id = f->id;
    catalog_put_environment(f->p, &f->row_environment);
    f->at_item = 0;
    return flow_goto(flow, SEED_CONNECTION);
}

static enum flow_next step_seed_connection(struct flow *flow)
{
    struct flow_boot *f = of(flow);
    const struct config_environment *c = &f->config.environments[f->at_environment];
    if (!flow->entered) {
        if (flow->rc) {
            return lost(flow);
        }
        catalog_put_connection(f->p, &f->row_connection);
        f->at_item++;
        return flow_goto(flow, SEED_CONNECTION);
    }
    if (is_to_end(f)) {
        return give_up(flow);
    }
    struct err e = {0};
    for (; f->at_item < c->n_connections; f->at_item++) {
        const struct config_connection *k = &c->connections[f->at_item];
        if (strcmp(k->name, "duckdb") == 0 ||
            (!f->environment_is_new && catalog_connection(f->p, f->id, k->name))) {
            continue;
        }
        const char *json = wh_attached_locate(&flow->arena, k->json, f->config.base_dir);
        if (connection_row(f->p, &flow->arena, f->id, k->name, json, &f->row_connection, &e)) {
            config_error(f->p, c->name, NULL, NULL, err_text(&e));
            continue;
        }
        store_put_connection(f->p->store, op_of(f), &f->row_connection, false);
        return FLOW_WAIT;
    }
    f->at_item = 0;
    return flow_goto(flow, SEED_PACKAGE);
}

static void on_package(struct load_request *r)
{
    struct flow_boot *f = r->data;
    if (r->rc) {
        const struct config_environment *c = &f->config.environments[f->at_environment];
        config_error(f->p, c->name, c->packages[f->at_item].name, r->location, err_text(&r->err));
    }
    flow_resume(&f->flow, 0, NULL);
}

static enum flow_next step_seed_package(struct flow *flow)
{
    struct flow_boot *f = of(flow);
    const struct config_environment *c = &f->config.environments[f->at_environment];
    if (!flow->entered) {
        f->at_item++;
        return flow_goto(flow, SEED_PACKAGE);
    }
    if (is_to_end(f)) {
        return give_up(flow);
    }
    for (; f->at_item < c->n_packages; f->at_item++) {
        const struct config_package *k = &c->packages[f->at_item];
        struct planner_unit *u = catalog_unit(f->p, c->name, k->name);
        if (u && u->load) {
            continue;
        }
        struct err e = {0};
        char *path = NULL;
        bool is_archive = false;
        if (package_location(&flow->arena, k->location, f->config.base_dir, &path, &is_archive,
                             &e)) {
            config_error(f->p, c->name, k->name, NULL, err_text(&e));
            continue;
        }
        f->load = (struct load_request){.p = f->p,
                                        .environment = f->id,
                                        .package = k->name,
                                        .location = path,
                                        .cause = LOAD_BOOT,
                                        .done = on_package,
                                        .data = f};
        flow_load_start(&f->load);
        return FLOW_WAIT;
    }
    f->at_environment++;
    return flow_goto(flow, SEED_ENVIRONMENT);
}

static enum flow_next step_end(struct flow *flow)
{
    struct flow_boot *f = of(flow);
    coord_free(f->coord);
    return FLOW_END;
}

static const struct flow_step steps[] = {
    [WIPE] = {"WIPE", step_wipe, FLOW_TO(COORD) | FLOW_TO(END), 0, NULL,
              "--init empties the installation", true},
    [COORD] = {"COORD", step_coord, FLOW_TO(ENVIRONMENTS) | FLOW_TO(END), 0, NULL,
               "runs, jobs, leases, sets from rows", true},
    [ENVIRONMENTS] = {"ENVIRONMENTS", step_environments, FLOW_TO(CONNECTIONS) | FLOW_TO(END), 0,
                      NULL, "", true},
    [CONNECTIONS] = {"CONNECTIONS", step_connections, FLOW_TO(UNITS) | FLOW_TO(END), 0, NULL, "",
                     true},
    [UNITS] = {"UNITS", step_units, FLOW_TO(RESTORE) | FLOW_TO(END), 0, NULL, "", true},
    [RESTORE] = {"RESTORE", step_restore, FLOW_TO(RESTORE) | FLOW_TO(STARTED) | FLOW_TO(END), 0,
                 NULL, "stored loads, without a warehouse", true},
    [STARTED] = {"STARTED", step_started, FLOW_TO(SEED_ENVIRONMENT) | FLOW_TO(END), 0, NULL,
                 "a restart binds again; calls are served", true},
    [SEED_ENVIRONMENT] = {"SEED_ENVIRONMENT", step_seed_environment,
                          FLOW_TO(SEED_CONNECTION) | FLOW_TO(END), 0, NULL,
                          "what the config has and the store lacks", true},
    [SEED_CONNECTION] = {"SEED_CONNECTION", step_seed_connection,
                         FLOW_TO(SEED_CONNECTION) | FLOW_TO(SEED_PACKAGE) | FLOW_TO(END), 0, NULL,
                         "", true},
    [SEED_PACKAGE] = {"SEED_PACKAGE", step_seed_package,
                      FLOW_TO(SEED_PACKAGE) | FLOW_TO(SEED_ENVIRONMENT) | FLOW_TO(END), 0, NULL,
                      "each package is loaded", true},
    [END] = {"END", step_end, 0, 0, NULL, "", false},
};
const struct flow_type flow_boot_type = {"boot", steps, ARRAY_LEN(steps)};

static void on_end(struct flow *flow)
{
    struct flow_boot *f = of(flow);
    struct planner *p = f->p;
    p->boot_flow = NULL;
    if (flow->final_rc && service_is_draining(p->service)) {
        log_info("planner.boot_ended", "reason=%s", "shutdown");
    } else if (flow->final_rc) {
        log_error("planner.boot_failed", "rc=%s error=%s", err_code_name(flow->final_rc),
                  log_q(err_text(&flow->err)));
        service_fail(p->service, 1, "the planner cannot start serving: %s", err_text(&flow->err));
    } else {
        p->booted = true;
        health_set(p->service, "planner", true, true, "");
    }
    planner_work_end(p, &f->work);
    free(f);
}

void planner_on_leader(void *data, uint64_t term)
{
    struct planner *p = data;
    p->term = term;
    p->decide_rc = 0;
    struct flow_boot *f = xcalloc(1, sizeof(*f));
    f->p = p;
    p->boot_flow = f;
    f->flow.on_end = on_end;
    flow_start(&f->flow, &flow_boot_type, loop_flows(p->loop), NULL);
    planner_work_begin(p, &f->work, &f->flow);
}

/* A planner that lost its leadership, or whose commit failed for good, starts over as a new
 * process: what it held in memory may be ahead of the rows (protocol.md 1: "no row: exit"). */
void planner_on_lost(void *data, int code, const char *why)
{
    struct planner *p = data;
    p->open = false;
    health_set(p->service, "planner", true, false, why);
    held_pulls_fail(p);
    planner_waits_fail(p);
    service_fail(p->service, 75,
                 "leadership or the run store is lost (%s): %s; the process ends and its "
                 "supervisor starts a new one",
                 err_code_name(code), why);
}
