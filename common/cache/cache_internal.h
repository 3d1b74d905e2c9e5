/* What the implementations of cache.h share: the base they embed, keys and values, addresses. For
 * cache*.c only. */
#pragma once
#include "common/cache/cache.h"

#define CACHE_EPOCH_DIGITS 20
#define CACHE_PACKED_CAP ((size_t)8 << 20)
#define CACHE_PREFIX_TEXT 64
#define CACHE_KEY_TEXT 96

struct cache_ops {
    void (*put_start)(struct cache *c, struct cache_put *p);
    void (*close)(struct cache *c, void (*done)(void *data), void *data);
    void (*free)(struct cache *c);
};
struct cache {
    const struct cache_ops *ops;
    struct cache_events ev;
    char prefix[CACHE_PREFIX_TEXT]; /* kiln:<installation>:b: */
    bool is_confirmed;
    char why[160]; /* said with the last state */
};
void cache_base_init(struct cache *c, const struct cache_ops *ops, const struct cache_events *ev,
                     const struct uuid *installation);
/* Tells on_state when anything changed. */
void cache_say(struct cache *c, bool is_confirmed, const char *why);
/* 0, or the reason why a put is refused before it goes out, in p->err. */
int cache_put_check(struct cache_put *p);

void cache_key_format(const struct cache *c, uint64_t unit, char out[CACHE_KEY_TEXT]);
/* False: not a key of ours. */
bool cache_key_parse(const struct cache *c, struct slice key, uint64_t *unit);
void cache_epoch_format(uint64_t epoch, char out[CACHE_EPOCH_DIGITS + 1]);
/* False: the value is not what we write: as good as missing, the compare-and-set overwrites it. */
bool cache_value_parse(struct slice value, uint64_t *epoch, struct slice *packed);

struct cache_address {
    char *path; /* unix socket, or NULL */
    char *host;
    uint16_t port;
    char *user, *password; /* NULL: none */
    unsigned db;
};
int cache_address_parse(const char *url, struct cache_address *out, struct err *e) MUST_USE;
void cache_address_fini(struct cache_address *a);
/* The address without its password, for people. */
void cache_address_show(const struct cache_address *a, char *out, size_t cap);
