/* Environments, connections and units in memory: a copy of rows, changed only after their commit.
 */
#include "common/log/log.h"
#include "common/warehouse/wh_attached.h"
#include "services/planner/asked.h"

static void replace(char **where, const char *text)
{
    free(*where);
    *where = xstrdup(text);
}

static struct slice key_of(char *out, size_t cap, const char *fmt, ...) PRINTF_LIKE(3, 4);
static struct slice key_of(char *out, size_t cap, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(out, cap, fmt, ap);
    va_end(ap);
    return slice_of(out);
}
#define KEY_CAP 640

struct planner_environment *catalog_environment(struct planner *p, const char *name)
{
    return map_get(&p->environments, slice_of(name));
}

struct planner_environment *catalog_environment_id(struct planner *p, uint64_t id)
{
    for (struct map_iter it = map_begin(&p->environments); map_next(&it);) {
        struct planner_environment *e = it.value;
        if (e->id == id) {
            return e;
        }
    }
    return NULL;
}

struct planner_environment *catalog_put_environment(struct planner *p,
                                                    const struct store_environment *row)
{
    struct planner_environment *e = catalog_environment(p, row->name);
    if (!e) {
        e = xcalloc(1, sizeof(*e));
        e->name = xstrdup(row->name);
        map_put(&p->environments, slice_of(e->name), e);
    }
    e->id = row->id;
    e->frozen = row->frozen;
    if (row->readme) {
        replace(&e->readme, row->readme);
    }
    return e;
}

static void environment_free(struct planner_environment *e)
{
    free(e->name);
    free(e->readme);
    free(e);
}

struct wh_closing {
    struct planner *p;
    struct wh *wh;
};

static void on_wh_closed(void *data)
{
    struct wh_closing *w = data;
    struct planner *p = w->p;
    wh_free(w->wh);
    free(w);
    p->n_wh_closing--;
    if (p->n_wh_closing == 0 && p->on_whs_closed) {
        p->on_whs_closed(p);
    }
}

static void connection_close(struct planner *p, struct planner_connection *c)
{
    if (!c->wh) {
        return;
    }
    struct wh_closing *w = xcalloc(1, sizeof(*w));
    *w = (struct wh_closing){.p = p, .wh = c->wh};
    c->wh = NULL;
    p->n_wh_closing++;
    w->wh->ops->close(w->wh, on_wh_closed, w);
}

static void connection_free(struct planner *p, struct planner_connection *c)
{
    connection_close(p, c);
    free(c->name);
    free(c->type);
    free(c->digest);
    free(c->public_json);
    buf_fini(&c->sealed);
    free(c);
}

struct planner_connection *catalog_connection(struct planner *p, uint64_t environment,
                                              const char *name)
{
    char key[KEY_CAP];
    return map_get(&p->connections,
                   key_of(key, sizeof(key), "%llu/%s", (unsigned long long)environment, name));
}

struct planner_connection *catalog_put_connection(struct planner *p,
                                                  const struct store_connection *row)
{
    char key[KEY_CAP];
    struct planner_connection *c = catalog_connection(p, row->environment, row->name);
    if (!c) {
        c = xcalloc(1, sizeof(*c));
        c->environment = row->environment;
        c->name = xstrdup(row->name);
        map_put(
            &p->connections,
            key_of(key, sizeof(key), "%llu/%s", (unsigned long long)row->environment, row->name),
            c);
    }
    connection_close(p, c);
    replace(&c->type, row->type);
    replace(&c->digest, row->digest);
    replace(&c->public_json, row->public_json);
    c->epoch = row->epoch;
    memcpy(c->nonce, row->nonce, sizeof(c->nonce));
    buf_clear(&c->sealed);
    buf_add_slice(&c->sealed, row->sealed);
    return c;
}

void catalog_del_connection(struct planner *p, uint64_t environment, const char *name)
{
    char key[KEY_CAP];
    struct planner_connection *c =
        map_del(&p->connections,
                key_of(key, sizeof(key), "%llu/%s", (unsigned long long)environment, name));
    if (c) {
        connection_free(p, c);
    }
}

