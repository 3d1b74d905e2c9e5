/* What must hold in the simulated world: after every step, after a reload, and when everything has
 * come to rest. */
#include "tests/sim/coord_dump.h"
#include "tests/sim/sim_world.h"

static const struct row_job *holder_of(const struct sim *s, uint64_t place)
{
    struct map_iter it = {0};
    for (const struct row_job *j; memory_job_next(&it, s->store, &j);) {
        if (j->place == place && (j->state == JOB_PUBLISHING || j->state == JOB_RESOLVING)) {
            return j;
        }
    }
    return NULL;
}

/* No table without a record, or a job that will resolve it. */
static void check_tables(const struct sim *s)
{
    for (int i = 0; i < SIM_TABLES; i++) {
        uint64_t token = s->tables[i].published;
        if (!token || !s->tables[i].stands || memory_token_recorded(s->store, token)) {
            continue;
        }
        const struct row_attempt *a = memory_attempt(s->store, token);
        const struct row_job *j = a ? memory_job(s->store, a->job) : NULL;
        if (!j || (j->state != JOB_PUBLISHING && j->state != JOB_RESOLVING)) {
            sim_fail(s,
                     "table t%d is published by token %llu, which is neither recorded nor resolved "
                     "later",
                     i, (unsigned long long)token);
        }
    }
}

static bool in_force(enum generation_state g)
{
    return g == GENERATION_RECORDED || g == GENERATION_BOUND || g == GENERATION_RETIRED;
}

/* No record without its table: the fence names it, unless a swap is under way there. */
static void check_records(struct sim *s)
{
    struct map_iter it = {0};
    for (const struct row_generation *g; memory_generation_next(&it, s->store, &g);) {
        if (!in_force(g->state)) {
            continue;
        }
        const struct sim_table *t = &s->tables[sim_table_of(g->physical)];
        if (sim_result_of(s, g->g.id) || t->published == g->g.token) {
            continue;
        }
        uint64_t place = 0;
        for (uint64_t id = 1; memory_place(s->store, id); id++) {
            const struct core_target *at = memory_place(s->store, id);
            place = at->in_place && strcmp(at->physical, g->physical) == 0 ? id : place;
        }
        if (!holder_of(s, place)) {
            sim_fail(s, "generation %s is %s, but %s holds token %llu", g->g.id,
                     generation_state_name(g->state), g->physical,
                     (unsigned long long)t->published);
        }
    }
}

static void check_epochs(const struct sim *s)
{
    for (size_t i = 0; i < SIM_GATEWAYS; i++) {
        for (size_t k = 0; k < s->n_units; k++) {
            const struct row_unit *u = memory_unit(s->store, s->units[k].id);
            if (u && s->gateways[i].ever[s->units[k].id] > u->epoch) {
                sim_fail(s, "%s has an epoch of unit %llu that the run store never gave",
                         s->gateways[i].name, (unsigned long long)u->id);
            }
        }
    }
}

void sim_check(struct sim *s)
{
    check_tables(s);
    check_records(s);
    check_epochs(s);
    sim_check_results(s);
    sim_check_reads(s);
}

void sim_check_reload(struct sim *s)
{
    static const struct uuid installation;
    static const struct coord_limits limits = {.lease = {10000}, .attempts = 3};
    if (!s->planner.c) {
        return;
    }
    struct coord *again = coord_new(&installation, &limits);
    memory_store_load(s->store, again, sim_now(s));
    auto_free char *one = coord_dump(s->planner.c);
    auto_free char *two = coord_dump(again);
    coord_free(again);
    size_t at = 0;
    while (one[at] && one[at] == two[at]) {
        at++;
    }
    if (one[at] != two[at]) {
        size_t from = at > 200 ? at - 200 : 0;
        sim_fail(s, "a reload differs:\n---- lived\n%.400s\n---- loaded\n%.400s", one + from,
                 two + from);
    }
}

bool sim_at_rest(struct sim *s)
{
    struct map_iter it = {0};
    for (const struct row_run *r; memory_run_next(&it, s->store, &r);) {
        if (run_state_active(r->state) && memory_unit(s->store, r->unit)) {
            return false;
        }
    }
    struct map_iter at = {0};
    for (const struct row_job *j; memory_job_next(&at, s->store, &j);) {
        if (!job_state_ended(j->state)) {
            return false;
        }
    }
    for (size_t i = 0; i < SIM_STMTS; i++) {
        if (s->stmts[i].used) {
            return false;
        }
    }
    for (size_t i = 0; i < SIM_BUILDERS; i++) {
        if (!sim_builder_idle(&s->builders[i])) {
            return false;
        }
    }
    return s->planner.c != NULL;
}

static void check_binding(struct sim *s, const struct core_binding *b)
{
    const struct core_generation *g = coord_current_generation(s->planner.c, &b->target);
    const struct sim_table *t = &s->tables[sim_table_of(b->target.physical)];
    if (!b->target.in_place) {
        const struct sim_result *r = sim_result_of(s, b->generation.id);
        if (!r || !r->there) {
            sim_fail(s, "source %s is bound, but its result is not on the disk", b->source_id);
        }
        return;
    }
    if (!g || t->published != g->token) {
        sim_fail(s, "source %s is bound, but %s does not hold its result", b->source_id,
                 b->target.physical);
    }
}

void sim_check_end(struct sim *s)
{
    for (size_t k = 0; k < s->n_units; k++) {
        const struct core_binding_set *set = coord_unit_set(s->planner.c, s->units[k].id);
        for (size_t n = 0; set && n < set->n; n++) {
            check_binding(s, &set->bindings[n]);
        }
    }
    if (s->n_staging) {
        sim_fail(s, "staging of token %llu was left behind", (unsigned long long)s->staging[0]);
    }
    sim_check_disk(s);
    struct map_iter it = {0};
    for (const struct row_run *r; memory_run_next(&it, s->store, &r);) {
        s->n_ready += r->state == RUN_READY;
        s->n_failed += r->state == RUN_FAILED;
        s->n_cancelled += r->state == RUN_CANCELLED;
    }
}
