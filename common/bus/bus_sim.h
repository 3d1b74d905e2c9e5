/* A network in one process for bus ends on scripted time: delays, drops, repeats, reorderings, cuts
 * and crashes from one seed. */
#pragma once
#include "common/bus/bus.h"
#include "common/flow/sim_time.h"

struct bus_world;
/* Chances are per message, in permille. All zero: every message arrives at the instant in which it
 * was sent, in order. */
struct bus_faults {
    struct ms delay_least, delay_most;         /* of every message */
    struct ms reconnect_least, reconnect_most; /* from a break until the connection stands again */
    unsigned drop;                             /* lost without a sign */
    unsigned duplicate;                        /* arrives twice */
    unsigned reorder;                          /* may be overtaken */
    unsigned cut;                              /* lost with its connection; both ends notice */
};
struct bus_world_stats {
    uint64_t sent, delivered, dropped, duplicated, reordered, cut;
};

struct bus_world *bus_world_new(struct sim_time *t) MUST_USE;
void bus_world_free(struct bus_world *w); /* after its last end */
void bus_world_set_faults(struct bus_world *w, const struct bus_faults *f);
const struct bus_world_stats *bus_world_stats(const struct bus_world *w);

/* An end of the bus, used through bus.h as any other; addresses are names that are known in this
 * world only. */
struct bus *bus_sim_new(struct bus_world *w, const struct bus_identity *me) MUST_USE;
/* What kill -9 does: no callback is made, calls and held requests are gone, peers see their
 * connections break. Frees b. Never from inside of one of b's callbacks. */
void bus_sim_crash(struct bus *b);
/* Unplugs one end from everyone, and plugs it in again. */
void bus_sim_cut(struct bus *b);
void bus_sim_heal(struct bus *b);
