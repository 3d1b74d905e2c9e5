/* What must hold in the trio's world: after every event, whenever rows alone must make the same
 * planner, and when everything has come to rest. */
#include "tests/sim/coord_dump.h"
#include "tests/sim/trio_wire.h"

enum { RELOAD_EVERY = 97 };

/* ---- the warehouse and the rows ---- */
static const struct row_job *holder_of(const struct world *w, const char *physical)
{
    struct map_iter it = {0};
    for (const struct row_job *j; memory_job_next(&it, w->rows, &j);) {
        const struct core_target *place = j->place ? memory_place(w->rows, j->place) : NULL;
        bool holds = j->state == JOB_PUBLISHING || j->state == JOB_RESOLVING;
        if (holds && place && strcmp(place->physical, physical) == 0) {
            return j;
        }
    }
    return NULL;
}

/* No table of ours without a record, or a job that will find out. */
static void check_tables(const struct world *w)
{
    list_for_each (it, &w->wh->fences) {
        const struct sim_fence *f = list_entry(it, struct sim_fence, link);
        const struct sim_table *t = sim_table_find(w->wh, f->schema, f->target);
        if (!f->published || !t || t->oid != f->relid ||
            memory_token_recorded(w->rows, f->published)) {
            continue;
        }
        const struct row_attempt *a = memory_attempt(w->rows, f->published);
        const struct row_job *j = a ? memory_job(w->rows, a->job) : NULL;
        if (!j || (j->state != JOB_PUBLISHING && j->state != JOB_RESOLVING)) {
            trio_fail("%s is published by token %llu, which is neither recorded nor to be resolved",
                      f->target, (unsigned long long)f->published);
        }
    }
}

static bool in_force(enum generation_state g)
{
    return g == GENERATION_RECORDED || g == GENERATION_BOUND || g == GENERATION_RETIRED;
}

/* No record without its table: the fence names it, unless a swap is under way there. */
static void check_records(const struct world *w)
{
    struct map_iter it = {0};
    for (const struct row_generation *g; memory_generation_next(&it, w->rows, &g);) {
        if (!in_force(g->state)) {
            continue;
        }
        char table[64];
        must(sscanf(g->physical, "\"public\".\"%63[^\"]\"", table) == 1);
        const struct sim_fence *f = sim_fence_find(w->wh, "public", table);
        if ((!f || f->published != g->g.token) && !holder_of(w, g->physical)) {
            trio_fail("generation %s is %s, but the fence of %s names token %llu", g->g.id,
                      generation_state_name(g->state), table,
                      (unsigned long long)(f ? f->published : 0));
        }
    }
}

/* ---- gateways ---- */
static void check_epochs(struct world *w)
{
    struct proc *p;
    for (size_t i = 0; (p = world_proc(w, PROC_GATEWAY, i)) != NULL; i++) {
        for (size_t k = 0; p->loop && !p->leaving && k < w->n_units; k++) {
            uint64_t unit = w->units[k].id;
            uint64_t epoch = gateway_epoch(p, unit);
            const struct row_unit *u = memory_unit(w->rows, unit);
            if (!u) { /* the package was removed */
                p->ever[unit] = 0;
                continue;
            }
            if (epoch < p->ever[unit]) {
                trio_fail("%s went back from epoch %llu of %s to %llu", p->name,
                          (unsigned long long)p->ever[unit], w->units[k].name,
                          (unsigned long long)epoch);
            }
            if (epoch > u->epoch) {
                trio_fail("%s has epoch %llu of %s in force, which was never committed", p->name,
                          (unsigned long long)epoch, w->units[k].name);
            }
            if (epoch && p->ever[unit] == 0 && epoch < p->served[unit]) {
                trio_fail("%s came back with epoch %llu of %s, but had served %llu", p->name,
                          (unsigned long long)epoch, w->units[k].name,
                          (unsigned long long)p->served[unit]);
            }
            p->served[unit] = epoch > p->served[unit] ? epoch : p->served[unit];
            p->ever[unit] = epoch;
        }
    }
}

