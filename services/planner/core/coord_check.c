/* The invariants of the coordinator, checked from the outside in: for tests. */
#include "services/planner/core/coord_internal.h"

static const char *check_units(const struct coord *c)
{
    for (struct map_iter it = map_begin(&c->units); map_next(&it);) {
        const struct unit *u = it.value;
        size_t active = 0;
        list_for_each (at, &u->runs) {
            const struct run *r = list_entry(at, struct run, unit_link);
            active += run_state_active(r->state);
            if (run_state_active(r->state) && u->active != r) {
                return "a unit does not know its active run";
            }
        }
        if (active > 1 || (active == 0 && u->active)) {
            return "a unit has more or fewer active runs than it says";
        }
        if (u->set && (u->set->epoch != u->row.epoch || u->set->load != u->row.load)) {
            return "a unit's newest set is not of its epoch and load";
        }
        if (u->row.epoch > c->last) {
            return "an epoch is ahead of the counter";
        }
    }
    return NULL;
}

static const char *check_set(const struct coord *c, const struct core_binding_set *set,
                             struct map *counts)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct core_binding *b = &set->bindings[i];
        const struct target *t = target_by_id(c, b->target.target_id);
        if (!t || !b->generation.id || !b->source_id || b->target.place_id != t->place->id) {
            return "a binding is not whole";
        }
        uintptr_t n = (uintptr_t)map_get_u64(counts, t->t.target_id);
        map_put_u64(counts, t->t.target_id, (char *)n + 1);
    }
    return NULL;
}

static const char *check_bound_counts(const struct coord *c)
{
    struct map counts;
    map_init(&counts);
    const char *wrong = NULL;
    for (struct map_iter it = map_begin(&c->units); !wrong && map_next(&it);) {
        const struct unit *u = it.value;
        wrong = u->set ? check_set(c, u->set, &counts) : NULL;
    }
    for (struct map_iter it = map_begin(&c->targets); !wrong && map_next(&it);) {
        const struct target *t = it.value;
        if (t->n_bound != (uintptr_t)map_get_u64(&counts, t->t.target_id)) {
            wrong = "a target miscounts the sets that bind it";
        }
    }
    map_fini(&counts);
    return wrong;
}

static const char *check_target(const struct target *t, size_t *live)
{
    size_t bound = 0;
    list_for_each (it, &t->generations) {
        const struct generation *g = list_entry(it, struct generation, link);
        bound += g->state == GENERATION_BOUND;
        (*live)++;
        if (g->target != t) {
            return "a generation is of another target";
        }
    }
    return bound > 1 ? "a target has two bound generations" : NULL;
}

static const char *check_places(const struct coord *c)
{
    for (struct map_iter it = map_begin(&c->places); map_next(&it);) {
        const struct place *p = it.value;
        size_t live = 0;
        list_for_each (at, &p->targets) {
            const char *wrong = check_target(list_entry(at, struct target, link), &live);
            if (wrong) {
                return wrong;
            }
        }
        if (p->in_place && live > 1) {
            return "a place holds two results";
        }
        size_t holders = 0;
        list_for_each (at, &p->jobs) {
            const struct job *j = list_entry(at, struct job, place_link);
            bool holds =
                j->state == JOB_LEASED || j->state == JOB_PUBLISHING || j->state == JOB_RESOLVING;
            holders += holds;
            if (holds != (p->holder == j) || job_state_ended(j->state)) {
                return "a place and its jobs disagree about who holds it";
            }
        }
        if (holders > 1 || (p->holder && holders == 0)) {
            return "a place has more than one live job";
        }
    }
    return NULL;
}

static const char *check_attempts(const struct coord *c, const struct job *j)
{
    size_t live = 0;
    uint64_t before = 0;
    list_for_each (it, &j->attempt_list) {
        const struct attempt *a = list_entry(it, struct attempt, link);
        bool is_live = a->state == ATTEMPT_LEASED || a->state == ATTEMPT_GRANTED;
        live += is_live;
        if (a->token <= before || a->token > c->last) {
            return "tokens of a job do not grow";
        }
        if (is_live != list_linked(&a->live_link)) {
            return "an attempt is live and not, at once";
        }
        if (a->state == ATTEMPT_GRANTED && j->state != JOB_PUBLISHING) {
            return "a granted attempt's job is not publishing";
        }
        before = a->token;
    }
    bool must_live = j->state == JOB_LEASED || j->state == JOB_PUBLISHING;
    if (live > 1 || (must_live && live == 0) || (live && !must_live && j->state != JOB_RESOLVING)) {
        return "a job's attempts do not fit its state";
    }
    return NULL;
}

static const char *check_job(const struct job *j)
{
    size_t waiting = 0;
    for (size_t i = 0; i < j->n_parents; i++) {
        enum job_state s = j->parents[i]->state;
        waiting += s != JOB_DONE && s != JOB_CARRIED;
    }
    if (j->n_waiting != waiting || (j->state == JOB_WAITING && waiting == 0)) {
        return "a job miscounts the parents it waits for";
    }
    bool queued = list_linked(&j->todo);
    if (j->state != JOB_READY && j->state != JOB_RESOLVING && queued) {
        return "a job that is not to be handed out is queued";
    }
    return j->state == JOB_READY && !queued ? "a ready job is not queued" : NULL;
}

static const char *check_jobs(const struct coord *c)
{
    for (struct map_iter it = map_begin(&c->jobs); map_next(&it);) {
        const struct job *j = it.value;
        const char *wrong = check_job(j);
        wrong = wrong ? wrong : check_attempts(c, j);
        if (wrong) {
            return wrong;
        }
    }
    for (struct map_iter it = map_begin(&c->runs); map_next(&it);) {
        const struct run *r = it.value;
        size_t open = 0;
        for (size_t i = 0; i < r->n_jobs; i++) {
            open += !job_state_ended(r->jobs[i]->state);
        }
        if (open != r->n_open || (r->state == RUN_BUILDING && open == 0)) {
            return "a run miscounts its open jobs";
        }
    }
    return NULL;
}

const char *coord_check(const struct coord *c)
{
    const char *wrong = check_units(c);
    wrong = wrong ? wrong : check_bound_counts(c);
    wrong = wrong ? wrong : check_places(c);
    return wrong ? wrong : check_jobs(c);
}
