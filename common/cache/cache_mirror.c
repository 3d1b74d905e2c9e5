/* The tracked mirror of the binding sets in Redis (protocol.md 6, 10).
 *
 *   DOWN --timer--> [RESOLVING] --> GREETING --CLIENT ID, SUBSCRIBE, CLIENT TRACKING--> LIVE
 *     ^                                  |                                               |
 *     \------ any error, any disconnect, 5 s of silence: unconfirmed, all puts fail -----/
 *
 * `data` writes and reads, `sub` hears invalidations and our own echo. Losing either means losing
 * both: a dead `sub` is not told to `data` in RESP2. Connections are given up from a task, never
 * from inside of a callback. */
#include "common/cache/cache_mirror.h"
#include "common/log/log.h"
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>

enum { PAUSE_MOST_MS = 5000, GREETING_MS = 5000 };

void mirror_lose(struct mirror *m, const char *why)
{
    if (m->state != MIRROR_DOWN && !m->is_closing && !list_linked(&m->lost_task.link)) {
        (void)snprintf(m->lost_why, sizeof(m->lost_why), "%s", why);
        loop_defer(m->loop, &m->lost_task);
    }
}

void mirror_lose_by(struct mirror *m, const struct cache_reply *x)
{
    struct slice text = cache_reply_text(x);
    mirror_lose(m, text.len ? text.p : "an answer of an unexpected shape");
}

void mirror_maybe_closed(struct mirror *m)
{
    if (!m->is_closing || m->n_links || m->is_resolving || !list_empty(&m->puts) ||
        list_linked(&m->close_task.link)) {
        return;
    }
    void (*closed)(void *) = m->closed;
    m->closed = NULL;
    if (closed) {
        closed(m->closed_data);
    }
}

/* ---- connecting ---- */
static void on_must_be_ok(void *data, const struct cache_reply *x)
{
    if (x && cache_reply_type(x) == CACHE_REPLY_ERROR) {
        mirror_lose_by(data, x);
    }
}

static void on_script(void *data, const struct cache_reply *x)
{
    struct mirror *m = data;
    struct slice sha = x ? cache_reply_text(x) : SLICE_NONE;
    if (sha.len == sizeof(m->sha) - 1 && cache_reply_type(x) == CACHE_REPLY_TEXT) {
        memcpy(m->sha, sha.p, sha.len + 1);
    }
}

static void on_tracking(void *data, const struct cache_reply *x)
{
    struct mirror *m = data;
    if (!x || !m->data) {
        return;
    }
    if (cache_reply_type(x) == CACHE_REPLY_ERROR) {
        mirror_lose_by(m, x);
        return;
    }
    m->state = MIRROR_LIVE;
    mirror_send_echo(m);
    mirror_scan_start(m);
}

/* Subscribed before tracking is on, tracked before the first key is read: no change is missed in
 * between. */
static void on_client_id(void *data, const struct cache_reply *x)
{
    struct mirror *m = data;
    char id[24];
    if (!x || !m->data) {
        return;
    }
    if (cache_reply_type(x) != CACHE_REPLY_NUMBER) {
        mirror_lose_by(m, x);
        return;
    }
    (void)snprintf(id, sizeof(id), "%lld", cache_reply_number(x));
    (void)cache_link_say(m->sub, mirror_on_invalidate, m, "SUBSCRIBE", "__redis__:invalidate",
                         NULL);
    (void)cache_link_say(m->sub, mirror_on_echo, m, "SUBSCRIBE", m->echo_channel, NULL);
    (void)cache_link_say(m->data, on_tracking, m, "CLIENT", "TRACKING", "on", "REDIRECT", id,
                         "BCAST", "PREFIX", m->pub.prefix, NULL);
}

static void log_in(struct mirror *m, struct cache_link *link)
{
    const struct cache_address *a = &m->address;
    if (a->user) {
        (void)cache_link_say(link, on_must_be_ok, m, "AUTH", a->user, a->password, NULL);
    } else if (a->password) {
        (void)cache_link_say(link, on_must_be_ok, m, "AUTH", a->password, NULL);
    }
    if (a->db) {
        char db[16];
        (void)snprintf(db, sizeof(db), "%u", a->db);
        (void)cache_link_say(link, on_must_be_ok, m, "SELECT", db, NULL);
    }
}

static void on_link_lost(void *data, struct cache_link *link, const char *why)
{
    struct mirror *m = data;
    if (link && link == m->data) {
        m->data = NULL;
    }
    if (link && link == m->sub) {
        m->sub = NULL;
    }
    mirror_lose(m, why);
}

static void on_link_gone(void *data)
{
    struct mirror *m = data;
    m->n_links--;
    mirror_maybe_closed(m);
}

static struct cache_link *link_new(struct mirror *m, const char *host)
{
    const struct cache_link_events ev = {
        .data = m, .on_lost = on_link_lost, .on_gone = on_link_gone};
    struct cache_link *link = cache_link_open(m->loop, m->address.path, host, m->address.port, &ev);
    m->n_links += link != NULL;
    return link;
}

