/* Dispatch to the two implementations, and what they say alike. */
#include "common/cache/cache_internal.h"
#include "common/log/log.h"
#include <stdio.h>

void cache_base_init(struct cache *c, const struct cache_ops *ops, const struct cache_events *ev,
                     const struct uuid *installation)
{
    char id[UUID_TEXT];
    uuid_format(installation, id);
    c->ops = ops;
    c->ev = *ev;
    (void)snprintf(c->prefix, sizeof(c->prefix), "kiln:%s:b:", id);
}

void cache_say(struct cache *c, bool is_confirmed, const char *why)
{
    if (c->is_confirmed == is_confirmed && strcmp(c->why, why) == 0) {
        return;
    }
    c->is_confirmed = is_confirmed;
    (void)snprintf(c->why, sizeof(c->why), "%s", why);
    log_info("cache.state", "confirmed=%d why=%s", is_confirmed, log_q(c->why));
    if (c->ev.on_state) {
        c->ev.on_state(c->ev.data, is_confirmed, c->why);
    }
}

int cache_put_check(struct cache_put *p)
{
    if (p->packed.len > CACHE_PACKED_CAP) {
        return err_set(&p->err, ERR_LIMIT,
                       "binding set of unit %llu is %zu bytes long, the limit is %zu",
                       (unsigned long long)p->unit, p->packed.len, CACHE_PACKED_CAP);
    }
    return 0;
}

bool cache_confirmed(const struct cache *c)
{
    return c->is_confirmed;
}

void cache_put_start(struct cache *c, struct cache_put *p)
{
    err_clear(&p->err);
    p->rc = 0;
    p->in_force = 0;
    p->impl = NULL;
    c->ops->put_start(c, p);
}

void cache_close(struct cache *c, void (*done)(void *data), void *data)
{
    c->ops->close(c, done, data);
}

void cache_free(struct cache *c)
{
    if (c) {
        c->ops->free(c);
    }
}
