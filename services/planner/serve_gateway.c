/* What gateways ask: newer binding sets, packages, files, connections; and what they report
 * (protocol.md 6, 9). */
#include "common/log/log.h"
#include "services/planner/planner.h"

static uint64_t have_epoch(const Kiln__GetBindingsReq *q, uint64_t unit)
{
    for (size_t i = 0; i < q->n_have; i++) {
        if (q->have[i]->package == unit) {
            return q->have[i]->epoch;
        }
    }
    return 0;
}

/* The sets of memory may not be durable yet: they are packed as they are now, and sent when they
 * are. */
static void reply_bindings(struct decision *d)
{
    struct bus_request *r = d->data;
    if (d->rc) {
        bus_reply_error(r, d->rc, err_text(&d->err), 100);
        return;
    }
    bus_reply(r, r->data);
}

static void get_bindings(struct planner *p, struct bus_request *r)
{
    Kiln__GetBindingsReq *q = serve_unpack(r, &kiln__get_bindings_req__descriptor);
    if (!q) {
        return;
    }
    struct arena *a = &r->arena;
    Kiln__GetBindingsRep *rep = arena_alloc(a, sizeof(*rep));
    kiln__get_bindings_rep__init(rep);
    rep->config_epoch = store_config_epoch(p->store);
    rep->sets = arena_zalloc(a, (map_len(&p->units) + 1) * sizeof(*rep->sets));
    for (struct map_iter it = map_begin(&p->units); map_next(&it);) {
        const struct planner_unit *u = it.value;
        const struct core_binding_set *set = coord_unit_set(p->coord, u->id);
        if (!set || set->epoch <= have_epoch(q, u->id)) {
            continue;
        }
        auto_buf struct buf packed = {0};
        planner_pack_set(set, &packed, p);
        struct err e = {0};
        Kiln__BindingSet *m = bus_unpack(&kiln__binding_set__descriptor, a, buf_slice(&packed), &e);
        must(m != NULL);
        rep->sets[rep->n_sets++] = m;
    }
    rep->gone = arena_zalloc(a, (q->n_have + 1) * sizeof(*rep->gone));
    for (size_t i = 0; i < q->n_have; i++) {
        struct coord_unit_row row;
        if (!coord_unit_get(p->coord, q->have[i]->package, &row)) {
            rep->gone[rep->n_gone++] = q->have[i]->package;
        } else {
            coord_raise(p->coord, q->have[i]->epoch);
        }
    }
    r->data = &rep->base;
    decision_commit(decision_new(p), reply_bindings, r);
}

/* ---- GetPackage ---- */
struct package_read {
    struct planner *p;
    struct bus_request *r;
    struct store_op op;
    struct store_load load;
};

static void fill_files(struct arena *a, const struct store_load *l, Kiln__GetPackageRep *rep)
{
    rep->files = arena_zalloc(a, (l->n_files + 1) * sizeof(*rep->files));
    for (size_t i = 0; i < l->n_files; i++) {
        Kiln__PackageFile *f = arena_alloc(a, sizeof(*f));
        kiln__package_file__init(f);
        f->path = bus_str(l->files[i].path);
        f->bytes = l->files[i].bytes;
        f->is_data = l->files[i].is_data;
        f->sha256.data = (uint8_t *)(uintptr_t)l->files[i].sha256.b;
        f->sha256.len = 32;
        rep->files[rep->n_files++] = f;
    }
}

static void fill_schemas(struct arena *a, const struct store_load *l, Kiln__GetPackageRep *rep)
{
    rep->schemas = arena_zalloc(a, (l->n_schemas + 1) * sizeof(*rep->schemas));
    for (size_t i = 0; i < l->n_schemas; i++) {
        const struct store_schema *s = &l->schemas[i];
        Kiln__StoredSchema *m = arena_alloc(a, sizeof(*m));
        kiln__stored_schema__init(m);
        m->connection = bus_str(s->connection);
        m->path = bus_str(s->is_sql ? NULL : s->key);
        m->sql = bus_str(s->is_sql ? s->key : NULL);
        m->error = bus_str(s->error);
        columns_to_proto(a, &s->columns, &m->columns, &m->n_columns);
        rep->schemas[rep->n_schemas++] = m;
    }
}

