#include "services/planner/package/publisher_config_rules.h"

static bool is_known_type(const char *type)
{
    static const char *const types[] = {"postgres",   "bigquery",   "snowflake", "trino",
                                        "presto",     "databricks", "mysql",     "duckdb",
                                        "motherduck", "ducklake",   "publisher"};
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (strcmp(types[i], type) == 0) {
            return true;
        }
    }
    return false;
}

/* The shared DuckDB of an environment exists only to attach other databases. */
static const char *duckdb_fault(const json_t *entry)
{
    const json_t *own = json_object_get(entry, "duckdbConnection");
    if (json_array_size(json_object_get(own, "attachedDatabases")) == 0) {
        return "a duckdb connection of an environment needs at least one entry in "
               "duckdbConnection.attachedDatabases";
    }
    return json_object_size(own) > 1
               ? "a duckdb connection of an environment takes attachedDatabases only"
               : NULL;
}

const char *config_connection_fault(const json_t *entry, bool allow_proxy, bool *fatal)
{
    const char *name = json_str(entry, "name", "");
    const char *type = json_str(entry, "type", "");
    *fatal = strcmp(name, "duckdb") == 0;
    if (*fatal) {
        return "the name 'duckdb' is reserved for the connection that every package has of its "
               "own; rename it";
    }
    if (!name[0]) {
        return "it has no name";
    }
    if (!is_known_type(type)) {
        return type[0] ? "its type is not known" : "it has no type";
    }
    if (strcmp(type, "publisher") == 0 && !allow_proxy) {
        return "type publisher needs PUBLISHER_ALLOW_PROXY_CONNECTIONS=true";
    }
    return strcmp(type, "duckdb") == 0 ? duckdb_fault(entry) : NULL;
}

static void add_fault(struct buf *out, bool broken, const char *text)
{
    if (broken) {
        buf_addf(out, "%s%s", out->len ? "; " : "", text);
    }
}

const char *config_destination_fault(const json_t *entry, struct buf *out)
{
    const char *name = json_str(entry, "name", "");
    const json_t *lake = json_object_get(entry, "ducklakeConnection");
    const json_t *catalog = json_object_get(json_object_get(lake, "catalog"), "postgresConnection");
    const char *bucket = json_str(json_object_get(lake, "storage"), "bucketUrl", "");
    add_fault(out, !name[0], "it has no name");
    add_fault(out, strcmp(name, "duckdb") == 0, "the name 'duckdb' is reserved");
    add_fault(out, strcmp(json_str(entry, "type", ""), "ducklake") != 0,
              "its type is not ducklake");
    add_fault(out, !json_is_object(catalog),
              "ducklakeConnection.catalog.postgresConnection is missing");
    add_fault(out, !bucket[0], "ducklakeConnection.storage.bucketUrl is missing");
    return out->len ? buf_str(out) : NULL;
}
