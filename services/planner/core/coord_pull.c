/* Handing work out: leases, their renewal, their end by the clock (protocol.md 4, 5). */
#include "services/planner/core/coord_internal.h"

/* ---- who has pulled what ---- */
static bool pull_known(const struct coord *c, const uint8_t id[16])
{
    for (size_t i = 0; i < c->at_pull && i < RECENT_PULLS; i++) {
        if (memcmp(c->pulls[i], id, 16) == 0) {
            return true;
        }
    }
    return false;
}

void pull_remember(struct coord *c, const uint8_t id[16])
{
    if (!pull_known(c, id)) {
        memcpy(c->pulls[c->at_pull++ % RECENT_PULLS], id, 16);
    }
}

/* ---- what a builder is told ---- */
static const char *question(const struct job *j)
{
    const char *id = NULL;
    list_for_each (it, &j->attempt_list) {
        const struct attempt *a = list_entry(it, struct attempt, link);
        if (!a->is_resolve && a->has_facts) {
            id = a->generation;
        }
    }
    return id;
}

static void input_add(struct arena *mem, struct coord_lease *out, const struct core_target *t,
                      const char *generation)
{
    out->inputs[out->n_inputs++] = (struct coord_input){
        arena_strdup(mem, t->table), arena_strdup(mem, generation), arena_strdup(mem, t->build_id)};
}

/* What is built or carried by now, and what is bound outside of the run. */
static void lease_inputs(struct turn *t, const struct job *j, struct coord_lease *out)
{
    const struct run *r = j->run;
    struct arena *mem = t->o->rows.arena;
    if (!r || j->kind != KIND_BUILD || j->place->in_place) {
        return;
    }
    const struct core_binding_set *set = r->unit->set;
    out->inputs = arena_alloc(mem, (r->n_items + (set ? set->n : 0) + 1) * sizeof(*out->inputs));
    for (size_t i = 0; i < r->n_items; i++) {
        const struct plan_item *it = &r->items[i];
        bool ended = it->p.action == PLAN_CARRY ||
                     (it->job && (it->job->state == JOB_DONE || it->job->state == JOB_CARRIED));
        const char *id =
            ended && !it->target->place->in_place ? outcome_of(t->c, it).generation : NULL;
        if (id) {
            input_add(mem, out, &it->p.target, id);
        }
    }
    for (size_t i = 0; set && i < set->n; i++) {
        const struct core_binding *b = &set->bindings[i];
        if (!b->target.in_place && !map_get_u64(&r->by_target, b->target.target_id)) {
            input_add(mem, out, &b->target, b->generation.id);
        }
    }
}

static void lease_fill(struct turn *t, struct attempt *a, struct coord_lease *out)
{
    struct arena *mem = t->o->rows.arena;
    const struct job *j = a->job;
    uint64_t *earlier = NULL;
    size_t n = 0;
    list_for_each (it, &j->attempt_list) {
        n += list_entry(it, struct attempt, link) != a;
    }
    earlier = arena_alloc(mem, (n + 1) * sizeof(*earlier));
    n = 0;
    list_for_each (it, &j->attempt_list) {
        const struct attempt *other = list_entry(it, struct attempt, link);
        if (other != a) {
            earlier[n++] = other->token;
        }
    }
    struct core_target *target = arena_alloc(mem, sizeof(*target));
    *target = target_copy(mem, &j->t);
    const char *generation = j->kind == KIND_DROP ? j->generation : a->generation;
    *out = (struct coord_lease){
        .job = j->id,
        .token = a->token,
        .unit = j->unit,
        .kind = a->is_resolve ? KIND_RESOLVE : j->kind,
        .run = j->run ? arena_strdup(mem, j->run->id) : NULL,
        .trace = j->run ? j->run->trace : (struct uuid){{0}},
        .spec = arena_strdup(mem, j->spec),
        .generation = arena_strdup(mem, a->is_resolve ? question(j) : generation),
        .target = j->place ? target : NULL,
        .earlier = earlier,
        .n_earlier = n,
        .take_over = j->run && j->run->take_over,
        .load = j->run ? j->run->load : 0,
    };
    lease_inputs(t, j, out);
}

