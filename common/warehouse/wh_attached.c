/* Entries of attachedDatabases. */
#include "common/warehouse/wh_attached.h"
#include "common/pgc/pgc.h"
#include "common/warehouse/wh_parts.h"

#include <strings.h>

enum { NAME_MAX_LEN = 63 };

static const json_t *entries_of(const json_t *config)
{
    return json_object_get(json_object_get(config, "duckdbConnection"), "attachedDatabases");
}

/* ---- names ---- */

static bool is_identifier(const char *name)
{
    size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return len > 0 && len <= NAME_MAX_LEN && !name[len] && !(name[0] >= '0' && name[0] <= '9');
}

/* DuckDB's own databases, and schemas that a path of two parts would mean otherwise. */
static bool is_reserved(const char *name)
{
    static const char *const names[] = {
        "main", "memory", "system", "temp", "kiln", "information_schema", "pg_catalog"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcasecmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static int check_name(const struct wh_attached *list, size_t n, const char *connection,
                      const char *name, struct err *e)
{
    if (!is_identifier(name)) {
        return err_set(e, ERR_INVALID,
                       "connection '%s': the attached database '%.80s' needs a name of letters, "
                       "digits and '_', at most %d of them, that SQL can say",
                       connection, name, NAME_MAX_LEN);
    }
    if (is_reserved(name)) {
        return err_set(e, ERR_INVALID,
                       "connection '%s': DuckDB keeps the name '%s' for itself; attach the "
                       "database under another name",
                       connection, name);
    }
    for (size_t i = 0; i < n; i++) {
        if (strcasecmp(list[i].name, name) == 0) {
            return err_set(e, ERR_INVALID,
                           "connection '%s': two attached databases are named '%s'; rename one",
                           connection, name);
        }
    }
    return 0;
}

/* ---- PostgreSQL ---- */

/* What is neither who and where, nor secret, and makes sense in another process. */
static const char *const passed_on[] = {
    "hostaddr",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "sslcrl",
    "sslsni",
    "ssl_min_protocol_version",
    "gssencmode",
    "channel_binding",
    "keepalives",
    "keepalives_idle",
    "options",
    "connect_timeout",
    "keepalives_interval",
    "keepalives_count",
    "krbsrvname",
    "tcp_user_timeout",
    "application_name",
    "target_session_attrs",
};

static const char *kept(struct arena *a, const json_t *pg, const char *member, const char *key)
{
    auto_free char *text = wh_postgres_setting(pg, member, key);
    return arena_strdup(a, text);
}

static const char *options_of(struct arena *a, const json_t *pg)
{
    auto_buf struct buf out = {0};
    bool waits = false, is_named = false;
    for (size_t i = 0; i < ARRAY_LEN(passed_on); i++) {
        const char *key = passed_on[i];
        const char *member = strcmp(key, "sslmode") == 0 ? "sslmode" : "";
        auto_free char *value = wh_postgres_setting(pg, member, key);
        if (value[0]) {
            pgc_conninfo_add(&out, key, value);
            waits = waits || strcmp(key, "connect_timeout") == 0;
            is_named = is_named || strcmp(key, "application_name") == 0;
        }
    }
    if (!waits) {
        pgc_conninfo_add(&out, "connect_timeout", "5");
    }
    if (!is_named) {
        pgc_conninfo_add(&out, "application_name", "kiln");
    }
    return arena_strdup(a, buf_str(&out));
}

static int read_postgres(struct arena *a, const char *connection, const json_t *entry,
                         struct wh_attached *out, struct err *e)
{
    const json_t *pg = json_object_get(entry, "postgresConnection");
    if (!json_is_object(pg)) {
        return err_set(e, ERR_INVALID,
                       "connection '%s': the attached database '%s' needs an object "
                       "\"postgresConnection\" with host, port, databaseName, userName, password, "
                       "or a connectionString",
                       connection, out->name);
    }
    auto_free char *sslpassword = wh_postgres_setting(pg, "", "sslpassword");
    if (sslpassword[0]) {
        return err_set(e, ERR_INVALID,
                       "connection '%s': the attached database '%s' has an sslpassword, which "
                       "DuckDB would show to whoever asks; use a key without one",
                       connection, out->name);
    }
    out->host = kept(a, pg, "host", "host");
    out->port = kept(a, pg, "port", "port");
    out->database = kept(a, pg, "databaseName", "dbname");
    out->user = kept(a, pg, "userName", "user");
    out->password = kept(a, pg, "password", "password");
    out->options = options_of(a, pg);
    const char *text = json_str(pg, "connectionString", "");
    if (text[0] && !out->host[0] && !out->database[0] && !out->user[0]) {
        return err_set(e, ERR_INVALID,
                       "connection '%s': the connectionString of the attached database '%s' names "
                       "no host, no database and no user, or does not parse; correct it",
                       connection, out->name);
    }
    return 0;
}

/* ---- a DuckDB file ---- */

static const char *path_of(const json_t *entry)
{
    return json_str(json_object_get(entry, "duckdbConnection"), "databasePath", "");
}

static int read_file(struct arena *a, const char *connection, const json_t *entry,
                     struct wh_attached *out, struct err *e)
{
    const char *path = path_of(entry);
    if (path[0] != '/') {
        return err_set(e, ERR_INVALID,
                       "connection '%s': the attached database '%s' needs the absolute path of a "
                       "DuckDB file as duckdbConnection.databasePath%s%.200s",
                       connection, out->name, path[0] ? ", and not " : "", path);
    }
    out->file = arena_strdup(a, path);
    return 0;
}

/* ---- the list ---- */

static int read_entry(struct arena *a, const char *connection, const json_t *entry,
                      struct wh_attached *out, struct err *e)
{
    const char *type = json_str(entry, "type", "");
    if (strcmp(type, "postgres") == 0) {
        return read_postgres(a, connection, entry, out, e);
    }
    if (strcmp(type, "duckdb") == 0) {
        return read_file(a, connection, entry, out, e);
    }
    return err_set(e, ERR_INVALID,
                   "connection '%s': the attached database '%s' is of type '%.40s', and only "
                   "postgres and duckdb can be attached",
                   connection, out->name, type);
}

static int read_list(struct arena *a, const char *connection, const json_t *config,
                     struct wh_attached **out, size_t *n, struct err *e)
{
    const json_t *list = entries_of(config), *entry;
    size_t i;
    if (json_array_size(list) == 0 ||
        json_object_size(json_object_get(config, "duckdbConnection")) > 1) {
        return err_set(e, ERR_INVALID,
                       "connection '%s': a duckdb connection of an environment takes "
                       "duckdbConnection.attachedDatabases with at least one entry, and nothing "
                       "else",
                       connection);
    }
    struct wh_attached *items = arena_zalloc(a, json_array_size(list) * sizeof(*items));
    json_array_foreach((json_t *)(uintptr_t)list, i, entry)
    {
        const char *name = json_str(entry, "name", "");
        int rc = check_name(items, i, connection, name, e);
        items[i].name = arena_strdup(a, name);
        rc = rc < 0 ? rc : read_entry(a, connection, entry, &items[i], e);
        if (rc < 0) {
            return rc;
        }
    }
    *out = items;
    *n = i;
    return 0;
}

int wh_attached_read(struct arena *a, const char *connection, const char *config_json,
                     struct wh_attached **out, size_t *n, struct err *e)
{
    json_t *config = json_parse(slice_of(config_json ? config_json : ""), e);
    if (!config) {
        return err_wrap(e, "connection '%s'", connection);
    }
    int rc = read_list(a, connection, config, out, n, e);
    json_decref(config);
    return rc;
}

struct wh_attached wh_attached_copy(struct arena *a, const struct wh_attached *from)
{
    return (struct wh_attached){.name = arena_strdup(a, from->name),
                                .file = arena_strdup(a, from->file),
                                .host = arena_strdup(a, from->host),
                                .port = arena_strdup(a, from->port),
                                .database = arena_strdup(a, from->database),
                                .user = arena_strdup(a, from->user),
                                .password = arena_strdup(a, from->password),
                                .options = arena_strdup(a, from->options)};
}

static int by_name(const void *left, const void *right)
{
    const json_t *const *a = left, *const *b = right;
    return strcmp(json_str(*a, "name", ""), json_str(*b, "name", ""));
}

void wh_attached_identity(struct buf *out, const json_t *config)
{
    const json_t *list = entries_of(config);
    size_t n = json_array_size(list);
    auto_free const json_t **sorted = xcalloc(n + 1, sizeof(json_t *));
    for (size_t i = 0; i < n; i++) {
        sorted[i] = json_array_get(list, i);
    }
    qsort(sorted, n, sizeof(json_t *), by_name);
    for (size_t i = 0; i < n; i++) {
        const json_t *pg = json_object_get(sorted[i], "postgresConnection");
        wh_part_add(out, json_str(sorted[i], "name", ""));
        wh_part_add(out, json_str(sorted[i], "type", ""));
        if (pg) {
            wh_postgres_identity(out, pg);
        } else {
            wh_part_add(out, path_of(sorted[i]));
        }
    }
}

static void locate(json_t *entry, const char *base_dir)
{
    json_t *own = json_object_get(entry, "duckdbConnection");
    const char *path = path_of(entry);
    if (!path[0] || path[0] == '/' || path[0] == '~' || strstr(path, "://") || path[0] == ':') {
        return;
    }
    path += strncmp(path, "./", 2) == 0 ? 2 : 0;
    auto_free char *absolute = xasprintf("%s/%s", base_dir, path);
    json_set_str(own, "databasePath", absolute);
}

char *wh_attached_locate(struct arena *a, const char *config_json, const char *base_dir)
{
    json_t *config = json_parse(slice_of(config_json), NULL), *entry;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)entries_of(config), i, entry)
    {
        locate(entry, base_dir);
    }
    auto_free char *text = config ? json_text(config) : xstrdup(config_json);
    json_decref(config);
    return arena_strdup(a, text);
}
