/* Flow: a package becomes a load. READ its files, LOAD_COMPILE, ASK the warehouses what the
 * compiler needs (and compile again), LOAD_PLAN, STORE, DECIDE (the unit has a new load and a new
 * binding set), wait for the gateways' LOAD_REPORTS, END (design.md 3, decisions 1.1). */
#include "common/log/log.h"
#include "services/planner/asked.h"
#include "services/planner/load.h"

#define MAX_ROUNDS 24
#define DESCRIBE_MS 15000

static struct flow_load *of(struct flow *f)
{
    return container_of(f, struct flow_load, flow);
}

/* ---- READ ---- */
static void read_offload(struct offload_job *job)
{
    struct flow_load *f = job->data;
    struct package_limits lim = {.small_bytes = 1U << 20,
                                 .archive_bytes = 1ULL << 30,
                                 .archive_ratio = 200,
                                 .files = 10000,
                                 .package_store = f->p->set->package_store};
    if (f->archive.len) {
        f->read_rc = package_read_archive(&f->own, f->archive, &lim, &f->files, &f->read_err);
    } else {
        f->read_rc = package_read_local(&f->own, f->location, &lim, &f->files, &f->read_err);
    }
}

static void on_read(struct offload_job *job)
{
    struct flow_load *f = job->data;
    flow_resume(&f->flow, f->read_rc, &f->read_err);
}

static void on_store(struct store_op *op)
{
    struct flow_load *f = op->data;
    flow_resume(&f->flow, op->rc, &op->err);
}

struct store_op *load_store_op(struct flow_load *f)
{
    f->store = (struct store_op){.arena = &f->own, .done = on_store, .data = f};
    return &f->store;
}

static void rows_of_files(struct flow_load *f)
{
    f->stored = arena_zalloc(&f->own, (f->files.n + 1) * sizeof(*f->stored));
    for (size_t i = 0; i < f->files.n; i++) {
        const struct package_file *in = &f->files.items[i];
        f->stored[i] =
            (struct store_file){in->path, in->content, in->bytes, in->sha256, in->is_data};
    }
}

/* The stored files of a unit without a readable location serve again, with a patched manifest if
 * asked. */
static int files_of_old(struct flow_load *f, struct err *e)
{
    f->files.n = f->old.n_files;
    f->stored = f->old.files;
    f->files.version = f->old.version;
    f->files.manifest = f->old.manifest_json;
    if (!f->patch) {
        return 0;
    }
    json_t *old = json_parse(slice_of(f->old.manifest_json), e);
    json_t *patch = json_parse(slice_of(f->patch), e);
    bool touched = false;
    json_t *merged = old && patch ? package_manifest_patch(old, patch, &touched, e) : NULL;
    f->policy_untouched = !touched;
    json_decref(old);
    json_decref(patch);
    if (!merged) {
        return e->code ? e->code : ERR_INVALID;
    }
    auto_buf struct buf text = {0};
    json_print(merged, &text);
    json_decref(merged);
    f->files.manifest = arena_strdup(&f->own, buf_str(&text));
    for (size_t i = 0; i < f->files.n; i++) {
        if (strcmp(f->stored[i].path, "publisher.json") == 0) {
            f->stored[i].content = slice_of(f->files.manifest);
            f->stored[i].bytes = strlen(f->files.manifest);
            f->stored[i].sha256 = sha256_of(f->files.manifest, strlen(f->files.manifest));
        }
    }
    struct sha256_run *h = sha256_start();
    sha256_add(h, f->old.version.b, 32);
    sha256_add(h, f->files.manifest, strlen(f->files.manifest));
    f->files.version = sha256_finish(h);
    return 0;
}

