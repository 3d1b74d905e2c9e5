/* The result writer: a row that it takes becomes the inside of a JSON string whose text is JSON, in
 * both forms; any other bytes are refused without harm. */
#include "common/json/json.h"
#include "services/gateway/core/result.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char fields[] =
    "[{\"name\":\"s\",\"type\":{\"kind\":\"string_type\"}},"
    "{\"name\":\"n\",\"type\":{\"kind\":\"number_type\",\"subtype\":\"decimal\"}},"
    "{\"name\":\"b\",\"type\":{\"kind\":\"number_type\",\"subtype\":\"bigint\"}},"
    "{\"name\":\"t\",\"type\":{\"kind\":\"timestamp_type\"}},"
    "{\"name\":\"o\",\"type\":{\"kind\":\"boolean_type\"}},"
    "{\"name\":\"j\",\"type\":{\"kind\":\"json_type\"}},"
    "{\"name\":\"a\",\"type\":{\"kind\":\"array_type\",\"element_type\":{\"kind\":\"record_type\","
    "\"fields\":[{\"name\":\"x\",\"type\":{\"kind\":\"string_type\"}},"
    "{\"name\":\"y\",\"type\":{\"kind\":\"number_type\"}}]}}}]";

static bool has_nul(struct slice row)
{
    return row.len > 0 && memchr(row.p, '\0', row.len);
}

/* jansson refuses what JSON allows and PostgreSQL never writes: bad UTF-8, lone surrogates, \u0000,
 * huge numbers. Only rows that it reads are held to the promise; but it reads over a NUL byte
 * behind a number, which is no JSON. */
static bool is_plain(const char *text, size_t len)
{
    json_error_t e;
    json_t *v = json_loadb(text, len, JSON_DECODE_INT_AS_REAL, &e);
    json_decref(v);
    return v != NULL;
}

static void check(const char *written, size_t len)
{
    auto_buf struct buf whole = {0};
    buf_add_char(&whole, '"');
    buf_add(&whole, written, len);
    buf_add_char(&whole, '"');
    json_error_t e;
    json_t *outer = json_loadb(whole.p, whole.len, JSON_DECODE_ANY, &e);
    must(outer);
    must(is_plain(json_string_value(outer), json_string_length(outer)));
    json_decref(outer);
}

static void write_row(const struct result_schema *s, enum result_form form, struct slice row)
{
    struct result_writer w;
    struct err e;
    auto_buf struct buf out = {0};
    result_writer_init(&w, s, form, &out);
    result_begin(&w, SLICE_NONE);
    bool taken = result_row(&w, row, &e) == 0;
    result_end(&w, SLICE_NONE);
    result_writer_fini(&w);
    must(!taken || !has_nul(row));
    if (is_plain(row.p, row.len) && !has_nul(row)) {
        must(taken || row.len == 0 || row.p[0] != '{' || row.len > 256);
        if (taken) {
            check(out.p, out.len);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    struct err e;
    arena_init(&a);
    struct result_schema *s = result_schema_make(&a, slice_of(fields), &e);
    must(s);
    struct slice row = slice_make(data, size);
    write_row(s, RESULT_FULL, row);
    write_row(s, RESULT_COMPACT, row);
    /* The bytes as a schema, too. */
    (void)!result_schema_make(&a, row, &e);
    arena_fini(&a);
    return 0;
}
