/* Rows applied to tables in memory; the rules are those of the run store's schema. Strings live as
 * long as the store. */
#include "tests/sim/memory_internal.h"

#include <ctype.h>
#include <stdio.h>

struct memory_store *memory_store_new(void)
{
    struct memory_store *s = xcalloc(1, sizeof(*s));
    arena_init(&s->mem);
    return s;
}

void memory_store_free(struct memory_store *s)
{
    struct map *maps[] = {&s->units,       &s->runs,        &s->requests,   &s->places,
                          &s->targets,     &s->jobs,        &s->attempts,   &s->pulls,
                          &s->generations, &s->tokens,      &s->entries,    &s->epochs,
                          &s->moves,       &s->job_numbers, &s->place_names};
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        map_fini(maps[i]);
    }
    arena_fini(&s->mem);
    free(s);
}

const char *broken(struct memory_store *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->why, sizeof(s->why), fmt, ap);
    va_end(ap);
    return s->why;
}

char *key_of(struct memory_store *s, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return arena_strdup(&s->mem, text);
}

bool take_key(struct map *m, const char *key)
{
    if (map_get(m, slice_of(key))) {
        return false;
    }
    map_put(m, slice_of(key), m);
    return true;
}

static void count_move(struct memory_store *s, const char *machine, const char *from,
                       const char *to)
{
    char *key = key_of(s, "%s %s %s", machine, from, to);
    uintptr_t n = (uintptr_t)map_get(&s->moves, slice_of(key));
    map_put(&s->moves, slice_of(key), (char *)n + 1);
}

size_t memory_moves_seen(const struct memory_store *s, const char *machine, const char *from,
                         const char *to)
{
    char key[128];
    snprintf(key, sizeof(key), "%s %s %s", machine, from, to);
    return (uintptr_t)map_get(&s->moves, slice_of(key));
}

const char *check_move(struct memory_store *s, const char *machine, const char *id,
                       const char *stands, const char *from, const char *to)
{
    if (strcmp(stands, from) != 0) {
        return broken(s, "%s %s is %s, not %s (asked to become %s)", machine, id, stands, from, to);
    }
    if (!states_move_allowed(machine, from, to)) {
        return broken(s, "%s %s may not move from %s to %s", machine, id, from, to);
    }
    count_move(s, machine, from, to);
    return NULL;
}

/* ---- units and sets ---- */
uint64_t memory_store_add_unit(struct memory_store *s, const char *environment, const char *name)
{
    struct unit_rec *u = arena_zalloc(&s->mem, sizeof(*u));
    u->u.id = map_len(&s->units) + 1;
    u->environment = arena_strdup(&s->mem, environment);
    u->name = arena_strdup(&s->mem, name);
    map_put_u64(&s->units, u->u.id, u);
    return u->u.id;
}

struct unit_rec *unit_rec(const struct memory_store *s, uint64_t id)
{
    struct unit_rec *u = map_get_u64(&s->units, id);
    return u && !u->deleted ? u : NULL;
}

static const char *apply_unit(struct memory_store *s, const struct row_unit *in)
{
    struct unit_rec *u = unit_rec(s, in->id);
    if (!u) {
        return broken(s, "unit %llu is gone", (unsigned long long)in->id);
    }
    if (in->epoch < u->u.epoch) {
        return broken(s, "epoch of unit %llu would go back", (unsigned long long)in->id);
    }
    u->u = *in;
    return NULL;
}

static const char *apply_set(struct memory_store *s, const struct core_binding_set *in)
{
    struct unit_rec *u = unit_rec(s, in->unit);
    if (!u) {
        return broken(s, "set of no unit");
    }
    if (in->epoch <= u->set.epoch || in->epoch != u->u.epoch) {
        return broken(s, "set %llu is not the newest of its unit", (unsigned long long)in->epoch);
    }
    if (!take_key(&s->epochs, key_of(s, "%llu", (unsigned long long)in->epoch))) {
        return broken(s, "epoch %llu was given twice", (unsigned long long)in->epoch);
    }
    for (size_t i = 0; i < in->n; i++) {
        if (!map_get(&s->generations, slice_of(in->bindings[i].generation.id))) {
            return broken(s, "a set names no generation: %s", in->bindings[i].generation.id);
        }
    }
    set_copy(&s->mem, in, &u->set);
    return NULL;
}

