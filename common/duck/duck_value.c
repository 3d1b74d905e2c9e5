/* Vectors of a chunk to text: one function a type, looked up in the table. */
#include "common/duck/duck_internal.h"
#include "common/duck/duck_text.h"
#include "common/json/json.h"

#include <math.h>

#define DATA(v, type) ((const type *)(v)->data)

bool duck_is_null(const struct duck_vector *v, uint64_t row)
{
    return v->type->id == DUCKDB_TYPE_SQLNULL ||
           (v->validity && !(v->validity[row / 64] >> (row % 64) & 1));
}

static const char *bc_of(const struct duck_out *o)
{
    return o->is_json ? " BC" : " (BC)";
}

static struct slice string_at(const struct duck_vector *v, uint64_t row)
{
    duckdb_string_t *s = (duckdb_string_t *)v->data + row;
    return slice_make(duckdb_string_t_data(s), duckdb_string_t_length(*s));
}

static int check_utf8(struct duck_out *o, struct slice text)
{
    duckdb_error_data bad = duckdb_valid_utf8_check(text.p, text.len);
    if (!bad) {
        return 0;
    }
    duckdb_destroy_error_data(&bad);
    return err_set(
        o->err, ERR_INVALID,
        "a text value is not valid UTF-8; read it as a BLOB, or repair it in the source");
}

#define PUT(name) static int put_##name(struct duck_out *o, const struct duck_vector *v, uint64_t r)

PUT(boolean)
{
    buf_add_str(o->buf, DATA(v, bool)[r] ? "true" : "false");
    return 0;
}
#define PUT_NUMBER(name, type, how)                                                                \
    PUT(name)                                                                                      \
    {                                                                                              \
        how(o->buf, DATA(v, type)[r]);                                                             \
        return 0;                                                                                  \
    }
PUT_NUMBER(tinyint, int8_t, duck_put_i64)
PUT_NUMBER(smallint, int16_t, duck_put_i64)
PUT_NUMBER(integer, int32_t, duck_put_i64)
PUT_NUMBER(bigint, int64_t, duck_put_i64)
PUT_NUMBER(utinyint, uint8_t, duck_put_u64)
PUT_NUMBER(usmallint, uint16_t, duck_put_u64)
PUT_NUMBER(uinteger, uint32_t, duck_put_u64)
PUT_NUMBER(ubigint, uint64_t, duck_put_u64)

static duck_i128 wide_of(duckdb_hugeint h)
{
    return (duck_i128)((duck_u128)(uint64_t)h.upper << 64 | h.lower);
}

PUT(hugeint)
{
    duck_put_i128(o->buf, wide_of(DATA(v, duckdb_hugeint)[r]));
    return 0;
}

PUT(uhugeint)
{
    const duckdb_uhugeint *h = &DATA(v, duckdb_uhugeint)[r];
    duck_put_u128(o->buf, (duck_u128)h->upper << 64 | h->lower);
    return 0;
}

PUT(bignum)
{
    duck_put_bignum(o->buf, string_at(v, r));
    return 0;
}

PUT(decimal)
{
    duck_i128 value;
    switch (v->type->internal) {
    case DUCKDB_TYPE_SMALLINT:
        value = DATA(v, int16_t)[r];
        break;
    case DUCKDB_TYPE_INTEGER:
        value = DATA(v, int32_t)[r];
        break;
    case DUCKDB_TYPE_BIGINT:
        value = DATA(v, int64_t)[r];
        break;
    default:
        value = wide_of(DATA(v, duckdb_hugeint)[r]);
    }
    duck_put_decimal(o->buf, value, v->type->scale);
    return 0;
}

/* JSON has no infinity: the readers' words for it. */
static bool put_no_number(struct duck_out *o, double d)
{
    if (!o->is_json || isfinite(d)) {
        return false;
    }
    buf_add_str(o->buf, isnan(d) ? "\"NaN\"" : d < 0 ? "\"-Infinity\"" : "\"Infinity\"");
    return true;
}

PUT(double)
{
    double d = DATA(v, double)[r];
    if (!put_no_number(o, d)) {
        duck_put_double(o->buf, d);
    }
    return 0;
}

PUT(float)
{
    float f = DATA(v, float)[r];
    if (put_no_number(o, (double)f)) {
        return 0;
    }
    if (o->is_json) {
        duck_put_double(o->buf, (double)f);
    } else {
        duck_put_float(o->buf, f);
    }
    return 0;
}

PUT(varchar)
{
    struct slice text = string_at(v, r);
    int rc = check_utf8(o, text);
    if (rc < 0) {
        return rc;
    }
    if (!o->is_json || (v->type->is_json && duck_is_strict_json(text))) {
        buf_add_slice(o->buf, text);
    } else {
        jsonw_str(o->buf, text);
    }
    return 0;
}

