/* Loads: what the pool keeps, and which child holds a copy of it. */
#include "common/compiler/compiler_internal.h"
#include "common/log/log.h"

static char kind_unload[] = "unload";

struct compiler_kept *compiler_kept_get(const struct compiler_pool *p, const char *load_id)
{
    return map_get(&p->kept, slice_of(load_id));
}

static struct compiler_copy *copy_get(const struct compiler_child *c, const char *load_id)
{
    return map_get(&c->copies, slice_of(load_id));
}

int compiler_copy_rank(const struct compiler_child *c, const char *load_id)
{
    const struct compiler_copy *copy = copy_get(c, load_id);
    if (!copy) {
        return 0;
    }
    return copy->loaded && !copy->stale ? 2 : 1;
}

void compiler_copy_set(struct compiler_child *c, const char *load_id, bool loaded, bool stale)
{
    struct compiler_copy *copy = copy_get(c, load_id);
    if (!copy) {
        copy = xcalloc(1, sizeof *copy);
        copy->id = xstrdup(load_id);
        must(!map_put(&c->copies, slice_of(load_id), copy));
    }
    copy->loaded = loaded;
    copy->stale = stale;
    copy->stale_since = loop_now(c->pool->loop);
}

void compiler_copy_drop(struct compiler_child *c, const char *load_id)
{
    struct compiler_copy *copy = map_del(&c->copies, slice_of(load_id));
    if (copy) {
        free(copy->id);
        free(copy);
    }
}

void compiler_copies_fini(struct compiler_child *c)
{
    for (struct map_iter it = map_begin(&c->copies); map_next(&it);) {
        struct compiler_copy *copy = it.value;
        free(copy->id);
        free(copy);
    }
    map_fini(&c->copies);
}

/* What the children hold under this id is not what the next call of it means. */
static void mark_stale(struct compiler_pool *p, const char *load_id)
{
    list_for_each (it, &p->children) {
        struct compiler_child *c = list_entry(it, struct compiler_child, link);
        struct compiler_copy *copy = copy_get(c, load_id);
        if (copy) {
            copy->stale = true;
            copy->stale_since = loop_now(p->loop);
        }
        if (c->asked_load && strcmp(c->asked_load, load_id) == 0) {
            c->asked_stale = true;
        }
    }
}

static void kept_free(struct compiler_kept *k)
{
    free(k->id);
    buf_fini(&k->packed);
    free(k);
}

void compiler_keep(struct compiler_pool *p, const char *load_id, struct slice packed_load)
{
    loop_assert_here(p->loop);
    struct compiler_kept *old = compiler_kept_get(p, load_id);
    if (old && slice_eq(buf_slice(&old->packed), packed_load)) {
        return;
    }
    struct compiler_kept *k = xcalloc(1, sizeof *k);
    k->id = xstrdup(load_id);
    buf_add_slice(&k->packed, packed_load);
    old = map_put(&p->kept, slice_of(load_id), k);
    if (old) {
        mark_stale(p, load_id);
        kept_free(old);
    }
}

static void tidy_later(struct compiler_pool *p)
{
    loop_timer_start(&p->tidy, p->tidy_span);
}

void compiler_forget(struct compiler_pool *p, const char *load_id)
{
    loop_assert_here(p->loop);
    struct compiler_kept *old = map_del(&p->kept, slice_of(load_id));
    if (old) {
        kept_free(old);
    }
    mark_stale(p, load_id);
    tidy_later(p);
}

void compiler_kept_fini(struct compiler_pool *p)
{
    for (struct map_iter it = map_begin(&p->kept); map_next(&it);) {
        kept_free(it.value);
    }
    map_fini(&p->kept);
}

/* A copy forgotten a while ago; one that is kept again is replaced by its replay instead. */
static const char *find_forgotten(const struct compiler_child *c)
{
    struct ms now = loop_now(c->pool->loop);
    for (struct map_iter it = map_begin(&c->copies); map_next(&it);) {
        const struct compiler_copy *copy = it.value;
        bool long_ago = !ms_before(now, ms_add(copy->stale_since, c->pool->tidy_span));
        if (copy->stale && long_ago && !compiler_kept_get(c->pool, copy->id)) {
            return copy->id;
        }
    }
    return NULL;
}

static void unload(struct compiler_child *c, const char *load_id)
{
    Kiln__Mc__Unload m = KILN__MC__UNLOAD__INIT;
    auto_free char *id = xstrdup(load_id);
    m.load_id = id;
    size_t len = kiln__mc__unload__get_packed_size(&m);
    auto_free uint8_t *packed = xmalloc(len);
    kiln__mc__unload__pack(&m, packed);
    log_debug("compiler.unload", "pid=%d load=%s", c->process.pid, log_q(load_id));
    compiler_child_ask(c, CHILD_UNLOADING, kind_unload, (ProtobufCBinaryData){len, packed}, id,
                       MS(COMPILER_REPLAY_MS));
}

bool compiler_unload_forgotten(struct compiler_child *c)
{
    const char *id = find_forgotten(c);
    if (id) {
        unload(c, id);
    }
    return id != NULL;
}

void compiler_loads_tidy(struct loop_timer *t)
{
    struct compiler_pool *p = t->data;
    list_for_each (it, &p->children) {
        struct compiler_child *c = list_entry(it, struct compiler_child, link);
        if (c->state == CHILD_IDLE && !c->hung_up) {
            (void)compiler_unload_forgotten(c);
        }
    }
}
