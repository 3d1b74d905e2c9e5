/* The people of the simulated world: they publish, run, stop, delete, reload, and drop tables
 * behind Kiln's back. */
#include "tests/sim/sim_world.h"

#include <stdio.h>

static uint64_t next_load(struct sim *s)
{
    return ++s->calls + 1000;
}

static void unit_publish(struct sim *s, struct sim_unit *u, const char *cause)
{
    struct arena a;
    struct coord_out o;
    const char *builds[SIM_SOURCES];
    arena_init(&a);
    coord_out_init(&o, &a);
    struct sim_unit next = *u;
    next.load = next_load(s);
    bool reload = strcmp(cause, "reload") == 0;
    next.version += !reload && sim_chance(s, 700);
    size_t n = sim_builds_of(s, &next, builds, &a);
    char name[32];
    snprintf(name, sizeof(name), "p%llu", (unsigned long long)u->id);
    struct coord_unit_row row = {.id = u->id, .load = next.load, .environment = "e", .name = name};
    coord_unit_load(s->planner.c, sim_now(s), &row, cause, reload ? NULL : builds, reload ? 0 : n,
                    &o);
    /* whether it was committed, the run store tells */
    (void)sim_commit(s, &o);
    const struct row_unit *stands = memory_unit(s->store, u->id);
    if (stands && stands->load == next.load) {
        *u = next;
    }
    arena_fini(&a);
}

void sim_unit_add(struct sim *s)
{
    if (s->n_units == SIM_UNITS || !s->planner.c) {
        return;
    }
    struct sim_unit *u = &s->units[s->n_units++];
    *u = (struct sim_unit){
        .n_sources = 1 + (int)sim_random(s, SIM_SOURCES),
        .chained = sim_chance(s, 500),
        .version = (unsigned)sim_random(s, 2),
    };
    char name[32];
    snprintf(name, sizeof(name), "p%zu", s->n_units);
    u->id = memory_store_add_unit(s->store, "e", name);
    unit_publish(s, u, "publish");
}

static bool known(const struct sim *s, const struct sim_unit *u)
{
    struct coord_unit_row row;
    return s->planner.c && !u->deleted && coord_unit_get(s->planner.c, u->id, &row);
}

bool sim_run_create(struct sim *s, struct sim_unit *u, bool force, bool partial)
{
    if (!known(s, u) || !u->load) {
        return false;
    }
    static const char *const names[] = {"last"};
    struct arena a;
    struct coord_out o;
    struct err e = {0};
    char id[24];
    arena_init(&a);
    coord_out_init(&o, &a);
    struct coord_run_new n = {
        .unit = u->id,
        .trigger = "ON_DEMAND",
        .force_refresh = force,
        .has_names = partial,
        .names = names,
        .n_names = partial,
    };
    bool made = coord_run_create(s->planner.c, sim_now(s), &n, id, &o, &e) == 0;
    bool told = made && sim_commit(s, &o);
    s->n_runs += told;
    arena_fini(&a);
    return told;
}

static const struct row_run *any_run(struct sim *s)
{
    const struct row_run *chosen = NULL;
    size_t n = 0;
    struct map_iter it = {0};
    for (const struct row_run *r; memory_run_next(&it, s->store, &r);) {
        chosen = sim_random(s, ++n) == 0 ? r : chosen;
    }
    return chosen;
}

static void run_stop(struct sim *s)
{
    struct map_iter it = {0};
    for (const struct row_run *r; memory_run_next(&it, s->store, &r);) {
        if (!run_state_active(r->state) || sim_chance(s, 500)) {
            continue;
        }
        struct arena a;
        struct coord_out o;
        struct err e = {0};
        arena_init(&a);
        coord_out_init(&o, &a);
        if (coord_run_stop(s->planner.c, sim_now(s), r->id, &o, &e) == 0) {
            (void)sim_commit(s, &o);
        }
        arena_fini(&a);
        return;
    }
}

static void run_delete(struct sim *s)
{
    const struct row_run *r = any_run(s);
    if (!r || run_state_active(r->state)) {
        return;
    }
    struct arena a;
    struct coord_out o;
    struct err e = {0};
    const uint64_t *jobs;
    size_t n;
    arena_init(&a);
    coord_out_init(&o, &a);
    coord_load_run(s->planner.c, r); /* failed and cancelled ones are not held for ever */
    int rc =
        coord_run_delete(s->planner.c, sim_now(s), r->id, sim_chance(s, 600), &jobs, &n, &o, &e);
    if (rc == 0) {
        for (size_t i = 0; i < n; i++) {
            s->deletes[s->n_deletes++ % ARRAY_LEN(s->deletes)] = jobs[i];
        }
        (void)sim_commit(s, &o);
    } else if (memory_unit(s->store, r->unit)) {
        sim_fail(s, "run %s cannot be deleted: %s", r->id, err_text(&e));
    }
    arena_fini(&a);
}

static void unit_other(struct sim *s, struct sim_unit *u)
{
    struct arena a;
    struct coord_out o;
    struct err e = {0};
    arena_init(&a);
    coord_out_init(&o, &a);
    if (sim_chance(s, 700)) {
        bool reload = sim_chance(s, 500);
        if (coord_unbind(s->planner.c, sim_now(s), u->id, reload ? "reload" : "patch", reload,
                         &o) == 0) {
            (void)sim_commit(s, &o);
        }
    } else if (s->n_units < SIM_UNITS &&
               coord_unit_delete(s->planner.c, sim_now(s), u->id, &o, &e) == 0) {
        (void)sim_commit(s, &o);
        u->deleted = memory_unit(s->store, u->id) == NULL;
    }
    arena_fini(&a);
}

void sim_client_step(struct sim *s)
{
    struct sim_unit *u = &s->units[sim_random(s, s->n_units)];
    uint64_t what = sim_random(s, 100);
    if (!s->planner.c) {
        return;
    }
    if (what < 50) {
        (void)sim_run_create(s, u, sim_chance(s, 250), sim_chance(s, 250));
    } else if (what < 60) {
        run_stop(s);
    } else if (what < 70) {
        run_delete(s);
    } else if (what < 84) {
        if (known(s, u)) {
            unit_publish(s, u, sim_chance(s, 250) ? "reload" : "publish");
        }
    } else if (what < 89) {
        s->tables[sim_random(s, SIM_TABLES)].stands = 0; /* someone drops a table by hand */
        if (s->n_results) {
            struct sim_result *r = &s->results[sim_random(s, s->n_results)];
            r->by_hand = r->by_hand || r->there;
            r->there = false;
        }
    } else if (what < 95) {
        if (known(s, u)) {
            unit_other(s, u);
        }
    } else {
        sim_unit_add(s);
    }
}
