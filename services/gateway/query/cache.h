/* The compile cache: what a query text became, least recently used out, equal misses in flight
 * shared. Knows no compiler: who misses, makes the value. Loop thread. */
#pragma once
#include "common/base/arena.h"
#include "common/base/crypto.h"
#include "common/base/list.h"
#include "common/err/err.h"
#include "services/gateway/core/decide.h"
#include "services/gateway/core/result.h"
#include "services/gateway/tag.h"

/* A compiled query: immutable, counted. Owners: the cache and every query that uses it. */
struct gw_compiled {
    unsigned refs;
    const char *sql, *connection;
    const char *prepare_as; /* name of its prepared statement: the digest of SQL and tag */
    const char *tag;        /* comment of the statement; NULL: nothing was declared, or it is off */
    const char *source;     /* that it begins with */
    const struct gw_properties *said; /* source, model file and package; NULL: nothing */
    struct result_schema *schema;
    struct slice head, tail;  /* of the full result, escaped for the answer */
    struct decide_used *used; /* persisted sources that it asked for, hits first */
    size_t n_used, n_hits;
    unsigned row_limit; /* in the SQL; 0: none */
    bool limit_added;   /* by the server's default */
    bool is_flagged, given_refused;
    struct arena arena; /* holds all of it, itself too */
};
struct gw_compiled *gw_compiled_new(void) MUST_USE; /* refs 1, everything else empty */
struct gw_compiled *gw_compiled_ref(struct gw_compiled *c);
void gw_compiled_unref(struct gw_compiled *c); /* NULL is fine */

/* One who waits for a value in the making; caller-allocated. */
struct gw_cache_wait {
    void (*done)(struct gw_cache_wait *w);
    void *data;
    int rc;
    struct err err;
    struct gw_compiled *value; /* when rc is 0: counted for the waiter */
    struct list link;
};
enum gw_cache_found {
    GW_CACHE_HIT,    /* *value is set, counted for the caller; the wait is not used */
    GW_CACHE_JOINED, /* someone makes it already: w->done will run */
    GW_CACHE_MISS,   /* the caller must make it and call gw_cache_made; then w->done runs too */
};
struct gw_cache_stats {
    uint64_t hits, joined, misses;
    size_t entries, bytes;
};
struct gw_cache;
struct gw_cache *gw_cache_new(size_t max_entries, size_t max_bytes) MUST_USE;
void gw_cache_free(struct gw_cache *c); /* nothing may be in the making */
enum gw_cache_found gw_cache_find(struct gw_cache *c, const struct sha256 *key,
                                  struct gw_cache_wait *w, struct gw_compiled **value) MUST_USE;
/* The value of a miss, or why there is none: errors are told and not kept. Takes a count of value;
 * runs every wait's done. */
void gw_cache_made(struct gw_cache *c, const struct sha256 *key, struct gw_compiled *value, int rc,
                   const struct err *e);
/* No longer waits; idempotent. The value is made all the same. */
void gw_cache_leave(struct gw_cache_wait *w);
void gw_cache_stats(const struct gw_cache *c, struct gw_cache_stats *out);
