/* Flow: open publish events are taken on, oldest first: LIST, PICK one, LOAD its package, CREATE
 * its run, SETTLE its row, END. Level-triggered: every state is read from the row, so a restart
 * takes each event where it stood (design.md 3.1, decisions 7.5). A failed build never fails the
 * publish: the event ends done with its run. */
#include "common/log/log.h"
#include "services/planner/package/package.h"
#include "services/planner/planner.h"

enum { LIST, PICK, LOAD, CREATE, READ_RUN, SETTLE, END };

struct flow_events {
    struct flow flow;
    struct planner_work work;
    struct planner *p;
    struct store_op op;
    struct store_event *events;
    size_t n, at;
    struct load_request load;
    struct store_run_rec *runs;
    size_t n_runs;
    struct store_run_filter filter;
    char run[24];
    const char *to, *error; /* what SETTLE writes; to NULL: nothing */
    const char *from;
    bool again;
};

static struct flow_events *of(struct flow *f)
{
    return container_of(f, struct flow_events, flow);
}

static struct store_event *event_of(struct flow_events *f)
{
    return &f->events[f->at];
}

static void on_op(struct store_op *op)
{
    struct flow_events *f = op->data;
    flow_resume(&f->flow, op->rc, &op->err);
}

static struct store_op *op_of(struct flow_events *f)
{
    f->op = (struct store_op){.arena = &f->flow.arena, .done = on_op, .data = f};
    return &f->op;
}

static enum flow_next step_list(struct flow *flow)
{
    struct flow_events *f = of(flow);
    if (flow->entered) {
        store_events_open(f->p->store, op_of(f), &f->events, &f->n);
        return FLOW_WAIT;
    }
    return flow->rc ? flow_fail(flow, END, flow->rc, "%s", err_text(&flow->err))
                    : flow_goto(flow, PICK);
}

static enum flow_next settle(struct flow *flow, const char *to, const char *error)
{
    struct flow_events *f = of(flow);
    f->to = to;
    f->error = error;
    return flow_goto(flow, SETTLE);
}

static enum flow_next step_pick(struct flow *flow)
{
    struct flow_events *f = of(flow);
    if (f->at >= f->n || !f->p->open) {
        return flow_goto(flow, END);
    }
    struct store_event *e = event_of(f);
    f->from = e->state;
    f->run[0] = '\0';
    if (strcmp(e->state, "received") == 0) {
        return settle(flow, "loading", NULL);
    }
    if (strcmp(e->state, "loading") == 0) {
        return flow_goto(flow, LOAD);
    }
    if (strcmp(e->state, "running") == 0) {
        return flow_goto(flow, READ_RUN);
    }
    return flow_goto(flow, CREATE);
}

/* ---- LOAD ---- */
static void on_loaded(struct load_request *r)
{
    struct flow_events *f = r->data;
    flow_resume(&f->flow, r->rc, &r->err);
}

static int location_of(struct flow_events *f, json_t *body, char **path, struct err *e)
{
    const char *text = json_str(body, "location", NULL);
    *path = NULL;
    if (!text || !text[0] || event_of(f)->archive.len) {
        return 0;
    }
    bool is_archive = false;
    const char *config = f->p->set->config;
    const char *slash = strrchr(config, '/');
    char *base = slash ? arena_strndup(&f->flow.arena, config, (size_t)(slash - config))
                       : arena_strdup(&f->flow.arena, ".");
    return package_location(&f->flow.arena, text, base, path, &is_archive, e);
}

static enum flow_next step_load(struct flow *flow)
{
    struct flow_events *f = of(flow);
    struct store_event *e = event_of(f);
    if (!flow->entered) {
        if (flow->rc) {
            return settle(flow, "failed", arena_strdup(&flow->arena, err_text(&flow->err)));
        }
        return settle(flow, "loaded", NULL);
    }
    struct planner_environment *env = catalog_environment(f->p, e->environment);
    struct planner_unit *u = catalog_unit(f->p, e->environment, e->name);
    if (!env) {
        return settle(flow, "failed",
                      arena_printf(&flow->arena,
                                   "environment '%s' does not exist; create it, then deliver again",
                                   e->environment));
    }
    if (u && (u->loading || u->removing)) {
        return settle(flow, NULL, NULL);
    }
    struct err err = {0};
    json_t *body = json_parse(slice_of(e->body_json), &err);
    char *path = NULL;
    int rc = location_of(f, body, &path, &err);
    bool build = json_flag(body, "build", true);
    json_decref(body);
    if (rc) {
        return settle(flow, "failed", arena_strdup(&flow->arena, err_text(&err)));
    }
    f->load = (struct load_request){.p = f->p,
                                    .environment = env->id,
                                    .package = e->name,
                                    .location = path,
                                    .archive = e->archive,
                                    .cause = LOAD_PUBLISH,
                                    .trace = e->trace,
                                    /* its run ends when the gateways have what it binds */
                                    .unwaited = build,
                                    .done = on_loaded,
                                    .data = f};
    flow_load_start(&f->load);
    return FLOW_WAIT;
}

/* ---- CREATE ---- */
static void on_created(struct decision *d)
{
    struct flow_events *f = d->data;
    flow_resume(&f->flow, d->rc, &d->err);
}

