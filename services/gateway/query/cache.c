#include "services/gateway/query/cache.h"

#include "common/base/map.h"

struct entry {
    struct sha256 key;
    struct gw_compiled *value; /* NULL: in the making */
    struct list waits;
    struct list link; /* in `recent`; finished ones only */
};

struct gw_cache {
    struct map entries;
    struct list recent; /* newest first */
    size_t max_entries, max_bytes;
    struct gw_cache_stats stats;
};

/* ---- compiled queries ---- */
struct gw_compiled *gw_compiled_new(void)
{
    struct arena a;
    arena_init(&a);
    struct gw_compiled *c = arena_zalloc(&a, sizeof(*c));
    c->refs = 1;
    c->arena = a;
    return c;
}

struct gw_compiled *gw_compiled_ref(struct gw_compiled *c)
{
    c->refs++;
    return c;
}

void gw_compiled_unref(struct gw_compiled *c)
{
    if (!c || --c->refs > 0) {
        return;
    }
    struct arena a = c->arena; /* c lives in it */
    arena_fini(&a);
}

/* ---- the cache ---- */
static struct slice key_slice(const struct sha256 *key)
{
    return slice_make(key->b, sizeof(key->b));
}

struct gw_cache *gw_cache_new(size_t max_entries, size_t max_bytes)
{
    struct gw_cache *c = xcalloc(1, sizeof(*c));
    map_init(&c->entries);
    list_init(&c->recent);
    c->max_entries = max_entries;
    c->max_bytes = max_bytes;
    return c;
}

static void drop(struct gw_cache *c, struct entry *e)
{
    list_del(&e->link);
    must(map_del(&c->entries, key_slice(&e->key)) == e);
    if (e->value) {
        c->stats.entries--;
        c->stats.bytes -= e->value->arena.used;
        gw_compiled_unref(e->value);
    }
    free(e);
}

void gw_cache_free(struct gw_cache *c)
{
    while (!list_empty(&c->recent)) {
        drop(c, list_entry(c->recent.next, struct entry, link));
    }
    must(map_len(&c->entries) == 0);
    map_fini(&c->entries);
    free(c);
}

static void wait_on(struct entry *e, struct gw_cache_wait *w)
{
    w->rc = 0;
    w->value = NULL;
    list_add_tail(&e->waits, &w->link);
}

enum gw_cache_found gw_cache_find(struct gw_cache *c, const struct sha256 *key,
                                  struct gw_cache_wait *w, struct gw_compiled **value)
{
    struct entry *e = map_get(&c->entries, key_slice(key));
    if (e && e->value) {
        c->stats.hits++;
        list_del(&e->link);
        list_add_head(&c->recent, &e->link);
        *value = gw_compiled_ref(e->value);
        return GW_CACHE_HIT;
    }
    if (e) {
        c->stats.joined++;
        wait_on(e, w);
        return GW_CACHE_JOINED;
    }
    c->stats.misses++;
    e = xcalloc(1, sizeof(*e));
    e->key = *key;
    list_init(&e->waits);
    list_init(&e->link);
    must(!map_put(&c->entries, key_slice(key), e));
    wait_on(e, w);
    return GW_CACHE_MISS;
}

static void make_room(struct gw_cache *c, const struct entry *newest)
{
    while (c->stats.entries > c->max_entries || c->stats.bytes > c->max_bytes) {
        struct entry *oldest = list_entry(c->recent.prev, struct entry, link);
        if (oldest == newest) {
            return;
        }
        drop(c, oldest);
    }
}

static void keep(struct gw_cache *c, struct entry *e, struct gw_compiled *value)
{
    e->value = value;
    list_add_head(&c->recent, &e->link);
    c->stats.entries++;
    c->stats.bytes += value->arena.used;
    make_room(c, e);
}

void gw_cache_made(struct gw_cache *c, const struct sha256 *key, struct gw_compiled *value, int rc,
                   const struct err *e)
{
    struct entry *made = map_get(&c->entries, key_slice(key));
    must(made && !made->value && (rc != 0) == (value == NULL));
    struct list waits;
    list_init(&waits);
    for (struct list *it; (it = list_take_head(&made->waits)) != NULL;) {
        struct gw_cache_wait *w = list_entry(it, struct gw_cache_wait, link);
        w->rc = rc;
        w->value = value ? gw_compiled_ref(value) : NULL;
        if (e) {
            w->err = *e;
        }
        list_add_tail(&waits, &w->link);
    }
    if (value) {
        keep(c, made, value);
    } else {
        drop(c, made);
    }
    for (struct list *it; (it = list_take_head(&waits)) != NULL;) {
        struct gw_cache_wait *w = list_entry(it, struct gw_cache_wait, link);
        w->done(w); /* may leave others of the list, and ask for more */
    }
}

void gw_cache_leave(struct gw_cache_wait *w)
{
    if (list_linked(&w->link)) {
        list_del(&w->link);
        gw_compiled_unref(w->value);
        w->value = NULL;
    }
}

void gw_cache_stats(const struct gw_cache *c, struct gw_cache_stats *out)
{
    *out = c->stats;
}
