/* Connection objects: identity digest, secrets, connection string. */
#include "common/warehouse/wh_config.h"
#include "common/json/json.h"
#include "common/pgc/pgc.h"
#include "common/warehouse/warehouse.h"
#include "common/warehouse/wh_attached.h"
#include "common/warehouse/wh_parts.h"

#include <strings.h>

/* Words in a member's name that make its value a secret. */
static const char *const secret_words[] = {"password", "passphrase", "pass",       "secret",
                                           "token",    "privatekey", "accesskey",  "credential",
                                           "apikey",   "servicekey", "accountkey", "keyjson"};

static bool is_secret_name(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(secret_words); i++) {
        if (strcasestr(key, secret_words[i])) {
            return true;
        }
    }
    return false;
}

static json_t *config_of(const char *config_json)
{
    struct err e;
    return config_json ? json_parse(slice_of(config_json), &e) : NULL;
}

/* "postgresConnection", "duckdbConnection", ..: the member that ends in Connection. */
static const json_t *engine_object(const json_t *config)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)config, key, value)
    {
        size_t len = strlen(key);
        if (len > 10 && strcmp(key + len - 10, "Connection") == 0 && json_is_object(value)) {
            return value;
        }
    }
    return NULL;
}

struct texts {
    struct arena *a;
    const char **items;
    size_t n, cap;
};

static void texts_add(struct texts *t, const char *text)
{
    if (!text || !text[0]) {
        return;
    }
    if (t->n + 1 >= t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 8;
        const char **bigger = arena_zalloc(t->a, cap * sizeof *bigger);
        if (t->n > 0) {
            memcpy(bigger, t->items, t->n * sizeof *bigger);
        }
        t->items = bigger;
        t->cap = cap;
    }
    t->items[t->n++] = arena_strdup(t->a, text);
}

/* A URI's password as it is written, percent signs and all. */
static void add_uri_password(struct texts *t, const char *uri)
{
    const char *at = strstr(uri, "://");
    if (!at) {
        return;
    }
    at += 3;
    size_t len = strcspn(at, "/?");
    const char *end = memrchr(at, '@', len);
    const char *colon = end ? memchr(at, ':', (size_t)(end - at)) : NULL;
    if (colon) {
        texts_add(t, arena_strndup(t->a, colon + 1, (size_t)(end - colon - 1)));
    }
}

static void add_from_string(struct texts *t, const char *key, const char *text)
{
    if (is_secret_name(key)) {
        texts_add(t, text);
    }
    if (strcasecmp(key, "connectionString") != 0) {
        return;
    }
    auto_free char *password = pgc_conninfo_value(text, "password");
    auto_free char *sslpassword = pgc_conninfo_value(text, "sslpassword");
    texts_add(t, password);
    texts_add(t, sslpassword);
    add_uri_password(t, text);
}

static void collect(struct texts *t, const char *key, const json_t *v)
{
    if (json_is_string(v)) {
        add_from_string(t, key, json_string_value(v));
        return;
    }
    const char *k;
    json_t *member;
    size_t i;
    if (json_is_object(v)) {
        json_object_foreach((json_t *)(uintptr_t)v, k, member)
        {
            /* Below "credentials": {..} everything is secret. */
            collect(t, is_secret_name(key) ? key : k, member);
        }
    } else if (json_is_array(v)) {
        json_array_foreach(v, i, member)
        {
            collect(t, key, member);
        }
    }
}

const char **wh_secrets(struct arena *a, const char *config_json)
{
    struct texts t = {.a = a};
    json_t *config = config_of(config_json);
    collect(&t, "", config);
    json_decref(config);
    if (!t.items) {
        t.items = arena_zalloc(a, sizeof *t.items);
    }
    t.items[t.n] = NULL;
    return t.items;
}

void wh_part_add(struct buf *out, const char *part)
{
    buf_addf(out, "%s%zu:%s", out->len > 0 ? "/" : "", strlen(part), part);
}