PUT(blob)
{
    duck_put_blob(o->buf, string_at(v, r));
    return 0;
}

PUT(bit)
{
    duck_put_bits(o->buf, string_at(v, r));
    return 0;
}

PUT(uuid)
{
    const duckdb_hugeint *h = &DATA(v, duckdb_hugeint)[r];
    duck_put_uuid(o->buf, (uint64_t)h->upper ^ UINT64_C(1) << 63, h->lower);
    return 0;
}

PUT(date)
{
    duck_put_date(o->buf, DATA(v, duckdb_date)[r].days, bc_of(o));
    return 0;
}

PUT(time)
{
    duck_put_clock(o->buf, DATA(v, duckdb_time)[r].micros * 1000);
    return 0;
}

PUT(time_ns)
{
    duck_put_clock(o->buf, DATA(v, duckdb_time_ns)[r].nanos);
    return 0;
}

PUT(time_tz)
{
    duckdb_time_tz_struct t = duckdb_from_time_tz(DATA(v, duckdb_time_tz)[r]);
    int64_t us =
        ((t.time.hour * INT64_C(60) + t.time.min) * 60 + t.time.sec) * 1000000 + t.time.micros;
    duck_put_clock(o->buf, us * 1000);
    duck_put_offset(o->buf, t.offset);
    return 0;
}

#define PUT_MOMENT(name, per_s, zone)                                                              \
    PUT(name)                                                                                      \
    {                                                                                              \
        duck_put_moment(o->buf, DATA(v, int64_t)[r], per_s, zone, bc_of(o));                       \
        return 0;                                                                                  \
    }
PUT_MOMENT(timestamp_s, 1, "")
PUT_MOMENT(timestamp_ms, 1000, "")
PUT_MOMENT(timestamp, 1000000, "")
PUT_MOMENT(timestamp_ns, 1000000000, "")
PUT_MOMENT(timestamp_tz, 1000000, "+00")

PUT(interval)
{
    const duckdb_interval *i = &DATA(v, duckdb_interval)[r];
    duck_put_interval(o->buf, i->months, i->days, i->micros);
    return 0;
}

PUT(enum)
{
    uint64_t at;
    switch (v->type->internal) {
    case DUCKDB_TYPE_UTINYINT:
        at = DATA(v, uint8_t)[r];
        break;
    case DUCKDB_TYPE_USMALLINT:
        at = DATA(v, uint16_t)[r];
        break;
    default:
        at = DATA(v, uint32_t)[r];
    }
    must(at < v->type->n_names);
    buf_add_str(o->buf, v->type->names[at]);
    return 0;
}

PUT(null)
{
    (void)v;
    (void)r;
    buf_add_str(o->buf, "null");
    return 0;
}

PUT(never)
{
    (void)v;
    (void)r;
    return err_set(o->err, ERR_UNSUPPORTED,
                   "a column of type VARIANT cannot be returned; cast it to JSON or VARCHAR");
}

/* ---- nested: always JSON ---- */

static int put_json(struct duck_out *o, const struct duck_vector *v, uint64_t r)
{
    struct duck_out inner = {.buf = o->buf, .is_json = true, .err = o->err};
    return duck_put(&inner, v, r);
}

static int put_items(struct duck_out *o, const struct duck_vector *items, uint64_t from, uint64_t n)
{
    int rc = 0;
    buf_add_char(o->buf, '[');
    for (uint64_t i = 0; i < n && rc == 0; i++) {
        if (i > 0) {
            buf_add_char(o->buf, ',');
        }
        rc = put_json(o, items, from + i);
    }
    buf_add_char(o->buf, ']');
    return rc;
}

PUT(list)
{
    const duckdb_list_entry *e = &DATA(v, duckdb_list_entry)[r];
    return put_items(o, &v->parts[0], e->offset, e->length);
}

PUT(array)
{
    return put_items(o, &v->parts[0], r * v->type->size, v->type->size);
}

PUT(struct)
{
    bool is_unnamed = duck_type_is_unnamed(v->type);
    int rc = 0;
    buf_add_char(o->buf, is_unnamed ? '[' : '{');
    for (size_t i = 0; i < v->type->n_parts && rc == 0; i++) {
        if (i > 0) {
            buf_add_char(o->buf, ',');
        }
        if (!is_unnamed) {
            jsonw_str(o->buf, slice_of(v->type->names[i]));
            buf_add_char(o->buf, ':');
        }
        rc = put_json(o, &v->parts[i], r);
    }
    buf_add_char(o->buf, is_unnamed ? ']' : '}');
    return rc;
}