/* ---- the planner ---- */
static void check_reload(struct world *w, const struct coord *c)
{
    static const struct coord_limits limits = {.lease = {10000}, .attempts = 3};
    struct coord *again = coord_new(&w->installation, &limits);
    memory_store_load(w->rows, again, (struct coord_now){.mono = w->time.now});
    auto_free char *one = coord_dump(c);
    auto_free char *two = coord_dump(again);
    coord_free(again);
    size_t at = 0;
    while (one[at] && one[at] == two[at]) {
        at++;
    }
    if (one[at] != two[at]) {
        size_t from = at > 200 ? at - 200 : 0;
        trio_fail("a restart would differ:\n---- lived\n%.400s\n---- loaded\n%.400s", one + from,
                  two + from);
    }
}

void trio_check(struct world *w)
{
    check_tables(w);
    check_records(w);
    check_epochs(w);
    const struct proc *p = world_proc(w, PROC_PLANNER, 0);
    const struct coord *c = planner_coord(p);
    const char *wrong = c ? coord_check(c) : NULL;
    if (wrong) {
        trio_fail("%s", wrong);
    }
    if (c && w->time.steps % RELOAD_EVERY == 0 && store_sim_idle(p)) {
        check_reload(w, c);
    }
}

/* ---- rest ---- */
static bool rows_at_rest(const struct world *w)
{
    struct map_iter it = {0};
    for (const struct row_run *r; memory_run_next(&it, w->rows, &r);) {
        if (run_state_active(r->state) && memory_unit(w->rows, r->unit)) {
            return false;
        }
    }
    it = (struct map_iter){0};
    for (const struct row_job *j; memory_job_next(&it, w->rows, &j);) {
        if (!job_state_ended(j->state)) {
            return false;
        }
    }
    return true;
}

static bool gateway_at_rest(const struct world *w, const struct proc *p)
{
    for (size_t k = 0; k < w->n_units; k++) {
        const struct row_unit *u = memory_unit(w->rows, w->units[k].id);
        if (gateway_epoch(p, w->units[k].id) != (u ? u->epoch : 0)) {
            return false;
        }
    }
    return true;
}

bool trio_at_rest(struct world *w)
{
    for (size_t i = 0; i < w->n_procs; i++) {
        const struct proc *p = &w->procs[i];
        bool rests = p->loop && !p->leaving;
        rests = rests && (p->kind != PROC_BUILDER || builder_is_idle(p));
        rests = rests && (p->kind != PROC_GATEWAY || gateway_at_rest(w, p));
        rests = rests && (p->kind != PROC_PLANNER || (planner_coord(p) && store_sim_idle(p)));
        if (!rests) {
            return false;
        }
    }
    return rows_at_rest(w) && people_waiting(w) == 0 && wires_writing(w) == 0;
}

static void check_binding(struct world *w, const struct coord *c, const struct core_binding *b)
{
    const struct core_generation *g = coord_current_generation(c, &b->target);
    uint64_t token = wire_log_token(w, b->target.schema, b->target.table);
    if (!g || token != g->token) {
        trio_fail("source %s is bound, but %s holds what token %llu made", b->source_id,
                  b->target.physical, (unsigned long long)token);
    }
}

void trio_check_end(struct world *w)
{
    const struct proc *p = world_proc(w, PROC_PLANNER, 0);
    const struct coord *c = planner_coord(p);
    check_reload(w, c);
    for (size_t k = 0; k < w->n_units; k++) {
        const struct core_binding_set *set = coord_unit_set(c, w->units[k].id);
        for (size_t i = 0; set && i < set->n; i++) {
            check_binding(w, c, &set->bindings[i]);
        }
    }
    list_for_each (it, &w->wh->tables) {
        const struct sim_table *t = list_entry(it, struct sim_table, link);
        if (strncmp(t->table, "_kiln_", 6) == 0) {
            trio_fail("staging table %s was left behind", t->table);
        }
    }
}
