/* Places, targets and generations: what a name in a warehouse holds, as far as it was recorded. */
#include "services/planner/core/coord_internal.h"

static struct place *place_find(const struct coord *c, const struct core_target *t)
{
    auto_buf struct buf key = {0};
    buf_addf(&key, "%s\x1f%s", t->warehouse, t->physical);
    return map_get(&c->place_names, buf_slice(&key));
}

static struct place *place_add(struct coord *c, const struct core_target *t, uint64_t id)
{
    struct place *p = xcalloc(1, sizeof(*p));
    p->id = id;
    p->warehouse = coord_intern(c, t->warehouse);
    p->physical = coord_intern(c, t->physical);
    p->in_place = t->in_place;
    list_init(&p->targets);
    list_init(&p->jobs);
    auto_buf struct buf key = {0};
    buf_addf(&key, "%s\x1f%s", t->warehouse, t->physical);
    map_put(&c->place_names, buf_slice(&key), p);
    map_put_u64(&c->places, id, p);
    if (id >= c->next_place) {
        c->next_place = id + 1;
    }
    return p;
}

static struct target *target_add(struct coord *c, struct place *p, const struct core_target *in,
                                 uint64_t id)
{
    struct target *t = xcalloc(1, sizeof(*t));
    t->t = target_keep(c, in);
    t->t.target_id = id;
    t->t.place_id = p->id;
    t->place = p;
    list_init(&t->generations);
    list_add_tail(&p->targets, &t->link);
    map_put_u64(&c->targets, id, t);
    if (id >= c->next_target) {
        c->next_target = id + 1;
    }
    return t;
}

static struct target *target_at(const struct place *p, const char *entity_id)
{
    list_for_each (it, &p->targets) {
        struct target *t = list_entry(it, struct target, link);
        if (strcmp(t->t.entity_id, entity_id) == 0) {
            return t;
        }
    }
    return NULL;
}

struct target *target_find(const struct coord *c, const struct core_target *in)
{
    const struct place *p = place_find(c, in);
    return p ? target_at(p, in->entity_id) : NULL;
}

struct target *target_by_id(const struct coord *c, uint64_t id)
{
    return map_get_u64(&c->targets, id);
}

void coord_load_target(struct coord *c, const struct core_target *t)
{
    struct place *p = map_get_u64(&c->places, t->place_id);
    if (!p) {
        p = place_add(c, t, t->place_id);
    }
    if (t->target_id) {
        target_add(c, p, t, t->target_id);
    }
}

static void row_target(struct turn *t, enum row_op op, const struct core_target *in)
{
    rows_add(&t->o->rows, op)->u.target = target_copy(t->o->rows.arena, in);
}

struct target *target_obtain(struct turn *t, const struct core_target *in)
{
    struct place *p = place_find(t->c, in);
    bool is_new = p == NULL;
    if (is_new) {
        p = place_add(t->c, in, t->c->next_place);
    }
    struct target *known = target_at(p, in->entity_id);
    if (known) {
        return known;
    }
    known = target_add(t->c, p, in, t->c->next_target);
    if (is_new) {
        row_target(t, ROW_PLACE_INSERT, &known->t);
    }
    row_target(t, ROW_TARGET_INSERT, &known->t);
    return known;
}

struct generation *target_current(const struct target *t)
{
    struct generation *newest = NULL;
    list_for_each (it, &t->generations) {
        struct generation *g = list_entry(it, struct generation, link);
        if (g->state != GENERATION_DROPPING && (!newest || g->g.token > newest->g.token)) {
            newest = g;
        }
    }
    return newest;
}

struct generation *generation_find(const struct coord *c, const char *id)
{
    return map_get(&c->generations, slice_of(id));
}

