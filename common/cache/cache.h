/* Binding sets in Redis: compare-and-set by epoch, and a tracked mirror that is never emptied
 * (protocol.md 6). Two implementations: cache_redis.c and cache_sim.c. */
#pragma once
#include "common/base/crypto.h"
#include "common/loop/loop.h"

struct cache;
struct cache_events {
    void *data;
    /* A key of ours holds this value (first read, a change, or re-read after a reconnect). epoch =
     * its 20 digits; packed is valid during the call. */
    void (*on_set)(void *data, uint64_t unit, uint64_t epoch, struct slice packed);
    /* After a (re)connect every key was read: units that Redis lacks or holds older may be written
     * again now. */
    void (*on_synced)(void *data);
    /* NULL: nobody asks. Every five seconds while it is confirmed: Redis answered what it was asked
     * at that time, so every change of before has been announced. */
    void (*on_heard)(void *data, struct ms asked);
    /* confirmed: tracking works and all keys were read since the last disconnect. Called on each
     * change; `why` in words. */
    void (*on_state)(void *data, bool confirmed, const char *why);
};
/* url: "unix:/path" or "host:port" ("host:port/db" and "user:password@host:port" too). Connects by
 * itself, for ever (100 ms doubling to 5 s, jitter). */
struct cache *cache_open(struct loop *l, const char *url, const struct uuid *installation,
                         const struct uuid *boot, const struct cache_events *ev,
                         struct err *e) MUST_USE;
bool cache_confirmed(const struct cache *c);
struct cache_put {
    /* set by the caller; packed is copied by cache_put_start */
    uint64_t unit, epoch;
    struct slice packed;               /* 8 MiB at most */
    void (*done)(struct cache_put *p); /* on the loop, exactly once, later */
    void *data;
    /* set when done */
    int rc; /* ERR_REDIS when not connected or lost: the mirror is re-synced later anyway */
    struct err err;
    uint64_t in_force; /* the epoch now in Redis: ours, or a greater one */
    void *impl;
};
void cache_put_start(struct cache *c, struct cache_put *p); /* deadline 2 s */
/* The same with whole-installation clean-up (kiln --init): deletes every key of the installation.
 * Blocking-free; done later. */
void cache_close(struct cache *c, void (*done)(void *data), void *data);
void cache_free(struct cache *c);
