/* Reading the tables in memory: back into a coordinator, and row by row for tests. */
#include "tests/sim/memory_internal.h"

#include <stdio.h>

const struct row_run *memory_run(const struct memory_store *s, const char *id)
{
    return run_row(s, id);
}

const struct row_job *memory_job(const struct memory_store *s, uint64_t id)
{
    return job_row(s, id);
}

const struct row_attempt *memory_attempt(const struct memory_store *s, uint64_t token)
{
    return map_get_u64(&s->attempts, token);
}

const struct row_generation *memory_generation(const struct memory_store *s, const char *id)
{
    return map_get(&s->generations, slice_of(id));
}

const struct row_entry *memory_entry(const struct memory_store *s, const char *run,
                                     const char *entity_id)
{
    auto_buf struct buf key = {0};
    buf_addf(&key, "%s %s", run, entity_id);
    return map_get(&s->entries, buf_slice(&key));
}

const struct core_binding_set *memory_set(const struct memory_store *s, uint64_t unit)
{
    const struct unit_rec *u = map_get_u64(&s->units, unit);
    return u && u->set.epoch ? &u->set : NULL;
}

const struct row_unit *memory_unit(const struct memory_store *s, uint64_t id)
{
    const struct unit_rec *u = unit_rec(s, id);
    return u ? &u->u : NULL;
}

const struct core_target *memory_place(const struct memory_store *s, uint64_t id)
{
    return map_get_u64(&s->places, id);
}

bool memory_run_next(struct map_iter *it, const struct memory_store *s, const struct row_run **out)
{
    *it = it->m ? *it : map_begin(&s->runs);
    while (map_next(it)) {
        const struct run_rec *r = it->value;
        if (!r->gone) {
            *out = &r->r;
            return true;
        }
    }
    return false;
}

bool memory_job_next(struct map_iter *it, const struct memory_store *s, const struct row_job **out)
{
    *it = it->m ? *it : map_begin(&s->jobs);
    while (map_next(it)) {
        const struct job_rec *j = it->value;
        if (!j->gone) {
            *out = &j->j;
            return true;
        }
    }
    return false;
}

bool memory_generation_next(struct map_iter *it, const struct memory_store *s,
                            const struct row_generation **out)
{
    *it = it->m ? *it : map_begin(&s->generations);
    if (!map_next(it)) {
        return false;
    }
    *out = it->value;
    return true;
}

bool memory_token_recorded(const struct memory_store *s, uint64_t token)
{
    char key[32];
    snprintf(key, sizeof(key), "g%llu", (unsigned long long)token);
    return map_get(&s->tokens, slice_of(key)) != NULL;
}

/* ---- loading ---- */
static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void load_numbers(const struct memory_store *s, struct coord *c)
{
    uint64_t greatest = 0, job = 0;
    for (struct map_iter it = map_begin(&s->attempts); map_next(&it);) {
        greatest = max_u64(greatest, ((const struct row_attempt *)it.value)->token);
    }
    for (struct map_iter it = map_begin(&s->units); map_next(&it);) {
        greatest = max_u64(greatest, ((const struct unit_rec *)it.value)->u.epoch);
    }
    for (struct map_iter it = map_begin(&s->jobs); map_next(&it);) {
        job = max_u64(job, ((const struct job_rec *)it.value)->j.id);
    }
    coord_load_numbers(c, greatest, job + 1, map_len(&s->places) + 1, map_len(&s->targets) + 1);
}

static void load_units(const struct memory_store *s, struct coord *c)
{
    for (struct map_iter it = map_begin(&s->units); map_next(&it);) {
        const struct unit_rec *u = it.value;
        if (!u->deleted) {
            coord_load_unit(c,
                            &(struct coord_unit_row){u->u.id, u->u.load, u->u.epoch, u->environment,
                                                     u->name, u->u.reload_emptied});
        }
    }
}

static void load_results(const struct memory_store *s, struct coord *c)
{
    for (struct map_iter it = map_begin(&s->targets); map_next(&it);) {
        coord_load_target(c, it.value);
    }
    for (struct map_iter it = map_begin(&s->generations); map_next(&it);) {
        coord_load_generation(c, it.value);
    }
    for (struct map_iter it = map_begin(&s->units); map_next(&it);) {
        const struct unit_rec *u = it.value;
        if (!u->deleted && u->set.epoch) {
            coord_load_set(c, &u->set);
        }
    }
}

static bool job_wanted(const struct memory_store *s, const struct job_rec *j)
{
    if (j->gone) {
        return false;
    }
    if (!j->j.run) {
        return !job_state_ended(j->j.state);
    }
    const struct row_run *r = run_row(s, j->j.run);
    return r && run_state_active(r->state);
}

static void load_work(const struct memory_store *s, struct coord *c, struct coord_now now)
{
    for (struct map_iter it = map_begin(&s->runs); map_next(&it);) {
        const struct run_rec *r = it.value;
        bool wanted = run_state_active(r->r.state) || r->r.state == RUN_READY;
        if (!r->gone && wanted && unit_rec(s, r->r.unit)) {
            coord_load_run(c, &r->r);
        }
    }
    for (struct map_iter it = map_begin(&s->jobs); map_next(&it);) {
        const struct job_rec *j = it.value;
        if (job_wanted(s, j)) {
            coord_load_job(c, &j->j);
        }
    }
    for (struct map_iter it = map_begin(&s->attempts); map_next(&it);) {
        coord_load_attempt(c, it.value, now);
    }
}

void memory_store_load(struct memory_store *s, struct coord *c, struct coord_now now)
{
    load_numbers(s, c);
    load_units(s, c);
    load_results(s, c);
    load_work(s, c, now);
}
