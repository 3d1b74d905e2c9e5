/* Packages on behalf of people: publish, reload, patch, delete (spec/malloy-persistence.md 7.5,
 * decisions 3.3, 3.6). */
#include "common/log/log.h"
#include "services/planner/package/package.h"
#include "services/planner/planner.h"

struct package_call {
    struct load_request load;
    struct bus_request *r;
};

/* The package's object and the epoch that carries it, as the kind of the call has them. */
static void reply_package(struct bus_request *r, const char *json, uint64_t epoch)
{
    if (r->kind == BUS_PUBLISH) {
        Kiln__PublishRep rep = KILN__PUBLISH_REP__INIT;
        rep.package_json = bus_str(json);
        rep.epoch = epoch;
        bus_reply(r, &rep.base);
        return;
    }
    Kiln__JsonRep rep = KILN__JSON_REP__INIT;
    rep.json = bus_str(json);
    rep.epoch = epoch;
    bus_reply(r, &rep.base);
}

static void on_loaded(struct load_request *l)
{
    struct package_call *c = l->data;
    if (l->rc) {
        serve_reply_final(c->r, l->rc, err_text(&l->err));
    } else {
        reply_package(c->r, l->package_json, l->epoch);
    }
    free(c);
}

static struct package_call *call_new(struct planner *p, struct bus_request *r, uint64_t environment,
                                     const char *package, enum load_cause cause)
{
    struct package_call *c = xcalloc(1, sizeof(*c));
    c->r = r;
    c->load = (struct load_request){.p = p,
                                    .environment = environment,
                                    .package = package,
                                    .cause = cause,
                                    .call = r,
                                    .trace = serve_trace(r),
                                    .done = on_loaded,
                                    .data = c};
    return c;
}

static bool busy(struct bus_request *r, const struct planner_unit *u)
{
    if (u && u->loading) {
        bus_reply_error(
            r, ERR_CONFLICT,
            arena_printf(&r->arena,
                         "package '%s' is being loaded already; try again when it is done",
                         u->name),
            1000);
        return true;
    }
    if (u && u->removing) {
        bus_reply_error(r, ERR_CONFLICT,
                        arena_printf(&r->arena, "package '%s' is being removed", u->name), 0);
        return true;
    }
    return false;
}

static bool frozen(struct planner *p, struct bus_request *r, const char *environment)
{
    const struct planner_environment *env = catalog_environment(p, environment);
    if (env && env->frozen) {
        bus_reply_error(r, ERR_FROZEN,
                        "the configuration is frozen (frozenConfig): packages cannot be changed",
                        0);
        return true;
    }
    return false;
}

/* Absolute path of a location text, or an answer. */
static int located(struct planner *p, struct bus_request *r, const char *text, char **path)
{
    struct err e = {0};
    bool is_archive = false;
    const char *slash = strrchr(p->set->config, '/');
    char *base = slash ? arena_strndup(&r->arena, p->set->config, (size_t)(slash - p->set->config))
                       : arena_strdup(&r->arena, ".");
    int rc = package_location(&r->arena, text, base, path, &is_archive, &e);
    if (rc) {
        bus_reply_error(r, rc, err_text(&e), 0);
    }
    return rc;
}

static void publish(struct planner *p, struct bus_request *r)
{
    Kiln__PublishReq *q = serve_unpack(r, &kiln__publish_req__descriptor);
    struct planner_environment *env = q ? serve_environment(p, r, q->environment) : NULL;
    if (!env || busy(r, catalog_unit(p, q->environment, q->package))) {
        return;
    }
    if (frozen(p, r, q->environment)) {
        return;
    }
    char *path = NULL;
    if (q->location[0] && located(p, r, q->location, &path)) {
        return;
    }
    struct package_call *c = call_new(p, r, env->id, q->package, LOAD_PUBLISH);
    c->load.location = path;
    c->load.description = q->has_description ? q->description : NULL;
    c->load.archive = slice_make(q->archive.data, q->archive.len);
    flow_load_start(&c->load);
}

static void reload(struct planner *p, struct bus_request *r)
{
    Kiln__ReloadReq *q = serve_unpack(r, &kiln__reload_req__descriptor);
    struct planner_unit *u = q ? serve_unit(p, r, q->environment, q->package) : NULL;
    if (!u || busy(r, u)) {
        return;
    }
    struct package_call *c = call_new(p, r, u->environment, u->name, LOAD_RELOAD);
    flow_load_start(&c->load);
}

/* ---- PATCH ---- */
struct unbind_call {
    struct bus_request *r;
    uint64_t unit;
};

static const char *package_text(struct planner *p, struct planner_unit *u, struct arena *a)
{
    json_t *v = package_json(p, u);
    auto_free char *text = json_text(v);
    json_decref(v);
    return arena_strdup(a, text);
}

static void reply_package_now(struct planner *p, struct bus_request *r, struct planner_unit *u)
{
    struct coord_unit_row row = {0};
    must(coord_unit_get(p->coord, u->id, &row));
    reply_package(r, package_text(p, u, &r->arena), row.epoch);
}

