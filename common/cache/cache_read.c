/* Reading and hearing: SCAN and GET of everything after a connect, GET of what is announced, the
 * echo. */
#include "common/cache/cache_mirror.h"
#include "common/log/log.h"
#include <stdio.h>

enum { ECHO_MS = 5000, GETS_AT_ONCE = 16 };
struct wanted {
    struct list link;
    uint64_t unit;
};
struct get {
    struct mirror *m;
    uint64_t unit;
};

/* ---- reading ---- */
static void want(struct mirror *m, uint64_t unit)
{
    list_for_each (it, &m->wanted) {
        if (list_entry(it, struct wanted, link)->unit == unit) {
            return; /* not asked yet: the answer will be new enough */
        }
    }
    struct wanted *w = xcalloc(1, sizeof(*w));
    w->unit = unit;
    list_add_tail(&m->wanted, &w->link);
}

static void want_key(struct mirror *m, const struct cache_reply *key)
{
    uint64_t unit = 0;
    if (cache_key_parse(&m->pub, cache_reply_text(key), &unit)) {
        want(m, unit);
    }
}

static void on_scan(void *data, const struct cache_reply *x);

static void scan_from(struct mirror *m, const char *cursor)
{
    char pattern[CACHE_PREFIX_TEXT + 1];
    (void)snprintf(pattern, sizeof(pattern), "%s*", m->pub.prefix);
    (void)cache_link_say(m->data, on_scan, m, "SCAN", cursor, "MATCH", pattern, "COUNT", "1000",
                         NULL);
}

void mirror_scan_start(struct mirror *m)
{
    if (m->is_scanning) {
        m->scan_again = true;
        return;
    }
    m->is_scanning = true;
    m->scan_is_over = false;
    m->scan_again = false;
    scan_from(m, "0");
}

static void maybe_confirmed(struct mirror *m)
{
    if (m->is_read && m->echoes_heard) {
        m->pause = MS(MIRROR_PAUSE_FIRST_MS);
        cache_say(&m->pub, true, "Redis is tracked and read");
    }
}

static void maybe_synced(struct mirror *m)
{
    if (!m->is_scanning || !m->scan_is_over || m->n_gets || !list_empty(&m->wanted)) {
        return;
    }
    m->is_scanning = false;
    if (m->scan_again) {
        mirror_scan_start(m);
        return;
    }
    m->is_read = true;
    if (m->pub.ev.on_synced) {
        m->pub.ev.on_synced(m->pub.ev.data);
    }
    maybe_confirmed(m);
}

/* Missing or not ours: whoever has the set may write it again after the on_synced that this leads
 * to. */
static void on_lacking(struct mirror *m)
{
    if (!m->is_scanning) {
        mirror_scan_start(m);
    }
}

static void on_value(struct mirror *m, uint64_t unit, const struct cache_reply *x)
{
    uint64_t epoch = 0;
    struct slice packed;
    struct slice text = cache_reply_text(x);
    enum cache_reply_type type = cache_reply_type(x);
    if (type == CACHE_REPLY_NIL) {
        on_lacking(m);
    } else if (type == CACHE_REPLY_ERROR && !strstr(text.p, "WRONGTYPE")) {
        mirror_lose_by(m, x);
    } else if (type == CACHE_REPLY_ERROR || !cache_value_parse(text, &epoch, &packed)) {
        log_warn("cache.foreign_value", "unit=%llu", (unsigned long long)unit);
        on_lacking(m);
    } else if (m->pub.ev.on_set) {
        m->pub.ev.on_set(m->pub.ev.data, unit, epoch, packed);
    }
}

static void ask_wanted(struct mirror *m);

static void on_get(void *data, const struct cache_reply *x)
{
    struct get *g = data;
    struct mirror *m = g->m;
    uint64_t unit = g->unit;
    free(g);
    if (!x) {
        return;
    }
    m->n_gets--;
    on_value(m, unit, x);
    ask_wanted(m);
    maybe_synced(m);
}

static void ask_wanted(struct mirror *m)
{
    while (m->data && m->n_gets < GETS_AT_ONCE && !list_empty(&m->wanted)) {
        struct wanted *w = list_entry(list_take_head(&m->wanted), struct wanted, link);
        char key[CACHE_KEY_TEXT];
        struct get *g = xcalloc(1, sizeof(*g));
        *g = (struct get){.m = m, .unit = w->unit};
        free(w);
        cache_key_format(&m->pub, g->unit, key);
        if (cache_link_say(m->data, on_get, g, "GET", key, NULL)) {
            free(g);
            return; /* it is being lost: all is read again */
        }
        m->n_gets++;
    }
}

static void on_scan(void *data, const struct cache_reply *x)
{
    struct mirror *m = data;
    if (!x) {
        return;
    }
    if (cache_reply_len(x) != 2) {
        mirror_lose_by(m, x);
        return;
    }
    struct slice cursor = cache_reply_text(cache_reply_at(x, 0));
    const struct cache_reply *keys = cache_reply_at(x, 1);
    for (size_t i = 0; i < cache_reply_len(keys); i++) {
        want_key(m, cache_reply_at(keys, i));
    }
    ask_wanted(m);
    if (!slice_is(cursor, "0")) {
        scan_from(m, cursor.p);
        return;
    }
    m->scan_is_over = true;
    maybe_synced(m);
}

/* ---- hearing ---- */
/* The message that came on a subscription, or NULL when it is only its confirmation. */
static const struct cache_reply *message_of(const struct cache_reply *x)
{
    if (!x || cache_reply_len(x) != 3 ||
        !slice_is(cache_reply_text(cache_reply_at(x, 0)), "message")) {
        return NULL;
    }
    return cache_reply_at(x, 2);
}

/* A list of keys, or nil when everything was flushed. */
void mirror_on_invalidate(void *data, const struct cache_reply *x)
{
    struct mirror *m = data;
    const struct cache_reply *keys = message_of(x);
    if (!keys || !m->data) {
        return;
    }
    if (cache_reply_type(keys) == CACHE_REPLY_NIL) {
        mirror_scan_start(m);
        return;
    }
    for (size_t i = 0; i < cache_reply_len(keys); i++) {
        want_key(m, cache_reply_at(keys, i));
    }
    ask_wanted(m);
}

void mirror_send_echo(struct mirror *m)
{
    char number[24];
    m->echoes_sent++;
    m->echo_sent_at = loop_now(m->loop);
    (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)m->echoes_sent);
    (void)cache_link_say(m->data, NULL, NULL, "PUBLISH", m->echo_channel, number, NULL);
    loop_timer_start(&m->timer, MS(ECHO_MS));
}

void mirror_on_echo(void *data, const struct cache_reply *x)
{
    struct mirror *m = data;
    if (message_of(x)) {
        m->echoes_heard = m->echoes_sent;
        maybe_confirmed(m);
        if (m->is_read && m->pub.ev.on_heard) {
            m->pub.ev.on_heard(m->pub.ev.data, m->echo_sent_at);
        }
    }
}

void mirror_read_reset(struct mirror *m)
{
    for (struct list *it; (it = list_take_head(&m->wanted));) {
        free(list_entry(it, struct wanted, link));
    }
    m->n_gets = 0;
    m->is_scanning = false;
    m->is_read = false;
    m->echoes_sent = 0;
    m->echoes_heard = 0;
}
