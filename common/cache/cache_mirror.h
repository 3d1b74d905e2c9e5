/* Inside of the real cache: what the mirror and its puts share. Not for anyone else. */
#pragma once
#include "common/cache/cache_internal.h"
#include "common/cache/cache_link.h"
#include <uv.h>

enum { MIRROR_PAUSE_FIRST_MS = 100 };
enum mirror_state { MIRROR_DOWN, MIRROR_RESOLVING, MIRROR_GREETING, MIRROR_LIVE };
struct mirror {
    struct cache pub;
    struct loop *loop;
    struct cache_address address;
    char echo_channel[96];
    enum mirror_state state;
    struct cache_link *data, *sub; /* NULL: none */
    size_t n_links;                /* not yet gone, given up ones included */
    struct ms pause;               /* before the next try to connect */
    struct loop_timer timer;       /* DOWN: retry; GREETING: patience; LIVE: echo */
    struct loop_task lost_task;
    char lost_why[160];
    uv_getaddrinfo_t resolve;
    bool is_resolving;

    struct list wanted; /* of struct wanted: units to GET */
    size_t n_gets;      /* GETs in flight */
    bool is_scanning;   /* from the first SCAN until the last GET */
    bool scan_is_over;
    bool scan_again; /* something vanished meanwhile */
    bool is_read;    /* all keys were read since the last disconnect */

    uint64_t echoes_sent, echoes_heard;
    struct ms echo_sent_at;
    char sha[41];     /* of the compare-and-set, "" until Redis told */
    struct list puts; /* of struct put (cache_put.c) */

    bool is_closing;
    struct loop_task close_task;
    void (*closed)(void *data);
    void *closed_data;
};
extern const char cache_cas_script[];
void mirror_lose(struct mirror *m, const char *why); /* both connections, from a task */
/* What Redis said instead of the wanted answer. */
void mirror_lose_by(struct mirror *m, const struct cache_reply *x);
void mirror_maybe_closed(struct mirror *m);
/* Reads everything, then on_synced; once more when it is already at it. */
void mirror_scan_start(struct mirror *m);
void mirror_send_echo(struct mirror *m);
void mirror_on_invalidate(void *data, const struct cache_reply *x);
void mirror_on_echo(void *data, const struct cache_reply *x);
void mirror_read_reset(struct mirror *m);
void mirror_put_start(struct cache *c, struct cache_put *pub);
void mirror_puts_fail(struct mirror *m, int code, const char *why);
