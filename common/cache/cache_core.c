/* Keys, values and addresses: text in, fields out. */
#include "common/cache/cache_internal.h"
#include <inttypes.h>
#include <stdio.h>

enum { UNIX_PATH_MAX_LEN = 107 };

void cache_key_format(const struct cache *c, uint64_t unit, char out[CACHE_KEY_TEXT])
{
    (void)snprintf(out, CACHE_KEY_TEXT, "%s%" PRIu64, c->prefix, unit);
}

bool cache_key_parse(const struct cache *c, struct slice key, uint64_t *unit)
{
    struct slice prefix = slice_of(c->prefix);
    if (!slice_starts(key, prefix)) {
        return false;
    }
    return slice_to_u64(slice_make(key.p + prefix.len, key.len - prefix.len), unit) == 0;
}

void cache_epoch_format(uint64_t epoch, char out[CACHE_EPOCH_DIGITS + 1])
{
    (void)snprintf(out, CACHE_EPOCH_DIGITS + 1, "%020" PRIu64, epoch);
}

bool cache_value_parse(struct slice value, uint64_t *epoch, struct slice *packed)
{
    if (value.len < CACHE_EPOCH_DIGITS) {
        return false;
    }
    for (size_t i = 0; i < CACHE_EPOCH_DIGITS; i++) {
        if (value.p[i] < '0' || value.p[i] > '9') {
            return false;
        }
    }
    if (slice_to_u64(slice_make(value.p, CACHE_EPOCH_DIGITS), epoch)) {
        return false; /* 20 digits hold more than 64 bits */
    }
    *packed = slice_make(value.p + CACHE_EPOCH_DIGITS, value.len - CACHE_EPOCH_DIGITS);
    return true;
}

/* The text itself is not repeated: it may hold a password. */
static int refuse(struct cache_address *a, struct err *e)
{
    cache_address_fini(a);
    return err_set(e, ERR_CONF,
                   "the address of Redis is not understood: give unix:/path, host:port, "
                   "host:port/db or user:password@host:port");
}

static int parse_unix(struct slice path, struct cache_address *out, struct err *e)
{
    if (path.len == 0) {
        return refuse(out, e);
    }
    if (path.len > UNIX_PATH_MAX_LEN) {
        return err_set(e, ERR_CONF,
                       "the path '%.*s' of Redis is %zu bytes long and a unix socket takes %d: "
                       "choose a shorter run directory",
                       SLICE_FMT(path), path.len, UNIX_PATH_MAX_LEN);
    }
    out->path = xstrndup(path.p, path.len);
    return 0;
}

static void parse_login(struct slice login, struct cache_address *out)
{
    struct slice user = SLICE_NONE;
    const char *colon = memchr(login.p, ':', login.len);
    if (colon) {
        user = slice_make(login.p, (size_t)(colon - login.p));
        login = slice_make(colon + 1, login.len - user.len - 1);
    }
    out->user = user.len ? xstrndup(user.p, user.len) : NULL;
    out->password = xstrndup(login.p, login.len);
}

/* The last place of c, or NULL. */
static const char *last_of(struct slice s, char c)
{
    return s.len ? memrchr(s.p, c, s.len) : NULL;
}

int cache_address_parse(const char *url, struct cache_address *out, struct err *e)
{
    static const struct slice scheme = {"unix:", 5};
    struct slice rest = slice_of(url);
    *out = (struct cache_address){0};
    if (slice_starts(rest, scheme)) {
        return parse_unix(slice_make(rest.p + scheme.len, rest.len - scheme.len), out, e);
    }
    const char *at = last_of(rest, '@');
    if (at) {
        parse_login(slice_make(rest.p, (size_t)(at - rest.p)), out);
        rest = slice_make(at + 1, rest.len - (size_t)(at + 1 - rest.p));
    }
    uint64_t db = 0;
    const char *slash = last_of(rest, '/');
    if (slash) {
        struct slice tail = slice_make(slash + 1, rest.len - (size_t)(slash + 1 - rest.p));
        if (slice_to_u64(tail, &db) || db > 1000000) {
            return refuse(out, e);
        }
        rest.len = (size_t)(slash - rest.p);
    }
    uint64_t port = 0;
    const char *colon = last_of(rest, ':');
    if (!colon ||
        slice_to_u64(slice_make(colon + 1, rest.len - (size_t)(colon + 1 - rest.p)), &port) ||
        port == 0 || port > UINT16_MAX) {
        return refuse(out, e);
    }
    struct slice host = slice_make(rest.p, (size_t)(colon - rest.p));
    if (host.len > 2 && host.p[0] == '[' && host.p[host.len - 1] == ']') {
        host = slice_make(host.p + 1, host.len - 2);
    }
    if (host.len == 0) {
        return refuse(out, e);
    }
    out->host = xstrndup(host.p, host.len);
    out->port = (uint16_t)port;
    out->db = (unsigned)db;
    return 0;
}

void cache_address_fini(struct cache_address *a)
{
    if (a->password) {
        explicit_bzero(a->password, strlen(a->password));
    }
    free(a->path);
    free(a->host);
    free(a->user);
    free(a->password);
    *a = (struct cache_address){0};
}

void cache_address_show(const struct cache_address *a, char *out, size_t cap)
{
    if (a->path) {
        (void)snprintf(out, cap, "unix:%s", a->path);
    } else {
        (void)snprintf(out, cap, "%s:%u", a->host, a->port);
    }
}
