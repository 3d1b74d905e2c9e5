/* The simulated gateways: fetch newer sets, apply them in order, report, notice tables that are
 * gone (protocol.md 6, 7). */
#include "tests/sim/sim_world.h"

#include <stdio.h>

void sim_gateway_start(struct sim *s, int i)
{
    struct sim_gateway *g = &s->gateways[i];
    uint64_t ever[SIM_UNITS + 1];
    memcpy(ever, g->ever, sizeof(ever));
    *g = (struct sim_gateway){.boot = sim_uuid(s), .incarnation = ++s->incarnations};
    memcpy(g->ever, ever, sizeof(ever));
    snprintf(g->name, sizeof(g->name), "gateway-%d", i + 1);
}

static void send(struct sim *s, int i, enum msg_kind kind)
{
    struct sim_gateway *g = &s->gateways[i];
    struct sim_msg m = {.kind = kind,
                        .peer = i,
                        .boot = g->boot,
                        .incarnation = g->incarnation,
                        .call = ++s->calls};
    memcpy(m.epochs, g->applied, sizeof(m.epochs));
    m.loading = sim_chance(s, 50);
    if (kind == MSG_REPORT) {
        memcpy(m.broken, g->broken, sizeof(m.broken));
        g->broken[0] = '\0';
    }
    sim_send(s, &m);
}

/* A query found a bound table gone, or another build in its place. */
static void notice_broken(struct sim *s, struct sim_gateway *g)
{
    for (size_t k = 0; k < s->n_units; k++) {
        const struct core_binding_set *set = memory_set(s->store, s->units[k].id);
        for (size_t n = 0; set && n < set->n; n++) {
            const struct core_binding *b = &set->bindings[n];
            const struct sim_table *t = &s->tables[sim_table_of(b->target.physical)];
            const struct sim_result *r = sim_result_of(s, b->generation.id);
            bool fits = r ? r->there
                          : t->stands && t->stands == t->published &&
                                strcmp(t->build_id, b->target.build_id) == 0;
            if (!fits && sim_chance(s, 300)) {
                memcpy(g->broken, b->generation.id, sizeof(g->broken));
            }
        }
    }
}

void sim_gateway_step(struct sim *s, int i)
{
    struct sim_gateway *g = &s->gateways[i];
    if (sim_chance(s, s->faults.crash_gateway)) {
        sim_gateway_start(s, i);
        return;
    }
    int64_t now = (int64_t)s->now_ms;
    if (now - g->fetched >= 300) {
        g->fetched = now;
        send(s, i, MSG_FETCH);
    }
    if (now - g->reported >= 1000) {
        g->reported = now;
        notice_broken(s, g);
        send(s, i, MSG_REPORT);
    }
}

void sim_gateway_reply(struct sim *s, int i, const struct sim_msg *m)
{
    struct sim_gateway *g = &s->gateways[i];
    if (m->incarnation != g->incarnation || m->kind != MSG_FETCH) {
        return;
    }
    bool changed = false;
    g->silent_call = m->call > g->silent_call ? 0 : g->silent_call;
    for (size_t k = 1; k <= SIM_UNITS; k++) {
        if (m->epochs[k] > g->applied[k]) {
            g->applied[k] = m->epochs[k];
            g->sets[k] = m->sets[k];
            g->ever[k] = g->ever[k] > m->epochs[k] ? g->ever[k] : m->epochs[k];
            changed = true;
        }
    }
    if (changed) {
        s->changed = true;
        g->reported = (int64_t)s->now_ms;
        send(s, i, MSG_REPORT);
    }
}
