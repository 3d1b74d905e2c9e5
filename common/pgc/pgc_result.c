#include "common/pgc/pgc_internal.h"

size_t pgc_rows(const struct pgc_result *r)
{
    return r ? r->ops->rows(r) : 0;
}

size_t pgc_cols(const struct pgc_result *r)
{
    return r ? r->ops->cols(r) : 0;
}

struct slice pgc_cell(const struct pgc_result *r, size_t row, size_t col)
{
    must(row < pgc_rows(r) && col < pgc_cols(r));
    return r->ops->cell(r, row, col);
}

const char *pgc_col_name(const struct pgc_result *r, size_t col)
{
    must(col < pgc_cols(r));
    return r->ops->col_name(r, col);
}

uint32_t pgc_col_type(const struct pgc_result *r, size_t col)
{
    must(col < pgc_cols(r));
    return r->ops->col_type(r, col);
}

int pgc_col_typmod(const struct pgc_result *r, size_t col)
{
    must(col < pgc_cols(r));
    return r->ops->col_typmod(r, col);
}

uint64_t pgc_affected(const struct pgc_result *r)
{
    return r ? r->ops->affected(r) : 0;
}

int64_t pgc_i64(const struct pgc_result *r, size_t row, size_t col)
{
    int64_t v = 0;
    if (slice_to_i64(pgc_cell(r, row, col), &v) < 0) {
        return 0;
    }
    return v;
}

const char *pgc_text(const struct pgc_result *r, size_t row, size_t col)
{
    return pgc_cell(r, row, col).p;
}

bool pgc_bool(const struct pgc_result *r, size_t row, size_t col)
{
    struct slice s = pgc_cell(r, row, col);
    return s.len == 1 && s.p[0] == 't';
}

void pgc_result_free(struct pgc_result *r)
{
    if (r) {
        r->ops->free(r);
    }
}

struct code_row {
    const char *prefix; /* of the SQLSTATE */
    int code;
};
/* protocol.md 11; the first match counts. */
static const struct code_row codes[] = {
    {"40P01", ERR_WH_TRANSIENT}, {"40001", ERR_WH_TRANSIENT}, {"57P01", ERR_WH_TRANSIENT},
    {"57P02", ERR_WH_TRANSIENT}, {"57P03", ERR_WH_TRANSIENT}, {"08", ERR_WH_LOST},
    {"53", ERR_WH_TRANSIENT},    {"55P03", ERR_TARGET_BUSY},  {"42P01", ERR_WH_MISSING},
    {"3F000", ERR_WH_MISSING},   {"3D000", ERR_WH_MISSING},   {"42501", ERR_WH_DENIED},
    {"28", ERR_WH_DENIED},       {"57014", ERR_CANCELLED},
};

int pgc_code_of(const char *sqlstate)
{
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        if (strncmp(sqlstate, codes[i].prefix, strlen(codes[i].prefix)) == 0) {
            return codes[i].code;
        }
    }
    return ERR_WH_SQL;
}

void pgc_quote_ident(struct buf *out, struct slice name)
{
    buf_add_char(out, '"');
    for (size_t i = 0; i < name.len; i++) {
        if (name.p[i] == '"') {
            buf_add_char(out, '"');
        }
        buf_add_char(out, name.p[i]);
    }
    buf_add_char(out, '"');
}

void pgc_quote_literal(struct buf *out, struct slice text)
{
    bool has_backslash = text.len > 0 && memchr(text.p, '\\', text.len) != NULL;
    /* E'' means the same under either setting of standard_conforming_strings. */
    buf_add_str(out, has_backslash ? "E'" : "'");
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] == '\'' || text.p[i] == '\\') {
            buf_add_char(out, text.p[i]);
        }
        buf_add_char(out, text.p[i]);
    }
    buf_add_char(out, '\'');
}