void catalog_del_environment(struct planner *p, const char *name)
{
    struct planner_environment *e = map_del(&p->environments, slice_of(name));
    if (!e) {
        return;
    }
    for (struct map_iter it = map_begin(&p->connections); map_next(&it);) {
        struct planner_connection *c = it.value;
        if (c->environment == e->id) {
            map_del(&p->connections, it.key);
            connection_free(p, c);
        }
    }
    environment_free(e);
}

struct planner_unit *catalog_unit(struct planner *p, const char *environment, const char *name)
{
    char key[KEY_CAP];
    return map_get(&p->units, key_of(key, sizeof(key), "%s/%s", environment, name));
}

struct planner_unit *catalog_unit_id(struct planner *p, uint64_t id)
{
    for (struct map_iter it = map_begin(&p->units); map_next(&it);) {
        struct planner_unit *u = it.value;
        if (u->id == id) {
            return u;
        }
    }
    return NULL;
}

struct planner_unit *catalog_put_unit(struct planner *p, const struct store_unit *row)
{
    struct planner_unit *u = catalog_unit(p, row->environment_name, row->name);
    if (!u) {
        char key[KEY_CAP];
        u = xcalloc(1, sizeof(*u));
        u->planner = p;
        u->environment_name = xstrdup(row->environment_name);
        u->name = xstrdup(row->name);
        map_put(&p->units, key_of(key, sizeof(key), "%s/%s", row->environment_name, row->name), u);
    }
    u->id = row->id;
    u->environment = row->environment;
    if (row->location) {
        replace(&u->location, row->location);
    }
    if (row->description) {
        replace(&u->description, row->description);
    }
    replace(&u->load_error, row->load_error);
    replace(&u->stale_error, row->stale_error);
    u->stale_us = row->stale_us;
    return u;
}

static void unit_free(struct planner *p, struct planner_unit *u)
{
    load_unref(p, u->load);
    free(u->environment_name);
    free(u->name);
    free(u->location);
    free(u->description);
    free(u->load_error);
    free(u->stale_error);
    free(u);
}

void catalog_del_unit(struct planner *p, struct planner_unit *u)
{
    char key[KEY_CAP];
    map_del(&p->units, key_of(key, sizeof(key), "%s/%s", u->environment_name, u->name));
    unit_free(p, u);
}

void unit_set_error(struct planner_unit *u, const char *load_error, const char *stale_error)
{
    replace(&u->load_error, load_error);
    replace(&u->stale_error, stale_error);
    u->stale_us = stale_error ? loop_unix_us() : 0;
}

struct planner_config_error *catalog_config_error(struct planner *p, const char *environment,
                                                  const char *package)
{
    list_for_each (it, &p->config_errors) {
        struct planner_config_error *c = list_entry(it, struct planner_config_error, link);
        if (c->package && strcmp(c->package, package) == 0 &&
            strcmp(c->environment, environment) == 0) {
            return c;
        }
    }
    return NULL;
}

void catalog_config_error_free(struct planner_config_error *c)
{
    list_del(&c->link);
    free(c->environment);
    free(c->package);
    free(c->message);
    free(c->location);
    free(c);
}

void catalog_clear(struct planner *p)
{
    for (struct map_iter it = map_begin(&p->units); map_next(&it);) {
        unit_free(p, it.value);
    }
    for (struct map_iter it = map_begin(&p->connections); map_next(&it);) {
        connection_free(p, it.value);
    }
    for (struct map_iter it = map_begin(&p->environments); map_next(&it);) {
        environment_free(it.value);
    }
    map_fini(&p->units);
    map_fini(&p->connections);
    map_fini(&p->environments);
    map_init(&p->units);
    map_init(&p->connections);
    map_init(&p->environments);
}

struct planner_load *load_ref(struct planner_load *l)
{
    if (l) {
        l->refs++;
    }
    return l;
}

void load_unref(struct planner *p, struct planner_load *l)
{
    if (!l || --l->refs > 0) {
        return;
    }
    if (p->compiler) {
        compiler_forget(p->compiler, l->text_id);
    }
    if (l->planned) {
        package_plan_fini(&l->plan);
    }
    asked_wh_free(l->duckdb);
    arena_fini(&l->arena);
    free(l);
}

