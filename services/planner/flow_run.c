/* Flow: a requested run becomes jobs. TAKE it (requested -> planning), CATALOG (what stands at each
 * target's name, per connection), CHOOSE (build, carry or fail: the core), GENERATIONS are known
 * from memory, SQL (the compiler prints each build's statement with its parents' tables), PLANNED
 * (one commit), END (protocol.md 4). The same flow without TAKE and PLANNED is the preview of `kiln
 * plan`. */
#include "services/planner/flow_run.h"
#include "common/log/log.h"

struct flow_run *run_of(struct flow *f)
{
    return container_of(f, struct flow_run, flow);
}

static void on_decided(struct decision *d)
{
    struct flow_run *f = d->data;
    flow_resume(&f->flow, d->rc, &d->err);
}

bool run_gone(const struct flow_run *f)
{
    return f->p->coord == NULL || !f->p->open;
}

/* ---- TAKE ---- */
static int read_request(struct flow_run *f, struct err *e)
{
    struct planner_unit *u = catalog_unit_id(f->p, f->unit_id);
    if (!u || !u->load) {
        return err_set(e, ERR_PACKAGE, "the package is not loaded any more");
    }
    f->load = load_ref(u->load);
    size_t n = f->load->plan.n_targets;
    f->covered = arena_zalloc(&f->flow.arena, n + 1);
    f->states = arena_zalloc(&f->flow.arena, (n + 1) * sizeof(*f->states));
    f->generations = arena_zalloc(&f->flow.arena, (n + 1) * sizeof(*f->generations));
    f->asked = arena_zalloc(&f->flow.arena, (n + 1) * sizeof(*f->asked));
    int rc = run_plan_scope(&f->flow.arena, &f->load->plan, f->has_names, f->names, f->n_names,
                            f->covered, e);
    f->wanted = arena_dup(&f->flow.arena, f->covered, (n + 1) * sizeof(bool));
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const struct planned_target *t = &f->load->plan.targets[i];
        for (size_t k = 0; f->covered[i] && k < t->n_parents; k++) {
            f->wanted[t->parents[k]] = true;
        }
    }
    return rc;
}

static enum flow_next step_take(struct flow *flow)
{
    struct flow_run *f = run_of(flow);
    if (flow->entered && !f->preview) {
        struct decision *d = decision_new(f->p);
        int rc = coord_run_planning(f->p->coord, planner_now(f->p), f->run, &d->out);
        if (rc) {
            decision_drop(d);
            return flow_fail(flow, RUN_END, rc, "run %s is not waiting for planning any more",
                             f->run);
        }
        decision_commit(d, NULL, NULL); /* PLANNED's commit waits behind it; asking need not */
    }
    struct err e = {0};
    int rc = run_gone(f) ? ERR_NOT_LEADER : read_request(f, &e);
    if (rc) {
        f->fail_text = arena_strdup(&flow->arena, err_text(&e));
        flow->final_rc = rc;
        flow->err = e;
        return flow_goto(flow, f->preview || run_gone(f) ? RUN_END : RUN_PLANNED);
    }
    return flow_goto(flow, RUN_CATALOG);
}

/* ---- CHOOSE ---- */
static void find_generations(struct flow_run *f)
{
    for (size_t i = 0; i < f->load->plan.n_targets; i++) {
        if (!f->states[i].asked || f->states[i].error) {
            continue;
        }
        const struct wh_name name = {f->states[i].schema, f->states[i].table};
        const struct core_generation *g = run_current(f, i, &name);
        if (g) {
            f->generations[i].g = *g;
            f->generations[i].g.id = arena_strdup(&f->flow.arena, g->id);
        }
    }
}

static enum flow_next step_choose(struct flow *flow)
{
    struct flow_run *f = run_of(flow);
    find_generations(f);
    struct run_plan_input in = {.package = &f->load->plan,
                                .load = f->load->id,
                                .compiler_version = f->load->compiler_version,
                                .states = f->states,
                                .generations = f->generations,
                                .connections = f->load->connections,
                                .n_connections = f->load->n_connections,
                                .force_refresh = f->force_refresh,
                                .take_over = f->take_over,
                                .has_names = f->has_names,
                                .trigger = f->trigger,
                                .run_id = f->preview ? NULL : f->run,
                                .query_metadata_off = strcmp(f->p->set->query_metadata, "off") == 0,
                                .collision_enforce = f->p->set->collision_enforce,
                                .names = f->names,
                                .n_names = f->n_names};
    run_plan_make(&flow->arena, &in, &f->plan);
    f->at = 0;
    return flow_goto(flow, f->preview || f->plan.fail ? RUN_PLANNED : RUN_SQL);
}

/* ---- SQL: each build's statement ---- */
static void on_sql(struct compiler_call *c)
{
    struct flow_run *f = c->data;
    struct err e = c->err;
    int rc = c->rc;
    if (rc == 0) {
        Kiln__Mc__SqlText *m =
            bus_unpack(&kiln__mc__sql_text__descriptor, &f->flow.arena, c->reply, &e);
        rc = m ? 0 : e.code;
        f->plan.targets[f->at].sql = m ? m->sql : NULL;
    }
    flow_resume(&f->flow, rc, &e);
}