static void fill_connections(struct planner *p, struct arena *a, const struct planner_unit *u,
                             Kiln__GetPackageRep *rep)
{
    struct plan_connection *list;
    size_t n;
    connections_for_plan(p, u, a, &list, &n);
    rep->connections = arena_zalloc(a, (n + 1) * sizeof(*rep->connections));
    for (size_t i = 0; i < n; i++) {
        Kiln__ConnectionRow *m = arena_alloc(a, sizeof(*m));
        kiln__connection_row__init(m);
        m->name = bus_str(list[i].name);
        m->type = bus_str(list[i].type);
        m->dialect = bus_str(list[i].dialect);
        m->digest = bus_str(list[i].digest);
        rep->connections[rep->n_connections++] = m;
    }
}

static void on_load_read(struct store_op *op)
{
    struct package_read *g = op->data;
    struct bus_request *r = g->r;
    struct planner_unit *u = op->rc == 0 ? catalog_unit_id(g->p, g->load.unit) : NULL;
    if (!u) {
        bus_reply_error(r, op->rc ? op->rc : ERR_NOT_FOUND,
                        op->rc ? err_text(&op->err) : "the load's package is gone", 0);
        free(g);
        return;
    }
    struct arena *a = &r->arena;
    Kiln__GetPackageRep rep = KILN__GET_PACKAGE_REP__INIT;
    char *version = arena_alloc(a, 65);
    hex_encode(g->load.version.b, 32, version);
    rep.environment = u->environment_name;
    rep.package = u->name;
    rep.package_id = u->id;
    rep.version = version;
    rep.load_id = arena_printf(a, "l%llu", (unsigned long long)g->load.id);
    rep.compiler_version = bus_str(g->load.compiler_version);
    rep.manifest_json = bus_str(g->load.manifest_json ? g->load.manifest_json : "{}");
    rep.package_json = bus_str(g->load.package_json ? g->load.package_json : "{}");
    if (u->load && u->load->id == g->load.id) { /* with the unit's own description and location */
        json_t *v = package_json(g->p, u);
        auto_free char *text = json_text(v);
        json_decref(v);
        rep.package_json = arena_strdup(a, text);
    }
    rep.plan_json = bus_str(g->load.plan_json ? g->load.plan_json : "null");
    rep.default_connection = bus_str(g->load.default_connection);
    fill_files(a, &g->load, &rep);
    fill_schemas(a, &g->load, &rep);
    fill_connections(g->p, a, u, &rep);
    bus_reply(r, &rep.base);
    free(g);
}

static void get_package(struct planner *p, struct bus_request *r)
{
    Kiln__GetPackageReq *q = serve_unpack(r, &kiln__get_package_req__descriptor);
    uint64_t id = 0;
    if (!q) {
        return;
    }
    if (q->load_id[0] != 'l' || slice_to_u64(slice_of(q->load_id + 1), &id)) {
        bus_reply_error(r, ERR_INVALID, arena_printf(&r->arena, "'%s' is no load id", q->load_id),
                        0);
        return;
    }
    struct package_read *g = xcalloc(1, sizeof(*g));
    g->p = p;
    g->r = r;
    g->op = (struct store_op){.arena = &r->arena, .done = on_load_read, .data = g};
    store_get_load(p->store, &g->op, id, false, &g->load);
}

/* ---- GetFile ---- */
struct file_read {
    struct bus_request *r;
    struct store_op op;
    struct slice content;
    uint64_t offset;
    uint32_t length;
    uint8_t sha256[32];
};

static void on_file_read(struct store_op *op)
{
    struct file_read *g = op->data;
    if (op->rc) {
        bus_reply_error(g->r, op->rc, err_text(&op->err), 0);
        free(g);
        return;
    }
    Kiln__GetFileRep rep = KILN__GET_FILE_REP__INIT;
    uint64_t from = g->offset < g->content.len ? g->offset : g->content.len;
    uint64_t left = g->content.len - from;
    uint64_t len = g->length && g->length < left ? g->length : left;
    rep.data.data = (uint8_t *)(uintptr_t)g->content.p + from;
    rep.data.len = len < (1U << 20) ? len : (1U << 20);
    rep.total = g->content.len;
    rep.sha256.data = g->sha256;
    rep.sha256.len = 32;
    bus_reply(g->r, &rep.base);
    free(g);
}