struct generation *generation_add(struct coord *c, struct target *t,
                                  const struct core_generation *g, enum generation_state s)
{
    struct generation *n = xcalloc(1, sizeof(*n));
    n->g = *g;
    must(strlen(g->id) < sizeof(n->id));
    memcpy(n->id, g->id, strlen(g->id) + 1);
    n->g.id = n->id;
    n->g.columns = columns_keep(c, &g->columns);
    n->target = t;
    n->state = s;
    list_init(&n->retired_link);
    list_add_tail(&t->generations, &n->link);
    map_put(&c->generations, slice_of(n->id), n);
    coord_raise(c, g->token);
    return n;
}

void generation_forget(struct coord *c, struct generation *g)
{
    list_del(&g->link);
    list_del(&g->retired_link);
    free(g->out);
    map_del(&c->generations, slice_of(g->id));
    free(g->g.columns.items);
    free(g);
}

static bool generation_state_ended(enum generation_state s)
{
    return s == GENERATION_DROPPED || s == GENERATION_OVERWRITTEN || s == GENERATION_LOST;
}

void coord_load_generation(struct coord *c, const struct row_generation *g)
{
    struct target *t = target_by_id(c, g->target);
    coord_raise(c, g->g.token);
    if (!t || generation_state_ended(g->state)) {
        return;
    }
    struct generation *n = generation_add(c, t, &g->g, g->state);
    n->load = g->load;
    if (g->run) {
        strncpy(n->run, g->run, sizeof(n->run) - 1);
    }
}

/* In place, whatever stood there before is gone with the swap. By binding, the own target's results
 * that nobody bound are superseded. */
static void place_overwrite(struct turn *t, const struct place *p, const struct target *by)
{
    list_for_each (it, &p->targets) {
        struct target *other = list_entry(it, struct target, link);
        list_for_each (at, &other->generations) {
            struct generation *g = list_entry(at, struct generation, link);
            if (p->in_place) {
                move_generation(t, g, GENERATION_OVERWRITTEN);
            } else if (other == by && g->state == GENERATION_RECORDED) {
                move_generation(t, g, GENERATION_RETIRED);
            }
        }
    }
}

static void row_generation_insert(struct turn *t, const struct generation *g)
{
    struct arena *a = t->o->rows.arena;
    rows_add(&t->o->rows, ROW_GENERATION_INSERT)->u.generation = (struct row_generation){
        .g = generation_copy(a, &g->g),
        .target = g->target->t.target_id,
        .load = g->load,
        .from = GENERATION_RECORDED,
        .state = GENERATION_RECORDED,
        .run = arena_strdup(a, g->run),
        .physical = arena_strdup(a, g->target->t.physical),
    };
}

void generation_record(struct turn *t, struct job *j, struct attempt *a)
{
    must(a->has_facts && a->generation[0]);
    place_overwrite(t, j->place, j->target);
    struct core_generation made = {
        .id = a->generation,
        .token = a->token,
        .rows = a->facts.rows,
        .bytes = a->facts.bytes,
        .data_as_of_us = a->facts.data_as_of_us,
        .root = a->facts.root,
        .columns = a->facts.columns,
    };
    struct generation *g = generation_add(t->c, j->target, &made, GENERATION_RECORDED);
    g->load = j->run->load;
    memcpy(g->run, j->run->id, sizeof(g->run));
    row_generation_insert(t, g);
    if (j->place->in_place) {
        units_lose_place(t, j->place, j->target);
    }
}

void place_settle(struct turn *t, struct place *p)
{
    bool again = true;
    while (again) { /* ending one job may take others off the list */
        again = false;
        list_for_each (it, &p->jobs) {
            struct job *j = list_entry(it, struct job, place_link);
            if (j->state == JOB_READY && job_try_carry(t, j)) {
                again = true;
                break;
            }
        }
    }
    if (!list_empty(&p->jobs)) {
        coord_note(t, NOTE_JOBS);
    }
}

void coord_broken(struct coord *c, struct coord_now now, uint64_t unit, const char *generation,
                  const char *code, struct coord_out *o)
{
    (void)unit;
    (void)code;
    struct turn t = {c, now, o};
    struct generation *g = generation_find(c, generation);
    if (g && g->state != GENERATION_DROPPING) {
        move_generation(&t, g, GENERATION_LOST);
    }
}
