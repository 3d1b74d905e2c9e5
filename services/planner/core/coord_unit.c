/* Units and their binding sets: always whole, every change at a new epoch (protocol.md 6). */
#include "services/planner/core/coord_internal.h"

enum { DRAFT_FIRST = 8 };

struct core_binding *draft_add(struct draft *d, const struct core_binding *b)
{
    if (d->n == d->cap) {
        size_t cap = d->cap ? d->cap * 2 : DRAFT_FIRST;
        struct core_binding *items = arena_alloc(d->a, cap * sizeof(*items));
        if (d->n) {
            memcpy(items, d->items, d->n * sizeof(*items));
        }
        d->items = items;
        d->cap = cap;
    }
    d->items[d->n] = *b;
    return &d->items[d->n++];
}

void draft_unbaked(struct draft *d, const char *source_id, const char *code, const char *text)
{
    if (d->n_unbaked == d->cap_unbaked) {
        size_t cap = d->cap_unbaked ? d->cap_unbaked * 2 : DRAFT_FIRST;
        struct core_unbaked *items = arena_alloc(d->a, cap * sizeof(*items));
        if (d->n_unbaked) {
            memcpy(items, d->unbaked, d->n_unbaked * sizeof(*items));
        }
        d->unbaked = items;
        d->cap_unbaked = cap;
    }
    d->unbaked[d->n_unbaked++] = (struct core_unbaked){
        arena_strdup(d->a, source_id),
        arena_strdup(d->a, code),
        arena_strdup(d->a, text),
    };
}

static bool same_binding(const struct core_binding *a, const struct core_binding *b)
{
    return a->target.target_id == b->target.target_id &&
           strcmp(a->generation.id, b->generation.id) == 0 && a->window_s == b->window_s &&
           a->fallback == b->fallback && a->n_shared_by == b->n_shared_by &&
           strcmp(a->target.connection, b->target.connection) == 0;
}

static bool same_bindings(const struct core_binding_set *set, const struct draft *d)
{
    struct map by_source;
    map_init(&by_source);
    for (size_t i = 0; i < set->n; i++) {
        map_put(&by_source, slice_of(set->bindings[i].source_id), &set->bindings[i]);
    }
    bool same = set->n == d->n;
    for (size_t i = 0; same && i < d->n; i++) {
        const struct core_binding *old = map_get(&by_source, slice_of(d->items[i].source_id));
        same = old && same_binding(old, &d->items[i]);
    }
    map_fini(&by_source);
    return same;
}

static bool same_unbaked(const struct core_binding_set *set, const struct draft *d)
{
    bool same = set->n_unbaked == d->n_unbaked;
    for (size_t i = 0; same && i < d->n_unbaked; i++) {
        same = strcmp(set->unbaked[i].source_id, d->unbaked[i].source_id) == 0 &&
               strcmp(set->unbaked[i].code, d->unbaked[i].code) == 0;
    }
    return same;
}

bool draft_changes(const struct unit *u, const struct draft *d)
{
    if (!u->set) {
        return d->n > 0 || d->n_unbaked > 0;
    }
    return u->set->load != u->row.load || !same_bindings(u->set, d) || !same_unbaked(u->set, d);
}

static void count_bound(struct coord *c, const struct core_binding_set *set, bool add)
{
    for (size_t i = 0; set && i < set->n; i++) {
        struct target *t = target_by_id(c, set->bindings[i].target.target_id);
        if (t) {
            t->n_bound = add ? t->n_bound + 1 : t->n_bound - 1;
        }
    }
}

void unit_set_load(struct coord *c, struct unit *u, const struct core_binding_set *s)
{
    struct arena fresh;
    arena_init(&fresh);
    struct core_binding_set *copy = arena_alloc(&fresh, sizeof(*copy));
    set_copy(&fresh, s, copy);
    count_bound(c, u->set, false);
    arena_fini(&u->set_mem);
    u->set_mem = fresh;
    u->set = copy;
    count_bound(c, copy, true);
    coord_raise(c, s->epoch);
}

/* By binding only one result of a target is in force: the others leave before it comes in. */
static void bind_generations(struct turn *t, const struct core_binding_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        struct generation *g = generation_find(t->c, set->bindings[i].generation.id);
        if (!g || g->state == GENERATION_BOUND || g->state == GENERATION_DROPPING) {
            continue;
        }
        list_for_each (it, &g->target->generations) {
            struct generation *old = list_entry(it, struct generation, link);
            if (old->state == GENERATION_BOUND) {
                move_generation(t, old, GENERATION_RETIRED);
            }
        }
        move_generation(t, g, GENERATION_BOUND);
    }
}

