/* Runs on behalf of people: create, stop, get, list, delete, preview (spec/malloy-persistence.md
 * 3). */
#include "common/log/log.h"
#include "services/planner/planner.h"

/* Reads one run back and answers with it. */
struct run_read {
    struct planner *p;
    struct bus_request *r;
    struct store_op op;
    struct store_run_rec *list;
    size_t n;
    char id[24];
    struct store_run_filter filter;
};

static void on_run_read(struct store_op *op)
{
    struct run_read *g = op->data;
    if (op->rc || g->n == 0) {
        bus_reply_error(
            g->r, op->rc ? op->rc : ERR_NOT_FOUND,
            op->rc ? err_text(&op->err)
                   : arena_printf(&g->r->arena, "materialization '%s' does not exist", g->id),
            0);
    } else {
        json_t *v = run_json(&g->list[0], g->p);
        auto_free char *text = json_text(v);
        json_decref(v);
        Kiln__RunRep rep = KILN__RUN_REP__INIT;
        rep.run_json = text;
        bus_reply(g->r, &rep.base);
    }
    free(g);
}

void serve_reply_run(struct planner *p, struct bus_request *r, const char *id, uint64_t unit)
{
    struct run_read *g = xcalloc(1, sizeof(*g));
    g->p = p;
    g->r = r;
    snprintf(g->id, sizeof(g->id), "%s", id);
    g->filter = (struct store_run_filter){.unit = unit, .id = g->id};
    g->op = (struct store_op){.arena = &r->arena, .done = on_run_read, .data = g};
    store_runs(p->store, &g->op, &g->filter, &g->list, &g->n);
}

struct run_answer {
    struct bus_request *r;
    char id[24];
    uint64_t unit;
};

static void on_run_decided(struct decision *d)
{
    struct run_answer *ans = d->data;
    if (d->rc) {
        bus_reply_error(ans->r, d->rc, err_text(&d->err), 100);
    } else {
        serve_reply_run(d->p, ans->r, ans->id, ans->unit);
    }
    free(ans);
}

static void create(struct planner *p, struct bus_request *r)
{
    Kiln__CreateRunReq *q = serve_unpack(r, &kiln__create_run_req__descriptor);
    struct planner_unit *u = q ? serve_unit(p, r, q->environment, q->package) : NULL;
    if (!u) {
        return;
    }
    if (!u->load) {
        bus_reply_error(
            r, ERR_PACKAGE,
            arena_printf(&r->arena, "package '%s' is not loaded: %s", u->name,
                         u->load_error ? u->load_error : "it is being loaded; try again"),
            0);
        return;
    }
    struct decision *d = decision_new(p);
    struct run_answer *ans = xcalloc(1, sizeof(*ans));
    ans->r = r;
    ans->unit = u->id;
    struct coord_run_new n = {.unit = u->id,
                              .trigger = q->trigger[0] ? q->trigger : "ON_DEMAND",
                              .force_refresh = q->force_refresh,
                              .reseed = q->reseed,
                              .take_over = q->take_over,
                              .has_names = q->has_source_names,
                              .names = (const char *const *)q->source_names,
                              .n_names = q->n_source_names,
                              .run_context = q->run_context_json[0] ? q->run_context_json : NULL,
                              .request_id = r->request_id,
                              .trace = serve_trace(r)};
    struct err e = {0};
    bool *covered = arena_zalloc(&d->arena, u->load->plan.n_targets + 1);
    int rc =
        run_plan_scope(&d->arena, &u->load->plan, n.has_names, n.names, n.n_names, covered, &e);
    if (rc == 0) {
        rc = coord_run_create(p->coord, planner_now(p), &n, ans->id, &d->out, &e);
    }
    if (rc) {
        bus_reply_error(r, rc, err_text(&e), 0);
        decision_drop(d);
        free(ans);
        return;
    }
    answered_note_run(r, &d->op, ans->id, ans->unit);
    decision_commit(d, on_run_decided, ans);
}