/* A bound table of an uncovered parent that the warehouse still holds as that generation
 * (decisions 4.5). */
static bool bound_and_there(const struct flow_run *f, const struct core_binding *b)
{
    const struct package_plan *plan = &f->load->plan;
    for (size_t i = 0; i < plan->n_targets; i++) {
        const struct target_state *s = &f->states[i];
        if (!f->covered[i] && s->asked && s->still_there && s->fence_generation &&
            strcmp(plan->targets[i].build_id, b->target.build_id) == 0) {
            return strcmp(s->fence_generation, b->generation.id) == 0;
        }
    }
    return false;
}

/* Tables its statement may read: targets of this run before it, and bound ones outside the run that
 * the set names. */
static void fill_manifest(struct flow_run *f, const struct plan_target *t)
{
    const struct core_binding_set *set = coord_unit_set(f->p->coord, f->unit_id);
    size_t cap = f->plan.n + (set ? set->n : 0) + 1, n = 0;
    Kiln__Mc__ManifestEntry **list = arena_zalloc(&f->flow.arena, cap * sizeof(*list));
    for (size_t i = 0; i < f->plan.n; i++) {
        const struct plan_target *o = &f->plan.targets[i];
        if (o == t || o->action == PLAN_FAIL) {
            continue;
        }
        list[n] = arena_alloc(&f->flow.arena, sizeof(**list));
        kiln__mc__manifest_entry__init(list[n]);
        list[n]->build_id = bus_str(o->target.build_id);
        list[n++]->table = bus_str(o->target.physical);
    }
    for (size_t i = 0; f->has_names && set && i < set->n; i++) {
        const struct core_binding *b = &set->bindings[i];
        if (!bound_and_there(f, b)) {
            continue;
        }
        list[n] = arena_alloc(&f->flow.arena, sizeof(**list));
        kiln__mc__manifest_entry__init(list[n]);
        list[n]->build_id = arena_strdup(&f->flow.arena, b->target.build_id);
        list[n++]->table = arena_strdup(&f->flow.arena, b->target.physical);
    }
    f->build_sql.manifest = list;
    f->build_sql.n_manifest = n;
}

static enum flow_next step_sql(struct flow *flow)
{
    struct flow_run *f = run_of(flow);
    if (!flow->entered) {
        struct plan_target *t = &f->plan.targets[f->at];
        if (flow->rc) {
            t->action = PLAN_FAIL;
            t->fail_code = flow->rc;
            t->fail_text = arena_strdup(&flow->arena, err_text(&flow->err));
        }
        f->at++;
        return flow_goto(flow, RUN_SQL);
    }
    if (run_gone(f)) {
        return flow_fail(flow, RUN_END, ERR_NOT_LEADER, "the planner gave its leadership up");
    }
    while (f->at < f->plan.n && f->plan.targets[f->at].action != PLAN_BUILD) {
        f->at++;
    }
    if (f->at >= f->plan.n) {
        return flow_goto(flow, RUN_PLANNED);
    }
    const struct plan_target *t = &f->plan.targets[f->at];
    kiln__mc__build_sql__init(&f->build_sql);
    f->build_sql.load_id = f->load->text_id;
    f->build_sql.model = bus_str(t->model);
    f->build_sql.source_id = bus_str(t->source_id);
    fill_manifest(f, t);
    f->call = (struct compiler_call){.kind = "build_sql",
                                     .load_id = f->load->text_id,
                                     .request = &f->build_sql.base,
                                     .timeout = MS(f->p->set->compile_timeout_ms),
                                     .done = on_sql,
                                     .data = f};
    compiler_call_start(f->p->compiler, &f->call);
    return FLOW_WAIT;
}

/* ---- PLANNED ---- */
static enum flow_next step_planned(struct flow *flow)
{
    struct flow_run *f = run_of(flow);
    if (!flow->entered) {
        flow->final_rc = flow->rc;
        return flow_goto(flow, RUN_END);
    }
    if (f->preview) {
        f->preview->json = run_plan_preview(&f->plan, &f->load->plan);
        return flow_goto(flow, RUN_END);
    }
    if (run_gone(f)) {
        return flow_fail(flow, RUN_END, ERR_NOT_LEADER, "the planner gave its leadership up");
    }
    struct decision *d = decision_new(f->p);
    int rc =
        f->fail_text
            ? coord_run_plan_failed(f->p->coord, planner_now(f->p), f->run, f->fail_text, &d->out)
            : coord_run_planned(f->p->coord, planner_now(f->p), f->run, &f->plan, &d->out);
    if (rc) {
        decision_drop(d);
        return flow_fail(flow, RUN_END, rc, "run %s is not being planned any more", f->run);
    }
    decision_commit(d, on_decided, f);
    return FLOW_WAIT;
}

