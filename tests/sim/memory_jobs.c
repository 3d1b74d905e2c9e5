/* Places, jobs, attempts, generations and manifest entries of memory_store. */
#include "tests/sim/memory_internal.h"

#include <stdio.h>

struct row_job *job_row(const struct memory_store *s, uint64_t id)
{
    struct job_rec *j = map_get_u64(&s->jobs, id);
    return j && !j->gone ? &j->j : NULL;
}

/* ---- places and targets ---- */
const char *apply_place(struct memory_store *s, const struct core_target *t)
{
    if (map_get_u64(&s->places, t->place_id) ||
        !take_key(&s->place_names, key_of(s, "%s\x1f%s", t->warehouse, t->physical))) {
        return broken(s, "place %llu stands already", (unsigned long long)t->place_id);
    }
    struct core_target *p = arena_alloc(&s->mem, sizeof(*p));
    *p = target_copy(&s->mem, t);
    map_put_u64(&s->places, t->place_id, p);
    return NULL;
}

const char *apply_target(struct memory_store *s, const struct core_target *t)
{
    char *key = key_of(s, "%llu %s", (unsigned long long)t->place_id, t->entity_id);
    if (map_get_u64(&s->targets, t->target_id) || !map_get_u64(&s->places, t->place_id) ||
        !take_key(&s->place_names, key)) {
        return broken(s, "target %llu stands already, or at no place",
                      (unsigned long long)t->target_id);
    }
    struct core_target *p = arena_alloc(&s->mem, sizeof(*p));
    *p = target_copy(&s->mem, t);
    map_put_u64(&s->targets, t->target_id, p);
    return NULL;
}

/* ---- jobs ---- */
static bool holds(const struct row_job *j)
{
    bool live = j->state == JOB_LEASED || j->state == JOB_PUBLISHING || j->state == JOB_RESOLVING;
    return live && (j->kind == KIND_BUILD || j->kind == KIND_DROP);
}

static const char *check_job(struct memory_store *s, const struct row_job *j)
{
    unsigned long long id = j->id;
    if ((j->kind == KIND_BUILD) != (j->run != NULL) ||
        ((j->kind == KIND_BUILD || j->kind == KIND_DROP) && !j->place)) {
        return broken(s, "job %llu: kind, run and place do not fit", id);
    }
    if ((j->state == JOB_PUBLISHING || j->state == JOB_RESOLVING) && j->kind != KIND_BUILD) {
        return broken(s, "job %llu: only a build publishes", id);
    }
    if (j->granted_ever && j->state == JOB_LEASED && j->attempts == 0) {
        return broken(s, "job %llu: granted without an attempt", id);
    }
    for (struct map_iter it = map_begin(&s->jobs); map_next(&it);) {
        const struct job_rec *x = it.value;
        if (x->gone || x->j.id == j->id) {
            continue;
        }
        if (holds(j) && holds(&x->j) && x->j.place == j->place) {
            return broken(s, "place %llu has two live jobs", (unsigned long long)j->place);
        }
        if (j->run && x->j.run && strcmp(x->j.run, j->run) == 0 && x->j.target == j->target) {
            return broken(s, "job %llu: twice in one run", id);
        }
    }
    return NULL;
}

