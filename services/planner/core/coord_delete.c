/* Deleting runs, the drops that go with it, sweeps, and going back to an older run's bindings
 * (spec/malloy-persistence.md 3.9). */
#include "services/planner/core/coord_internal.h"

enum { DROP_WAIT_MS = 5000 };

/* ---- bindings from an older run ---- */
struct run *unit_newest_ready(const struct unit *u, const struct run *but)
{
    struct run *newest = NULL;
    list_for_each (it, &u->runs) {
        struct run *r = list_entry(it, struct run, unit_link);
        if (r->state == RUN_READY && r != but) {
            newest = r;
        }
    }
    return newest;
}

static bool set_names(const struct core_binding_set *set, const struct core_binding *b)
{
    for (size_t i = 0; set && i < set->n; i++) {
        const struct core_binding *x = &set->bindings[i];
        if (x->target.target_id == b->target.target_id && strcmp(x->source_id, b->source_id) == 0) {
            return true;
        }
    }
    return false;
}

/* What the run named and is still recorded. With `only_bound`, restricted to what is in force as
 * well. */
void draft_of_held(const struct coord *c, const struct unit *u, const struct run *r,
                   bool only_bound, struct draft *d)
{
    for (size_t i = 0; r && i < r->n_held; i++) {
        const struct core_binding *b = &r->held[i];
        const struct target *target = target_by_id(c, b->target.target_id);
        const struct generation *g = target ? target_current(target) : NULL;
        if (g && (!only_bound || set_names(u->set, b))) {
            draft_add(d, b)->generation = g->g;
        }
    }
}

static bool draft_has(const struct draft *d, const char *source_id)
{
    for (size_t i = 0; i < d->n; i++) {
        if (strcmp(d->items[i].source_id, source_id) == 0) {
            return true;
        }
    }
    return false;
}

static void draft_rest(struct draft *d, const struct unit *u, const char *code)
{
    for (size_t i = 0; i < u->set->n_unbaked; i++) {
        const struct core_unbaked *x = &u->set->unbaked[i];
        if (!draft_has(d, x->source_id)) {
            draft_unbaked(d, x->source_id, x->code, x->text);
        }
    }
    for (size_t i = 0; i < u->set->n; i++) {
        if (!draft_has(d, u->set->bindings[i].source_id)) {
            draft_unbaked(d, u->set->bindings[i].source_id, code, "");
        }
    }
}

/* Older runs may be of an older load, whose builds the newer one does not plan. */
static bool unit_go_back(struct turn *t, struct unit *u, const struct run *gone)
{
    if (gone->state != RUN_READY || !u->set || u->set->n == 0 ||
        unit_newest_ready(u, NULL) != gone) {
        return false;
    }
    const struct run *older = unit_newest_ready(u, gone);
    struct draft d = {.a = t->o->rows.arena};
    draft_of_held(t->c, u, older, older && older->load != u->row.load, &d);
    draft_rest(&d, u, "run_deleted");
    if (!draft_changes(u, &d)) {
        return false;
    }
    unit_set_make(t, u, &d, "delete", older ? older->id : NULL);
    return true;
}

void unit_restore(struct turn *t, struct unit *u)
{
    const struct run *newest = unit_newest_ready(u, NULL);
    struct draft d = {.a = t->o->rows.arena};
    draft_of_held(t->c, u, newest, false, &d);
    if (!newest || d.n == 0) {
        return;
    }
    draft_rest(&d, u, "unbound_by_reload");
    u->row.reload_emptied = false;
    unit_set_make(t, u, &d, "restart", newest->id);
}

/* ---- what must not be dropped ---- */
/* In place a name is one table, whoever's; by binding packages on one connection have a result each
 * under the same name. */
static uint64_t name_key(const struct core_target *t)
{
    return t->in_place ? t->place_id : t->target_id | UINT64_C(1) << 63;
}

static void name_place(struct map *named, const struct core_target *t)
{
    map_put_u64(named, name_key(t), named);
}

static void name_run(struct map *named, const struct run *r)
{
    for (size_t i = 0; i < r->n_held; i++) {
        if (r->state == RUN_READY || r->state == RUN_BINDING) {
            name_place(named, &r->held[i].target);
        }
    }
    for (size_t i = 0; i < r->n_items; i++) {
        const struct plan_item *it = &r->items[i];
        bool made = it->job && (it->job->state == JOB_DONE || it->job->state == JOB_CARRIED);
        if (made || it->p.action == PLAN_CARRY) {
            name_place(named, &it->p.target);
        }
    }
}

