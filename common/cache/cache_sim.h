/* Redis in memory for the simulation: the compare-and-set, the tracked mirror, and their faults, on
 * scripted time. */
#pragma once
#include "common/cache/cache.h"
#include "common/flow/sim_time.h"

struct cache_world;
/* Chances are per put, in permille. */
struct cache_faults {
    struct ms delay_least, delay_most; /* of each command and each message */
    unsigned lose_before;              /* the connection breaks before the write is done */
    unsigned lose_after; /* the write is done, its answer is lost with the connection */
};
struct cache_world *cache_world_new(struct sim_time *t) MUST_USE;
void cache_world_free(struct cache_world *w); /* after its last end */
void cache_world_set_faults(struct cache_world *w, const struct cache_faults *f);

/* An end, used through cache.h as any other. */
struct cache *cache_sim_open(struct cache_world *w, const struct uuid *installation,
                             const struct cache_events *ev) MUST_USE;
/* kill -9 of its process: no callback is made. Frees c. */
void cache_sim_crash(struct cache *c);

/* The server: down breaks every connection; what it holds is kept until cache_world_flush. */
void cache_world_down(struct cache_world *w);
void cache_world_up(struct cache_world *w);
void cache_world_flush(struct cache_world *w);
/* What another client does to a key of an installation: any bytes, or SLICE_NONE to delete it. */
void cache_world_poke(struct cache_world *w, const struct uuid *installation, uint64_t unit,
                      struct slice value);