const char *apply_job_insert(struct memory_store *s, const struct row_job *in)
{
    bool whole = !in->run || run_row(s, in->run);
    whole = whole && (!in->place || map_get_u64(&s->places, in->place));
    whole = whole && (!in->target || map_get_u64(&s->targets, in->target));
    /* What a deleted unit had is still dropped; its row stays. */
    bool has_unit = in->kind == KIND_DROP ? map_get_u64(&s->units, in->unit) != NULL
                                          : unit_rec(s, in->unit) != NULL;
    whole = whole && (!in->unit || has_unit) && !map_get_u64(&s->jobs, in->id);
    for (size_t i = 0; i < in->n_parents; i++) {
        whole = whole && in->parents[i] < in->id && job_row(s, in->parents[i]);
    }
    if (!whole) {
        return broken(s, "job %llu refers to nothing, or stands already",
                      (unsigned long long)in->id);
    }
    struct job_rec *j = arena_zalloc(&s->mem, sizeof(*j));
    j->j = *in;
    j->j.run = arena_strdup(&s->mem, in->run);
    j->j.source_id = arena_strdup(&s->mem, in->source_id);
    j->j.spec = arena_strdup(&s->mem, in->spec);
    j->j.error = arena_strdup(&s->mem, in->error);
    j->j.parents = arena_dup(&s->mem, in->parents, in->n_parents * sizeof(*in->parents));
    map_put_u64(&s->jobs, in->id, j);
    return check_job(s, &j->j);
}

const char *apply_job_move(struct memory_store *s, const struct row_job *in)
{
    struct row_job *j = job_row(s, in->id);
    char id[24];
    snprintf(id, sizeof(id), "%llu", (unsigned long long)in->id);
    if (!j || j->state != in->from) {
        return broken(s, "job %s is gone or %s, not %s", id, j ? job_state_name(j->state) : "?",
                      job_state_name(in->from));
    }
    if (in->from != in->state) {
        const char *wrong = check_move(s, "job", id, job_state_name(j->state),
                                       job_state_name(in->from), job_state_name(in->state));
        if (wrong) {
            return wrong;
        }
    }
    j->state = in->state;
    j->stop_requested = in->stop_requested;
    j->granted_ever = in->granted_ever;
    j->attempts = in->attempts;
    j->retry_at_us = in->retry_at_us;
    j->error_code = in->error_code;
    j->error = arena_strdup(&s->mem, in->error);
    return check_job(s, j);
}

/* ---- attempts ---- */
static bool attempt_live(const struct row_attempt *a)
{
    return a->state == ATTEMPT_LEASED || a->state == ATTEMPT_GRANTED;
}

static const char *check_attempt(struct memory_store *s, const struct row_attempt *a)
{
    for (struct map_iter it = map_begin(&s->attempts); map_next(&it);) {
        const struct row_attempt *x = it.value;
        if (x != a && x->job == a->job && attempt_live(x) && attempt_live(a)) {
            return broken(s, "job %llu has two live attempts", (unsigned long long)a->job);
        }
    }
    return NULL;
}

const char *apply_attempt_insert(struct memory_store *s, const struct row_attempt *in)
{
    unsigned long long token = in->token;
    for (struct map_iter it = map_begin(&s->attempts); map_next(&it);) {
        const struct row_attempt *x = it.value;
        if (x->job == in->job && x->token >= in->token) {
            return broken(s, "token %llu is not the greatest of its job", token);
        }
    }
    char hex[33];
    hex_encode(in->pull_request, 16, hex);
    bool fresh = job_row(s, in->job) && !map_get_u64(&s->attempts, in->token);
    fresh = fresh && take_key(&s->job_numbers,
                              key_of(s, "%llu %d", (unsigned long long)in->job, in->number));
    fresh = fresh && take_key(&s->pulls, key_of(s, "%s %d", hex, in->pull_index));
    fresh = fresh && (!in->generation || take_key(&s->tokens, in->generation));
    if (!fresh) {
        return broken(s, "attempt %llu: token, number, pull or generation is taken, or no job",
                      token);
    }
    struct row_attempt *a = arena_dup(&s->mem, in, sizeof(*in));
    a->generation = arena_strdup(&s->mem, in->generation);
    a->builder = arena_strdup(&s->mem, in->builder);
    a->progress = arena_strdup(&s->mem, in->progress);
    a->error = NULL;
    map_put_u64(&s->attempts, in->token, a);
    return check_attempt(s, a);
}