/* ---- runs ---- */
static bool run_id_fits(const char *id)
{
    for (size_t i = 0; i < 23; i++) {
        char ch = id[i];
        bool fits = i < 13    ? isdigit(ch)
                    : i == 13 ? ch == '-'
                              : isdigit(ch) || (ch >= 'a' && ch <= 'z');
        if (!fits) {
            return false;
        }
    }
    return id[23] == '\0';
}

struct row_run *run_row(const struct memory_store *s, const char *id)
{
    struct run_rec *r = map_get(&s->runs, slice_of(id));
    return r && !r->gone ? &r->r : NULL;
}

static const char *check_run(struct memory_store *s, const struct row_run *r)
{
    for (struct map_iter it = map_begin(&s->runs); map_next(&it);) {
        const struct run_rec *x = it.value;
        if (!x->gone && &x->r != r && x->r.unit == r->unit && run_state_active(x->r.state) &&
            run_state_active(r->state)) {
            return broken(s, "unit %llu has two active runs", (unsigned long long)r->unit);
        }
    }
    bool ended = !run_state_active(r->state);
    if (ended != (r->completed_us != 0)) {
        return broken(s, "run %s: completed_at and state disagree", r->id);
    }
    bool needs_load = r->state == RUN_BUILDING || r->state == RUN_BINDING || r->state == RUN_READY;
    if (needs_load && !r->load) {
        return broken(s, "run %s has no load", r->id);
    }
    if (r->state == RUN_FAILED && !r->error) {
        return broken(s, "run %s failed without an error", r->id);
    }
    return NULL;
}

static const char *apply_run_insert(struct memory_store *s, const struct row_run *in)
{
    if (map_get(&s->runs, slice_of(in->id)) || !run_id_fits(in->id) || !unit_rec(s, in->unit)) {
        return broken(s, "run %s: id taken or malformed, or no unit", in->id);
    }
    struct run_rec *r = arena_zalloc(&s->mem, sizeof(*r));
    r->r = *in;
    r->r.id = arena_strdup(&s->mem, in->id);
    r->r.trigger = arena_strdup(&s->mem, in->trigger);
    r->r.names = strings_copy(&s->mem, in->names, in->n_names);
    r->r.metadata = arena_strdup(&s->mem, in->metadata);
    r->r.run_context = arena_strdup(&s->mem, in->run_context);
    if (in->request_id) {
        r->r.request_id = arena_dup(&s->mem, in->request_id, 16);
        char hex[33];
        hex_encode(in->request_id, 16, hex);
        if (!take_key(&s->requests, hex)) {
            return broken(s, "request id of run %s was used before", in->id);
        }
    }
    map_put(&s->runs, slice_of(in->id), r);
    return check_run(s, &r->r);
}

static const char *apply_run_move(struct memory_store *s, const struct row_run *in)
{
    struct row_run *r = run_row(s, in->id);
    if (!r || r->state != in->from) {
        return broken(s, "run %s is gone or not %s", in->id, run_state_name(in->from));
    }
    const char *wrong = in->from == in->state
                            ? NULL
                            : check_move(s, "run", in->id, run_state_name(r->state),
                                         run_state_name(in->from), run_state_name(in->state));
    if (wrong) {
        return wrong;
    }
    r->state = in->state;
    r->load = in->load ? in->load : r->load;
    r->epoch = in->epoch ? in->epoch : r->epoch;
    r->plan = in->plan ? arena_strdup(&s->mem, in->plan) : r->plan;
    r->manifest = in->manifest ? arena_strdup(&s->mem, in->manifest) : r->manifest;
    r->metadata = in->metadata ? arena_strdup(&s->mem, in->metadata) : r->metadata;
    r->error = in->error ? arena_strdup(&s->mem, in->error) : r->error;
    r->started_us = in->started_us ? in->started_us : r->started_us;
    r->completed_us = in->completed_us ? in->completed_us : r->completed_us;
    return check_run(s, r);
}