static enum flow_next step_read(struct flow *flow)
{
    struct flow_load *f = of(flow);
    if (flow->entered) {
        if (f->archive.len || f->location) {
            f->read_job =
                (struct offload_job){.work_offload = read_offload, .done = on_read, .data = f};
            loop_offload(f->p->loop, &f->read_job);
            return FLOW_WAIT;
        }
        if (!f->unit || !f->unit->load) {
            return flow_fail(
                flow, LOAD_END, ERR_INVALID,
                "package '%s' has no location; give one: a directory, a zip or a tar.gz archive",
                f->package);
        }
        store_get_load(f->p->store, load_store_op(f), f->unit->load->id, true, &f->old);
        return FLOW_WAIT;
    }
    if (flow->rc) {
        return flow_fail(flow, LOAD_END, flow->rc, "package '%s': %s", f->package,
                         err_text(&flow->err));
    }
    struct err e = {0};
    if (f->archive.len || f->location) {
        rows_of_files(f);
    } else if (files_of_old(f, &e)) {
        return flow_fail(flow, LOAD_END, e.code, "%s", err_text(&e));
    }
    if (!f->files.manifest) {
        return flow_fail(flow, LOAD_END, ERR_PACKAGE,
                         "package '%s': there is no publisher.json in %s; a package needs one",
                         f->package, f->location ? f->location : "the archive");
    }
    f->manifest = package_manifest_parse(slice_of(f->files.manifest), &e);
    if (!f->manifest || package_manifest_check(f->manifest, &e)) {
        return flow_fail(flow, LOAD_END, ERR_PACKAGE, "package '%s': %s", f->package, err_text(&e));
    }
    return flow_goto(flow, LOAD_COMPILE);
}

/* ---- COMPILE ---- */
static void on_compiled(struct compiler_call *c)
{
    struct flow_load *f = c->data;
    if (c->rc == 0) {
        f->needs = strcmp(c->reply_kind, "needs") == 0;
        f->loaded_packed = slice_make(arena_dup(&f->own, c->reply.p, c->reply.len), c->reply.len);
    }
    flow_resume(&f->flow, c->rc, &c->err);
}

static enum flow_next step_compile(struct flow *flow)
{
    struct flow_load *f = of(flow);
    if (flow->entered) {
        auto_buf struct buf packed = {0};
        if (f->rounds == 0) {
            f->compiling_since = loop_now(f->p->loop);
        }
        load_message_pack(&f->own, f->text_id, f->package, f->stored, f->files.n, f->connections,
                          f->n_connections, f->schemas, f->n_schemas, false, &packed);
        compiler_keep(f->p->compiler, f->text_id, buf_slice(&packed));
        Kiln__Mc__Load *again =
            bus_unpack(&kiln__mc__load__descriptor, &f->own, buf_slice(&packed), NULL);
        again->plan = true; /* once: a child that replays it later only answers queries */
        f->call = (struct compiler_call){.kind = "load",
                                         .request = &again->base,
                                         .timeout = MS(f->p->set->compile_timeout_ms),
                                         .done = on_compiled,
                                         .data = f};
        compiler_call_start(f->p->compiler, &f->call);
        return FLOW_WAIT;
    }
    if (flow->rc) {
        return flow_fail(flow, LOAD_END, flow->rc == ERR_COMPILE ? ERR_PACKAGE : flow->rc,
                         "package '%s': %s", f->package, err_text(&flow->err));
    }
    if (!f->needs) {
        return flow_goto(flow, LOAD_PLAN);
    }
    if (++f->rounds > MAX_ROUNDS) {
        return flow_fail(
            flow, LOAD_END, ERR_PACKAGE,
            "package '%s': SQL blocks are built on one another more than %d deep; flatten them",
            f->package, MAX_ROUNDS);
    }
    struct err e = {0};
    Kiln__Mc__Needs *needs =
        bus_unpack(&kiln__mc__needs__descriptor, &f->own, f->loaded_packed, &e);
    if (!needs) {
        return flow_fail(flow, LOAD_END, e.code,
                         "package '%s': the compiler child's answer does not decode: %s",
                         f->package, err_text(&e));
    }
    load_needs(f, needs);
    return flow_goto(flow, LOAD_ASK);
}

/* ---- ASK ---- */
static void on_answered(struct wh_op *op)
{
    struct flow_load *f = op->data;
    flow_resume(&f->flow, op->rc, &op->err);
}

