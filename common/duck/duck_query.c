/* Queries: bound, begun, and their chunks turned into pages of text. */
#include "common/duck/duck_internal.h"
#include "common/json/json.h"

#define PAGE_BYTES ((size_t)256 * 1024)

struct duck_page {
    struct buf text;
    size_t n_cells; /* a row */
    size_t n_rows;
    size_t *ends; /* of each cell in text; the top bit: NULL */
    size_t cap_rows;
};
#define IS_NULL ((size_t)1 << (8 * sizeof(size_t) - 1))

/* ---- opening ---- */

static void read_columns(struct duck_query *q)
{
    struct duck_prepared *p = q->prepared;
    q->n_columns = duckdb_prepared_statement_column_count(p->stmt);
    q->types = arena_zalloc(&q->arena, (q->n_columns + 1) * sizeof(*q->types));
    q->names = arena_zalloc(&q->arena, (q->n_columns + 1) * sizeof(*q->names));
    q->keys = arena_zalloc(&q->arena, (q->n_columns + 1) * sizeof(*q->keys));
    q->vectors = arena_zalloc(&q->arena, (q->n_columns + 1) * sizeof(*q->vectors));
    for (size_t i = 0; i < q->n_columns; i++) {
        const char *name = duckdb_prepared_statement_column_name(p->stmt, i);
        q->names[i] = arena_strdup(&q->arena, name ? name : "");
        duckdb_free((void *)(uintptr_t)name);
        duckdb_logical_type type = duckdb_prepared_statement_column_logical_type(p->stmt, i);
        q->types[i] = duck_type_of(&q->arena, type);
        duckdb_destroy_logical_type(&type);
        auto_buf struct buf key = {0};
        buf_add_char(&key, i > 0 ? ',' : '{');
        jsonw_str(&key, slice_of(q->names[i]));
        buf_add_char(&key, ':');
        q->keys[i] = slice_make(arena_dup(&q->arena, key.p, key.len), key.len);
    }
}

int duck_query_open(struct duck_conn *c, const struct duck_query_ask *ask, struct duck_query **out,
                    struct err *e)
{
    struct duck_prepared *p;
    int rc = duck_prepare(c, ask, &p, e);
    if (rc < 0) {
        return rc;
    }
    struct duck_query *q = xcalloc(1, sizeof(*q));
    q->conn = c;
    q->prepared = p;
    arena_init(&q->arena);
    arena_init(&q->chunk_arena);
    if (!ask->columns_only &&
        duckdb_pending_prepared_streaming(p->stmt, &q->pending) == DuckDBError) {
        rc = duck_error(c->instance, DUCKDB_ERROR_INVALID, duckdb_pending_error(q->pending), e);
        duck_query_close(q);
        return rc;
    }
    read_columns(q); /* after the pending result: it binds anew what has changed */
    *out = q;
    return 0;
}

int duck_query_begin(struct duck_query *q, struct err *e)
{
    must(q->pending);
    q->has_result = true;
    if (duckdb_execute_pending(q->pending, &q->result) == DuckDBError) {
        return duck_error(q->conn->instance, duckdb_result_error_type(&q->result),
                          duckdb_result_error(&q->result), e);
    }
    return 0;
}

size_t duck_query_n_columns(const struct duck_query *q)
{
    return q->n_columns;
}

const char *duck_query_column_name(const struct duck_query *q, size_t i)
{
    return q->names[i];
}

const struct duck_type *duck_query_column_type(const struct duck_query *q, size_t i)
{
    return q->types[i];
}

void duck_query_close(struct duck_query *q)
{
    if (q->chunk) {
        duckdb_destroy_data_chunk(&q->chunk);
    }
    if (q->has_result) {
        duckdb_destroy_result(&q->result);
    }
    if (q->pending) {
        duckdb_destroy_pending(&q->pending);
    }
    duck_unprepare(q->prepared);
    arena_fini(&q->chunk_arena);
    arena_fini(&q->arena);
    free(q);
}

/* ---- rows ---- */

