/* The coordinator's life, its tables, numbers and look-ups. */
#include "services/planner/core/coord_internal.h"

enum { NOTES_FIRST = 8 };

void coord_out_init(struct coord_out *o, struct arena *a)
{
    *o = (struct coord_out){.rows = {.arena = a}};
}

struct coord *coord_new(const struct uuid *installation, const struct coord_limits *lim)
{
    struct coord *c = xcalloc(1, sizeof(*c));
    c->installation = *installation;
    c->lim = *lim;
    c->next_job = c->next_place = c->next_target = 1;
    c->unheard_until = MS_NONE;
    struct map *maps[] = {&c->strings, &c->units,       &c->places, &c->place_names, &c->targets,
                          &c->runs,    &c->generations, &c->jobs,   &c->attempts};
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        map_init(maps[i]);
    }
    struct list *lists[] = {&c->live,     &c->ready,    &c->resolving, &c->delayed, &c->loose,
                            &c->ending,   &c->to_plan,  &c->binding,   &c->ended,   &c->awaiting,
                            &c->gateways, &c->builders, &c->retired};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        list_init(lists[i]);
    }
    return c;
}

static void free_units(struct coord *c)
{
    for (struct map_iter it = map_begin(&c->units); map_next(&it);) {
        struct unit *u = it.value;
        arena_fini(&u->set_mem);
        free(u);
    }
}

static void free_results(struct coord *c)
{
    for (struct map_iter it = map_begin(&c->generations); map_next(&it);) {
        struct generation *g = it.value;
        free(g->g.columns.items);
        free(g->out);
        free(g);
    }
    for (struct map_iter it = map_begin(&c->targets); map_next(&it);) {
        free(it.value);
    }
    for (struct map_iter it = map_begin(&c->places); map_next(&it);) {
        free(it.value);
    }
}

static void free_peers(struct coord *c)
{
    list_for_each (it, &c->gateways) {
        struct gateway *g = list_entry(it, struct gateway, link);
        for (struct map_iter at = map_begin(&g->units); map_next(&at);) {
            free(at.value);
        }
        map_fini(&g->units);
        free(g);
    }
    list_for_each (it, &c->builders) {
        struct builder *b = list_entry(it, struct builder, link);
        free(b->connections);
        free(b);
    }
}

void coord_free(struct coord *c)
{
    if (!c) {
        return;
    }
    for (struct map_iter it = map_begin(&c->runs); map_next(&it);) {
        run_free(c, it.value);
    }
    list_for_each (it, &c->loose) {
        job_free(c, list_entry(it, struct job, loose_link));
    }
    free_units(c);
    free_results(c);
    free_peers(c);
    for (struct map_iter it = map_begin(&c->strings); map_next(&it);) {
        free(it.value);
    }
    struct map *maps[] = {&c->strings, &c->units,       &c->places, &c->place_names, &c->targets,
                          &c->runs,    &c->generations, &c->jobs,   &c->attempts};
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        map_fini(maps[i]);
    }
    free(c);
}

const char *coord_intern(struct coord *c, const char *text)
{
    if (!text) {
        return NULL;
    }
    char *known = map_get(&c->strings, slice_of(text));
    if (!known) {
        known = xstrdup(text);
        map_put(&c->strings, slice_of(text), known);
    }
    return known;
}

struct coord_note *coord_note(struct turn *t, enum coord_note_kind kind)
{
    struct coord_out *o = t->o;
    if (o->n_notes == o->cap_notes) {
        size_t cap = o->cap_notes ? o->cap_notes * 2 : NOTES_FIRST;
        struct coord_note *items = arena_alloc(o->rows.arena, cap * sizeof(*items));
        if (o->n_notes) {
            memcpy(items, o->notes, o->n_notes * sizeof(*items));
        }
        o->notes = items;
        o->cap_notes = cap;
    }
    struct coord_note *n = &o->notes[o->n_notes++];
    *n = (struct coord_note){.kind = kind};
    return n;
}

struct unit *coord_find_unit(const struct coord *c, uint64_t id)
{
    return map_get_u64(&c->units, id);
}

struct run *coord_find_run(const struct coord *c, const char *id)
{
    return map_get(&c->runs, slice_of(id));
}

struct attempt *coord_find_attempt(const struct coord *c, uint64_t token)
{
    return map_get_u64(&c->attempts, token);
}

static void end_loose_jobs(struct coord *c)
{
    list_for_each (it, &c->loose) {
        struct job *j = list_entry(it, struct job, loose_link);
        if (job_state_ended(j->state)) {
            job_free(c, j);
        }
    }
}

void coord_turn_end(struct turn *t)
{
    struct list *it;
    while ((it = list_take_head(&t->c->ending)) != NULL) {
        run_planned_end(t, list_entry(it, struct run, ending_link));
    }
    end_loose_jobs(t->c);
    retire_check(t);
    reach_check(t);
    while (t->c->n_ended > ENDED_RUNS_MAX) {
        struct run *r = list_entry(t->c->ended.next, struct run, ended_link);
        run_free(t->c, r);
    }
}

uint64_t coord_next_token(struct coord *c, struct coord_now now)
{
    uint64_t clock = now.unix_us > 0 ? (uint64_t)now.unix_us : 0;
    c->last = c->last + 1 > clock ? c->last + 1 : clock;
    return c->last;
}

void coord_raise(struct coord *c, uint64_t seen)
{
    if (seen > c->last) {
        c->last = seen;
    }
}

bool coord_unit_get(const struct coord *c, uint64_t unit, struct coord_unit_row *out)
{
    const struct unit *u = coord_find_unit(c, unit);
    if (!u) {
        return false;
    }
    *out = u->row;
    return true;
}

const struct core_binding_set *coord_unit_set(const struct coord *c, uint64_t unit)
{
    const struct unit *u = coord_find_unit(c, unit);
    return u ? u->set : NULL;
}

bool coord_unit_reported(const struct coord *c, struct coord_now now, uint64_t unit, uint64_t epoch)
{
    bool loading = false;
    return gateways_reported(c, now.mono, unit, epoch, &loading);
}

bool coord_run_state(const struct coord *c, const char *run, enum run_state *out)
{
    const struct run *r = coord_find_run(c, run);
    if (!r) {
        return false;
    }
    *out = r->state;
    return true;
}

size_t coord_live_tokens(const struct coord *c, uint64_t *out, size_t max)
{
    size_t n = 0;
    list_for_each (it, &c->live) {
        if (n < max) {
            out[n++] = list_entry(it, struct attempt, live_link)->token;
        }
    }
    return n;
}

const struct core_generation *coord_current_generation(const struct coord *c,
                                                       const struct core_target *t)
{
    const struct target *known = target_find(c, t);
    const struct generation *g = known ? target_current(known) : NULL;
    return g ? &g->g : NULL;
}