static void get_file(struct planner *p, struct bus_request *r)
{
    Kiln__GetFileReq *q = serve_unpack(r, &kiln__get_file_req__descriptor);
    if (!q) {
        return;
    }
    if (q->sha256.len != 32) {
        bus_reply_error(r, ERR_INVALID, "GetFile needs the file's SHA-256", 0);
        return;
    }
    struct file_read *g = xcalloc(1, sizeof(*g));
    g->r = r;
    g->offset = q->offset;
    g->length = q->length;
    memcpy(g->sha256, q->sha256.data, 32);
    g->op = (struct store_op){.arena = &r->arena, .done = on_file_read, .data = g};
    struct sha256 id;
    memcpy(id.b, q->sha256.data, 32);
    store_get_file(p->store, &g->op, &id, &g->content);
}

static void get_connection(struct planner *p, struct bus_request *r)
{
    Kiln__GetConnectionReq *q = serve_unpack(r, &kiln__get_connection_req__descriptor);
    if (!q) {
        return;
    }
    struct planner_environment *env = serve_environment(p, r, q->environment);
    if (!env) {
        return;
    }
    struct planner_connection *c = catalog_connection(p, env->id, q->name);
    if (!c) {
        bus_reply_error(r, ERR_NOT_FOUND,
                        arena_printf(&r->arena,
                                     "connection '%s' does not exist in environment '%s'", q->name,
                                     q->environment),
                        0);
        return;
    }
    Kiln__GetConnectionRep rep = KILN__GET_CONNECTION_REP__INIT;
    rep.type = c->type;
    rep.digest = c->digest;
    rep.config_epoch = store_config_epoch(p->store);
    rep.sealed.data = (uint8_t *)c->sealed.p;
    rep.sealed.len = c->sealed.len;
    rep.nonce.data = c->nonce;
    rep.nonce.len = sizeof(c->nonce);
    bus_reply(r, &rep.base);
}

/* ---- ReportGateway ---- */
static void reply_report(struct decision *d)
{
    struct bus_request *r = d->data;
    struct planner *p = d->p;
    if (d->rc) {
        bus_reply_error(r, d->rc, err_text(&d->err), 100);
        return;
    }
    Kiln__ReportGatewayRep rep = KILN__REPORT_GATEWAY_REP__INIT;
    rep.config_epoch = store_config_epoch(p->store);
    rep.newest = arena_zalloc(&d->arena, (map_len(&p->units) + 1) * sizeof(*rep.newest));
    for (struct map_iter it = map_begin(&p->units); map_next(&it);) {
        const struct planner_unit *u = it.value;
        struct coord_unit_row row;
        if (!coord_unit_get(p->coord, u->id, &row) || row.epoch == 0) {
            continue;
        }
        Kiln__PackageEpoch *m = arena_alloc(&d->arena, sizeof(*m));
        kiln__package_epoch__init(m);
        m->package = u->id;
        m->epoch = row.epoch;
        rep.newest[rep.n_newest++] = m;
    }
    bus_reply(r, &rep.base);
}

static void report(struct planner *p, struct bus_request *r)
{
    Kiln__ReportGatewayReq *q = serve_unpack(r, &kiln__report_gateway_req__descriptor);
    if (!q) {
        return;
    }
    struct decision *d = decision_new(p);
    struct coord_gateway_unit *list = arena_zalloc(&d->arena, (q->n_packages + 1) * sizeof(*list));
    for (size_t i = 0; i < q->n_packages; i++) {
        const Kiln__GatewayPackage *m = q->packages[i];
        list[i] = (struct coord_gateway_unit){m->package, m->applied, m->failed_epoch,
                                              m->oldest_in_use, m->loading};
    }
    coord_gateway_report(p->coord, planner_now(p), r->instance, &r->boot, list, q->n_packages,
                         &d->out);
    for (size_t i = 0; i < q->n_broken; i++) {
        coord_broken(p->coord, planner_now(p), q->broken[i]->package, q->broken[i]->generation,
                     q->broken[i]->code, &d->out);
        log_warn("binding.broken", "unit=%llu generation=%s code=%s gateway=%s",
                 (unsigned long long)q->broken[i]->package, q->broken[i]->generation,
                 q->broken[i]->code, r->instance);
    }
    decision_commit(d, reply_report, r);
}

void serve_gateway(struct planner *p, struct bus_request *r)
{
    switch (r->kind) {
    case BUS_GET_BINDINGS:
        get_bindings(p, r);
        return;
    case BUS_GET_PACKAGE:
        get_package(p, r);
        return;
    case BUS_GET_FILE:
        get_file(p, r);
        return;
    case BUS_GET_CONNECTION:
        get_connection(p, r);
        return;
    default:
        report(p, r);
        return;
    }
}
