/* One connection to Redis as the mirror sees it: commands out, replies in. Implemented by
 * cache_redis.c over hiredis. */
#pragma once
#include "common/base/slice.h"
#include "common/loop/loop.h"

struct cache_link;
struct cache_reply;
enum cache_reply_type {
    CACHE_REPLY_TEXT,
    CACHE_REPLY_NUMBER,
    CACHE_REPLY_NIL,
    CACHE_REPLY_LIST,
    CACHE_REPLY_ERROR
};
enum cache_reply_type cache_reply_type(const struct cache_reply *x);
struct slice
cache_reply_text(const struct cache_reply *x); /* of TEXT and ERROR, NUL-terminated; else empty */
long long cache_reply_number(const struct cache_reply *x);
size_t cache_reply_len(const struct cache_reply *x); /* of a LIST; else 0 */
const struct cache_reply *cache_reply_at(const struct cache_reply *x, size_t i);

/* reply: NULL when the connection was lost or dropped before it came. Called once per command, for
 * each message after SUBSCRIBE. */
typedef void (*cache_reply_fn)(void *data, const struct cache_reply *reply);
struct cache_link_events {
    void *data;
    /* The connection is over; the link is dead to its owner from here on. Maybe from inside of
     * cache_link_open. */
    void (*on_lost)(void *data, struct cache_link *link, const char *why);
    void (*on_gone)(
        void *data); /* its last handle is closed: after on_lost, or after cache_link_drop */
};
/* path, or numeric host and port. NULL when it failed at once: on_lost was called with NULL and
 * why. */
struct cache_link *cache_link_open(struct loop *l, const char *path, const char *host,
                                   uint16_t port, const struct cache_link_events *ev) MUST_USE;
/* fn may be NULL. 0, or -1: it is about to be lost, fn is not called. */
int cache_link_send(struct cache_link *link, cache_reply_fn fn, void *data, size_t argc,
                    const struct slice *argv);
/* The same for text arguments, NULL at the end. */
int cache_link_say(struct cache_link *link, cache_reply_fn fn, void *data, ...)
    __attribute__((sentinel));
/* Gives it up: replies not yet here are NULL, now. Not from inside of one of its callbacks. */
void cache_link_drop(struct cache_link *link);
