/* The simulated disk of by-binding results: what builds leave there, what drops and sweeps take,
 * and who reads it (protocol.md 6, 8). */
#include "tests/sim/sim_world.h"

#include <stdio.h>

#define SWEEP_AGE_US UINT64_C(3600000000)

struct sim_result *sim_result_of(struct sim *s, const char *id)
{
    for (size_t i = 0; i < s->n_results; i++) {
        if (strcmp(s->results[i].id, id) == 0) {
            return &s->results[i];
        }
    }
    return NULL;
}

void sim_result_make(struct sim *s, const struct sim_stmt *st)
{
    struct sim_result *r = sim_result_of(s, st->generation);
    if (!r) {
        if (s->n_results == SIM_RESULTS) {
            sim_fail(s, "the disk has no room for results");
        }
        r = &s->results[s->n_results++];
        memcpy(r->id, st->generation, sizeof(r->id));
    }
    r->token = st->token;
    r->there = true;
}

void sim_results_discard(struct sim *s, const uint64_t *tokens, size_t n)
{
    for (size_t i = 0; i < s->n_results; i++) {
        for (size_t k = 0; k < n; k++) {
            s->results[i].there = s->results[i].there && s->results[i].token != tokens[k];
        }
    }
}

void sim_result_drop(struct sim *s, const struct sim_stmt *st)
{
    struct sim_result *r = sim_result_of(s, st->generation);
    if (!r) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(s->deletes); i++) {
        r->is_asked = r->is_asked || (s->deletes[i] && s->deletes[i] == st->job);
    }
    r->there = false;
}

/* What is in no record and older than an hour. */
void sim_results_sweep(struct sim *s, uint64_t token, char (*keep)[27], size_t n)
{
    for (size_t i = 0; i < s->n_results; i++) {
        struct sim_result *r = &s->results[i];
        bool kept = r->token + SWEEP_AGE_US > token;
        for (size_t k = 0; k < n && !kept; k++) {
            kept = strcmp(keep[k], r->id) == 0;
        }
        r->there = r->there && kept;
    }
}

/* ---- what must hold ---- */
static bool may_be_gone(const struct sim_result *r)
{
    return r->there || r->by_hand || r->is_asked;
}

/* A recorded result is on the disk, unless somebody took it behind Kiln's back. */
void sim_check_results(struct sim *s)
{
    struct map_iter it = {0};
    for (const struct row_generation *g; memory_generation_next(&it, s->store, &g);) {
        bool stands = g->state == GENERATION_RECORDED || g->state == GENERATION_BOUND ||
                      g->state == GENERATION_RETIRED;
        struct sim_result *r = stands ? sim_result_of(s, g->g.id) : NULL;
        if (r && !r->there && !r->by_hand) {
            sim_fail(s, "generation %s is %s and not on the disk", g->g.id,
                     generation_state_name(g->state));
        }
    }
}

/* Nothing that a gateway reads goes, as long as the planner hears of it. */
void sim_check_reads(struct sim *s)
{
    for (size_t i = 0; i < SIM_GATEWAYS; i++) {
        const struct sim_gateway *g = &s->gateways[i];
        if ((int64_t)s->now_ms - g->heard > 55000 || g->silent_call) {
            continue;
        }
        for (size_t k = 1; k <= SIM_UNITS; k++) {
            bool is_gone = !memory_unit(s->store, k); /* a gateway forgets it, but not here */
            for (size_t n = 0; n < g->sets[k].n && !is_gone; n++) {
                const struct sim_result *r = sim_result_of(s, g->sets[k].ids[n]);
                if (r && !may_be_gone(r)) {
                    sim_fail(s, "%s reads result %s of unit %zu at epoch %llu, which is gone",
                             g->name, r->id, k, (unsigned long long)g->applied[k]);
                }
            }
        }
    }
}

/* At the end the disk holds what is recorded, and nothing else. */
void sim_check_disk(struct sim *s)
{
    for (size_t i = 0; i < s->n_results; i++) {
        const struct sim_result *r = &s->results[i];
        const struct row_generation *g = memory_generation(s->store, r->id);
        bool recorded = g && g->state != GENERATION_DROPPED && g->state != GENERATION_LOST;
        if (r->there && !recorded) {
            sim_fail(s, "result %s (%s) was left on the disk", r->id,
                     g ? generation_state_name(g->state) : "never recorded");
        }
    }
}

void sim_set_copy(const struct core_binding_set *set, struct sim_set *out)
{
    out->n = 0;
    for (size_t i = 0; set && i < set->n; i++) {
        if (!set->bindings[i].target.in_place && out->n < ARRAY_LEN(out->ids)) {
            snprintf(out->ids[out->n++], sizeof(out->ids[0]), "%s", set->bindings[i].generation.id);
        }
    }
}
