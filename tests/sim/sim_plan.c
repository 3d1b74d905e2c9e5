/* What the simulated packages hold, and how a run over one is planned: probe the fence, carry what
 * is proven, build the rest. */
#include "tests/sim/sim_world.h"

#include <stdio.h>

/* The first source of every package wants one and the same table: sometimes for the same result,
 * sometimes for another. */
void sim_source_target(const struct sim_unit *u, int source, struct core_target *out,
                       char text[4][80])
{
    bool shared = source == 0;
    int table = shared ? 0 : (int)((u->id % 5) * (SIM_SOURCES - 1)) + source;
    sim_table_name(table, text[0]);
    snprintf(text[1], 80, "t%d", table);
    snprintf(text[2], 80, "%s-%d-v%u",
             shared      ? "all"
             : u->id % 2 ? "odd"
                         : "even",
             table, u->version % (shared ? 2 : 3));
    snprintf(text[3], 80, "s%d@m%d", source, source);
    bool in_place = shared || u->id % 2;
    *out = (struct core_target){
        .warehouse = in_place ? "digest" : "files",
        .connection = in_place ? "pg" : "duckdb",
        .in_place = in_place,
        .schema = "s",
        .table = text[1],
        .physical = text[0],
        .target_key = text[1],
        .build_id = text[2],
        .entity_id = text[2],
    };
}

struct sim_unit *sim_unit_of(struct sim *s, uint64_t id)
{
    for (size_t i = 0; i < s->n_units; i++) {
        if (s->units[i].id == id) {
            return &s->units[i];
        }
    }
    return NULL;
}

size_t sim_builds_of(struct sim *s, const struct sim_unit *u, const char **out, struct arena *a)
{
    (void)s;
    char text[4][80];
    struct core_target t;
    for (int i = 0; i < u->n_sources; i++) {
        sim_source_target(u, i, &t, text);
        out[i] = arena_strdup(a, t.build_id);
    }
    return (size_t)u->n_sources;
}

static bool proven(struct sim *s, const struct core_target *t, const struct core_generation *g)
{
    if (!t->in_place) {
        const struct sim_result *r = sim_result_of(s, g->id);
        return r && r->there;
    }
    const struct sim_table *x = &s->tables[sim_table_of(t->physical)];
    return x->published && x->stands == x->published && strcmp(x->generation, g->id) == 0 &&
           strcmp(x->build_id, t->build_id) == 0;
}

static void plan_source(struct sim *s, const struct sim_unit *u, int source, bool force,
                        struct arena *a, struct plan_target *out)
{
    char text[4][80];
    struct core_target t;
    sim_source_target(u, source, &t, text);
    t.table = t.target_key = arena_strdup(a, t.table);
    t.physical = arena_strdup(a, t.physical);
    t.build_id = t.entity_id = arena_strdup(a, t.build_id);
    const char **names = arena_alloc(a, 2 * sizeof(*names));
    names[0] = arena_strdup(a, text[3]);
    names[1] = arena_printf(a, "%s-again", text[3]);
    *out = (struct plan_target){
        .action = PLAN_BUILD,
        .target = t,
        .source_id = names[0],
        .source_name = names[0],
        .model = "m.malloy",
        .source_ids = names,
        .source_names = names,
        .source_models = names,
        .n_sources = source == 1 ? 2 : 1,
        .sql = "SELECT 1",
    };
    const struct core_generation *g = coord_current_generation(s->planner.c, &t);
    if (g && !force && proven(s, &t, g)) {
        out->action = PLAN_CARRY;
        out->generation = *g;
        out->generation.id = arena_strdup(a, g->id);
        out->generation.columns = (struct core_columns){0};
    } else if (sim_chance(s, s->faults.statement / 4)) {
        out->action = PLAN_FAIL;
        out->fail_text = "target has dependents: view public.v";
        out->fail_code = ERR_WH_DEPENDENTS;
    }
}

static void plan_refusal(struct sim *s, struct run_plan *p, struct arena *a)
{
    if (!sim_chance(s, s->faults.statement / 2)) {
        return;
    }
    p->refusals = arena_zalloc(a, sizeof(*p->refusals));
    p->n_refusals = 1;
    p->refusals[0] = (struct plan_refusal){"r@m",
                                           "r",
                                           "m.malloy",
                                           "colocated",
                                           "free_parameter",
                                           "source 'r' has an unbound parameter",
                                           true};
}

/* A partial run covers the last source, and the whole chain above it when there is one. */
static void plan_fill(struct sim *s, const struct sim_unit *u, const struct row_run *r,
                      struct arena *a, struct run_plan *p)
{
    int first = r->has_names && !u->chained ? u->n_sources - 1 : 0;
    p->targets = arena_zalloc(a, SIM_SOURCES * sizeof(*p->targets));
    for (int i = first; i < u->n_sources; i++) {
        struct plan_target *x = &p->targets[p->n];
        plan_source(s, u, i, r->force_refresh, a, x);
        if (u->chained && p->n > 0 && x->action == PLAN_BUILD) {
            size_t *parents = arena_alloc(a, sizeof(*parents));
            parents[0] = p->n - 1;
            x->parents = parents;
            x->n_parents = 1;
            x->upstream_reuse = "reused";
        }
        p->n++;
    }
    p->load = u->load;
    p->compiler_version = "0.0.1";
    plan_refusal(s, p, a);
    p->n_authored = p->n + p->n_refusals;
}

void sim_plan(struct sim *s, const char *run)
{
    const struct row_run *r = memory_run(s->store, run);
    const struct sim_unit *u = r ? sim_unit_of(s, r->unit) : NULL;
    if (!u || r->state != RUN_PLANNING) {
        return;
    }
    struct arena a;
    struct coord_out o;
    struct run_plan p = {0};
    arena_init(&a);
    coord_out_init(&o, &a);
    int rc;
    if (sim_chance(s, s->faults.statement / 4)) {
        rc = coord_run_plan_failed(s->planner.c, sim_now(s), run, "the warehouse is away", &o);
    } else {
        plan_fill(s, u, r, &a, &p);
        if (sim_chance(s, s->faults.statement / 2)) {
            p.load--; /* as if it had been published meanwhile */
        }
        rc = coord_run_planned(s->planner.c, sim_now(s), run, &p, &o);
    }
    if (rc != 0 && rc != ERR_STORE_MOVED) {
        sim_fail(s, "run %s cannot be planned: %s", run, err_code_name(rc));
    }
    (void)sim_commit(s, &o);
    arena_fini(&a);
}
