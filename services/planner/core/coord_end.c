/* The end of a run: what becomes of its unit's bindings, and when it counts as bound (protocol.md 4
 * to 6, decisions 5.1). */
#include "services/planner/core/coord_internal.h"

/* ---- the set a run leaves behind ---- */
static const struct core_binding *old_binding(const struct unit *u, const char *source_id,
                                              uint64_t target)
{
    for (size_t i = 0; u->set && i < u->set->n; i++) {
        const struct core_binding *b = &u->set->bindings[i];
        if (b->target.target_id == target && strcmp(b->source_id, source_id) == 0) {
            return b;
        }
    }
    return NULL;
}

static void draft_source(struct draft *d, const struct plan_item *it, size_t at,
                         const struct generation *g)
{
    const struct plan_target *p = &it->p;
    const char **others = arena_alloc(d->a, (p->n_sources + 1) * sizeof(*others));
    size_t n = 0;
    for (size_t i = 0; i < p->n_sources; i++) {
        if (i != at) {
            others[n++] = p->source_names[i];
        }
    }
    draft_add(d, &(struct core_binding){
                     .source_id = p->source_ids[at],
                     .source_name = p->source_names[at],
                     .model = p->source_models[at],
                     .target = p->target,
                     .generation = g->g,
                     .window_s = p->window_s,
                     .fallback = p->fallback,
                     .shared_by = others,
                     .n_shared_by = n,
                 });
}

/* By binding the name of each result is its package's alone. */
static bool place_holds_other(const struct target *own)
{
    if (!own->place->in_place) {
        return false;
    }
    list_for_each (it, &own->place->targets) {
        const struct target *x = list_entry(it, struct target, link);
        if (x != own && target_current(x)) {
            return true;
        }
    }
    return false;
}

/* A failed source keeps its old binding as long as the table it names stands. */
static void draft_item(struct turn *t, const struct run *r, const struct plan_item *it,
                       struct draft *d)
{
    struct outcome out = outcome_of(t->c, it);
    const struct generation *g = target_current(it->target);
    for (size_t i = 0; i < it->p.n_sources; i++) {
        const char *id = it->p.source_ids[i];
        bool failed = out.kind == OUT_FAILED;
        if (g && (!failed || old_binding(r->unit, id, it->p.target.target_id))) {
            draft_source(d, it, i, g);
        } else if (failed) {
            draft_unbaked(d, id, "build_failed", out.reason);
        } else {
            bool other = place_holds_other(it->target);
            draft_unbaked(d, id, other ? "table_taken_over" : "table_missing", "");
        }
    }
}

/* Sources this run did not cover stay as they are, resolved to what their table holds now. */
static void draft_others(struct turn *t, const struct unit *u, const struct map *covered,
                         struct draft *d)
{
    for (size_t i = 0; u->set && i < u->set->n; i++) {
        const struct core_binding *b = &u->set->bindings[i];
        if (map_get(covered, slice_of(b->source_id))) {
            continue;
        }
        const struct target *target = target_by_id(t->c, b->target.target_id);
        const struct generation *g = target ? target_current(target) : NULL;
        if (g) {
            draft_add(d, b)->generation = g->g;
        } else {
            draft_unbaked(d, b->source_id, "table_missing", "");
        }
    }
    for (size_t i = 0; u->set && i < u->set->n_unbaked; i++) {
        const struct core_unbaked *x = &u->set->unbaked[i];
        if (!map_get(covered, slice_of(x->source_id))) {
            draft_unbaked(d, x->source_id, x->code, x->text);
        }
    }
}

void draft_of_run(struct turn *t, const struct run *r, struct draft *d)
{
    struct map covered;
    map_init(&covered);
    for (size_t i = 0; i < r->n_items; i++) {
        const struct plan_item *it = &r->items[i];
        for (size_t k = 0; !it->left_out && k < it->p.n_sources; k++) {
            map_put(&covered, slice_of(it->p.source_ids[k]), &covered);
        }
        if (!it->left_out) {
            draft_item(t, r, it, d);
        }
    }
    for (size_t i = 0; i < r->n_refusals; i++) {
        const struct plan_refusal *f = &r->refusals[i];
        if (!map_put(&covered, slice_of(f->source_id), &covered)) {
            draft_unbaked(d, f->source_id, "refused", f->message);
        }
    }
    if (r->has_names || r->load != r->unit->row.load) {
        draft_others(t, r->unit, &covered, d);
    }
    map_fini(&covered);
}

/* ---- ends ---- */
void run_drop_jobs(struct coord *c, struct run *r)
{
    for (size_t i = 0; i < r->n_jobs; i++) {
        job_free(c, r->jobs[i]);
    }
    free(r->jobs);
    r->jobs = NULL;
    r->n_jobs = r->cap_jobs = r->n_open = 0;
}

void run_free(struct coord *c, struct run *r)
{
    run_drop_jobs(c, r);
    map_del(&c->runs, slice_of(r->id));
    list_del(&r->unit_link);
    list_del(&r->todo_link);
    list_del(&r->ending_link);
    if (list_linked(&r->ended_link)) {
        list_del(&r->ended_link);
        c->n_ended--;
    }
    map_fini(&r->by_target);
    arena_fini(&r->mem);
    free(r);
}