static void cancel_wh(struct flow *flow)
{
    struct flow_load *f = of(flow);
    f->wh.wh->ops->cancel(&f->wh);
}

static void copy_columns(struct arena *a, const struct wh_columns *in, struct core_columns *out)
{
    out->items = arena_zalloc(a, (in->n + 1) * sizeof(*out->items));
    out->n = in->n;
    for (size_t i = 0; i < in->n; i++) {
        out->items[i] = (struct core_column){in->items[i].name, in->items[i].data_type,
                                             in->items[i].element_type, in->items[i].nullable};
    }
}

static void take_answers(struct flow_load *f, const struct load_ask *ask)
{
    if (ask->is_sql) {
        struct store_schema *s = load_schema_add(f, ask->connection, ask->keys[0], true);
        if (f->wh.rc) {
            s->error = arena_strdup(&f->own, err_text(&f->wh.err));
        } else {
            copy_columns(&f->own, &f->wh.facts.columns, &s->columns);
        }
        return;
    }
    for (size_t i = 0; i < ask->n; i++) {
        struct store_schema *s = load_schema_add(f, ask->connection, ask->keys[i], false);
        if (f->wh.facts.schema_errors[i]) {
            s->error = arena_strdup(&f->own, f->wh.facts.schema_errors[i]);
        } else {
            copy_columns(&f->own, &f->wh.facts.schemas[i], &s->columns);
        }
    }
}

/* A session that was refused (class 28) or a database that is not there says nothing about the SQL.
 * DuckDB has no states. */
static bool is_about_the_text(const struct flow *flow)
{
    const char *state = flow->err.sqlstate;
    bool is_refused = flow->rc == ERR_WH_SQL || flow->rc == ERR_WH_MISSING;
    return (!state[0] && is_refused) ||
           (state[0] && flow->rc != ERR_WH_CONNECT && flow->rc != ERR_WH_LOST &&
            strncmp(state, "28", 2) != 0 && strncmp(state, "3D", 2) != 0);
}

static int warehouse_of(struct flow_load *f, const char *connection, struct wh **out, struct err *e)
{
    if (!f->duckdb) {
        f->duckdb = asked_wh_new(f->p, f->environment_name, f->package, &f->files.version,
                                 f->stored, f->files.n);
        asked_wh_add_others(f->duckdb, f->connections, f->n_connections);
    }
    *out = asked_wh_find(f->duckdb, connection);
    if (*out) {
        return 0;
    }
    struct planner_connection *c = catalog_connection(f->p, f->req->environment, connection);
    return c ? connection_wh(f->p, c, out, e)
             : err_set(e, ERR_NOT_FOUND, "connection '%s' was removed meanwhile", connection);
}

static enum flow_next step_ask(struct flow *flow)
{
    struct flow_load *f = of(flow);
    if (!flow->entered) {
        const struct load_ask *ask = &f->asks[f->at_ask];
        bool spoke = flow->rc == 0 || (ask->is_sql && is_about_the_text(flow));
        if (!spoke) {
            return flow_fail(flow, LOAD_END, flow->rc, "package '%s': %s", f->package,
                             err_text(&flow->err));
        }
        take_answers(f, ask);
        f->at_ask++;
        return flow_goto(flow, f->at_ask < f->n_asks ? LOAD_ASK : LOAD_COMPILE);
    }
    if (f->at_ask >= f->n_asks) {
        return flow_goto(flow, LOAD_COMPILE);
    }
    const struct load_ask *ask = &f->asks[f->at_ask];
    struct err e = {0};
    struct wh *wh = NULL;
    int rc = f->p->coord ? warehouse_of(f, ask->connection, &wh, &e)
                         : err_set(&e, ERR_NOT_LEADER, "the planner gave its leadership up");
    if (rc) {
        return flow_fail(flow, LOAD_END, rc, "package '%s': %s", f->package, err_text(&e));
    }
    f->wh = (struct wh_op){
        .wh = wh, .arena = &f->own, .timeout = MS(DESCRIBE_MS), .data = f, .done = on_answered};
    if (ask->is_sql) {
        wh->ops->describe(&f->wh, ask->keys[0]);
    } else {
        wh->ops->catalog_tables(&f->wh, ask->keys, ask->n);
    }
    return FLOW_WAIT;
}

