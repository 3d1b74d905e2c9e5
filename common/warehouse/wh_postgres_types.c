/* Type oids as information_schema spells them: without modifiers, domains unwrapped, arrays as
 * ARRAY and their element. */
#include "common/warehouse/wh_postgres.h"

#include <stdio.h>

struct builtin {
    uint32_t oid;
    uint32_t array_oid;
    const char *name;
};
/* Fixed oids of PostgreSQL's own types: most statements need no look-up. */
static const struct builtin builtins[] = {
    {16, 1000, "boolean"},
    {17, 1001, "bytea"},
    {18, 1002, "\"char\""},
    {19, 1003, "name"},
    {20, 1016, "bigint"},
    {21, 1005, "smallint"},
    {23, 1007, "integer"},
    {25, 1009, "text"},
    {26, 1028, "oid"},
    {114, 199, "json"},
    {700, 1021, "real"},
    {701, 1022, "double precision"},
    {790, 791, "money"},
    {1042, 1014, "character"},
    {1043, 1015, "character varying"},
    {1082, 1182, "date"},
    {1083, 1183, "time without time zone"},
    {1114, 1115, "timestamp without time zone"},
    {1184, 1185, "timestamp with time zone"},
    {1186, 1187, "interval"},
    {1266, 1270, "time with time zone"},
    {1700, 1231, "numeric"},
    {2950, 2951, "uuid"},
    {3802, 3807, "jsonb"},
};

static void put(struct wh_pg *pg, uint32_t oid, const char *data_type, const char *element_type)
{
    struct wh_pg_type *t = xcalloc(1, sizeof *t);
    t->data_type = xstrdup(data_type);
    t->element_type = xstrdup(element_type);
    struct wh_pg_type *old = map_put_u64(&pg->types, oid, t);
    if (old) {
        free(old->data_type);
        free(old->element_type);
        free(old);
    }
}

void wh_pg_types_init(struct wh_pg *pg)
{
    map_init(&pg->types);
    for (size_t i = 0; i < ARRAY_LEN(builtins); i++) {
        put(pg, builtins[i].oid, builtins[i].name, NULL);
        put(pg, builtins[i].array_oid, "ARRAY", builtins[i].name);
    }
}

void wh_pg_types_fini(struct wh_pg *pg)
{
    for (struct map_iter it = map_begin(&pg->types); map_next(&it);) {
        struct wh_pg_type *t = it.value;
        free(t->data_type);
        free(t->element_type);
        free(t);
    }
    map_fini(&pg->types);
}

const struct wh_pg_type *wh_pg_type_get(const struct wh_pg *pg, uint32_t oid)
{
    return map_get_u64(&pg->types, oid);
}

void wh_pg_types_note(struct wh_pg_op *o, uint32_t oid)
{
    if (wh_pg_type_get(o->pg, oid)) {
        return;
    }
    for (size_t i = 0; i < o->n_oids; i++) {
        if (o->oids[i] == oid) {
            return;
        }
    }
    uint32_t *bigger = arena_alloc(&o->flow.arena, (o->n_oids + 1) * sizeof *bigger);
    if (o->n_oids > 0) {
        memcpy(bigger, o->oids, o->n_oids * sizeof *bigger);
    }
    bigger[o->n_oids++] = oid;
    o->oids = bigger;
}

static const char types_sql[] =
    "WITH RECURSIVE u(asked, oid, typtype, typbasetype, typelem, typlen) AS ("
    " SELECT t.oid, t.oid, t.typtype, t.typbasetype, t.typelem, t.typlen FROM pg_type t"
    " WHERE t.oid = ANY($1::oid[])"
    " UNION ALL SELECT u.asked, b.oid, b.typtype, b.typbasetype, b.typelem, b.typlen"
    " FROM u JOIN pg_type b ON u.typtype = 'd' AND b.oid = u.typbasetype)"
    " SELECT u.asked, format_type(u.oid, NULL), u.typelem <> 0 AND u.typlen = -1,"
    " format_type(CASE WHEN e.typtype = 'd' THEN e.typbasetype ELSE u.typelem END, NULL)"
    " FROM u LEFT JOIN pg_type e ON e.oid = u.typelem WHERE u.typtype <> 'd'";

bool wh_pg_types_ask(struct wh_pg_op *o)
{
    if (o->n_oids == 0) {
        return false;
    }
    auto_buf struct buf list = {0};
    for (size_t i = 0; i < o->n_oids; i++) {
        buf_addf(&list, "%s%u", i ? "," : "{", o->oids[i]);
    }
    buf_add_char(&list, '}');
    const char **params = arena_alloc(&o->flow.arena, sizeof *params);
    params[0] = arena_strdup(&o->flow.arena, buf_str(&list));
    wh_pg_add_prepared(o, "kiln types", types_sql, 1, params);
    o->n_oids = 0;
    return true;
}

void wh_pg_types_learn(struct wh_pg_op *o, const struct pgc_result *r)
{
    for (size_t i = 0; i < pgc_rows(r); i++) {
        bool is_array = pgc_bool(r, i, 2);
        put(o->pg, (uint32_t)pgc_i64(r, i, 0), is_array ? "ARRAY" : pgc_text(r, i, 1),
            is_array ? pgc_text(r, i, 3) : NULL);
    }
}

struct wh_column wh_pg_column(struct arena *a, const struct wh_pg *pg, const char *name,
                              uint32_t oid, bool nullable)
{
    const struct wh_pg_type *t = wh_pg_type_get(pg, oid);
    return (struct wh_column){
        .name = arena_strdup(a, name),
        .data_type = t ? arena_strdup(a, t->data_type) : "USER-DEFINED",
        .element_type = t ? arena_strdup(a, t->element_type) : NULL,
        .nullable = nullable,
    };
}

void wh_pg_columns_of(struct arena *a, const struct wh_pg *pg, const struct pgc_result *r,
                      struct wh_columns *out)
{
    size_t n = pgc_cols(r);
    out->items = arena_zalloc(a, (n + 1) * sizeof *out->items);
    out->n = n;
    for (size_t i = 0; i < n; i++) {
        out->items[i] = wh_pg_column(a, pg, pgc_col_name(r, i), pgc_col_type(r, i), true);
    }
}
