/* The only hiredis file: a connection in RESP2 with our own adapter to libuv. hiredis 0.14 speaks
 * no TLS and never answers a PING on a subscribed connection. */
#include "common/cache/cache_link.h"
#include <fcntl.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <uv.h>

enum { ARGS_MOST = 16 };

struct cache_link {
    uv_poll_t poll;
    redisAsyncContext *ac; /* NULL: cleaned up by hiredis */
    int events;
    bool is_over; /* told to the owner, or dropped by it */
    struct cache_link_events ev;
};
/* A command in flight. A subscription is called again and again and lives as long as its link. */
struct command {
    struct cache_link *home;
    cache_reply_fn fn;
    void *data;
    bool is_subscription;
};

/* ---- replies ---- */
static const redisReply *reply_of(const struct cache_reply *x)
{
    return (const redisReply *)(const void *)x;
}

enum cache_reply_type cache_reply_type(const struct cache_reply *x)
{
    switch (reply_of(x)->type) {
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
        return CACHE_REPLY_TEXT;
    case REDIS_REPLY_INTEGER:
        return CACHE_REPLY_NUMBER;
    case REDIS_REPLY_ARRAY:
        return CACHE_REPLY_LIST;
    case REDIS_REPLY_ERROR:
        return CACHE_REPLY_ERROR;
    default:
        return CACHE_REPLY_NIL;
    }
}

struct slice cache_reply_text(const struct cache_reply *x)
{
    const redisReply *r = reply_of(x);
    return r->str ? slice_make(r->str, r->len) : slice_make("", 0);
}

long long cache_reply_number(const struct cache_reply *x)
{
    return reply_of(x)->integer;
}

size_t cache_reply_len(const struct cache_reply *x)
{
    return reply_of(x)->type == REDIS_REPLY_ARRAY ? reply_of(x)->elements : 0;
}

const struct cache_reply *cache_reply_at(const struct cache_reply *x, size_t i)
{
    must(i < cache_reply_len(x));
    return (const struct cache_reply *)(const void *)reply_of(x)->element[i];
}

/* ---- the adapter ---- */
static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct cache_link *k = container_of(handle, struct cache_link, poll);
    if (status < 0) {
        events = UV_READABLE | UV_WRITABLE; /* hiredis finds the error and tells it */
    }
    if (k->ac && (events & UV_READABLE)) {
        redisAsyncHandleRead(k->ac);
    }
    if (k->ac && (events & UV_WRITABLE)) {
        redisAsyncHandleWrite(k->ac);
    }
}

static void listen_for(struct cache_link *k, int events)
{
    k->events = events;
    if (events) {
        (void)uv_poll_start(&k->poll, events, on_poll);
    } else {
        (void)uv_poll_stop(&k->poll);
    }
}

static void add_read(void *data)
{
    struct cache_link *k = data;
    listen_for(k, k->events | UV_READABLE);
}

static void del_read(void *data)
{
    struct cache_link *k = data;
    listen_for(k, k->events & ~UV_READABLE);
}

static void add_write(void *data)
{
    struct cache_link *k = data;
    listen_for(k, k->events | UV_WRITABLE);
}

static void del_write(void *data)
{
    struct cache_link *k = data;
    listen_for(k, k->events & ~UV_WRITABLE);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct cache_link *k = handle->data;
    struct cache_link_events ev = k->ev;
    free(k);
    ev.on_gone(ev.data);
}

static void clean_up(void *data)
{
    struct cache_link *k = data;
    k->ac = NULL;
    uv_close((uv_handle_t *)&k->poll, on_handle_closed);
}

/* ---- the connection ---- */
static void over(struct cache_link *k, const char *why)
{
    if (!k->is_over) {
        k->is_over = true;
        k->ev.on_lost(k->ev.data, k, why);
    }
}

static void on_connect(const redisAsyncContext *ac, int status)
{
    if (status != REDIS_OK) { /* hiredis frees ac after this and does not call on_disconnect */
        over(ac->data, ac->errstr);
    }
}

static void on_disconnect(const redisAsyncContext *ac, int status)
{
    over(ac->data, status == REDIS_OK ? "disconnected" : ac->errstr);
}

struct cache_link *cache_link_open(struct loop *l, const char *path, const char *host,
                                   uint16_t port, const struct cache_link_events *ev)
{
    redisAsyncContext *ac = path ? redisAsyncConnectUnix(path) : redisAsyncConnect(host, port);
    must(ac); /* NULL for want of memory only */
    struct cache_link *k = xcalloc(1, sizeof(*k));
    *k = (struct cache_link){.ac = ac, .ev = *ev};
    bool failed = ac->err || uv_poll_init(loop_uv(l), &k->poll, ac->c.fd);
    if (failed) { /* nobody calls back then */
        ev->on_lost(ev->data, NULL, ac->err ? ac->errstr : "its socket cannot be watched");
        redisAsyncFree(ac);
        free(k);
        return NULL;
    }
    (void)fcntl(ac->c.fd, F_SETFD, FD_CLOEXEC); /* children must not inherit it */
    k->poll.data = k;
    ac->data = k;
    ac->ev.data = k;
    ac->ev.addRead = add_read;
    ac->ev.delRead = del_read;
    ac->ev.addWrite = add_write;
    ac->ev.delWrite = del_write;
    ac->ev.cleanup = clean_up;
    (void)redisAsyncSetConnectCallback(ac, on_connect);
    (void)redisAsyncSetDisconnectCallback(ac, on_disconnect);
    return k;
}

void cache_link_drop(struct cache_link *k)
{
    k->is_over = true;
    if (k->ac) {
        redisAsyncFree(k->ac);
    }
}

/* ---- commands ---- */
static void on_reply(redisAsyncContext *ac, void *reply, void *data)
{
    (void)ac;
    struct command *c = data;
    cache_reply_fn fn = c->fn;
    void *fn_data = c->data;
    bool is_over = c->home->is_over;
    if (!c->is_subscription || !reply) {
        free(c);
    }
    if (fn) {
        fn(fn_data, is_over ? NULL : reply);
    }
}

int cache_link_send(struct cache_link *k, cache_reply_fn fn, void *data, size_t argc,
                    const struct slice *argv)
{
    const char *texts[ARGS_MOST];
    size_t lens[ARGS_MOST];
    must(argc > 0 && argc <= ARGS_MOST);
    for (size_t i = 0; i < argc; i++) {
        texts[i] = argv[i].p;
        lens[i] = argv[i].len;
    }
    if (k->is_over || !k->ac) {
        return -1;
    }
    struct command *c = xcalloc(1, sizeof(*c));
    *c = (struct command){
        .home = k, .fn = fn, .data = data, .is_subscription = slice_is(argv[0], "SUBSCRIBE")};
    if (redisAsyncCommandArgv(k->ac, on_reply, c, (int)argc, texts, lens) != REDIS_OK) {
        free(c);
        return -1;
    }
    return 0;
}

int cache_link_say(struct cache_link *k, cache_reply_fn fn, void *data, ...)
{
    struct slice argv[ARGS_MOST];
    size_t argc = 0;
    va_list ap;
    va_start(ap, data);
    for (const char *arg; (arg = va_arg(ap, const char *)) != NULL;) {
        must(argc < ARGS_MOST);
        argv[argc++] = slice_of(arg);
    }
    va_end(ap);
    return cache_link_send(k, fn, data, argc, argv);
}
