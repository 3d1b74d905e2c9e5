/* The binder's units: newest set known, package in force, waits for it. A set is applied only when
 * its epoch is greater than the one in force, wherever it came from; one gateway never goes back
 * (protocol.md 6). */
#include "services/gateway/binder/binder.h"
#include "common/log/log.h"
#include "services/gateway/core/reasons.h"

static struct slice name_key(char *out, size_t cap, const char *environment, const char *name)
{
    snprintf(out, cap, "%s/%s", environment, name);
    return slice_of(out);
}

static struct gw_unit *unit_get(struct gw_binder *b, uint64_t id)
{
    struct gw_unit *u = map_get_u64(&b->units, id);
    if (!u) {
        u = xcalloc(1, sizeof(*u));
        u->id = id;
        u->g = b->g;
        map_put_u64(&b->units, id, u);
    }
    return u;
}

/* A package that was deleted and published again is another unit of the same name. */
static void name_del(struct gw_binder *b, const struct gw_unit *u)
{
    char key[600];
    if (u->name && map_get(&b->names, name_key(key, sizeof(key), u->environment, u->name)) == u) {
        map_del(&b->names, name_key(key, sizeof(key), u->environment, u->name));
    }
}

static void unit_name(struct gw_binder *b, struct gw_unit *u, const Kiln__BindingSet *set)
{
    char key[600];
    if (u->name && strcmp(u->name, set->package) == 0 &&
        strcmp(u->environment, set->environment) == 0) {
        return;
    }
    name_del(b, u);
    free(u->name);
    free(u->environment);
    u->environment = xstrdup(set->environment);
    u->name = xstrdup(set->package);
    struct slice name = name_key(key, sizeof(key), u->environment, u->name);
    const struct gw_unit *holder = map_get(&b->names, name);
    if (!holder || holder->known < set->epoch) { /* the newer unit: the other is on its way out */
        map_put(&b->names, name, u);
    }
}

static void unit_free(struct gw_binder *b, struct gw_unit *u)
{
    name_del(b, u);
    gw_package_unref(u->in_force);
    buf_fini(&u->packed);
    free(u->environment);
    free(u->name);
    free(u);
}

/* What stands in Redis for a deleted package, so that a gateway that starts without the planner
 * does not serve it again: a set without load and bindings. Unit ids are never reused. */
static bool is_tombstone(const Kiln__BindingSet *set)
{
    return set->load_id[0] == '\0' && strcmp(set->cause, "delete") == 0;
}

static void unit_remove(struct gw_binder *b, struct gw_unit *u)
{
    log_info("binder.gone", "environment=%s package=%s", u->environment ? u->environment : "",
             u->name ? u->name : "");
    map_del_u64(&b->units, u->id);
    binder_disk_forget(b, u->id);
    binder_unserve(u);
    unit_free(b, u);
}

void binder_offer(struct gw_binder *b, uint64_t unit, uint64_t epoch, struct slice packed)
{
    struct gw_unit *known = map_get_u64(&b->units, unit);
    if (known && epoch <= known->known) {
        return;
    }
    struct arena a;
    arena_init(&a);
    struct err e = {0};
    Kiln__BindingSet *set = bus_unpack(&kiln__binding_set__descriptor, &a, packed, &e);
    if (!set || set->package_id != unit || set->epoch != epoch) {
        log_error("binder.damaged", "unit=%llu epoch=%llu error=%s", (unsigned long long)unit,
                  (unsigned long long)epoch, log_q(err_text(&e)));
    } else if (is_tombstone(set)) {
        if (known && !known->loading) {
            unit_remove(b, known);
        }
    } else {
        struct gw_unit *u = unit_get(b, unit);
        unit_name(b, u, set);
        u->known = epoch;
        buf_clear(&u->packed);
        buf_add_slice(&u->packed, packed);
        binder_put_redis(u);
        binder_advance(u);
    }
    arena_fini(&a);
}

/* ---- Redis ---- */
static void on_put(struct cache_put *p)
{
    struct gw_unit *u =
        p->data ? map_get_u64(&((struct gw_binder *)p->data)->units, p->unit) : NULL;
    if (u && p->rc == 0 && p->in_force > u->redis_epoch) {
        u->redis_epoch = p->in_force;
    }
    free(p);
}