/* By binding, a result that no set names any more is out of force. */
static void retire_unbound(struct turn *t, const struct core_binding_set *old)
{
    for (size_t i = 0; old && i < old->n; i++) {
        struct generation *g = generation_find(t->c, old->bindings[i].generation.id);
        if (g && !g->target->place->in_place && g->target->n_bound == 0 &&
            g->state == GENERATION_BOUND) {
            move_generation(t, g, GENERATION_RETIRED);
        }
    }
}

void unit_set_make(struct turn *t, struct unit *u, const struct draft *d, const char *cause,
                   const char *run)
{
    struct arena *a = t->o->rows.arena;
    struct core_binding_set old = {0};
    if (u->set) {
        set_copy(a, u->set, &old);
    }
    u->row.epoch = coord_next_token(t->c, t->now);
    struct core_binding_set set = {
        .unit = u->row.id,
        .epoch = u->row.epoch,
        .load = u->row.load,
        .run = run,
        .cause = cause,
        .bindings = d->items,
        .n = d->n,
        .unbaked = d->unbaked,
        .n_unbaked = d->n_unbaked,
    };
    row_unit(t, u);
    set_copy(a, &set, &rows_add(&t->o->rows, ROW_BINDING_SET)->u.set);
    unit_set_load(t->c, u, &set);
    retire_left_out(t, u, &old);
    retire_unbound(t, &old);
    bind_generations(t, u->set);
    struct coord_note *n = coord_note(t, NOTE_BIND);
    n->unit = u->row.id;
    n->epoch = u->row.epoch;
    unit_await(t, u);
}

/* ---- what stays of a set ---- */
static void keep_unbaked(struct draft *d, const struct core_binding_set *set)
{
    for (size_t i = 0; set && i < set->n_unbaked; i++) {
        const struct core_unbaked *x = &set->unbaked[i];
        draft_unbaked(d, x->source_id, x->code, x->text);
    }
}

static bool among(const char *const *list, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i], text) == 0) {
            return true;
        }
    }
    return false;
}

static const char *unbound_code(const char *cause)
{
    static const char *const codes[][2] = {
        {"reload", "unbound_by_reload"},
        {"publish", "unbound_by_publish"},
        {"patch", "unbound_by_patch"},
    };
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        if (strcmp(codes[i][0], cause) == 0) {
            return codes[i][1];
        }
    }
    return "unbound_by_publish";
}

/* The set in force without the bindings of builds that are not in keep. */
static void draft_kept(struct draft *d, const struct unit *u, const char *const *keep, size_t n,
                       const char *cause)
{
    keep_unbaked(d, u->set);
    for (size_t i = 0; u->set && i < u->set->n; i++) {
        const struct core_binding *b = &u->set->bindings[i];
        if (among(keep, n, b->target.build_id)) {
            draft_add(d, b);
        } else {
            draft_unbaked(d, b->source_id, unbound_code(cause), "");
        }
    }
}

void units_lose_place(struct turn *t, const struct place *p, const struct target *keep)
{
    bool bound = false;
    list_for_each (it, &p->targets) {
        const struct target *other = list_entry(it, struct target, link);
        bound = bound || (other != keep && other->n_bound > 0);
    }
    for (struct map_iter it = map_begin(&t->c->units); bound && map_next(&it);) {
        struct unit *u = it.value;
        struct draft d = {.a = t->o->rows.arena};
        size_t before = u->set ? u->set->n : 0;
        keep_unbaked(&d, u->set);
        for (size_t i = 0; i < before; i++) {
            const struct core_binding *b = &u->set->bindings[i];
            if (b->target.place_id != p->id || b->target.target_id == keep->t.target_id) {
                draft_add(&d, b);
                continue;
            }
            draft_unbaked(&d, b->source_id, "table_taken_over",
                          arena_printf(d.a, "%s now holds another source's result", p->physical));
        }
        if (d.n != before) {
            unit_set_make(t, u, &d, "run", NULL);
        }
    }
}

/* ---- the calls ---- */
static struct unit *unit_add(struct coord *c, const struct coord_unit_row *row)
{
    struct unit *u = xcalloc(1, sizeof(*u));
    u->row = *row;
    u->row.environment = coord_intern(c, row->environment);
    u->row.name = coord_intern(c, row->name);
    list_init(&u->runs);
    list_init(&u->awaiting);
    arena_init(&u->set_mem);
    map_put_u64(&c->units, row->id, u);
    coord_raise(c, row->epoch);
    return u;
}

void coord_load_unit(struct coord *c, const struct coord_unit_row *row)
{
    unit_add(c, row);
}