/* An ended run keeps only what it names: its plan, jobs and attempts are forgotten. */
static void run_shrink(struct coord *c, struct run *r, const struct draft *d, const char *metadata)
{
    struct arena fresh;
    arena_init(&fresh);
    struct core_binding *held = arena_alloc(&fresh, (d->n + 1) * sizeof(*held));
    for (size_t i = 0; i < d->n; i++) {
        struct core_binding slim = d->items[i];
        slim.generation = (struct core_generation){.id = slim.generation.id};
        held[i] = binding_copy(&fresh, &slim);
    }
    r->held = held;
    r->n_held = d->n;
    r->metadata = arena_strdup(&fresh, metadata);
    run_drop_jobs(c, r);
    map_fini(&r->by_target);
    arena_fini(&r->mem);
    r->mem = fresh;
    r->items = NULL;
    r->n_items = 0;
    r->refusals = NULL;
    r->names = NULL;
    r->n_refusals = r->n_names = 0;
}

static void run_retire(struct turn *t, struct run *r)
{
    list_del(&r->todo_link);
    if (r->state != RUN_READY && !list_linked(&r->ended_link)) {
        list_add_tail(&t->c->ended, &r->ended_link);
        t->c->n_ended++;
    }
}

static void draft_built(const struct coord *c, const struct run *r, struct draft *d)
{
    for (size_t i = 0; i < r->n_items; i++) {
        const struct plan_item *it = &r->items[i];
        const struct generation *g = target_current(it->target);
        if (it->job && it->job->state == JOB_DONE && g) {
            draft_source(d, it, 0, g);
        }
    }
    (void)c;
}

static void run_end_unbound(struct turn *t, struct run *r, enum run_state to, const char *error,
                            const char *manifest)
{
    struct arena *a = t->o->rows.arena;
    struct counts n = run_counts(t->c, r);
    struct draft d = {.a = a};
    draft_built(t->c, r, &d);
    struct row_run more = {
        .error = arena_strdup(a, error),
        .manifest = manifest,
        .metadata = run_metadata(a, r, &n, t->now.unix_us),
    };
    run_shrink(t->c, r, &d, NULL);
    more.plan = held_text(a, r);
    move_run(t, r, to, &more);
    run_retire(t, r);
}

void run_fail(struct turn *t, struct run *r, const char *text, const char *manifest)
{
    run_end_unbound(t, r, RUN_FAILED, text && text[0] ? text : "failed", manifest);
}

void run_cancel(struct turn *t, struct run *r)
{
    run_end_unbound(t, r, RUN_CANCELLED, "Cancelled", NULL);
}

void run_bind_start(struct turn *t, struct run *r)
{
    r->bind_until = ms_add(t->now.mono, t->c->lim.bound_wait);
    r->loading_until = ms_add(t->now.mono, t->c->lim.bound_wait_loading);
    list_add_tail(&t->c->binding, &r->todo_link);
}

static void run_turns_ready(struct turn *t, struct run *r, json_t *unbound)
{
    struct arena *a = t->o->rows.arena;
    json_t *v = r->metadata ? json_parse(slice_of(r->metadata), NULL) : NULL;
    v = v ? v : json_object();
    int64_t since = r->started_us ? r->started_us : r->created_us;
    json_set_int(v, "durationMs", (t->now.unix_us - since) / 1000);
    if (json_array_size(unbound) > 0) {
        must(json_object_set(v, "unbound", unbound) == 0);
    }
    json_decref(unbound);
    struct row_run more = {.metadata = json_keep(a, v)};
    r->metadata = NULL;
    move_run(t, r, RUN_READY, &more);
    run_retire(t, r);
}

void run_check_bound(struct turn *t, struct run *r)
{
    struct coord *c = t->c;
    struct ms mono = t->now.mono;
    uint64_t unit = r->unit->row.id;
    bool loading = false;
    bool reported = gateways_reported(c, mono, unit, r->epoch, &loading);
    bool wait_over = !ms_before(mono, r->bind_until);
    bool loading_over = !ms_before(mono, r->loading_until);
    if (reported || (wait_over && (!loading || loading_over))) {
        run_turns_ready(t, r, gateways_unbound(c, mono, unit, r->epoch));
        return;
    }
    r->check_due = wait_over ? r->loading_until : ms_min(r->bind_until, gateways_unheard_until(c));
}

