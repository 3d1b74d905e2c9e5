/* What is in force on a worker, by name. */
#include "services/gateway/worker.h"

static struct slice key_of(char out[600], const char *environment, const char *package)
{
    snprintf(out, 600, "%s/%s", environment, package);
    return slice_of(out);
}

struct gw_package *gw_shelf_find(const struct gw_worker *w, const char *environment,
                                 const char *package)
{
    char key[600];
    return map_get(&w->shelf, key_of(key, environment, package));
}

size_t gw_shelf_list(const struct gw_worker *w, const char *environment, struct gw_package **out,
                     size_t max)
{
    size_t n = 0;
    for (struct map_iter it = map_begin(&w->shelf); n < max && map_next(&it);) {
        struct gw_package *p = it.value;
        if (!environment || strcmp(p->environment, environment) == 0) {
            out[n++] = p;
        }
    }
    return n;
}

/* A unit may have changed its name: what it had under another one goes. */
static void drop_unit(struct gw_worker *w, uint64_t unit, const struct gw_package *but)
{
    for (struct map_iter it = map_begin(&w->shelf); map_next(&it);) {
        struct gw_package *p = it.value;
        if (p->unit == unit && p != but) {
            map_del(&w->shelf, it.key);
            gw_package_unref(p);
        }
    }
}

/* Of two units of one name the newer one is served: the other is on its way out. */
void gw_shelf_put(struct gw_worker *w, struct gw_package *p)
{
    loop_assert_here(w->loop);
    char key[600];
    struct slice name = key_of(key, p->environment, p->name);
    struct gw_package *old = map_get(&w->shelf, name);
    if (w->shelf_closed || (old && old->epoch >= p->epoch)) {
        gw_package_unref(p);
        return;
    }
    map_put(&w->shelf, name, p);
    gw_package_unref(old);
    drop_unit(w, p->unit, p);
}

void gw_shelf_drop(struct gw_worker *w, uint64_t unit)
{
    loop_assert_here(w->loop);
    drop_unit(w, unit, NULL);
}

void gw_shelf_close(struct gw_worker *w)
{
    loop_assert_here(w->loop);
    w->shelf_closed = true;
    for (struct map_iter it = map_begin(&w->shelf); map_next(&it);) {
        struct gw_package *p = it.value;
        map_del(&w->shelf, it.key);
        gw_package_unref(p);
    }
    map_fini(&w->shelf);
}
