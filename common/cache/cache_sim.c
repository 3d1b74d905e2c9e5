#include "common/cache/cache_sim.h"
#include "common/base/map.h"
#include "common/cache/cache_internal.h"
#include <stdio.h>

struct cache_world {
    struct sim_time *time;
    struct cache_faults faults;
    struct map values; /* full key -> struct value */
    struct list ends;  /* of struct end */
    bool is_down;
};
struct value {
    char *key;
    struct buf bytes;
};
struct end {
    struct cache pub;
    struct cache_world *w;
    struct list link;
    bool is_connected;
    uint64_t connection; /* counts: what was sent on an older one is lost */
    struct sim_event connect;
    struct list events; /* of struct news and struct put */
    bool is_closing;
    struct sim_event closing;
    void (*closed)(void *data);
    void *closed_data;
};
/* Something on its way to or from the server. */
struct news {
    struct sim_event arrival;
    struct list link; /* in end->events */
    struct end *end;
    uint64_t connection;
    uint64_t unit;
    bool is_flush;
    struct cache_put *put; /* a put; NULL: an invalidation of unit */
    struct buf packed;
};

static struct end *end_of(struct cache *c)
{
    return container_of(c, struct end, pub);
}

static struct ms some_delay(struct cache_world *w)
{
    return sim_time_between(w->time, w->faults.delay_least, w->faults.delay_most);
}

static struct slice key_of(const struct end *end, uint64_t unit, char text[CACHE_KEY_TEXT])
{
    cache_key_format(&end->pub, unit, text);
    return slice_of(text);
}

/* ---- the mirror of one end ---- */
static void news_free(struct news *n)
{
    sim_time_unset(&n->arrival);
    list_del(&n->link);
    buf_fini(&n->packed);
    free(n);
}

static void on_arrival(struct sim_event *ev);

static struct news *news_new(struct end *end)
{
    struct news *n = xcalloc(1, sizeof(*n));
    n->arrival.fn = on_arrival;
    n->end = end;
    n->connection = end->connection;
    list_add_tail(&end->events, &n->link);
    return n;
}

/* Everything the server holds of this installation, then on_synced. */
static void read_all(struct end *end)
{
    for (struct map_iter it = map_begin(&end->w->values); map_next(&it);) {
        const struct value *v = it.value;
        uint64_t unit = 0;
        uint64_t epoch = 0;
        struct slice packed;
        if (cache_key_parse(&end->pub, slice_of(v->key), &unit) &&
            cache_value_parse(buf_slice(&v->bytes), &epoch, &packed) && end->pub.ev.on_set) {
            end->pub.ev.on_set(end->pub.ev.data, unit, epoch, packed);
        }
    }
    if (end->pub.ev.on_synced) {
        end->pub.ev.on_synced(end->pub.ev.data);
    }
}

static void read_one(struct end *end, uint64_t unit)
{
    char text[CACHE_KEY_TEXT];
    const struct value *v = map_get(&end->w->values, key_of(end, unit, text));
    uint64_t epoch = 0;
    struct slice packed;
    if (!v || !cache_value_parse(buf_slice(&v->bytes), &epoch, &packed)) {
        read_all(end); /* lacking: whoever has it may write it again */
    } else if (end->pub.ev.on_set) {
        end->pub.ev.on_set(end->pub.ev.data, unit, epoch, packed);
    }
}

static void on_connect(struct sim_event *ev)
{
    struct end *end = container_of(ev, struct end, connect);
    if (end->w->is_down || end->is_connected || end->is_closing) {
        return;
    }
    end->is_connected = true;
    read_all(end);
    cache_say(&end->pub, true, "Redis is tracked and read");
}

static void connect_soon(struct end *end)
{
    sim_time_set(end->w->time, &end->connect, ms_add(MS(100), some_delay(end->w)));
}

static void put_done(struct news *n, int rc, const char *why, uint64_t in_force)
{
    struct cache_put *p = n->put;
    n->put = NULL;
    news_free(n);
    p->impl = NULL;
    p->rc = rc ? err_set(&p->err, rc, "Redis in memory: %s", why) : 0;
    p->in_force = in_force;
    p->done(p);
}

