/* Names, literals and the fence table as SQL text. */
#include "common/warehouse/wh_postgres.h"

#include <inttypes.h>
#include <stdio.h>

const char *wh_pg_quoted(struct wh_pg_op *o, const struct wh_name *n)
{
    return wh_name_quoted(&o->flow.arena, n);
}

const char *wh_pg_staging(struct wh_pg_op *o, const char *schema, uint64_t token)
{
    char table[40];
    snprintf(table, sizeof table, "_kiln_%" PRIu64, token);
    struct wh_name n = {.schema = schema, .table = table};
    return wh_name_quoted(&o->flow.arena, &n);
}

const char *wh_pg_fence(struct wh_pg_op *o, const char *schema)
{
    struct wh_name n = {.schema = schema, .table = "kiln_fence"};
    return wh_name_quoted(&o->flow.arena, &n);
}

const char *wh_pg_literal(struct wh_pg_op *o, const char *text)
{
    if (!text) {
        return "NULL";
    }
    auto_buf struct buf out = {0};
    pgc_quote_literal(&out, slice_of(text));
    return arena_strdup(&o->flow.arena, buf_str(&out));
}

const char *wh_pg_array(struct arena *a, const char *const *items, size_t n)
{
    auto_buf struct buf out = {0};
    buf_add_char(&out, '{');
    for (size_t i = 0; i < n; i++) {
        buf_add_str(&out, i ? ",\"" : "\"");
        for (const char *p = items[i]; *p; p++) {
            if (*p == '"' || *p == '\\') {
                buf_add_char(&out, '\\');
            }
            buf_add_char(&out, *p);
        }
        buf_add_char(&out, '"');
    }
    buf_add_char(&out, '}');
    return arena_strdup(a, buf_str(&out));
}

const char *wh_pg_create_fence(struct wh_pg_op *o, const char *schema)
{
    return arena_printf(
        &o->flow.arena,
        "CREATE TABLE IF NOT EXISTS %s (target text PRIMARY KEY, owner uuid NOT NULL, "
        "claim bigint NOT NULL, published bigint NOT NULL DEFAULT 0, generation text, "
        "build_id text, row_count bigint, data_as_of timestamptz, relid oid, "
        "swapped_at timestamptz)",
        wh_pg_fence(o, schema));
}

bool wh_pg_is_exists_error(const struct err *e)
{
    /* unique_violation on a catalog, duplicate_table, duplicate_object (the row type's name) */
    return strcmp(e->sqlstate, "23505") == 0 || strcmp(e->sqlstate, "42P07") == 0 ||
           strcmp(e->sqlstate, "42710") == 0;
}

void wh_pg_read_fence(struct wh_pg_op *o, const struct pgc_result *r, size_t row, size_t col,
                      struct wh_fence *out)
{
    *out = (struct wh_fence){.exists = true};
    if (uuid_parse(pgc_cell(r, row, col), &out->owner) < 0) {
        out->owner = (struct uuid){{0}};
    }
    out->claim = (uint64_t)pgc_i64(r, row, col + 1);
    out->published = (uint64_t)pgc_i64(r, row, col + 2);
    out->generation = wh_pg_copy(o, r, row, col + 3);
    out->build_id = wh_pg_copy(o, r, row, col + 4);
    out->rows = pgc_i64(r, row, col + 5);
    out->data_as_of_us = pgc_i64(r, row, col + 6);
    out->still_there = pgc_bool(r, row, col + 7);
}
