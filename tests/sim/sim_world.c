/* The generator, the clock and the bus of the simulated world. */
#include "tests/sim/sim_world.h"

#include <stdarg.h>
#include <stdio.h>

uint64_t sim_random(struct sim *s, uint64_t n)
{
    s->rng += 0x9e3779b97f4a7c15u; /* splitmix64 */
    uint64_t z = s->rng;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % n;
}

bool sim_chance(struct sim *s, unsigned per_mille)
{
    return sim_random(s, 1000) < per_mille;
}

struct coord_now sim_now(struct sim *s)
{
    struct coord_now now = {
        .mono = MS((int64_t)s->now_ms),
        .unix_us = 1766012345000000 + (int64_t)s->now_ms * 1000 + (int64_t)(s->steps % 1000),
    };
    for (size_t i = 0; i < sizeof(now.random); i++) {
        now.random[i] = (uint8_t)sim_random(s, 256);
    }
    return now;
}

struct uuid sim_uuid(struct sim *s)
{
    struct uuid u;
    for (size_t i = 0; i < sizeof(u.b); i++) {
        u.b[i] = (uint8_t)sim_random(s, 256);
    }
    return u;
}

void sim_fail(const struct sim *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fflush(stdout);
    fprintf(stderr, "seed %llu, step %llu, %llu ms: ", (unsigned long long)s->seed,
            (unsigned long long)s->steps, (unsigned long long)s->now_ms);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\nreplay: coord_sim --seed %llu\n", (unsigned long long)s->seed);
    va_end(ap);
    abort();
}

/* ---- bus ---- */
static void post(struct sim *s, const struct sim_msg *m)
{
    for (size_t i = 0; i < SIM_MSGS; i++) {
        if (!s->msgs[i].used) {
            s->msgs[i] = *m;
            s->msgs[i].used = true;
            uint64_t late = sim_chance(s, 100) ? 3000 : 30;
            s->msgs[i].at = (int64_t)(s->now_ms + sim_random(s, late));
            return;
        }
    }
    /* the bus is full: it may lose anything */
}

void sim_send(struct sim *s, const struct sim_msg *m)
{
    if (sim_chance(s, s->faults.drop)) {
        return;
    }
    post(s, m);
    if (sim_chance(s, s->faults.duplicate)) {
        post(s, m);
    }
}

void sim_deliver(struct sim *s)
{
    size_t from = sim_random(s, SIM_MSGS);
    for (size_t i = 0; i < SIM_MSGS; i++) {
        struct sim_msg *slot = &s->msgs[(from + i) % SIM_MSGS];
        if (!slot->used || slot->at > (int64_t)s->now_ms) {
            continue;
        }
        struct sim_msg m = *slot;
        slot->used = false;
        if (!m.is_reply) {
            sim_planner_request(s, &m);
        } else if (m.kind == MSG_REPORT || m.kind == MSG_FETCH) {
            sim_gateway_reply(s, m.peer, &m);
        } else {
            sim_builder_reply(s, m.peer, &m);
        }
        return;
    }
}

/* ---- life ---- */
static void choose_faults(struct sim *s)
{
    if (sim_chance(s, 100)) {
        s->faults = (struct sim_faults){.client = 60};
        return;
    }
    s->faults = (struct sim_faults){
        .drop = (unsigned)sim_random(s, 250),
        .duplicate = (unsigned)sim_random(s, 200),
        .crash_builder = (unsigned)sim_random(s, 15),
        .crash_gateway = (unsigned)sim_random(s, 6),
        .crash_commit = (unsigned)sim_random(s, 60),
        .statement = (unsigned)sim_random(s, 200),
        .client = 20 + (unsigned)sim_random(s, 60),
        .pause = sim_chance(s, 300) ? (unsigned)sim_random(s, 60) : 0, /* results grow old */
    };
}

struct sim *sim_new(uint64_t seed, bool trace)
{
    struct sim *s = xcalloc(1, sizeof(*s));
    s->seed = seed;
    s->trace = trace;
    s->rng = seed * 0x2545f4914f6cdd1du + 1;
    s->now_ms = 1000;
    s->store = memory_store_new();
    sim_planner_start(s);
    for (int i = 0; i < SIM_BUILDERS; i++) {
        sim_builder_start(s, i);
    }
    for (int i = 0; i < SIM_GATEWAYS; i++) {
        sim_gateway_start(s, i);
    }
    size_t n = 2 + sim_random(s, 2);
    while (s->n_units < n) {
        sim_unit_add(s);
    }
    choose_faults(s);
    return s;
}

void sim_free(struct sim *s)
{
    sim_planner_stop(s);
    memory_store_free(s->store);
    free(s);
}