void binder_put_redis(struct gw_unit *u)
{
    if (!u->g->redis || u->known <= u->redis_epoch) {
        return;
    }
    struct cache_put *p = xcalloc(1, sizeof(*p));
    p->unit = u->id;
    p->epoch = u->known;
    p->packed = buf_slice(&u->packed);
    p->done = on_put;
    p->data = u->g->binder;
    cache_put_start(u->g->redis, p);
}

/* ---- what is in force ---- */
void binder_advance(struct gw_unit *u)
{
    uint64_t applied = u->in_force ? u->in_force->epoch : 0;
    bool ends = u->g->draining || u->g->binder->closing;
    if (u->loading || u->known <= applied || u->failed_epoch == u->known || ends) {
        return;
    }
    u->loading = binder_load_start(u);
}

void binder_apply(struct gw_unit *u, struct gw_package *p)
{
    if (u->in_force && u->in_force->epoch >= p->epoch) {
        gw_package_unref(p);
        return;
    }
    struct gw_package *old = u->in_force;
    u->in_force = p;
    u->lacks_root = false;
    u->failed_epoch = 0;
    u->failed_code[0] = '\0';
    binder_serve(u, gw_package_ref(p));
    gw_package_unref(old);
}

static void note_failed(struct gw_unit *u, uint64_t epoch, const char *code, const char *text)
{
    u->failed_epoch = epoch;
    snprintf(u->failed_code, sizeof(u->failed_code), "%s", code);
    snprintf(u->failed_text, sizeof(u->failed_text), "%s", text);
    metric_add(u->g->binder->m_failed, 1);
    log_error("binder.failed", "environment=%s package=%s epoch=%llu code=%s error=%s",
              u->environment, u->name, (unsigned long long)epoch, code, log_q(text));
    binder_report_now(u->g->binder);
}

void binder_failed(struct gw_unit *u, uint64_t epoch, int code, const char *text)
{
    note_failed(u, epoch, err_code_name(code), text);
    binder_wake(u->g->binder, u, code);
}

void binder_lacks_root(struct gw_unit *u, uint64_t epoch, const char *text)
{
    if (!u->in_force || u->in_force->epoch != epoch || u->lacks_root) {
        return;
    }
    u->lacks_root = true;
    if (u->failed_epoch <= epoch) { /* what failed since then is worse */
        note_failed(u, epoch, reason_code(REASON_root_not_reachable), text);
    }
}

static void put_tombstone(struct gw_unit *u)
{
    if (!u->g->redis || u->known == 0) {
        return;
    }
    Kiln__BindingSet m = KILN__BINDING_SET__INIT;
    m.package_id = u->id;
    m.epoch = u->known + 1;
    m.cause = bus_str("delete");
    m.environment = bus_str(u->environment);
    m.package = bus_str(u->name);
    struct arena a;
    arena_init(&a);
    size_t len = kiln__binding_set__get_packed_size(&m);
    uint8_t *packed = arena_alloc(&a, len);
    kiln__binding_set__pack(&m, packed);
    struct cache_put *p = xcalloc(1, sizeof(*p));
    p->unit = u->id;
    p->epoch = m.epoch;
    p->packed = slice_make(packed, len);
    p->done = on_put;
    cache_put_start(u->g->redis, p);
    arena_fini(&a);
}

void binder_gone(struct gw_binder *b, uint64_t id)
{
    struct gw_unit *u = map_get_u64(&b->units, id);
    if (!u || u->loading) {
        return;
    }
    put_tombstone(u);
    unit_remove(b, u);
}

/* ---- Redis events ---- */
static void on_set(void *data, uint64_t unit, uint64_t epoch, struct slice packed)
{
    struct gw_binder *b = data;
    binder_offer(b, unit, epoch, packed);
    struct gw_unit *u = map_get_u64(&b->units, unit);
    if (u) {
        u->redis_epoch = epoch;
        binder_put_redis(u); /* an older set, of a backup or another hand, is written over */
    }
}

static void on_synced(void *data)
{
    struct gw_binder *b = data;
    for (struct map_iter it = map_begin(&b->units); map_next(&it);) {
        binder_put_redis(it.value);
    }
}

static void on_heard(void *data, struct ms asked)
{
    binder_sets_read(data, asked);
}