/* Puts on the broken connection fail, invalidations on it are lost. */
static void break_connection(struct end *end, const char *why)
{
    if (!end->is_connected) {
        return;
    }
    end->is_connected = false;
    end->connection++;
    struct list failed;
    list_init(&failed);
    list_for_each (it, &end->events) {
        struct news *n = list_entry(it, struct news, link);
        if (n->put) {
            list_del(&n->link);
            list_add_tail(&failed, &n->link);
        } else {
            news_free(n);
        }
    }
    for (struct list *it = failed.next; it != &failed; it = failed.next) {
        put_done(list_entry(it, struct news, link), ERR_REDIS, why, 0);
    }
    cache_say(&end->pub, false, why);
    connect_soon(end);
}

/* ---- the server ---- */
static void value_free(struct value *v)
{
    free(v->key);
    buf_fini(&v->bytes);
    free(v);
}

static void value_drop(struct cache_world *w, struct slice key)
{
    struct value *v = map_del(&w->values, key);
    if (v) {
        value_free(v);
    }
}

static struct value *value_at(struct cache_world *w, struct slice key)
{
    struct value *v = map_get(&w->values, key);
    if (!v) {
        v = xcalloc(1, sizeof(*v));
        v->key = xstrndup(key.p, key.len);
        (void)map_put(&w->values, key, v);
    }
    return v;
}

static void tell_all(struct cache_world *w, const char *prefix, uint64_t unit, bool is_flush)
{
    list_for_each (it, &w->ends) {
        struct end *end = list_entry(it, struct end, link);
        if (end->is_connected && (!prefix || strcmp(end->pub.prefix, prefix) == 0)) {
            struct news *n = news_new(end);
            n->unit = unit;
            n->is_flush = is_flush;
            sim_time_set(w->time, &n->arrival, some_delay(w));
        }
    }
}

/* The script of protocol.md 6. */
static uint64_t compare_and_set(struct end *end, const struct cache_put *p, struct slice packed)
{
    char text[CACHE_KEY_TEXT];
    char digits[CACHE_EPOCH_DIGITS + 1];
    struct slice key = key_of(end, p->unit, text);
    const struct value *old = map_get(&end->w->values, key);
    uint64_t epoch = 0;
    struct slice rest;
    if (old && cache_value_parse(buf_slice(&old->bytes), &epoch, &rest) && epoch >= p->epoch) {
        return epoch;
    }
    struct value *v = value_at(end->w, key);
    cache_epoch_format(p->epoch, digits);
    buf_clear(&v->bytes);
    buf_add_str(&v->bytes, digits);
    buf_add_slice(&v->bytes, packed);
    tell_all(end->w, end->pub.prefix, p->unit, false);
    return p->epoch;
}

static void put_arrives(struct news *n)
{
    struct end *end = n->end;
    struct cache_world *w = end->w;
    if (n->put->err.code) {
        int rc = n->put->err.code;
        struct err kept = n->put->err;
        put_done(n, rc, kept.text, 0);
        return;
    }
    if (!end->is_connected || n->connection != end->connection) {
        put_done(n, end->is_closing ? ERR_SHUTDOWN : ERR_REDIS, "not connected", 0);
        return;
    }
    if (sim_time_chance(w->time, w->faults.lose_before)) {
        break_connection(end, "the connection broke");
        return;
    }
    uint64_t in_force = compare_and_set(end, n->put, buf_slice(&n->packed));
    if (sim_time_chance(w->time, w->faults.lose_after)) {
        break_connection(end, "the connection broke");
        return;
    }
    put_done(n, 0, NULL, in_force);
}

static void on_arrival(struct sim_event *ev)
{
    struct news *n = container_of(ev, struct news, arrival);
    struct end *end = n->end;
    if (n->put) {
        put_arrives(n);
        return;
    }
    uint64_t unit = n->unit;
    bool is_flush = n->is_flush;
    news_free(n);
    if (is_flush) {
        read_all(end);
    } else {
        read_one(end, unit);
    }
}