/* ---- PLAN ---- */
static void add_driverless_warning(struct flow_load *f, struct package_plan *plan)
{
    for (size_t i = 0; i < f->n_schemas; i++) {
        if (!f->schemas[i].error || !strstr(f->schemas[i].error, "cannot run")) {
            continue;
        }
        json_t *w = json_object();
        json_set_str(w, "subject", f->schemas[i].connection);
        json_set_str(w, "message", f->schemas[i].error);
        json_array_append(plan->warnings, w);
        json_t *list = json_object_get(plan->package, "warnings");
        if (list && list != plan->warnings) {
            json_array_append(list, w);
        }
        json_decref(w);
        return;
    }
}

static enum flow_next step_plan(struct flow *flow)
{
    struct flow_load *f = of(flow);
    bool publishing = f->req->cause == LOAD_PUBLISH || f->req->cause == LOAD_PATCH;
    struct planner_unit seen = {.name = f->package,
                                .environment_name = f->environment_name,
                                .environment = f->req->environment};
    struct load_source from = {
        .loaded_packed = f->loaded_packed,
        .manifest = f->manifest,
        .files = f->stored,
        .n_files = f->files.n,
        .compiler_version = compiler_version(f->p->compiler),
        .version = f->files.version,
        .publishing = publishing,
        .policy_untouched = f->policy_untouched,
    };
    f->load = load_make(f->p, f->unit ? f->unit : &seen, &from);
    snprintf(f->load->text_id, sizeof(f->load->text_id), "%s", f->text_id);
    struct package_plan *plan = &f->load->plan;
    planner_count_load(plan, ms_sub(loop_now(f->p->loop), f->compiling_since));
    if (plan->load_error && !f->driverless) {
        return flow_fail(flow, LOAD_END, plan->load_status == 400 ? ERR_INVALID : ERR_PACKAGE, "%s",
                         plan->load_error);
    }
    if (plan->load_error) {
        log_warn("package.driverless", "package=%s error=%s", log_q(f->package),
                 log_q(plan->load_error));
        add_driverless_warning(f, plan);
    }
    return flow_goto(flow, LOAD_STORE_UNIT);
}

/* ---- END ---- */
static enum flow_next step_end(struct flow *flow)
{
    struct flow_load *f = of(flow);
    if (f->load) {
        load_unref(f->p, f->load);
    }
    asked_wh_free(f->duckdb);
    json_decref(f->manifest);
    return FLOW_END;
}

static const struct flow_step steps[] = {
    [LOAD_READ] = {"READ", step_read, FLOW_TO(LOAD_COMPILE) | FLOW_TO(LOAD_END), 0, NULL,
                   "files are read, hashed and checked", true},
    [LOAD_COMPILE] = {"COMPILE", step_compile,
                      FLOW_TO(LOAD_ASK) | FLOW_TO(LOAD_PLAN) | FLOW_TO(LOAD_END), 0, NULL,
                      "the child compiles every model", true},
    [LOAD_ASK] = {"ASK", step_ask, FLOW_TO(LOAD_ASK) | FLOW_TO(LOAD_COMPILE) | FLOW_TO(LOAD_END),
                  20000, cancel_wh, "schemas come from the warehouses", false},
    [LOAD_PLAN] = {"PLAN", step_plan, FLOW_TO(LOAD_STORE_UNIT) | FLOW_TO(LOAD_END), 0, NULL,
                   "the core plans targets and refusals", false},
    [LOAD_STORE_UNIT] = {"STORE_UNIT", load_step_store_unit,
                         FLOW_TO(LOAD_STORE_LOAD) | FLOW_TO(LOAD_END), 0, NULL, "the unit's row",
                         true},
    [LOAD_STORE_LOAD] = {"STORE_LOAD", load_step_store_load,
                         FLOW_TO(LOAD_DECIDE) | FLOW_TO(LOAD_END), 0, NULL,
                         "files, version and load as rows", true},
    [LOAD_DECIDE] = {"DECIDE", load_step_decide, FLOW_TO(LOAD_REPORTS) | FLOW_TO(LOAD_END), 0, NULL,
                     "new load, new binding set, one commit", true},
    [LOAD_REPORTS] = {"REPORTS", load_step_reports, FLOW_TO(LOAD_END), 0, NULL,
                      "gateways apply the set", true},
    [LOAD_END] = {"END", step_end, 0, 0, NULL, "", false},
};
const struct flow_type flow_load_type = {"load", steps, ARRAY_LEN(steps)};