static void name_all(const struct coord *c, const struct run *but, struct map *named)
{
    for (struct map_iter it = map_begin(&c->runs); map_next(&it);) {
        const struct run *r = it.value;
        if (r != but) {
            name_run(named, r);
        }
    }
    for (struct map_iter it = map_begin(&c->units); map_next(&it);) {
        const struct unit *u = it.value;
        for (size_t i = 0; u->set && i < u->set->n; i++) {
            name_place(named, &u->set->bindings[i].target);
        }
    }
}

/* ---- drop and sweep jobs ---- */
static char *drop_spec(const struct job *j)
{
    json_t *v = json_object();
    must(json_object_set_new(v, "target", target_to_json(&j->t)) == 0);
    json_set_str(v, "generation", j->generation);
    json_set_int(v, "epoch", (int64_t)j->wait_epoch);
    char *text = json_text(v);
    json_decref(v);
    return text;
}

uint64_t drop_make(struct turn *t, uint64_t unit, const struct core_target *at,
                   struct generation *g, uint64_t wait_epoch)
{
    struct job *j = job_new(t->c, KIND_DROP, t->c->next_job);
    j->unit = unit;
    j->target = g->target;
    j->place = g->target->place;
    j->t = target_keep(t->c, at);
    memcpy(j->generation, g->id, sizeof(j->generation));
    j->wait_epoch = wait_epoch;
    if (wait_epoch) {
        j->due = ms_add(t->now.mono, MS(DROP_WAIT_MS));
        j->retry_at_us = t->now.unix_us + DROP_WAIT_MS * 1000;
    }
    j->spec = drop_spec(j);
    list_add_tail(&j->place->jobs, &j->place_link);
    list_add_tail(&t->c->loose, &j->loose_link);
    job_queue(t->c, j, t->now.mono);
    insert_job(t, j);
    if (g->state == GENERATION_RECORDED) {
        move_generation(t, g, GENERATION_RETIRED);
    }
    move_generation(t, g, GENERATION_DROPPING);
    return j->id;
}

static size_t drop_held(struct turn *t, const struct run *r, uint64_t wait_epoch, uint64_t *jobs)
{
    struct map named;
    map_init(&named);
    name_all(t->c, r, &named);
    size_t n = 0;
    for (size_t i = 0; i < r->n_held; i++) {
        const struct core_target *at = &r->held[i].target;
        const struct target *target = target_by_id(t->c, at->target_id);
        struct generation *g = target ? target_current(target) : NULL;
        if (g && !map_put_u64(&named, name_key(at), &named)) {
            jobs[n++] = drop_make(t, r->unit->row.id, at, g, wait_epoch);
        }
    }
    map_fini(&named);
    return n;
}

int coord_run_delete(struct coord *c, struct coord_now now, const char *run, bool drop,
                     const uint64_t **out_jobs, size_t *n_jobs, struct coord_out *o, struct err *e)
{
    struct turn t = {c, now, o};
    struct run *r = coord_find_run(c, run);
    if (!r) {
        return err_set(e, ERR_NOT_FOUND, "no such materialization: %s", run);
    }
    if (run_state_active(r->state)) {
        return err_set(e, ERR_RUN_STATE, "cannot delete materialization %s while it is %s", run,
                       run_state_rest(r->state));
    }
    struct unit *u = r->unit;
    rows_add(&o->rows, ROW_RUN_DELETE)->u.run.id = arena_strdup(o->rows.arena, r->id);
    bool changed = unit_go_back(&t, u, r);
    uint64_t *jobs = arena_alloc(o->rows.arena, (r->n_held + 1) * sizeof(*jobs));
    *n_jobs = drop ? drop_held(&t, r, changed ? u->row.epoch : 0, jobs) : 0;
    *out_jobs = jobs;
    if (*n_jobs) {
        coord_note(&t, NOTE_JOBS);
    }
    run_free(c, r);
    coord_turn_end(&t);
    return 0;
}

uint64_t coord_sweep(struct coord *c, struct coord_now now, uint64_t unit, const char *spec,
                     struct coord_out *o)
{
    struct turn t = {c, now, o};
    struct job *j = job_new(c, KIND_SWEEP, c->next_job);
    j->unit = unit;
    j->spec = xstrdup(spec);
    job_spec(c, j);
    list_add_tail(&c->loose, &j->loose_link);
    job_queue(c, j, now.mono);
    insert_job(&t, j);
    coord_note(&t, NOTE_JOBS);
    return j->id;
}
