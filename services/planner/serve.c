/* Bus kinds to handlers; no logic. */
#include "services/planner/planner.h"

void *serve_unpack(struct bus_request *r, const ProtobufCMessageDescriptor *d)
{
    struct err e = {0};
    void *m = bus_unpack(d, &r->arena, r->payload, &e);
    if (!m) {
        bus_reply_error(r, ERR_BUS_FRAME, err_text(&e), 0);
    }
    return m;
}

struct uuid serve_trace(const struct bus_request *r)
{
    struct uuid trace;
    memcpy(trace.b, r->trace_id, sizeof(trace.b));
    return trace;
}

void serve_reply_json(struct bus_request *r, json_t *v)
{
    auto_free char *text = json_text(v);
    json_decref(v);
    Kiln__JsonRep rep = KILN__JSON_REP__INIT;
    rep.json = text;
    bus_reply(r, &rep.base);
}

#define NOT_BY_ITSELF_MS 60000 /* longer than any call waits, so the caller hears at once */
void serve_reply_final(struct bus_request *r, int code, const char *text)
{
    bool is_transient = err_code_class(code) == ERR_CLASS_TRANSIENT;
    bus_reply_error(r, code, text, is_transient ? NOT_BY_ITSELF_MS : 0);
}

void serve_not_leader(struct bus_request *r)
{
    bus_reply_error(r, ERR_NOT_LEADER, "the planner gave its leadership up", 200);
}

struct planner_environment *serve_environment(struct planner *p, struct bus_request *r,
                                              const char *name)
{
    struct planner_environment *e = catalog_environment(p, name);
    if (!e) {
        bus_reply_error(r, ERR_NOT_FOUND,
                        arena_printf(&r->arena, "environment '%s' does not exist", name), 0);
    }
    return e;
}

struct planner_unit *serve_unit(struct planner *p, struct bus_request *r, const char *environment,
                                const char *package)
{
    if (!serve_environment(p, r, environment)) {
        return NULL;
    }
    struct planner_unit *u = catalog_unit(p, environment, package);
    if (!u) {
        bus_reply_error(r, ERR_NOT_FOUND,
                        arena_printf(&r->arena, "package '%s' does not exist in environment '%s'",
                                     package, environment),
                        0);
    }
    return u;
}

void planner_dispatch(struct planner *p, struct bus_request *r)
{
    switch (r->kind) {
    case BUS_HELLO:
    case BUS_PULL_JOB:
    case BUS_RENEW_LEASE:
    case BUS_REQUEST_GRANT:
    case BUS_FINISH_JOB:
        serve_builder(p, r);
        return;
    case BUS_GET_BINDINGS:
    case BUS_GET_PACKAGE:
    case BUS_GET_FILE:
    case BUS_GET_CONNECTION:
    case BUS_REPORT_GATEWAY:
        serve_gateway(p, r);
        return;
    case BUS_CREATE_RUN:
    case BUS_STOP_RUN:
    case BUS_DELETE_RUN:
    case BUS_GET_RUN:
    case BUS_LIST_RUNS:
    case BUS_PLAN_PREVIEW:
        serve_runs(p, r);
        return;
    case BUS_PUBLISH:
    case BUS_RELOAD:
    case BUS_PATCH:
    case BUS_DELETE_PACKAGE:
        serve_package(p, r);
        return;
    case BUS_PUT_CONNECTION:
    case BUS_DELETE_CONNECTION:
    case BUS_PUT_ENVIRONMENT:
    case BUS_GET_STATUS:
        serve_config(p, r);
        return;
    case BUS_EVENT:
    case BUS_KIND_NONE:
        break;
    }
    bus_reply_error(r, ERR_UNKNOWN_KIND, "the planner does not take this kind", 0);
}

void planner_serve(void *data, struct bus_request *r)
{
    struct planner *p = data;
    if (!p->open) {
        bus_reply_error(
            r, ERR_NOT_LEADER,
            "this planner is not serving yet: it waits for the run store or for leadership", 200);
    } else if (answered_is_for(r->kind)) {
        answered_serve(p, r);
    } else {
        planner_dispatch(p, r);
    }
}