/* A request that was answered before gets what is left of its answer, and never anything new. */
static size_t leases_again(struct turn *t, const struct coord_builder *b, struct coord_lease *out,
                           size_t slots)
{
    size_t n = 0;
    list_for_each (it, &t->c->live) {
        struct attempt *a = list_entry(it, struct attempt, live_link);
        if (n < slots && a->state == ATTEMPT_LEASED &&
            memcmp(a->pull_request, b->request_id, 16) == 0) {
            lease_fill(t, a, &out[n++]);
        }
    }
    return n;
}

static void name_generation(const struct turn *t, struct attempt *a)
{
    uint8_t mixed[10];
    memcpy(mixed, t->now.random, sizeof(mixed));
    for (size_t i = 0; i < 8; i++) { /* unique even where randomness is scripted: the token is */
        mixed[9 - i] ^= (uint8_t)(a->token >> (8 * i));
    }
    ulid_format((uint64_t)(t->now.unix_us / 1000), mixed, a->generation);
}

static void row_attempt_insert(struct turn *t, const struct attempt *a)
{
    struct arena *mem = t->o->rows.arena;
    struct row_attempt *row = &rows_add(&t->o->rows, ROW_ATTEMPT_INSERT)->u.attempt;
    *row = (struct row_attempt){
        .token = a->token,
        .job = a->job->id,
        .number = a->number,
        .is_resolve = a->is_resolve,
        .from = ATTEMPT_LEASED,
        .state = ATTEMPT_LEASED,
        .generation = a->generation[0] ? arena_strdup(mem, a->generation) : NULL,
        .builder = arena_strdup(mem, a->builder),
        .boot = a->boot,
        .pull_index = a->pull_index,
        .lease_ms = t->c->lim.lease.v,
    };
    memcpy(row->pull_request, a->pull_request, sizeof(row->pull_request));
}

static struct attempt *lease_job(struct turn *t, struct job *j, const struct coord_builder *b,
                                 size_t index)
{
    struct coord *c = t->c;
    int number = 1;
    list_for_each (it, &j->attempt_list) {
        number++;
    }
    struct attempt *a = attempt_add(c, j, coord_next_token(c, t->now));
    a->number = number;
    a->pull_index = (int)index;
    a->is_resolve = j->state == JOB_RESOLVING;
    a->builder = coord_intern(c, b->instance);
    a->boot = b->boot;
    memcpy(a->pull_request, b->request_id, sizeof(a->pull_request));
    a->lease_until = a->row_until = ms_add(t->now.mono, c->lim.lease);
    a->saved_at = t->now.mono;
    if (j->kind == KIND_BUILD && !a->is_resolve) {
        name_generation(t, a);
    }
    list_add_tail(&c->live, &a->live_link);
    c->n_leased++;
    list_del(&j->todo);
    j->nobody = NOBODY_NO;
    if (!a->is_resolve) {
        j->attempts++;
        j->retry_at_us = 0;
        move_job(t, j, JOB_LEASED);
    }
    row_attempt_insert(t, a);
    return a;
}

static bool may_lease(const struct coord *c, const struct job *j)
{
    if (j->state == JOB_RESOLVING) {
        return true;
    }
    bool room = c->lim.max_leased <= 0 || c->n_leased < (size_t)c->lim.max_leased;
    return room && (!j->place || !j->place->holder);
}

static size_t lease_from(struct turn *t, struct list *queue, const struct coord_builder *b,
                         size_t slots, size_t n, struct coord_lease *out)
{
    list_for_each (it, queue) {
        struct job *j = list_entry(it, struct job, todo);
        if (n == slots) {
            break;
        }
        if (may_lease(t->c, j) && reach_covers(t->c, &b->reach, j)) {
            struct attempt *a = lease_job(t, j, b, n);
            lease_fill(t, a, &out[n++]);
        }
    }
    return n;
}

static void take_due(struct turn *t, bool tell)
{
    list_for_each (it, &t->c->delayed) {
        struct job *j = list_entry(it, struct job, todo);
        if (!ms_before(t->now.mono, j->due)) {
            job_queue(t->c, j, t->now.mono);
            if (tell) {
                coord_note(t, NOTE_JOBS);
            }
        }
    }
}

static size_t leases_new(struct turn *t, const struct coord_builder *b, struct coord_lease *out,
                         size_t slots)
{
    take_due(t, false);
    size_t n = lease_from(t, &t->c->resolving, b, slots, 0, out);
    n = lease_from(t, &t->c->ready, b, slots, n, out);
    if (n > 0) {
        pull_remember(t->c, b->request_id);
    }
    return n;
}