/* Their pulls may be asked again, their tokens not: the counter is past them. */
static void forget_attempts(struct memory_store *s, uint64_t job)
{
    for (struct map_iter it = map_begin(&s->attempts); map_next(&it);) {
        const struct row_attempt *a = it.value;
        if (a->job != job) {
            continue;
        }
        char hex[33];
        hex_encode(a->pull_request, 16, hex);
        map_del(&s->pulls, slice_of(key_of(s, "%s %d", hex, a->pull_index)));
        map_del_u64(&s->attempts, a->token);
    }
}

static const char *apply_run_delete(struct memory_store *s, const char *id)
{
    struct run_rec *r = map_get(&s->runs, slice_of(id));
    if (!r || r->gone) {
        return broken(s, "run %s is gone", id);
    }
    r->gone = true;
    if (r->r.request_id) { /* its row is gone, and with it what the id was unique among */
        char hex[33];
        hex_encode(r->r.request_id, 16, hex);
        (void)map_del(&s->requests, slice_of(hex));
    }
    for (struct map_iter it = map_begin(&s->jobs); map_next(&it);) {
        struct job_rec *j = it.value;
        if (j->j.run && strcmp(j->j.run, id) == 0) {
            j->gone = true;
            forget_attempts(s, j->j.id);
        }
    }
    return NULL;
}

/* ---- applying ---- */
static const char *apply_row(struct memory_store *s, const struct row *r)
{
    switch (r->op) {
    case ROW_UNIT:
        return apply_unit(s, &r->u.unit);
    case ROW_UNIT_DELETE:
        if (!unit_rec(s, r->u.unit.id)) {
            return broken(s, "unit is gone");
        }
        unit_rec(s, r->u.unit.id)->deleted = true;
        return NULL;
    case ROW_RUN_INSERT:
        return apply_run_insert(s, &r->u.run);
    case ROW_RUN_MOVE:
        return apply_run_move(s, &r->u.run);
    case ROW_RUN_STOP:
        if (!run_row(s, r->u.run.id)) {
            return broken(s, "run is gone");
        }
        run_row(s, r->u.run.id)->stop_requested = true;
        return NULL;
    case ROW_RUN_DELETE:
        return apply_run_delete(s, r->u.run.id);
    case ROW_PLACE_INSERT:
        return apply_place(s, &r->u.target);
    case ROW_TARGET_INSERT:
        return apply_target(s, &r->u.target);
    case ROW_JOB_INSERT:
        return apply_job_insert(s, &r->u.job);
    case ROW_JOB_MOVE:
    case ROW_JOB_UPDATE:
        return apply_job_move(s, &r->u.job);
    case ROW_ATTEMPT_INSERT:
        return apply_attempt_insert(s, &r->u.attempt);
    case ROW_ATTEMPT_MOVE:
        return apply_attempt_move(s, &r->u.attempt);
    case ROW_ATTEMPT_LEASE:
        return apply_attempt_lease(s, &r->u.attempt);
    case ROW_GENERATION_INSERT:
        return apply_generation_insert(s, &r->u.generation);
    case ROW_GENERATION_MOVE:
        return apply_generation_move(s, &r->u.generation);
    case ROW_MANIFEST_ENTRY:
        return apply_entry(s, &r->u.entry);
    case ROW_BINDING_SET:
        return apply_set(s, &r->u.set);
    case ROW_INSTANCE:
        return NULL;
    }
    return broken(s, "unknown row");
}

const char *memory_store_apply(struct memory_store *s, const struct rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        const char *wrong = apply_row(s, &rows->items[i]);
        if (wrong) {
            return wrong;
        }
    }
    return NULL;
}