/* A run is changed under the name of its own package only. */
static struct planner_unit *unit_of_run(struct planner *p, struct bus_request *r,
                                        const char *environment, const char *package,
                                        const char *id)
{
    struct planner_unit *u = serve_unit(p, r, environment, package);
    if (u && coord_run_unit(p->coord, id) != u->id) {
        bus_reply_error(r, ERR_NOT_FOUND,
                        arena_printf(&r->arena,
                                     "materialization '%s' does not exist in package '%s'", id,
                                     package),
                        0);
        return NULL;
    }
    return u;
}

static void stop(struct planner *p, struct bus_request *r)
{
    Kiln__StopRunReq *q = serve_unpack(r, &kiln__stop_run_req__descriptor);
    struct planner_unit *u = q ? unit_of_run(p, r, q->environment, q->package, q->id) : NULL;
    if (!u) {
        return;
    }
    struct decision *d = decision_new(p);
    struct err e = {0};
    int rc = coord_run_stop(p->coord, planner_now(p), q->id, &d->out, &e);
    if (rc) {
        bus_reply_error(r, rc, err_text(&e), 0);
        decision_drop(d);
        return;
    }
    struct run_answer *ans = xcalloc(1, sizeof(*ans));
    ans->r = r;
    ans->unit = u->id;
    snprintf(ans->id, sizeof(ans->id), "%s", q->id);
    answered_note_run(r, &d->op, ans->id, ans->unit);
    decision_commit(d, on_run_decided, ans);
}

static void get(struct planner *p, struct bus_request *r)
{
    Kiln__GetRunReq *q = serve_unpack(r, &kiln__get_run_req__descriptor);
    struct planner_unit *u = q ? serve_unit(p, r, q->environment, q->package) : NULL;
    if (u) {
        serve_reply_run(p, r, q->id, u->id);
    }
}

static void on_runs_read(struct store_op *op)
{
    struct run_read *g = op->data;
    struct bus_request *r = g->r;
    if (op->rc) {
        bus_reply_error(r, op->rc, err_text(&op->err), 100);
        free(g);
        return;
    }
    Kiln__ListRunsRep rep = KILN__LIST_RUNS_REP__INIT;
    rep.run_json = arena_zalloc(&r->arena, (g->n + 1) * sizeof(char *));
    for (size_t i = 0; i < g->n; i++) {
        json_t *v = run_json(&g->list[i], g->p);
        auto_free char *text = json_text(v);
        json_decref(v);
        rep.run_json[rep.n_run_json++] = arena_strdup(&r->arena, text);
    }
    bus_reply(r, &rep.base);
    free(g);
}

static void list_runs(struct planner *p, struct bus_request *r)
{
    Kiln__ListRunsReq *q = serve_unpack(r, &kiln__list_runs_req__descriptor);
    struct planner_environment *env = q ? serve_environment(p, r, q->environment) : NULL;
    if (!env) {
        return;
    }
    struct planner_unit *u = NULL;
    if (q->package[0]) {
        u = serve_unit(p, r, q->environment, q->package);
        if (!u) {
            return;
        }
    }
    struct run_read *g = xcalloc(1, sizeof(*g));
    g->p = p;
    g->r = r;
    g->filter = (struct store_run_filter){.unit = u ? u->id : 0,
                                          .environment = u ? 0 : env->id,
                                          .limit = q->has_limit ? q->limit : (u ? 0 : 500),
                                          .offset = q->offset};
    g->op = (struct store_op){.arena = &r->arena, .done = on_runs_read, .data = g};
    if (q->has_limit && q->limit == 0) {
        Kiln__ListRunsRep rep = KILN__LIST_RUNS_REP__INIT;
        bus_reply(r, &rep.base);
        free(g);
        return;
    }
    store_runs(p->store, &g->op, &g->filter, &g->list, &g->n);
}

/* ---- delete: the new set first, then the drops, then the answer ---- */
#define DROP_WAIT_MS 20000
struct run_delete {
    struct planner *p;
    struct bus_request *r;
    const uint64_t *jobs;
    size_t n_jobs, at;
    uint64_t unit;
    struct planner_wait wait;
    struct arena arena;
};

static void delete_next(struct run_delete *g);

