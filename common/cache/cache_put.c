/* Compare-and-set by epoch, as one script (protocol.md 6). */
#include "common/cache/cache_mirror.h"
#include "common/log/log.h"

enum { PUT_MS = 2000 };
const char cache_cas_script[] =
    "local cur = redis.call('GETRANGE', KEYS[1], 0, 19)\n"
    "if #cur ~= 20 or not string.match(cur, '^%d+$') then cur = '' end\n"
    "if cur >= ARGV[1] then return cur end\n"
    "redis.call('SET', KEYS[1], ARGV[1] .. ARGV[2]); return ARGV[1]";

/* A put outlives its cache_put while its command is in flight: it is the data of the callback. */
struct put {
    struct mirror *m;
    struct list link;      /* in m->puts until it is completed */
    struct cache_put *pub; /* NULL once completed */
    struct loop_timer timer;
    char key[CACHE_KEY_TEXT];
    char epoch[CACHE_EPOCH_DIGITS + 1];
    struct buf packed;
    bool in_flight, cleared_wrong_type;
};

static void put_free(struct put *p)
{
    buf_fini(&p->packed);
    free(p);
}

static void put_complete(struct put *p, int rc, uint64_t in_force)
{
    struct cache_put *pub = p->pub;
    struct mirror *m = p->m;
    loop_timer_stop(&p->timer);
    list_del(&p->link);
    p->pub = NULL;
    pub->impl = NULL;
    pub->rc = rc;
    pub->in_force = in_force;
    if (!p->in_flight) {
        put_free(p); /* else the callback does */
    }
    pub->done(pub);
    mirror_maybe_closed(m);
}

static void put_fail(struct put *p, int code, const char *why)
{
    char show[160];
    cache_address_show(&p->m->address, show, sizeof(show));
    put_complete(p, err_set(&p->pub->err, code, "Redis at %s: %s", show, why), 0);
}

static void on_put_timer(struct loop_timer *t)
{
    struct put *p = t->data;
    if (p->pub->err.code) {
        put_complete(p, p->pub->err.code, 0);
    } else if (p->m->is_closing) {
        put_fail(p, ERR_SHUTDOWN, "shutting down");
    } else {
        put_fail(p, ERR_REDIS, p->in_flight ? "no answer in 2 s" : "not connected");
    }
}

static void on_put_reply(void *data, const struct cache_reply *x);

/* By the script's hash, or by its text, which also loads it. */
static void put_send(struct put *p, bool by_text)
{
    struct mirror *m = p->m;
    bool by_hash = !by_text && m->sha[0];
    struct slice argv[] = {by_hash ? SLICE("EVALSHA") : SLICE("EVAL"),
                           slice_of(by_hash ? m->sha : cache_cas_script),
                           SLICE("1"),
                           slice_of(p->key),
                           slice_of(p->epoch),
                           slice_make(buf_str(&p->packed), p->packed.len)};
    p->in_flight = m->data && cache_link_send(m->data, on_put_reply, p, ARRAY_LEN(argv), argv) == 0;
    if (!p->in_flight) {
        loop_timer_start(&p->timer, MS(0));
    }
}

static void on_put_error(struct put *p, const char *text)
{
    if (strstr(text, "NOSCRIPT")) {
        put_send(p, true);
        return;
    }
    if (strstr(text, "WRONGTYPE") && !p->cleared_wrong_type && p->m->data) {
        p->cleared_wrong_type = true; /* the compare-and-set would fail for ever */
        log_warn("cache.wrong_type", "key=%s", p->key);
        (void)cache_link_say(p->m->data, NULL, NULL, "DEL", p->key, NULL);
        put_send(p, false);
        return;
    }
    put_fail(p, ERR_REDIS, text);
}

static void on_put_reply(void *data, const struct cache_reply *x)
{
    struct put *p = data;
    uint64_t in_force = 0;
    struct slice rest;
    p->in_flight = false;
    if (!p->pub) {
        put_free(p);
        return;
    }
    if (!x) {
        return; /* lost: the task that tears down fails it */
    }
    if (cache_reply_type(x) == CACHE_REPLY_ERROR) {
        on_put_error(p, cache_reply_text(x).p);
    } else if (!cache_value_parse(cache_reply_text(x), &in_force, &rest)) {
        put_fail(p, ERR_REDIS, "the compare-and-set answered no epoch");
    } else {
        put_complete(p, 0, in_force);
    }
}

void mirror_put_start(struct cache *c, struct cache_put *pub)
{
    struct mirror *m = container_of(c, struct mirror, pub);
    struct put *p = xcalloc(1, sizeof(*p));
    p->m = m;
    p->pub = pub;
    pub->impl = p;
    list_add_tail(&m->puts, &p->link);
    loop_timer_init(&p->timer, m->loop, on_put_timer, p);
    if (cache_put_check(pub) || m->is_closing || m->state != MIRROR_LIVE) {
        loop_timer_start(&p->timer, MS(0));
        return;
    }
    cache_key_format(c, pub->unit, p->key);
    cache_epoch_format(pub->epoch, p->epoch);
    buf_add_slice(&p->packed, pub->packed);
    loop_timer_start(&p->timer, MS(PUT_MS));
    put_send(p, false);
}

void mirror_puts_fail(struct mirror *m, int code, const char *why)
{
    size_t n = 0; /* only those of now: a `done` may start another */
    list_for_each (it, &m->puts) {
        n++;
    }
    for (; n > 0; n--) {
        put_fail(list_entry(m->puts.next, struct put, link), code, why);
    }
}