static int next_chunk(struct duck_query *q, struct err *e)
{
    if (q->chunk) {
        duckdb_destroy_data_chunk(&q->chunk);
    }
    q->row = q->n_rows = 0;
    q->chunk = duckdb_fetch_chunk(q->result);
    if (!q->chunk) {
        const char *why = duckdb_result_error(&q->result);
        return why ? duck_error(q->conn->instance, duckdb_result_error_type(&q->result), why, e)
                   : 0;
    }
    q->n_rows = duckdb_data_chunk_get_size(q->chunk);
    arena_reset(&q->chunk_arena);
    for (size_t i = 0; i < q->n_columns; i++) {
        duck_vector_read(&q->chunk_arena, q->types[i], duckdb_data_chunk_get_vector(q->chunk, i),
                         &q->vectors[i]);
    }
    return 0;
}

static int put_object(struct duck_query *q, struct duck_page *p, struct duck_out *o, size_t *ends)
{
    int rc = 0;
    for (size_t i = 0; i < q->n_columns && rc == 0; i++) {
        buf_add_slice(&p->text, q->keys[i]);
        rc = duck_put(o, &q->vectors[i], q->row);
    }
    buf_add_char(&p->text, '}');
    ends[0] = p->text.len;
    return rc;
}

static int put_cells(struct duck_query *q, struct duck_page *p, struct duck_out *o, size_t *ends)
{
    for (size_t i = 0; i < q->n_columns; i++) {
        bool is_null = duck_is_null(&q->vectors[i], q->row);
        int rc = is_null ? 0 : duck_put(o, &q->vectors[i], q->row);
        if (rc < 0) {
            return rc;
        }
        ends[i] = p->text.len | (is_null ? IS_NULL : 0);
    }
    return 0;
}

static int put_row(struct duck_query *q, enum duck_form form, struct duck_page *p, struct err *e)
{
    if (p->n_rows == p->cap_rows) {
        p->cap_rows = p->cap_rows ? p->cap_rows * 2 : 16;
        p->ends = xrealloc(p->ends, p->cap_rows * p->n_cells * sizeof(*p->ends));
    }
    struct duck_out o = {.buf = &p->text, .is_json = form == DUCK_FORM_JSON, .err = e};
    size_t *ends = p->ends + p->n_rows * p->n_cells;
    int rc = o.is_json ? put_object(q, p, &o, ends) : put_cells(q, p, &o, ends);
    if (rc == 0) {
        p->n_rows++;
        q->row++;
    }
    return rc;
}

int duck_query_next(struct duck_query *q, enum duck_form form, struct duck_page **out,
                    struct err *e)
{
    int rc = 0;
    *out = NULL;
    while (rc == 0 && q->row == q->n_rows) {
        rc = next_chunk(q, e);
        if (rc < 0 || !q->chunk) {
            return rc;
        }
    }
    struct duck_page *p = xcalloc(1, sizeof(*p));
    p->n_cells = form == DUCK_FORM_JSON ? 1 : q->n_columns;
    while (rc == 0 && q->row < q->n_rows && p->text.len < PAGE_BYTES) {
        rc = put_row(q, form, p, e);
    }
    if (rc < 0) {
        (void)err_wrap(e, "%s", q->conn->instance->what);
        duck_page_free(p);
        return rc;
    }
    *out = p;
    return 0;
}

size_t duck_page_rows(const struct duck_page *p)
{
    return p->n_rows;
}

void duck_page_cells(const struct duck_page *p, size_t row, struct slice *cells)
{
    size_t first = row * p->n_cells;
    size_t from = first > 0 ? p->ends[first - 1] & ~IS_NULL : 0;
    for (size_t i = 0; i < p->n_cells; i++) {
        size_t end = p->ends[first + i] & ~IS_NULL;
        bool is_null = p->ends[first + i] & IS_NULL;
        cells[i] = is_null ? SLICE_NONE : slice_make(buf_str(&p->text) + from, end - from);
        from = end;
    }
}

void duck_page_free(struct duck_page *p)
{
    if (p) {
        buf_fini(&p->text);
        free(p->ends);
        free(p);
    }
}