const char *apply_attempt_move(struct memory_store *s, const struct row_attempt *in)
{
    struct row_attempt *a = map_get_u64(&s->attempts, in->token);
    char id[24];
    snprintf(id, sizeof(id), "%llu", (unsigned long long)in->token);
    const char *wrong = a ? check_move(s, "attempt", id, attempt_state_name(a->state),
                                       attempt_state_name(in->from), attempt_state_name(in->state))
                          : broken(s, "no attempt %s", id);
    if (wrong) {
        return wrong;
    }
    a->state = in->state;
    a->progress = in->progress ? arena_strdup(&s->mem, in->progress) : a->progress;
    a->error_code = in->error_code;
    a->error = arena_strdup(&s->mem, in->error);
    return check_attempt(s, a);
}

const char *apply_attempt_lease(struct memory_store *s, const struct row_attempt *in)
{
    struct row_attempt *a = map_get_u64(&s->attempts, in->token);
    if (!a || !attempt_live(a)) {
        return broken(s, "attempt %llu holds no lease", (unsigned long long)in->token);
    }
    a->progress = in->progress ? arena_strdup(&s->mem, in->progress) : a->progress;
    return NULL;
}

/* ---- generations and entries ---- */
static const char *check_generation(struct memory_store *s, const struct row_generation *g)
{
    for (struct map_iter it = map_begin(&s->generations); map_next(&it);) {
        const struct row_generation *x = it.value;
        if (x != g && x->target == g->target && x->state == GENERATION_BOUND &&
            g->state == GENERATION_BOUND) {
            return broken(s, "target %llu has two bound generations",
                          (unsigned long long)g->target);
        }
    }
    return NULL;
}

const char *apply_generation_insert(struct memory_store *s, const struct row_generation *in)
{
    char *token = key_of(s, "g%llu", (unsigned long long)in->g.token);
    if (strlen(in->g.id) != 26 || map_get(&s->generations, slice_of(in->g.id)) ||
        !map_get_u64(&s->targets, in->target) || !take_key(&s->tokens, token)) {
        return broken(s, "generation %s: id or token is taken, or no target", in->g.id);
    }
    struct row_generation *g = arena_dup(&s->mem, in, sizeof(*in));
    g->g = generation_copy(&s->mem, &in->g);
    g->run = arena_strdup(&s->mem, in->run);
    g->physical = arena_strdup(&s->mem, in->physical);
    map_put(&s->generations, slice_of(g->g.id), g);
    return check_generation(s, g);
}

const char *apply_generation_move(struct memory_store *s, const struct row_generation *in)
{
    struct row_generation *g = map_get(&s->generations, slice_of(in->g.id));
    const char *wrong =
        g ? check_move(s, "generation", in->g.id, generation_state_name(g->state),
                       generation_state_name(in->from), generation_state_name(in->state))
          : broken(s, "no generation %s", in->g.id);
    if (wrong) {
        return wrong;
    }
    g->state = in->state;
    return check_generation(s, g);
}

const char *apply_entry(struct memory_store *s, const struct row_entry *in)
{
    char *key = key_of(s, "%s %s", in->run, in->entity_id);
    bool failed = strcmp(in->outcome, "failed") == 0;
    bool whole = run_row(s, in->run) && map_get_u64(&s->places, in->place);
    whole = whole && failed == (in->generation == NULL);
    whole = whole && (!in->generation || map_get(&s->generations, slice_of(in->generation)));
    if (!whole || map_get(&s->entries, slice_of(key))) {
        return broken(s, "manifest entry %s stands already or refers to nothing", key);
    }
    struct row_entry *e = arena_dup(&s->mem, in, sizeof(*in));
    e->run = arena_strdup(&s->mem, in->run);
    e->entity_id = arena_strdup(&s->mem, in->entity_id);
    e->generation = arena_strdup(&s->mem, in->generation);
    e->source_id = arena_strdup(&s->mem, in->source_id);
    e->outcome = arena_strdup(&s->mem, in->outcome);
    e->entry = arena_strdup(&s->mem, in->entry);
    map_put(&s->entries, slice_of(key), e);
    return NULL;
}