static enum flow_next step_end(struct flow *flow)
{
    struct flow_run *f = run_of(flow);
    load_unref(f->p, f->load);
    return FLOW_END;
}

static const struct flow_step steps[] = {
    [RUN_TAKE] = {"TAKE", step_take, FLOW_TO(RUN_CATALOG) | FLOW_TO(RUN_PLANNED) | FLOW_TO(RUN_END),
                  0, NULL, "requested -> planning, committed meanwhile", true},
    [RUN_CATALOG] = {"CATALOG", run_step_catalog,
                     FLOW_TO(RUN_CATALOG) | FLOW_TO(RUN_CHOOSE) | FLOW_TO(RUN_END), 20000,
                     run_cancel_ask, "what stands at each target's name", false},
    [RUN_CHOOSE] = {"CHOOSE", step_choose, FLOW_TO(RUN_SQL) | FLOW_TO(RUN_PLANNED), 0, NULL,
                    "the core decides: build, carry, fail", false},
    [RUN_SQL] = {"SQL", step_sql, FLOW_TO(RUN_SQL) | FLOW_TO(RUN_PLANNED) | FLOW_TO(RUN_END), 0,
                 NULL, "the child prints each build's statement", true},
    [RUN_PLANNED] = {"PLANNED", step_planned, FLOW_TO(RUN_END), 0, NULL,
                     "plan, refusals and jobs in one commit", true},
    [RUN_END] = {"END", step_end, 0, 0, NULL, "", false},
};
const struct flow_type flow_run_type = {"run", steps, ARRAY_LEN(steps)};

/* Whatever ends the planning must not leave its run there: nobody else would ever take it. */
static void fail_run(struct flow_run *f)
{
    struct planner *p = f->p;
    enum run_state state;
    enum err_class why = err_code_class(f->flow.final_rc);
    if (!p->open || f->flow.final_rc == ERR_STORE_MOVED || why == ERR_CLASS_LOST ||
        !coord_run_state(p->coord, f->run, &state) || state != RUN_PLANNING) {
        return;
    }
    struct decision *d = decision_new(p);
    if (coord_run_plan_failed(p->coord, planner_now(p), f->run, err_text(&f->flow.err), &d->out)) {
        decision_drop(d);
        return;
    }
    decision_commit(d, NULL, NULL);
}

static void on_end(struct flow *flow)
{
    struct flow_run *f = run_of(flow);
    struct planner *p = f->p;
    list_del(&f->link);
    if (f->preview) {
        f->preview->rc = flow->final_rc;
        f->preview->err = flow->err;
        f->preview->done(f->preview);
    } else if (flow->final_rc) {
        log_warn("run.planning_ended", "run=%s rc=%s error=%s", f->run,
                 err_code_name(flow->final_rc), log_q(err_text(&flow->err)));
        fail_run(f);
    }
    if (p->open) {
        loop_defer(p->loop, &p->plan_task);
    }
    planner_work_end(p, &f->work);
    free(f);
}

static struct flow_run *start(struct planner *p, uint64_t unit, const char *id)
{
    struct flow_run *f = xcalloc(1, sizeof(*f));
    f->p = p;
    f->unit_id = unit;
    list_add_tail(&p->runs_planning, &f->link);
    snprintf(f->flow.id, sizeof(f->flow.id), "%s", id);
    f->flow.on_end = on_end;
    flow_start(&f->flow, &flow_run_type, loop_flows(p->loop), NULL);
    planner_work_begin(p, &f->work, &f->flow);
    return f;
}

static bool is_planning(const struct planner *p, const char *run)
{
    list_for_each (it, &p->runs_planning) {
        if (strcmp(list_entry(it, struct flow_run, link)->run, run) == 0) {
            return true;
        }
    }
    return false;
}

void planner_plan_runs(struct planner *p)
{
    const char *run;
    const char *after = NULL;
    while (p->open && (run = coord_run_next_to_plan(p->coord, after)) != NULL) {
        after = run;
        struct coord_run_new ask;
        if (is_planning(p, run) || !coord_run_request(p->coord, run, &ask)) {
            continue;
        }
        struct flow_run *f = start(p, ask.unit, run);
        snprintf(f->run, sizeof(f->run), "%s", run);
        f->force_refresh = ask.force_refresh;
        f->take_over = ask.take_over;
        f->trigger = arena_strdup(&f->flow.arena, ask.trigger);
        f->has_names = ask.has_names;
        const char **names = arena_zalloc(&f->flow.arena, (ask.n_names + 1) * sizeof(*names));
        for (size_t i = 0; i < ask.n_names; i++) {
            names[i] = arena_strdup(&f->flow.arena, ask.names[i]);
        }
        f->names = names;
        f->n_names = ask.n_names;
    }
}

void run_preview_start(struct run_preview *v)
{
    struct flow_run *f = start(v->p, v->unit, "preview");
    f->preview = v;
    f->force_refresh = v->force_refresh;
    f->has_names = v->has_names;
    f->names = v->names;
    f->n_names = v->n_names;
}