size_t coord_pull(struct coord *c, struct coord_now now, const struct coord_builder *b,
                  size_t slots, struct coord_lease *out, struct coord_out *o)
{
    struct turn t = {c, now, o};
    if (!builder_seen(&t, b->instance, &b->boot, &b->reach)) {
        return 0;
    }
    size_t n = pull_known(c, b->request_id) ? leases_again(&t, b, out, slots)
                                            : leases_new(&t, b, out, slots);
    coord_turn_end(&t); /* another boot's leases may have ended */
    return n;
}

void coord_pull_over(struct coord *c, const uint8_t request_id[16])
{
    pull_remember(c, request_id);
}

/* ---- renewal ---- */
enum { ROW_LEFT_MS = 6000, ROW_PROGRESS_MS = 5000 };

static void renew_one(struct turn *t, struct attempt *a, const struct coord_progress *p)
{
    struct ms mono = t->now.mono;
    a->lease_until = ms_add(mono, t->c->lim.lease);
    a->stage = coord_intern(t->c, p->stage);
    a->rows = p->rows;
    a->bytes = p->bytes;
    bool row_short = ms_sub(a->row_until, mono).v < ROW_LEFT_MS;
    if (!row_short && ms_sub(mono, a->saved_at).v < ROW_PROGRESS_MS) {
        return;
    }
    a->row_until = a->lease_until;
    a->saved_at = mono;
    rows_add(&t->o->rows, ROW_ATTEMPT_LEASE)->u.attempt = (struct row_attempt){
        .token = a->token,
        .job = a->job->id,
        .from = a->state,
        .state = a->state,
        .lease_ms = t->c->lim.lease.v,
        .progress = facts_text(t->o->rows.arena, a),
    };
}

void coord_renew(struct coord *c, struct coord_now now, const struct coord_builder *b,
                 const struct coord_progress *p, size_t n, uint64_t *cancel, size_t *n_cancel,
                 uint64_t *lost, size_t *n_lost, struct coord_out *o)
{
    struct turn t = {c, now, o};
    *n_cancel = *n_lost = 0;
    bool known_boot = builder_seen(&t, b->instance, &b->boot, NULL);
    for (size_t i = 0; i < n; i++) {
        struct attempt *a = coord_find_attempt(c, p[i].token);
        if (!known_boot || !a || !list_linked(&a->live_link) || !uuid_eq(&a->boot, &b->boot)) {
            lost[(*n_lost)++] = p[i].token;
            continue;
        }
        renew_one(&t, a, &p[i]);
        if (a->job->stop_requested && a->job->state == JOB_LEASED) {
            cancel[(*n_cancel)++] = a->token;
        }
    }
    coord_turn_end(&t);
}

/* ---- the clock ---- */
static void expire_leases(struct turn *t)
{
    bool again = true;
    while (again) { /* one lost lease may end others' jobs */
        again = false;
        list_for_each (it, &t->c->live) {
            struct attempt *a = list_entry(it, struct attempt, live_link);
            if (!ms_before(t->now.mono, a->lease_until)) {
                attempt_expire(t, a, "the builder was not heard for one lease term");
                again = true;
                break;
            }
        }
    }
}

void coord_tick(struct coord *c, struct coord_now now, struct coord_out *o)
{
    struct turn t = {c, now, o};
    expire_leases(&t);
    take_due(&t, true);
    coord_turn_end(&t);
    units_check_reported(&t);
    list_for_each (it, &c->binding) {
        run_check_bound(&t, list_entry(it, struct run, todo_link));
    }
}

struct ms coord_next_due(const struct coord *c)
{
    struct ms due = ms_min(gateways_next_due(c), ms_min(reach_next_due(c), retire_next_due(c)));
    list_for_each (it, &c->live) {
        due = ms_min(due, list_entry(it, struct attempt, live_link)->lease_until);
    }
    list_for_each (it, &c->delayed) {
        due = ms_min(due, list_entry(it, struct job, todo)->due);
    }
    list_for_each (it, &c->binding) {
        due = ms_min(due, list_entry(it, struct run, todo_link)->check_due);
    }
    return due;
}