char *wh_postgres_setting(const json_t *pg, const char *member, const char *key)
{
    const char *text = json_str(pg, "connectionString", NULL);
    if (text && text[0]) {
        char *found = pgc_conninfo_value(text, key);
        return found ? found : xstrdup("");
    }
    const json_t *v = json_object_get(pg, member);
    if (json_is_integer(v)) {
        return xasprintf("%lld", (long long)json_integer_value(v));
    }
    return xstrdup(json_is_string(v) ? json_string_value(v) : "");
}

void wh_postgres_identity(struct buf *out, const json_t *pg)
{
    auto_free char *host = wh_postgres_setting(pg, "host", "host");
    auto_free char *port = wh_postgres_setting(pg, "port", "port");
    auto_free char *user = wh_postgres_setting(pg, "userName", "user");
    auto_free char *database = wh_postgres_setting(pg, "databaseName", "dbname");
    wh_part_add(out, host);
    wh_part_add(out, port[0] ? port : "5432");
    wh_part_add(out, database[0] ? database : user);
    wh_part_add(out, user);
}

/* Engines without a driver yet: all that is no secret, keys sorted. */
static json_t *without_secrets(const json_t *v)
{
    if (!json_is_object(v)) {
        return json_deep_copy(v);
    }
    json_t *out = json_object();
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)(uintptr_t)v, key, member)
    {
        if (!is_secret_name(key) && strcasecmp(key, "connectionString") != 0) {
            json_object_set_new(out, key, without_secrets(member));
        }
    }
    return out;
}

static void add_other(struct buf *out, const json_t *engine)
{
    json_t *plain = without_secrets(engine);
    char *text = plain ? json_dumps(plain, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    wh_part_add(out, text ? text : "");
    free(text);
    json_decref(plain);
}

char *wh_digest(struct arena *a, const char *type, const char *config_json)
{
    json_t *config = config_of(config_json);
    const char *fingerprint = json_str(config, "fingerprint", NULL);
    if (fingerprint && fingerprint[0]) {
        char *out = arena_strdup(a, fingerprint);
        json_decref(config);
        return out;
    }
    auto_buf struct buf parts = {0};
    wh_part_add(&parts, type);
    const json_t *engine = config ? engine_object(config) : NULL;
    if (strcmp(type, "postgres") == 0) {
        wh_postgres_identity(&parts, engine);
    } else if (strcmp(type, "duckdb") == 0) {
        wh_attached_identity(&parts, config);
    } else {
        add_other(&parts, engine);
    }
    struct sha256 sum = sha256_of(parts.p, parts.len);
    char *hex = arena_alloc(a, 2 * sizeof sum.b + 1);
    hex_encode(sum.b, sizeof sum.b, hex);
    json_decref(config);
    return hex;
}

static const struct {
    const char *member, *key;
} settings[] = {
    {"host", "host"},     {"port", "port"},         {"databaseName", "dbname"},
    {"userName", "user"}, {"password", "password"}, {"sslmode", "sslmode"},
};

static const char *conninfo_of(struct arena *a, const json_t *pg)
{
    const char *given = json_str(pg, "connectionString", NULL);
    if (given && given[0]) {
        return arena_strdup(a, given);
    }
    auto_buf struct buf out = {0};
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        auto_free char *value = wh_postgres_setting(pg, settings[i].member, settings[i].key);
        if (value[0]) {
            pgc_conninfo_add(&out, settings[i].key, value);
        }
    }
    return arena_strdup(a, buf_str(&out));
}

int wh_config_conninfo(struct arena *a, const char *name, const char *config_json, const char **out,
                       struct err *e)
{
    json_t *config = config_of(config_json);
    const json_t *pg = json_object_get(config, "postgresConnection");
    int rc = 0;
    if (!json_is_object(pg)) {
        rc = err_set(e, ERR_INVALID,
                     "connection '%s': a connection of type postgres needs an object "
                     "\"postgresConnection\" with host, port, databaseName, userName, password, or "
                     "a connectionString",
                     name);
    } else {
        *out = conninfo_of(a, pg);
    }
    json_decref(config);
    return rc;
}