static void greet(struct mirror *m, const char *host)
{
    m->state = MIRROR_GREETING;
    loop_timer_start(&m->timer, MS(GREETING_MS));
    m->data = link_new(m, host);
    m->sub = m->data ? link_new(m, host) : NULL;
    if (!m->sub) {
        return;
    }
    log_in(m, m->data);
    log_in(m, m->sub);
    (void)cache_link_say(m->data, on_script, m, "SCRIPT", "LOAD", cache_cas_script, NULL);
    (void)cache_link_say(m->sub, on_client_id, m, "CLIENT", "ID", NULL);
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *found)
{
    struct mirror *m = container_of(req, struct mirror, resolve);
    char host[INET6_ADDRSTRLEN] = "";
    m->is_resolving = false;
    if (m->is_closing) {
        mirror_maybe_closed(m);
    } else if (status) {
        mirror_lose(m, uv_strerror(status));
    } else if (getnameinfo(found->ai_addr, found->ai_addrlen, host, sizeof(host), NULL, 0,
                           NI_NUMERICHOST)) {
        mirror_lose(m, "its host has no address");
    } else {
        greet(m, host);
    }
    uv_freeaddrinfo(found);
}

/* A name is looked up off the loop; hiredis would do it on it. */
static void connect_now(struct mirror *m)
{
    unsigned char numeric[sizeof(struct in6_addr)];
    const char *host = m->address.host;
    if (m->address.path || inet_pton(AF_INET, host, numeric) == 1 ||
        inet_pton(AF_INET6, host, numeric) == 1) {
        greet(m, host);
        return;
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    m->state = MIRROR_RESOLVING;
    m->is_resolving =
        uv_getaddrinfo(loop_uv(m->loop), &m->resolve, on_resolved, host, NULL, &hints) == 0;
    if (!m->is_resolving) {
        mirror_lose(m, "its host cannot be looked up");
    }
}

static void on_timer(struct loop_timer *t)
{
    struct mirror *m = t->data;
    if (m->state == MIRROR_DOWN) {
        connect_now(m);
    } else if (m->state == MIRROR_GREETING) {
        mirror_lose(m, "no answer in 5 s");
    } else if (m->echoes_heard != m->echoes_sent) {
        mirror_lose(m, "silent for 5 s");
    } else if (m->data) {
        mirror_send_echo(m);
    }
}

/* ---- losing and closing ---- */
static void drop_links(struct mirror *m)
{
    struct cache_link *data = m->data;
    struct cache_link *sub = m->sub;
    m->data = NULL;
    m->sub = NULL;
    if (data) {
        cache_link_drop(data);
    }
    if (sub) {
        cache_link_drop(sub);
    }
    mirror_read_reset(m);
    loop_timer_stop(&m->timer);
    m->state = MIRROR_DOWN;
    m->sha[0] = '\0';
}

static void on_lost(struct loop_task *t)
{
    struct mirror *m = t->data;
    char why[sizeof(m->lost_why) + 200];
    char show[160];
    uint8_t jitter = 0;
    cache_address_show(&m->address, show, sizeof(show));
    (void)snprintf(why, sizeof(why), "Redis at %s: %s", show, m->lost_why);
    drop_links(m);
    random_bytes(&jitter, sizeof(jitter));
    loop_timer_start(&m->timer, MS(m->pause.v * (205 + jitter % 103) / 256)); /* +-20 % */
    m->pause = ms_min(MS(m->pause.v * 2), MS(PAUSE_MOST_MS));
    cache_say(&m->pub, false, why);
    mirror_puts_fail(m, ERR_REDIS, m->lost_why);
}

static void on_close(struct loop_task *t)
{
    struct mirror *m = t->data;
    m->n_links++; /* so that nobody is told it is closed before the end of this */
    drop_links(m);
    if (m->is_resolving) {
        (void)uv_cancel((uv_req_t *)&m->resolve);
    }
    mirror_puts_fail(m, ERR_SHUTDOWN, "shutting down");
    m->n_links--;
    mirror_maybe_closed(m);
}

static void mirror_close(struct cache *c, void (*done)(void *data), void *data)
{
    struct mirror *m = container_of(c, struct mirror, pub);
    must(!m->is_closing);
    m->is_closing = true;
    m->closed = done;
    m->closed_data = data;
    loop_task_cancel(&m->lost_task);
    loop_defer(m->loop, &m->close_task);
}

static void mirror_free(struct cache *c)
{
    struct mirror *m = container_of(c, struct mirror, pub);
    must(m->is_closing && !m->n_links && list_empty(&m->puts));
    cache_address_fini(&m->address);
    free(m);
}

struct cache *cache_open(struct loop *l, const char *url, const struct uuid *installation,
                         const struct uuid *boot, const struct cache_events *ev, struct err *e)
{
    static const struct cache_ops ops = {
        .put_start = mirror_put_start, .close = mirror_close, .free = mirror_free};
    struct cache_address address;
    char ids[2][UUID_TEXT];
    if (cache_address_parse(url, &address, e)) {
        return NULL;
    }
    struct mirror *m = xcalloc(1, sizeof(*m));
    cache_base_init(&m->pub, &ops, ev, installation);
    uuid_format(installation, ids[0]);
    uuid_format(boot, ids[1]);
    (void)snprintf(m->echo_channel, sizeof(m->echo_channel), "kiln:%s:echo:%s", ids[0], ids[1]);
    m->loop = l;
    m->address = address;
    m->pause = MS(MIRROR_PAUSE_FIRST_MS);
    list_init(&m->wanted);
    list_init(&m->puts);
    loop_timer_init(&m->timer, l, on_timer, m);
    loop_task_init(&m->lost_task, on_lost, m);
    loop_task_init(&m->close_task, on_close, m);
    loop_timer_start(&m->timer, MS(0));
    return &m->pub;
}