static Kiln__JsonRep deleted_rep(const struct run_delete *g)
{
    struct coord_unit_row unit = {0};
    Kiln__JsonRep rep = KILN__JSON_REP__INIT;
    rep.json = bus_str("{}");
    if (g->p->coord && coord_unit_get(g->p->coord, g->unit, &unit)) {
        rep.epoch = unit.epoch; /* the set without it: what the gateway answers after */
    }
    return rep;
}

static void on_drop_ended(struct planner_wait *w)
{
    struct run_delete *g = w->data;
    if (w->rc) {
        log_warn("run.drop_pending",
                 "job=%llu: its drop job stays queued and is done when a builder takes it",
                 (unsigned long long)w->job);
        g->at = g->n_jobs;
    } else {
        g->at++;
    }
    delete_next(g);
}

static void delete_next(struct run_delete *g)
{
    if (g->at < g->n_jobs) {
        g->wait = (struct planner_wait){.kind = WAIT_JOB_ENDED,
                                        .job = g->jobs[g->at],
                                        .wait = MS(DROP_WAIT_MS),
                                        .done = on_drop_ended,
                                        .data = g};
        planner_wait_start(g->p, &g->wait);
        return;
    }
    Kiln__JsonRep rep = deleted_rep(g);
    bus_reply(g->r, &rep.base);
    arena_fini(&g->arena);
    free(g);
}

static void on_delete_decided(struct decision *d)
{
    struct run_delete *g = d->data;
    if (d->rc) {
        bus_reply_error(g->r, d->rc, err_text(&d->err), 100);
        arena_fini(&g->arena);
        free(g);
        return;
    }
    delete_next(g);
}

static void delete_run(struct planner *p, struct bus_request *r)
{
    Kiln__DeleteRunReq *q = serve_unpack(r, &kiln__delete_run_req__descriptor);
    struct planner_unit *u = q ? unit_of_run(p, r, q->environment, q->package, q->id) : NULL;
    if (!u) {
        return;
    }
    struct decision *d = decision_new(p);
    struct err e = {0};
    const uint64_t *jobs = NULL;
    size_t n = 0;
    int rc =
        coord_run_delete(p->coord, planner_now(p), q->id, q->drop_tables, &jobs, &n, &d->out, &e);
    if (rc) {
        bus_reply_error(r, rc, err_text(&e), 0);
        decision_drop(d);
        return;
    }
    struct run_delete *g = xcalloc(1, sizeof(*g));
    g->p = p;
    g->r = r;
    g->unit = u->id;
    arena_init(&g->arena);
    g->jobs = n ? arena_dup(&g->arena, jobs, n * sizeof(*jobs)) : NULL;
    g->n_jobs = n;
    Kiln__JsonRep rep = deleted_rep(g);
    answered_note(r, &d->op, &rep.base);
    decision_commit(d, on_delete_decided, g);
}

/* ---- preview ---- */
static void on_preview(struct run_preview *v)
{
    struct bus_request *r = v->data;
    if (v->rc) {
        serve_reply_final(r, v->rc, err_text(&v->err));
    } else {
        serve_reply_json(r, v->json);
    }
    free(v);
}

static void preview(struct planner *p, struct bus_request *r)
{
    Kiln__PlanPreviewReq *q = serve_unpack(r, &kiln__plan_preview_req__descriptor);
    struct planner_unit *u = q ? serve_unit(p, r, q->environment, q->package) : NULL;
    if (!u) {
        return;
    }
    struct run_preview *v = xcalloc(1, sizeof(*v));
    v->p = p;
    v->unit = u->id;
    v->force_refresh = q->force_refresh;
    v->has_names = q->has_source_names;
    v->names = (const char *const *)q->source_names;
    v->n_names = q->n_source_names;
    v->done = on_preview;
    v->data = r;
    run_preview_start(v);
}

void serve_runs(struct planner *p, struct bus_request *r)
{
    switch (r->kind) {
    case BUS_CREATE_RUN:
        create(p, r);
        return;
    case BUS_STOP_RUN:
        stop(p, r);
        return;
    case BUS_GET_RUN:
        get(p, r);
        return;
    case BUS_LIST_RUNS:
        list_runs(p, r);
        return;
    case BUS_DELETE_RUN:
        delete_run(p, r);
        return;
    default:
        preview(p, r);
        return;
    }
}