PUT(map)
{
    const duckdb_list_entry *e = &DATA(v, duckdb_list_entry)[r];
    int rc = 0;
    buf_add_char(o->buf, '[');
    for (uint64_t i = 0; i < e->length && rc == 0; i++) {
        buf_add_str(o->buf, i > 0 ? ",{\"key\":" : "{\"key\":");
        rc = put_json(o, &v->parts[0], e->offset + i);
        buf_add_str(o->buf, ",\"value\":");
        if (rc == 0) {
            rc = put_json(o, &v->parts[1], e->offset + i);
        }
        buf_add_char(o->buf, '}');
    }
    buf_add_char(o->buf, ']');
    return rc;
}

/* The first part is the tag. */
PUT(union)
{
    uint8_t tag = DATA(&v->parts[0], uint8_t)[r];
    must(tag < v->type->n_parts);
    buf_add_str(o->buf, "{\"tag\":");
    jsonw_str(o->buf, slice_of(v->type->names[tag]));
    buf_add_str(o->buf, ",\"value\":");
    int rc = put_json(o, &v->parts[1 + tag], r);
    buf_add_char(o->buf, '}');
    return rc;
}

/* ---- the table ---- */

enum json_form { BARE, QUOTED, TEXT, OWN };
struct writer {
    int (*put)(struct duck_out *o, const struct duck_vector *v, uint64_t r);
    enum json_form form;
};
static const struct writer writers[] = {
#define DUCK_TYPE(id, name, put, json, keep, text, json_doc, kept)                                 \
    [DUCKDB_TYPE_##id] = {put_##put, json},
#include "common/duck/duck_types.def"
#undef DUCK_TYPE
};

int duck_put(struct duck_out *o, const struct duck_vector *v, uint64_t row)
{
    if (duck_is_null(v, row)) {
        buf_add_str(o->buf, "null");
        return 0;
    }
    const struct writer *w = v->type->id < ARRAY_LEN(writers) ? &writers[v->type->id] : NULL;
    if (!w || !w->put) {
        return err_set(o->err, ERR_UNSUPPORTED,
                       "a column has a type that cannot be returned; cast it to VARCHAR");
    }
    if (!o->is_json || w->form == BARE || w->form == OWN) {
        return w->put(o, v, row);
    }
    size_t start = o->buf->len;
    buf_add_char(o->buf, '"');
    int rc = w->put(o, v, row);
    if (w->form == QUOTED || rc < 0) {
        buf_add_char(o->buf, '"');
        return rc;
    }
    auto_free char *plain = xstrndup(o->buf->p + start + 1, o->buf->len - start - 1);
    struct slice text = slice_make(plain, o->buf->len - start - 1);
    o->buf->len = start;
    jsonw_str(o->buf, text);
    return 0;
}

/* ---- vectors ---- */

static void read_part(struct arena *a, const struct duck_vector *of, size_t at,
                      const struct duck_type *t, duckdb_vector v)
{
    duck_vector_read(a, t, v, &of->parts[at]);
}

static void read_entries(struct arena *a, struct duck_vector *out, duckdb_vector v)
{
    const struct duck_type *t = out->type;
    duckdb_vector child = duckdb_list_vector_get_child(v);
    if (t->id == DUCKDB_TYPE_LIST) {
        read_part(a, out, 0, t->parts[0], child);
        return;
    }
    read_part(a, out, 0, t->parts[0], duckdb_struct_vector_get_child(child, 0));
    read_part(a, out, 1, t->parts[1], duckdb_struct_vector_get_child(child, 1));
}

static void read_members(struct arena *a, struct duck_vector *out, duckdb_vector v)
{
    static const struct duck_type tag = {.id = DUCKDB_TYPE_UTINYINT};
    const struct duck_type *t = out->type;
    size_t shift = t->id == DUCKDB_TYPE_UNION;
    if (shift) {
        read_part(a, out, 0, &tag, duckdb_struct_vector_get_child(v, 0));
    }
    for (size_t i = 0; i < t->n_parts; i++) {
        read_part(a, out, i + shift, t->parts[i], duckdb_struct_vector_get_child(v, i + shift));
    }
}

void duck_vector_read(struct arena *a, const struct duck_type *t, duckdb_vector v,
                      struct duck_vector *out)
{
    *out = (struct duck_vector){
        .type = t, .data = duckdb_vector_get_data(v), .validity = duckdb_vector_get_validity(v)};
    if (t->n_parts > 0) {
        out->parts = arena_zalloc(a, (t->n_parts + 1) * sizeof(*out->parts));
    }
    switch (t->id) {
    case DUCKDB_TYPE_LIST:
    case DUCKDB_TYPE_MAP:
        read_entries(a, out, v);
        break;
    case DUCKDB_TYPE_ARRAY:
        read_part(a, out, 0, t->parts[0], duckdb_array_vector_get_child(v));
        break;
    case DUCKDB_TYPE_STRUCT:
    case DUCKDB_TYPE_UNION:
        read_members(a, out, v);
        break;
    default:
        break;
    }
}
