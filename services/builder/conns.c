/* Warehouse connections of a builder: made from sealed settings, remade when the config epoch
 * grows. */
#include "common/json/json.h"
#include "services/builder/builder.h"

static char *key_of(struct arena *a, const char *environment, const char *name)
{
    return arena_printf(a, "%s/%s", environment, name);
}

static void on_closed(void *data)
{
    wh_free(data);
}

static void conn_free(struct builder_conn *c)
{
    if (c->wh) {
        c->wh->ops->close(c->wh, on_closed, c->wh);
    }
    for (size_t i = 0; c->secrets && c->secrets[i]; i++) {
        free(c->secrets[i]);
    }
    free(c->secrets);
    free(c->key);
    free(c);
}

struct builder_conn *builder_conn_find(struct builder *b, const char *environment, const char *name,
                                       uint64_t config_epoch)
{
    struct arena a;
    arena_init(&a);
    struct builder_conn *c = map_get(&b->conns, slice_of(key_of(&a, environment, name)));
    arena_fini(&a);
    if (!c || c->config_epoch < config_epoch) {
        return NULL;
    }
    c->users++;
    return c;
}

static void retire(struct builder *b, struct builder_conn *c)
{
    map_del(&b->conns, slice_of(c->key));
    c->stale = true;
    if (c->users == 0) {
        conn_free(c);
    }
}

int builder_conn_unseal(const struct builder *b, const char *name,
                        const Kiln__GetConnectionRep *rep, struct buf *out, struct err *e)
{
    if (rep->nonce.len == 12 &&
        crypto_unseal(b->secret_key, rep->nonce.data, slice_make(rep->sealed.data, rep->sealed.len),
                      out) == 0) {
        return 0;
    }
    return err_set(e, ERR_CONF,
                   "connection '%s': its sealed settings do not open; give builder and planner the "
                   "same KILN_SECRET_KEY",
                   name);
}

int builder_conn_make(struct builder *b, const char *environment, const char *name,
                      const Kiln__GetConnectionRep *rep, struct builder_conn **out, struct err *e)
{
    struct arena a;
    arena_init(&a);
    auto_buf struct buf plain = {0};
    char *key = key_of(&a, environment, name);
    struct wh *wh = NULL;
    int rc = builder_conn_unseal(b, name, rep, &plain, e);
    if (rc == 0) {
        struct wh_settings s = {.name = name,
                                .type = rep->type,
                                .config_json = buf_str(&plain),
                                .sessions = (unsigned)b->set->slots + 1,
                                .builder = true,
                                .statement_timeout = MS(b->set->statement_timeout_ms)};
        rc = wh_open(b->loop, &s, &wh, e);
    }
    if (rc == 0) {
        struct builder_conn *old = map_get(&b->conns, slice_of(key));
        if (old) {
            retire(b, old);
        }
        struct builder_conn *c = xcalloc(1, sizeof(*c));
        c->key = xstrdup(key);
        c->wh = wh;
        c->config_epoch = rep->config_epoch;
        c->users = 1;
        const char **secrets = wh_secrets(&a, buf_str(&plain));
        size_t n = 0;
        while (secrets[n]) {
            n++;
        }
        c->secrets = xcalloc(n + 1, sizeof(char *));
        for (size_t i = 0; i < n; i++) {
            c->secrets[i] = xstrdup(secrets[i]);
        }
        map_put(&b->conns, slice_of(c->key), c);
        *out = c;
    }
    arena_fini(&a);
    return rc;
}

void builder_conn_put(struct builder *b, struct builder_conn *c)
{
    (void)b;
    if (c && --c->users == 0 && c->stale) {
        conn_free(c);
    }
}

struct close_wait {
    size_t left;
    void (*done)(void *data);
    void *data;
};
struct close_one {
    struct close_wait *wait;
    struct wh *wh;
};

static void on_one_closed(void *data)
{
    struct close_one *one = data;
    struct close_wait *w = one->wait;
    wh_free(one->wh);
    free(one);
    if (--w->left == 0) {
        w->done(w->data);
        free(w);
    }
}

void builder_conns_close(struct builder *b, void (*done)(void *data), void *data)
{
    size_t n = map_len(&b->conns);
    if (n == 0) {
        map_fini(&b->conns);
        done(data);
        return;
    }
    struct close_wait *w = xcalloc(1, sizeof(*w));
    w->left = n;
    w->done = done;
    w->data = data;
    for (struct map_iter it = map_begin(&b->conns); map_next(&it);) {
        struct builder_conn *c = it.value;
        struct close_one *one = xcalloc(1, sizeof(*one));
        one->wait = w;
        one->wh = c->wh;
        c->wh = NULL;
        map_del(&b->conns, it.key);
        one->wh->ops->close(one->wh, on_one_closed, one);
        conn_free(c);
    }
    map_fini(&b->conns);
}