static void on_state(void *data, bool confirmed, const char *why)
{
    struct gw_binder *b = data;
    metric_set(b->m_unconfirmed, confirmed ? 0 : 1);
    health_set(b->g->service, "redis", false, confirmed, confirmed ? "" : why);
    for (struct map_iter it = map_begin(&b->units); !confirmed && map_next(&it);) {
        ((struct gw_unit *)it.value)->redis_epoch = 0; /* read again after the reconnect */
    }
}

/* The cache needs the installation's id, which the first answer of the planner or the disk brings.
 */
void binder_open_cache(struct gw_binder *b);
void binder_open_cache(struct gw_binder *b)
{
    static const struct uuid none;
    if (b->g->redis || uuid_eq(bus_installation(b->g->bus), &none)) {
        return;
    }
    struct cache_events ev = {.data = b,
                              .on_set = on_set,
                              .on_synced = on_synced,
                              .on_heard = on_heard,
                              .on_state = on_state};
    struct err e = {0};
    b->g->redis =
        cache_open(b->g->loop, b->g->set->redis, bus_installation(b->g->bus), &b->g->boot, &ev, &e);
    if (!b->g->redis) {
        service_fail(b->g->service, 1, "%s", err_text(&e));
    }
}

/* ---- part ---- */
int gw_binder_start(struct service *s, struct err *e)
{
    struct gateway *g = service_state(s);
    (void)e;
    struct gw_binder *b = xcalloc(1, sizeof(*b));
    b->g = g;
    g->binder = b;
    map_init(&b->units);
    map_init(&b->names);
    list_init(&b->waits);
    list_init(&b->swaps);
    list_init(&b->alive);
    b->m_applied =
        metric_counter("publisher_materialization_manifest_bind_total", "", "binding sets applied");
    b->m_auto_loaded = metric_counter("publisher_materialization_auto_load_total", "",
                                      "binding sets applied because a run made them");
    b->m_failed = metric_counter("publisher_materialization_manifest_bind_degraded_total", "",
                                 "binding sets that could not be applied");
    b->m_unconfirmed = metric_gauge("kiln_gateway_mirror_unconfirmed", "",
                                    "1 while Redis does not confirm the mirror");
    binder_disk_read(b);
    binder_open_cache(b);
    binder_sync_start(b);
    return 0;
}

static void release_units(struct gw_binder *b)
{
    b->released = true;
    for (struct map_iter it = map_begin(&b->units); map_next(&it);) {
        struct gw_unit *u = it.value;
        map_del_u64(&b->units, u->id);
        unit_free(b, u);
    }
}

static void finish_close(struct gw_binder *b)
{
    struct gateway *g = b->g;
    struct service *s = b->closing;
    must(list_empty(&b->waits));
    if (g->redis) {
        cache_free(g->redis);
        g->redis = NULL;
    }
    for (size_t i = 0; i < b->n_broken; i++) {
        free(b->broken[i].source_id);
        free(b->broken[i].generation);
        free(b->broken[i].code);
    }
    map_fini(&b->units);
    map_fini(&b->names);
    free(b);
    g->binder = NULL;
    service_part_closed(s);
}

static void on_settle(struct loop_task *t)
{
    struct gw_binder *b = t->data;
    bool over =
        b->cache_closed && !b->hello_out && !b->getting && !b->reporting && !b->looking_at_root;
    for (struct map_iter it = map_begin(&b->units); over && map_next(&it);) {
        over = ((struct gw_unit *)it.value)->loading == NULL;
    }
    if (over && !b->released) {
        release_units(b);
    }
    if (over && list_empty(&b->swaps) && list_empty(&b->alive)) {
        finish_close(b);
    }
}

void binder_settle(struct gw_binder *b)
{
    if (b->closing) {
        loop_defer(b->g->loop, &b->settle_task);
    }
}

static void on_cache_closed(void *data)
{
    struct gw_binder *b = data;
    b->cache_closed = true;
    binder_settle(b);
}

void gw_binder_close(struct service *s)
{
    struct gateway *g = service_state(s);
    struct gw_binder *b = g->binder;
    b->closing = s;
    loop_task_init(&b->settle_task, on_settle, b);
    binder_sync_stop(b);
    for (struct map_iter it = map_begin(&b->units); map_next(&it);) {
        struct gw_unit *u = it.value;
        if (u->loading) {
            flow_cancel(u->loading);
        }
    }
    if (g->redis) {
        cache_close(g->redis, on_cache_closed, b);
    } else {
        on_cache_closed(b);
    }
}
