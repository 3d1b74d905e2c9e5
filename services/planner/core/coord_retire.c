/* By-binding results that are out of force: when nobody can read them any more they are dropped
 * (protocol.md 6, "Retire and drop"). */
#include "services/planner/core/coord_internal.h"

/* The unit's set `epoch` is its first one without this result. */
static void out_note(struct generation *g, uint64_t unit, uint64_t epoch)
{
    for (size_t i = 0; i < g->n_out; i++) {
        if (g->out[i].unit == unit) {
            g->out[i].epoch = epoch;
            return;
        }
    }
    g->out = xrealloc(g->out, (g->n_out + 1) * sizeof(*g->out));
    g->out[g->n_out].unit = unit;
    g->out[g->n_out++].epoch = epoch;
}

static bool set_holds(const struct core_binding_set *set, const char *id)
{
    for (size_t i = 0; set && i < set->n; i++) {
        if (strcmp(set->bindings[i].generation.id, id) == 0) {
            return true;
        }
    }
    return false;
}

void retire_left_out(struct turn *t, const struct unit *u, const struct core_binding_set *old)
{
    for (size_t i = 0; i < old->n; i++) {
        struct generation *g = generation_find(t->c, old->bindings[i].generation.id);
        if (g && !g->target->place->in_place && !set_holds(u->set, g->id)) {
            out_note(g, u->row.id, u->row.epoch);
        }
    }
}

void retire_begin(struct coord *c, struct generation *g, struct ms mono)
{
    if (!g->target->place->in_place) {
        g->retired_at = mono;
        g->ripe = false;
        list_add_tail(&c->retired, &g->retired_link);
    }
}

/* A planner that has just started does not know which sets named it: all of its unit did. */
void retire_loaded(struct turn *t)
{
    for (struct map_iter it = map_begin(&t->c->generations); map_next(&it);) {
        struct generation *g = it.value;
        const struct run *r = coord_find_run(t->c, g->run);
        if (g->state != GENERATION_RETIRED) {
            continue;
        }
        if (r) {
            out_note(g, r->unit->row.id, r->unit->row.epoch);
        }
        retire_begin(t->c, g, t->now.mono);
    }
}

/* ---- who may still want it ---- */
static bool run_wants(const struct run *r, const struct generation *g)
{
    for (size_t i = 0; i < r->n_items; i++) {
        const struct plan_target *p = &r->items[i].p;
        if (p->action == PLAN_CARRY && strcmp(p->generation.id, g->id) == 0) {
            return true;
        }
    }
    return false;
}

/* A restart rebinds what the newest run named, and the next run carries it. */
static bool would_come_back(const struct unit *u, const struct generation *g)
{
    const struct run *r = unit_newest_ready(u, NULL);
    if (!r || target_current(g->target) != g) {
        return false;
    }
    for (size_t i = 0; i < r->n_held; i++) {
        if (r->held[i].target.target_id == g->target->t.target_id) {
            return true;
        }
    }
    return false;
}

static bool unit_wants(const struct unit *u, const struct generation *g)
{
    return set_holds(u->set, g->id) || would_come_back(u, g) ||
           (u->active && run_wants(u->active, g));
}

/* Reads of an epoch older than its first set without it may read it. */
static bool somebody_reads(const struct turn *t, uint64_t unit, uint64_t epoch)
{
    list_for_each (it, &t->c->gateways) {
        const struct gateway *g = list_entry(it, struct gateway, link);
        const struct gateway_unit *u = map_get_u64(&g->units, unit);
        bool heard = ms_before(t->now.mono, ms_add(g->heard, t->c->lim.gateway_gone));
        if (heard && u && u->oldest_in_use && u->oldest_in_use < epoch) {
            return true;
        }
    }
    return false;
}

static bool may_drop(const struct turn *t, const struct generation *g)
{
    for (size_t i = 0; i < g->n_out; i++) {
        const struct unit *u = coord_find_unit(t->c, g->out[i].unit);
        bool is_predecessor = u && u->row.epoch <= g->out[i].epoch;
        if (is_predecessor || somebody_reads(t, g->out[i].unit, g->out[i].epoch)) {
            return false;
        }
    }
    for (struct map_iter it = map_begin(&t->c->units); map_next(&it);) {
        if (unit_wants(it.value, g)) {
            return false;
        }
    }
    return true;
}

void retire_check(struct turn *t)
{
    bool dropped = false;
    list_for_each (it, &t->c->retired) {
        struct generation *g = list_entry(it, struct generation, retired_link);
        g->ripe = !ms_before(t->now.mono, ms_add(g->retired_at, t->c->lim.gateway_gone));
        if (g->ripe && may_drop(t, g)) {
            drop_make(t, g->n_out ? g->out[0].unit : 0, &g->target->t, g, 0);
            dropped = true;
        }
    }
    if (dropped) {
        coord_note(t, NOTE_JOBS);
    }
}

size_t coord_live_generations(const struct coord *c, struct arena *a, const char *const **out)
{
    size_t n = 0;
    size_t bound = 0;
    for (struct map_iter it = map_begin(&c->units); map_next(&it);) {
        const struct unit *u = it.value;
        bound += u->set ? u->set->n : 0;
    }
    size_t most = map_len(&c->generations) + map_len(&c->attempts) + bound;
    const char **list = arena_zalloc(a, (most + 1) * sizeof(*list));
    /* A gateway that does not find a result makes the record of it end, while others serve it. */
    for (struct map_iter it = map_begin(&c->units); map_next(&it);) {
        const struct unit *u = it.value;
        for (size_t i = 0; u->set && i < u->set->n; i++) {
            list[n++] = arena_strdup(a, u->set->bindings[i].generation.id);
        }
    }
    for (struct map_iter it = map_begin(&c->generations); map_next(&it);) {
        const struct generation *g = it.value;
        if (!g->target->place->in_place) {
            list[n++] = arena_strdup(a, g->id);
        }
    }
    list_for_each (it, &c->live) {
        const struct attempt *at = list_entry(it, struct attempt, live_link);
        if (at->generation[0] && at->job->place && !at->job->place->in_place) {
            list[n++] = arena_strdup(a, at->generation);
        }
    }
    *out = list;
    return n;
}

/* What is ripe and was not dropped waits for reports and sets, not for time. */
struct ms retire_next_due(const struct coord *c)
{
    struct ms due = MS_NONE;
    list_for_each (it, &c->retired) {
        const struct generation *g = list_entry(it, struct generation, retired_link);
        due = g->ripe ? due : ms_min(due, ms_add(g->retired_at, c->lim.gateway_gone));
    }
    return due;
}