static void run_bind(struct turn *t, struct run *r, const struct counts *n)
{
    struct arena *a = t->o->rows.arena;
    struct unit *u = r->unit;
    struct draft d = {.a = a};
    draft_of_run(t, r, &d);
    bool changes = draft_changes(u, &d);
    const char *metadata = run_metadata(a, r, n, t->now.unix_us);
    struct row_run more = {.manifest = run_manifest(t, r, &d), .metadata = metadata};
    struct draft kept = {.a = a};
    for (size_t i = 0; i < d.n; i++) { /* unit_set_make frees the set that d borrows from */
        struct core_binding copy = binding_copy(a, &d.items[i]);
        draft_add(&kept, &copy);
    }
    if (changes) {
        u->row.reload_emptied = false;
        unit_set_make(t, u, &d, "run", r->id);
    }
    r->epoch = u->row.epoch;
    run_shrink(t->c, r, &kept, metadata);
    more.plan = held_text(a, r);
    move_run(t, r, RUN_BINDING, &more);
    if (!changes) {
        run_turns_ready(t, r, NULL);
        return;
    }
    run_bind_start(t, r);
    run_check_bound(t, r);
}

void run_planned_end(struct turn *t, struct run *r)
{
    struct counts n = run_counts(t->c, r);
    if (r->stop_requested) {
        run_cancel(t, r);
    } else if (n.built + n.reused == 0 && n.failed > 0) {
        run_fail(t, r, run_error_text(t->o->rows.arena, t->c, r), run_manifest(t, r, NULL));
    } else {
        run_bind(t, r, &n);
    }
}

/* ---- stop ---- */
static void stop_job(struct turn *t, struct job *j)
{
    if (job_state_ended(j->state) || j->stop_requested) {
        return;
    }
    j->stop_requested = true;
    if (j->state == JOB_WAITING || j->state == JOB_READY) {
        j->error_code = ERR_STOPPED;
        move_job(t, j, JOB_CANCELLED);
        job_ended(t, j);
        return;
    }
    update_job(t, j);
    struct coord_note *n = coord_note(t, NOTE_CANCEL);
    n->job = j->id;
    n->unit = j->unit;
}

int coord_run_stop(struct coord *c, struct coord_now now, const char *run, struct coord_out *o,
                   struct err *e)
{
    struct turn t = {c, now, o};
    struct run *r = coord_find_run(c, run);
    if (!r) {
        return err_set(e, ERR_NOT_FOUND, "no such materialization: %s", run);
    }
    if (!run_state_active(r->state)) {
        return err_set(e, ERR_RUN_STATE, "cannot stop materialization %s: it is %s", run,
                       run_state_rest(r->state));
    }
    if (r->stop_requested || r->state == RUN_BINDING) {
        return 0; /* asked before, or too late: what was built is being bound */
    }
    r->stop_requested = true;
    rows_add(&o->rows, ROW_RUN_STOP)->u.run.id = arena_strdup(o->rows.arena, r->id);
    if (r->state == RUN_REQUESTED || (r->state == RUN_PLANNING && !r->taken)) {
        run_cancel(&t, r);
    }
    for (size_t i = r->n_jobs; i-- > 0;) { /* children first: none is made ready on the way */
        stop_job(&t, r->jobs[i]);
    }
    coord_turn_end(&t);
    return 0;
}

/* ---- progress ---- */
static uint64_t job_rows(const struct job *j)
{
    uint64_t rows = 0;
    list_for_each (it, &j->attempt_list) {
        const struct attempt *a = list_entry(it, struct attempt, link);
        bool counts = list_linked(&a->live_link) || a->state == ATTEMPT_SUCCEEDED;
        if (counts && !a->is_resolve) {
            rows = a->has_facts ? (uint64_t)a->facts.rows : a->rows;
        }
    }
    return rows;
}

static bool held_before(const struct run *r, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (r->held[i].target.target_id == r->held[at].target.target_id) {
            return true;
        }
    }
    return false;
}

char *coord_run_progress(const struct coord *c, const char *run, struct arena *a)
{
    const struct run *r = coord_find_run(c, run);
    if (!r || !run_state_active(r->state)) {
        return NULL;
    }
    uint64_t rows = 0;
    size_t open = 0;
    const char *alone = NULL;
    size_t n_held = 0; /* tables: several sources may share one */
    for (size_t i = 0; i < r->n_held; i++) {
        const struct generation *g = generation_find(c, r->held[i].generation.id);
        if (!held_before(r, i)) {
            n_held++;
            rows += g ? (uint64_t)g->g.rows : 0;
        }
    }
    for (size_t i = 0; i < r->n_jobs; i++) {
        rows += job_rows(r->jobs[i]);
        open += !job_state_ended(r->jobs[i]->state);
        alone = r->jobs[i]->nobody == NOBODY_TOLD ? r->jobs[i]->t.connection : alone;
    }
    json_t *v = json_object();
    size_t targets = r->state == RUN_BINDING ? n_held : r->n_items;
    json_set_int(v, "targets", (int64_t)targets);
    json_set_int(v, "done", (int64_t)(targets - open));
    json_set_int(v, "rows", (int64_t)rows);
    json_set_str(v, "stage", run_state_name(r->state));
    if (alone) {
        json_set_str(v, "warning",
                     arena_printf(a,
                                  "no_capable_builder: no builder that reaches connection '%s' has "
                                  "been heard; start one, or add it to one's builder.connections",
                                  alone));
    }
    return json_keep(a, v);
}