/* ---- the end as a cache ---- */
static void sim_put_start(struct cache *c, struct cache_put *p)
{
    struct end *end = end_of(c);
    struct news *n = news_new(end);
    n->put = p;
    p->impl = n;
    if (cache_put_check(p) == 0) {
        buf_add_slice(&n->packed, p->packed);
    }
    sim_time_set(end->w->time, &n->arrival, end->is_connected ? some_delay(end->w) : MS(0));
}

static void on_closing(struct sim_event *ev)
{
    struct end *end = container_of(ev, struct end, closing);
    for (struct list *it = end->events.next; it != &end->events; it = end->events.next) {
        struct news *n = list_entry(it, struct news, link);
        if (n->put) {
            put_done(n, ERR_SHUTDOWN, "shutting down", 0);
        } else {
            news_free(n);
        }
    }
    end->is_connected = false;
    if (end->closed) {
        end->closed(end->closed_data);
    }
}

static void sim_close(struct cache *c, void (*done)(void *data), void *data)
{
    struct end *end = end_of(c);
    must(!end->is_closing);
    end->is_closing = true;
    end->closed = done;
    end->closed_data = data;
    end->closing.fn = on_closing;
    sim_time_set(end->w->time, &end->closing, MS(0));
}

static void sim_free(struct cache *c)
{
    struct end *end = end_of(c);
    while (!list_empty(&end->events)) {
        news_free(list_entry(end->events.next, struct news, link));
    }
    sim_time_unset(&end->connect);
    sim_time_unset(&end->closing);
    list_del(&end->link);
    free(end);
}

struct cache *cache_sim_open(struct cache_world *w, const struct uuid *installation,
                             const struct cache_events *ev)
{
    static const struct cache_ops ops = {
        .put_start = sim_put_start, .close = sim_close, .free = sim_free};
    struct end *end = xcalloc(1, sizeof(*end));
    cache_base_init(&end->pub, &ops, ev, installation);
    end->w = w;
    end->connect.fn = on_connect;
    list_init(&end->events);
    list_add_tail(&w->ends, &end->link);
    sim_time_set(w->time, &end->connect, some_delay(w));
    return &end->pub;
}

void cache_sim_crash(struct cache *c)
{
    sim_free(c);
}

/* ---- the world ---- */
struct cache_world *cache_world_new(struct sim_time *t)
{
    struct cache_world *w = xcalloc(1, sizeof(*w));
    w->time = t;
    map_init(&w->values);
    list_init(&w->ends);
    return w;
}

static void drop_values(struct cache_world *w)
{
    for (struct map_iter it = map_begin(&w->values); map_next(&it);) {
        value_drop(w, it.key);
    }
}

void cache_world_free(struct cache_world *w)
{
    must(list_empty(&w->ends));
    drop_values(w);
    map_fini(&w->values);
    free(w);
}

void cache_world_set_faults(struct cache_world *w, const struct cache_faults *f)
{
    w->faults = *f;
}

void cache_world_down(struct cache_world *w)
{
    w->is_down = true;
    list_for_each (it, &w->ends) {
        break_connection(list_entry(it, struct end, link), "Redis is down");
    }
}

void cache_world_up(struct cache_world *w)
{
    w->is_down = false;
    list_for_each (it, &w->ends) {
        connect_soon(list_entry(it, struct end, link));
    }
}

void cache_world_flush(struct cache_world *w)
{
    drop_values(w);
    tell_all(w, NULL, 0, true);
}

void cache_world_poke(struct cache_world *w, const struct uuid *installation, uint64_t unit,
                      struct slice value)
{
    struct cache shape = {0};
    char text[CACHE_KEY_TEXT];
    cache_base_init(&shape, NULL, &(struct cache_events){0}, installation);
    cache_key_format(&shape, unit, text);
    if (value.p) {
        struct value *v = value_at(w, slice_of(text));
        buf_clear(&v->bytes);
        buf_add_slice(&v->bytes, value);
    } else {
        value_drop(w, slice_of(text));
    }
    tell_all(w, shape.prefix, unit, false);
}