void serve_package_again(struct planner *p, struct bus_request *r)
{
    const char *environment, *package;
    if (r->kind == BUS_PUBLISH) {
        Kiln__PublishReq *q = serve_unpack(r, &kiln__publish_req__descriptor);
        environment = q->environment;
        package = q->package;
    } else if (r->kind == BUS_RELOAD) {
        Kiln__ReloadReq *q = serve_unpack(r, &kiln__reload_req__descriptor);
        environment = q->environment;
        package = q->package;
    } else {
        Kiln__PatchReq *q = serve_unpack(r, &kiln__patch_req__descriptor);
        environment = q->environment;
        package = q->package;
    }
    struct planner_unit *u = p->open ? serve_unit(p, r, environment, package) : NULL;
    if (u) {
        reply_package_now(p, r, u);
    } else if (!p->open) {
        serve_not_leader(r);
    }
}

static void on_unbound(struct decision *d)
{
    struct unbind_call *c = d->data;
    struct planner_unit *u = catalog_unit_id(d->p, c->unit);
    if (d->rc || !u) {
        bus_reply_error(c->r, d->rc ? d->rc : ERR_NOT_FOUND, err_text(&d->err), 100);
    } else {
        reply_package_now(d->p, c->r, u);
    }
    free(c);
}

static void unbind(struct planner *p, struct bus_request *r, struct planner_unit *u)
{
    struct decision *d = decision_new(p);
    int rc = coord_unbind(p->coord, planner_now(p), u->id, "patch", false, &d->out);
    if (rc) {
        bus_reply_error(r, rc, "the package's bindings cannot be cleared now", 0);
        decision_drop(d);
        return;
    }
    struct unbind_call *c = xcalloc(1, sizeof(*c));
    c->r = r;
    c->unit = u->id;
    answered_note_package(r, &d->op);
    decision_commit(d, on_unbound, c);
}

/* Anything but clearing the bindings: then it is a load. */
static bool changes_package(const json_t *body)
{
    static const char *const keys[] = {"description",     "location", "scope",
                                       "materialization", "explores", "queryableSources",
                                       "queryMetadata"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (json_object_get(body, keys[i])) {
            return true;
        }
    }
    return false;
}

static void patch(struct planner *p, struct bus_request *r)
{
    Kiln__PatchReq *q = serve_unpack(r, &kiln__patch_req__descriptor);
    struct planner_unit *u = q ? serve_unit(p, r, q->environment, q->package) : NULL;
    if (!u || frozen(p, r, q->environment) || busy(r, u)) {
        return;
    }
    struct err e = {0};
    json_t *body = json_parse(slice_of(q->body_json), &e);
    if (!json_is_object(body)) {
        bus_reply_error(r, ERR_INVALID, "the body must be a JSON object with package fields", 0);
        json_decref(body);
        return;
    }
    json_t *manifest_location = json_object_get(body, "manifestLocation");
    bool clears = manifest_location &&
                  (json_is_null(manifest_location) ||
                   (json_is_string(manifest_location) && !json_string_value(manifest_location)[0]));
    bool binds = manifest_location && !clears;
    const char *location = json_str(body, "location", NULL);
    const char *description = json_str(body, "description", NULL);
    if (binds) {
        bus_reply_error(
            r, ERR_UNSUPPORTED,
            "binding a manifestLocation is not built yet; materialize the package instead", 0);
    } else if (clears && !changes_package(body)) {
        unbind(p, r, u);
    } else {
        char *path = NULL;
        if (location && located(p, r, location, &path)) {
            json_decref(body);
            return;
        }
        struct package_call *c = call_new(p, r, u->environment, u->name, LOAD_PATCH);
        c->load.location = path;
        c->load.description = description;
        c->load.patch = q->body_json;
        c->load.unbind = clears;
        flow_load_start(&c->load);
    }
    json_decref(body);
}

/* ---- DELETE ---- */
struct delete_call {
    struct bus_request *r;
    uint64_t unit;
};

static void on_deleted(struct decision *d)
{
    struct delete_call *c = d->data;
    struct planner_unit *u = catalog_unit_id(d->p, c->unit);
    if (d->rc) {
        bus_reply_error(c->r, d->rc, err_text(&d->err), 100);
    } else {
        json_t *v = u ? package_json(d->p, u) : json_object();
        if (u) {
            catalog_del_unit(d->p, u);
        }
        loop_defer(d->p->loop, &d->p->event_task); /* one may have waited for this */
        serve_reply_json(c->r, v);
    }
    free(c);
}

static void delete_package(struct planner *p, struct bus_request *r)
{
    Kiln__DeleteReq *q = serve_unpack(r, &kiln__delete_req__descriptor);
    struct planner_unit *u = q ? serve_unit(p, r, q->environment, q->package) : NULL;
    if (!u || frozen(p, r, q->environment) || busy(r, u)) {
        return;
    }
    struct decision *d = decision_new(p);
    struct err e = {0};
    int rc = coord_unit_delete(p->coord, planner_now(p), u->id, &d->out, &e);
    if (rc) {
        bus_reply_error(r, rc, err_text(&e), 0);
        decision_drop(d);
        return;
    }
    struct delete_call *c = xcalloc(1, sizeof(*c));
    c->r = r;
    c->unit = u->id;
    u->removing = true;
    Kiln__JsonRep rep = KILN__JSON_REP__INIT;
    rep.json = bus_str(package_text(p, u, &r->arena));
    answered_note(r, &d->op, &rep.base);
    decision_commit(d, on_deleted, c);
}

void serve_package(struct planner *p, struct bus_request *r)
{
    switch (r->kind) {
    case BUS_PUBLISH:
        publish(p, r);
        return;
    case BUS_RELOAD:
        reload(p, r);
        return;
    case BUS_PATCH:
        patch(p, r);
        return;
    default:
        delete_package(p, r);
        return;
    }
}
