#include "common/warehouse/warehouse.h"
#include "common/warehouse/wh_postgres.h"

struct type_row {
    const char *type;
    const char *dialect; /* of the compiler; NULL: it has none */
    int (*open)(struct loop *l, const struct wh_settings *s, struct wh **out, struct err *e);
    bool in_sandbox; /* common/sandbox opens it, in builder and gateway */
};
static const struct type_row types[] = {
    {"postgres", "postgres", wh_postgres_open, false},
    {"duckdb", "duckdb", NULL, true},
    {"motherduck", "duckdb", NULL, false},
    {"ducklake", "duckdb", NULL, false},
    {"bigquery", "standardsql", NULL, false},
    {"snowflake", "snowflake", NULL, false},
    {"trino", "trino", NULL, false},
    {"presto", "presto", NULL, false},
    {"mysql", "mysql", NULL, false},
    {"databricks", "databricks", NULL, false},
    {"publisher", NULL, NULL, false},
};

static const struct type_row *type_of(const char *type)
{
    for (size_t i = 0; type && i < ARRAY_LEN(types); i++) {
        if (strcmp(types[i].type, type) == 0) {
            return &types[i];
        }
    }
    return NULL;
}

bool wh_has_driver(const char *type)
{
    const struct type_row *t = type_of(type);
    return t && (t->open || t->in_sandbox);
}

const char *wh_dialect(const char *type)
{
    const struct type_row *t = type_of(type);
    return t ? t->dialect : NULL;
}

int wh_open(struct loop *l, const struct wh_settings *s, struct wh **out, struct err *e)
{
    const struct type_row *t = type_of(s->type);
    if (!t) {
        return err_set(e, ERR_INVALID, "connection '%s': unknown type \"%s\"", s->name,
                       s->type ? s->type : "");
    }
    if (!t->open) {
        return err_set(e, ERR_WH_NO_DRIVER,
                       "connection '%s': this build has no driver for connections of type \"%s\"",
                       s->name, s->type);
    }
    return t->open(l, s, out, e);
}

void wh_free(struct wh *wh)
{
    if (wh) {
        wh->ops->free(wh);
    }
}