static enum flow_next step_create(struct flow *flow)
{
    struct flow_events *f = of(flow);
    struct store_event *e = event_of(f);
    if (!flow->entered) {
        if (flow->rc) {
            return settle(flow, NULL, NULL);
        }
        return settle(flow, "running", NULL);
    }
    json_t *body = json_parse(slice_of(e->body_json), NULL);
    bool build = json_flag(body, "build", true);
    json_decref(body);
    struct planner_unit *u = catalog_unit(f->p, e->environment, e->name);
    if (!build || !u) {
        return settle(flow, u ? "done" : "failed", u ? NULL : "the package was deleted meanwhile");
    }
    struct coord_run_new n = {
        .unit = u->id, .event = e->id, .trigger = "PUBLISH", .trace = e->trace};
    struct decision *d = decision_new(f->p);
    struct err err = {0};
    int rc = coord_run_create(f->p->coord, planner_now(f->p), &n, f->run, &d->out, &err);
    if (rc) {
        decision_drop(d);
        f->run[0] = '\0';
        /* A run is active: the event waits for its end in its row (decisions 3.6). */
        bool waits = rc == ERR_RUN_ACTIVE;
        return settle(flow, waits ? (strcmp(f->from, "waiting") == 0 ? NULL : "waiting") : "failed",
                      waits ? NULL : arena_strdup(&flow->arena, err_text(&err)));
    }
    decision_commit(d, on_created, f);
    return FLOW_WAIT;
}

/* ---- READ_RUN ---- */
static enum flow_next step_read_run(struct flow *flow)
{
    struct flow_events *f = of(flow);
    struct store_event *e = event_of(f);
    if (flow->entered) {
        f->filter = (struct store_run_filter){.id = e->run};
        struct planner_unit *u = catalog_unit(f->p, e->environment, e->name);
        f->filter.unit = u ? u->id : 0;
        store_runs(f->p->store, op_of(f), &f->filter, &f->runs, &f->n_runs);
        return FLOW_WAIT;
    }
    if (flow->rc && flow->rc != ERR_NOT_FOUND) {
        return settle(flow, NULL, NULL);
    }
    if (flow->rc || f->n_runs == 0) {
        return settle(flow, "done", "its run was deleted");
    }
    const struct row_run *r = &f->runs[0].r;
    if (run_state_active(r->state)) {
        return settle(flow, NULL, NULL);
    }
    return settle(flow, "done",
                  r->state == RUN_READY
                      ? NULL
                      : arena_printf(&flow->arena, "published; its run ended %s: %s",
                                     run_state_name(r->state), r->error ? r->error : ""));
}

/* ---- SETTLE ---- */
static enum flow_next step_settle(struct flow *flow)
{
    struct flow_events *f = of(flow);
    struct store_event *e = event_of(f);
    if (flow->entered && f->to) {
        log_info("event.state", "event=%s state=%s error=%s trace=%s", e->public_id, f->to,
                 log_q(f->error), log_id(e->trace.b));
        store_event_move(f->p->store, op_of(f), e->id, f->from, f->to, f->run[0] ? f->run : NULL,
                         f->error);
        return FLOW_WAIT;
    }
    if (!f->to || flow->rc) {
        f->at++;
        return flow_goto(flow, PICK);
    }
    e->state = f->to;
    if (f->run[0]) {
        e->run = arena_strdup(&flow->arena, f->run);
    }
    bool goes_on = strcmp(f->to, "loading") == 0 || strcmp(f->to, "loaded") == 0;
    if (!goes_on) {
        f->at++;
    }
    return flow_goto(flow, PICK);
}

static enum flow_next step_end(struct flow *flow)
{
    (void)flow;
    return FLOW_END;
}

static const struct flow_step steps[] = {
    [LIST] = {"LIST", step_list, FLOW_TO(PICK) | FLOW_TO(END), 0, NULL, "open events, oldest first",
              true},
    [PICK] = {"PICK", step_pick,
              FLOW_TO(SETTLE) | FLOW_TO(LOAD) | FLOW_TO(READ_RUN) | FLOW_TO(CREATE) | FLOW_TO(END),
              0, NULL, "by the row's state", false},
    [LOAD] = {"LOAD", step_load, FLOW_TO(SETTLE), 0, NULL, "the package becomes a load", true},
    [CREATE] = {"CREATE", step_create, FLOW_TO(SETTLE), 0, NULL, "its run, unless one is active",
                true},
    [READ_RUN] = {"READ_RUN", step_read_run, FLOW_TO(SETTLE), 0, NULL, "how its run ended", true},
    [SETTLE] = {"SETTLE", step_settle, FLOW_TO(PICK), 0, NULL, "the event's row moves", true},
    [END] = {"END", step_end, 0, 0, NULL, "", false},
};
const struct flow_type flow_events_type = {"events", steps, ARRAY_LEN(steps)};

static void on_end(struct flow *flow)
{
    struct flow_events *f = of(flow);
    struct planner *p = f->p;
    bool again = f->again;
    p->events_running = false;
    p->events_flow = NULL;
    if (again && p->open) {
        loop_defer(p->loop, &p->event_task);
    }
    planner_work_end(p, &f->work);
    free(f);
}

void planner_events_run(struct planner *p)
{
    if (!p->open) {
        return;
    }
    if (p->events_running) {
        p->events_flow->again = true;
        return;
    }
    struct flow_events *f = xcalloc(1, sizeof(*f));
    f->p = p;
    p->events_running = true;
    p->events_flow = f;
    f->flow.on_end = on_end;
    flow_start(&f->flow, &flow_events_type, loop_flows(p->loop), NULL);
    planner_work_begin(p, &f->work, &f->flow);
}