int planner_unseal(struct planner *p, const uint8_t nonce[12], struct slice sealed, struct buf *out,
                   struct err *e)
{
    if (crypto_unseal(p->secret_key, nonce, sealed, out)) {
        return err_set(e, ERR_CONF,
                       "a stored credential cannot be opened: KILN_SECRET_KEY is not the key it "
                       "was sealed with; start with the old key, or write the connection again");
    }
    return 0;
}

int connection_wh(struct planner *p, struct planner_connection *c, struct wh **out, struct err *e)
{
    if (c->wh) {
        *out = c->wh;
        return 0;
    }
    auto_buf struct buf plain = {0};
    int rc = planner_unseal(p, c->nonce, buf_slice(&c->sealed), &plain, e);
    if (rc) {
        return rc;
    }
    struct wh_settings s = {.name = c->name,
                            .type = c->type,
                            .config_json = buf_str(&plain),
                            .sessions = (unsigned)p->set->warehouse_sessions,
                            .builder = false,
                            .statement_timeout = MS(60000)};
    rc = wh_open(p->loop, &s, &c->wh, e);
    if (rc) {
        return rc;
    }
    *out = c->wh;
    return 0;
}

int connection_row(struct planner *p, struct arena *a, uint64_t environment, const char *name,
                   const char *json, struct store_connection *out, struct err *e)
{
    json_t *v = json_parse(slice_of(json), e);
    if (!v) {
        return err_wrap(e, "connection '%s'", name);
    }
    const char *type = json_str(v, "type", NULL);
    if (!type || !wh_dialect(type)) {
        err_set(e, ERR_INVALID,
                "connection '%s': type '%s' is unknown; use postgres, duckdb, bigquery, snowflake, "
                "trino, mysql, databricks, motherduck or ducklake",
                name, type ? type : "");
        json_decref(v);
        return ERR_INVALID;
    }
    if (strcmp(type, "duckdb") == 0) {
        struct wh_attached *attached;
        size_t n;
        int rc = wh_attached_read(a, name, json, &attached, &n, e);
        if (rc < 0) {
            json_decref(v);
            return rc;
        }
    }
    memset(out, 0, sizeof(*out));
    out->environment = environment;
    out->name = arena_strdup(a, name);
    out->type = arena_strdup(a, type);
    out->digest = wh_digest(a, type, json);
    random_bytes(out->nonce, sizeof(out->nonce));
    auto_buf struct buf sealed = {0};
    crypto_seal(p->secret_key, out->nonce, slice_of(json), &sealed);
    out->sealed = slice_make(arena_dup(a, sealed.p, sealed.len), sealed.len);
    json_t *open = json_deep_copy(v);
    json_redact(open);
    auto_buf struct buf text = {0};
    json_print(open, &text);
    out->public_json = arena_strdup(a, buf_str(&text));
    json_decref(open);
    json_decref(v);
    return 0;
}

char *duckdb_digest(struct arena *a, const char *environment, const char *package)
{
    char *text = arena_printf(a, "duckdb/%zu:%s/%zu:%s", strlen(environment), environment,
                              strlen(package), package);
    struct sha256 h = sha256_of(text, strlen(text));
    char *digest = arena_alloc(a, 65);
    hex_encode(h.b, 32, digest);
    return digest;
}

void connections_for_plan(struct planner *p, const struct planner_unit *u, struct arena *a,
                          struct plan_connection **out, size_t *n)
{
    struct plan_connection *items =
        arena_zalloc(a, (map_len(&p->connections) + 1) * sizeof(*items));
    size_t used = 0;
    for (struct map_iter it = map_begin(&p->connections); map_next(&it);) {
        const struct planner_connection *c = it.value;
        if (c->environment != u->environment || strcmp(c->name, "duckdb") == 0) {
            continue;
        }
        bool runs = wh_has_driver(c->type);
        items[used++] = (struct plan_connection){arena_strdup(a, c->name),
                                                 arena_strdup(a, c->type),
                                                 wh_dialect(c->type),
                                                 arena_strdup(a, c->digest),
                                                 runs,
                                                 !runs};
    }
    char *digest = duckdb_digest(a, u->environment_name, u->name);
    items[used++] = (struct plan_connection){"duckdb", "duckdb", "duckdb", digest, true, false};
    *out = items;
    *n = used;
}
