#include "services/planner/store/store_sql.h"

void stmts_init(struct store_stmts *b, struct arena *a)
{
    *b = (struct store_stmts){.arena = a};
}

void stmts_end(const struct store_stmts *b)
{
    must(b->n == 0 || b->n_args == b->items[b->n - 1].n_params);
}

void stmt_add(struct store_stmts *b, const char *name, const char *sql, int n_params)
{
    stmts_end(b);
    if (b->n == b->cap) {
        size_t cap = b->cap ? 2 * b->cap : 8;
        struct pgc_stmt *more = arena_alloc(b->arena, cap * sizeof *more);
        if (b->n > 0) {
            memcpy(more, b->items, b->n * sizeof *more);
        }
        b->items = more;
        b->cap = cap;
    }
    b->args = arena_zalloc(b->arena, ((size_t)n_params + 1) * sizeof *b->args);
    b->n_args = 0;
    b->items[b->n++] =
        (struct pgc_stmt){.sql = sql, .params = b->args, .n_params = n_params, .prepare_as = name};
}

void stmt_text(struct store_stmts *b, const char *text)
{
    must(b->n > 0 && b->n_args < b->items[b->n - 1].n_params);
    b->args[b->n_args++] = text;
}

void stmt_slice(struct store_stmts *b, struct slice text)
{
    stmt_text(b, text.p ? arena_slice(b->arena, text) : NULL);
}

void stmt_num(struct store_stmts *b, int64_t v)
{
    stmt_text(b, arena_printf(b->arena, "%lld", (long long)v));
}

void stmt_id(struct store_stmts *b, uint64_t id)
{
    must(id <= INT64_MAX);
    stmt_time(b, (int64_t)id);
}

void stmt_time(struct store_stmts *b, int64_t us)
{
    if (us == 0) {
        stmt_text(b, NULL);
        return;
    }
    stmt_num(b, us);
}

void stmt_flag(struct store_stmts *b, bool v)
{
    stmt_text(b, v ? "t" : "f");
}

void stmt_uuid(struct store_stmts *b, const struct uuid *u)
{
    char text[UUID_TEXT];
    uuid_format(u, text);
    stmt_text(b, arena_strdup(b->arena, text));
}

void stmt_trace(struct store_stmts *b, const struct uuid *u)
{
    if (id16_is_zero(u->b)) {
        stmt_text(b, NULL);
        return;
    }
    stmt_uuid(b, u);
}

struct uuid cell_trace(const struct pgc_result *r, size_t row, size_t col)
{
    struct uuid u;
    return uuid_parse(pgc_cell(r, row, col), &u) == 0 ? u : (struct uuid){{0}};
}

void stmt_uuid_bytes(struct store_stmts *b, const uint8_t bytes[16])
{
    if (!bytes) {
        stmt_text(b, NULL);
        return;
    }
    struct uuid u;
    memcpy(u.b, bytes, sizeof u.b);
    stmt_uuid(b, &u);
}

void stmt_bytes(struct store_stmts *b, struct slice bytes)
{
    if (!bytes.p) {
        stmt_text(b, NULL);
        return;
    }
    char *text = arena_alloc(b->arena, 2 * bytes.len + 3);
    memcpy(text, "\\x", 2);
    hex_encode(bytes.p, bytes.len, text + 2);
    stmt_text(b, text);
}

void stmt_texts(struct store_stmts *b, const char *const *list, size_t n)
{
    auto_buf struct buf out = {0};
    for (size_t i = 0; i < n; i++) {
        buf_add_str(&out, i ? ",\"" : "{\"");
        for (const char *p = list[i]; *p; p++) {
            if (*p == '"' || *p == '\\') {
                buf_add_char(&out, '\\');
            }
            buf_add_char(&out, *p);
        }
        buf_add_char(&out, '"');
    }
    buf_add_str(&out, n ? "}" : "{}");
    stmt_slice(b, buf_slice(&out));
}

void stmt_ids(struct store_stmts *b, const uint64_t *list, size_t n)
{
    auto_buf struct buf out = {0};
    for (size_t i = 0; i < n; i++) {
        buf_addf(&out, "%c%llu", i ? ',' : '{', (unsigned long long)list[i]);
    }
    buf_add_str(&out, n ? "}" : "{}");
    stmt_slice(b, buf_slice(&out));
}

const char *cell_text(struct arena *a, const struct pgc_result *r, size_t row, size_t col)
{
    struct slice cell = pgc_cell(r, row, col);
    return cell.p ? arena_slice(a, cell) : NULL;
}

const char *cell_or_empty(struct arena *a, const struct pgc_result *r, size_t row, size_t col)
{
    return arena_slice(a, pgc_cell(r, row, col));
}

uint64_t cell_id(const struct pgc_result *r, size_t row, size_t col)
{
    return (uint64_t)pgc_i64(r, row, col);
}

struct slice cell_bytes(struct arena *a, const struct pgc_result *r, size_t row, size_t col)
{
    struct slice cell = pgc_cell(r, row, col);
    if (cell.len < 2) {
        return SLICE_NONE;
    }
    size_t len = cell.len / 2 - 1;
    uint8_t *out = arena_alloc(a, len + 1);
    must(hex_decode(slice_make(cell.p + 2, cell.len - 2), out, len) == 0);
    out[len] = 0;
    return slice_make(out, len);
}

struct sha256 cell_sha256(const struct pgc_result *r, size_t row, size_t col)
{
    struct sha256 out = {{0}};
    struct slice cell = pgc_cell(r, row, col);
    must(cell.len == 2 + 2 * sizeof out.b);
    must(hex_decode(slice_make(cell.p + 2, cell.len - 2), out.b, sizeof out.b) == 0);
    return out;
}