void coord_load_set(struct coord *c, const struct core_binding_set *s)
{
    struct unit *u = coord_find_unit(c, s->unit);
    if (u) {
        unit_set_load(c, u, s);
    }
}

/* A run in progress is pinned to its load; what the new load does not plan stays out of the set at
 * its end. */
static void run_leave_out(struct turn *t, struct run *r, const char *const *keep, size_t n)
{
    bool changed = false;
    for (size_t i = 0; i < r->n_items; i++) {
        bool out = !among(keep, n, r->items[i].p.target.build_id);
        changed = changed || out != r->items[i].left_out;
        r->items[i].left_out = out;
    }
    if (!changed) {
        return;
    }
    rows_add(&t->o->rows, ROW_RUN_MOVE)->u.run = (struct row_run){
        .id = arena_strdup(t->o->rows.arena, r->id),
        .unit = r->unit->row.id,
        .load = r->load,
        .epoch = r->epoch,
        .from = r->state,
        .state = r->state,
        .plan = run_plan_text(t->o->rows.arena, r),
    };
}

void coord_unit_load(struct coord *c, struct coord_now now, const struct coord_unit_row *row,
                     const char *cause, const char *const *keep_builds, size_t n_keep,
                     struct coord_out *o)
{
    struct turn t = {c, now, o};
    struct unit *u = coord_find_unit(c, row->id);
    if (!u) {
        u = unit_add(c, row);
    }
    bool is_reload = strcmp(cause, "reload") == 0;
    u->row.load = row->load;
    if (is_reload && u->set && u->set->n > 0 && n_keep == 0) {
        u->row.reload_emptied = true;
    } else if (strcmp(cause, "publish") == 0) {
        u->row.reload_emptied = false; /* what a restart would bring back belongs to older files */
    }
    struct draft d = {.a = o->rows.arena};
    draft_kept(&d, u, keep_builds, n_keep, cause);
    unit_set_make(&t, u, &d, cause, NULL);
    if (u->active && u->active->state == RUN_BUILDING && !(is_reload && n_keep == 0)) {
        run_leave_out(&t, u->active, keep_builds, n_keep);
    }
    coord_turn_end(&t);
}

int coord_unbind(struct coord *c, struct coord_now now, uint64_t unit, const char *cause,
                 bool reload, struct coord_out *o)
{
    struct turn t = {c, now, o};
    struct unit *u = coord_find_unit(c, unit);
    if (!u) {
        return ERR_NOT_FOUND;
    }
    u->row.reload_emptied = reload && u->set && (u->set->n > 0 || u->row.reload_emptied);
    struct draft d = {.a = o->rows.arena};
    draft_kept(&d, u, NULL, 0, cause);
    unit_set_make(&t, u, &d, cause, NULL);
    return 0;
}

static void unit_forget(struct coord *c, struct unit *u)
{
    count_bound(c, u->set, false);
    list_del(&u->awaiting);
    arena_fini(&u->set_mem);
    map_del_u64(&c->units, u->row.id);
    free(u);
}

/* Open drop and sweep jobs of a unit that goes: what is out finishes by itself, the rest is given
 * up. */
static void give_up_jobs(struct turn *t, uint64_t unit)
{
    list_for_each (it, &t->c->loose) {
        struct job *j = list_entry(it, struct job, loose_link);
        if (j->unit != unit) {
            continue;
        }
        j->stop_requested = true;
        if (j->state == JOB_READY) {
            job_retry(t, j, ERR_STOPPED, "its package was deleted");
        } else {
            update_job(t, j);
        }
    }
}

int coord_unit_delete(struct coord *c, struct coord_now now, uint64_t unit, struct coord_out *o,
                      struct err *e)
{
    struct turn t = {c, now, o};
    struct unit *u = coord_find_unit(c, unit);
    if (!u) {
        return err_set(e, ERR_NOT_FOUND, "no such package");
    }
    if (u->active) {
        return err_set(e, ERR_RUN_ACTIVE,
                       "package '%s' has an active materialization %s; stop it first", u->row.name,
                       u->active->id);
    }
    struct draft d = {.a = o->rows.arena};
    unit_set_make(&t, u, &d, "delete", NULL);
    give_up_jobs(&t, unit);
    list_for_each (it, &u->runs) {
        struct run *r = list_entry(it, struct run, unit_link);
        rows_add(&o->rows, ROW_RUN_DELETE)->u.run.id = arena_strdup(o->rows.arena, r->id);
        run_free(c, r);
    }
    rows_add(&o->rows, ROW_UNIT_DELETE)->u.unit.id = unit;
    unit_forget(c, u);
    coord_turn_end(&t);
    return 0;
}