static void keep_stale_error(struct flow_load *f)
{
    struct planner_unit *u = f->unit;
    if (!u || f->flow.final_rc == 0) {
        return;
    }
    const char *load_error = u->load ? NULL : err_text(&f->flow.err);
    const char *stale = u->load && f->req->cause == LOAD_RELOAD ? err_text(&f->flow.err) : NULL;
    unit_set_error(u, load_error, stale);
}

static void on_end(struct flow *flow)
{
    struct flow_load *f = of(flow);
    struct load_request *r = f->req;
    if (f->unit && f->unit->loading == flow) {
        f->unit->loading = NULL;
    }
    keep_stale_error(f);
    r->rc = flow->final_rc;
    r->err = flow->err;
    r->http = r->rc ? err_code_http(r->rc) : 200;
    r->unit = f->unit_id;
    r->epoch = f->epoch;
    auto_buf struct buf text = {0};
    if (r->rc == 0) {
        unit_set_error(f->unit, NULL, NULL);
        json_t *v = package_json(f->p, f->unit);
        json_print(v, &text);
        json_decref(v);
        r->package_json = buf_str(&text);
    } else {
        log_warn("package.load_failed", "package=%s error=%s trace=%s", log_q(f->package),
                 log_q(err_text(&r->err)), log_id(r->trace.b));
    }
    struct planner *p = f->p;
    r->done(r);
    planner_work_end(p, &f->work);
    arena_fini(&f->own);
    free(f);
}

void flow_load_start(struct load_request *r)
{
    static uint64_t sequence; /* names loads inside this process's compiler pool */
    struct planner *p = r->p;
    struct flow_load *f = xcalloc(1, sizeof(*f));
    r->flow = f;
    f->req = r;
    f->p = p;
    arena_init(&f->own);
    struct planner_environment *env = catalog_environment_id(p, r->environment);
    f->environment_name = arena_strdup(&f->own, env ? env->name : "");
    f->package = arena_strdup(&f->own, r->package);
    f->unit = catalog_unit(p, f->environment_name, r->package);
    const char *location = r->location;
    const struct planner_config_error *before =
        catalog_config_error(p, f->environment_name, r->package);
    if (!location && !f->unit && before) {
        location = before->location;
    }
    f->location_is_new = location != NULL;
    if (!location && f->unit && r->cause != LOAD_PATCH) {
        location = f->unit->location;
    }
    f->location = location && location[0] ? arena_strdup(&f->own, location) : NULL;
    f->description = arena_strdup(&f->own, r->description);
    f->patch = arena_strdup(&f->own, r->patch);
    if (r->archive.len) {
        f->archive = slice_make(arena_dup(&f->own, r->archive.p, r->archive.len), r->archive.len);
    }
    snprintf(f->text_id, sizeof(f->text_id), "t%llu", (unsigned long long)++sequence);
    struct planner_unit seen = {
        .name = f->package, .environment_name = f->environment_name, .environment = r->environment};
    connections_for_plan(p, &seen, &f->own, &f->connections, &f->n_connections);
    snprintf(f->flow.id, sizeof(f->flow.id), "%.39s", r->package);
    f->flow.on_end = on_end;
    flow_start(&f->flow, &flow_load_type, loop_flows(p->loop), NULL);
    planner_work_begin(p, &f->work, &f->flow);
    if (f->unit) {
        f->unit->loading = &f->flow;
    }
}
