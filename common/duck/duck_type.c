#include "common/duck/duck_internal.h"

#include <inttypes.h>

enum keep { AS_IS, NARROW, WIDE, VARCHAR, INTEGER, PARTS, NEVER };

static const struct {
    duckdb_type id;
    enum keep keep;
    struct duck_type_doc doc;
} rows[] = {
#define DUCK_TYPE(id, name, put, json, keep, text, json_doc, kept)                                 \
    {DUCKDB_TYPE_##id, keep, {name, text, json_doc, kept}},
#include "common/duck/duck_types.def"
#undef DUCK_TYPE
};

static size_t row_of(duckdb_type id)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].id == id) {
            return i;
        }
    }
    return ARRAY_LEN(rows);
}

const struct duck_type_doc *duck_type_docs(size_t *n)
{
    static struct duck_type_doc docs[ARRAY_LEN(rows)];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        docs[i] = rows[i].doc;
    }
    *n = ARRAY_LEN(rows);
    return docs;
}

/* ---- reading a logical type ---- */

static const char *take_text(struct arena *a, char *text)
{
    const char *copy = arena_strdup(a, text ? text : "");
    duckdb_free(text);
    return copy;
}

static struct duck_type *part(struct arena *a, duckdb_logical_type type)
{
    struct duck_type *t = duck_type_of(a, type);
    duckdb_destroy_logical_type(&type);
    return t;
}

static void room(struct arena *a, struct duck_type *t, size_t n_parts, size_t n_names)
{
    t->parts = arena_zalloc(a, (n_parts + 1) * sizeof(*t->parts));
    t->n_parts = n_parts;
    t->names = arena_zalloc(a, (n_names + 1) * sizeof(*t->names));
    t->n_names = n_names;
}

static void read_members(struct arena *a, struct duck_type *t, duckdb_logical_type type, idx_t n,
                         char *(*name)(duckdb_logical_type, idx_t),
                         duckdb_logical_type (*member)(duckdb_logical_type, idx_t))
{
    room(a, t, n, n);
    for (idx_t i = 0; i < n; i++) {
        t->names[i] = take_text(a, name(type, i));
        t->parts[i] = part(a, member(type, i));
    }
}

static void read_struct(struct arena *a, struct duck_type *t, duckdb_logical_type type)
{
    read_members(a, t, type, duckdb_struct_type_child_count(type), duckdb_struct_type_child_name,
                 duckdb_struct_type_child_type);
}

static void read_union(struct arena *a, struct duck_type *t, duckdb_logical_type type)
{
    read_members(a, t, type, duckdb_union_type_member_count(type), duckdb_union_type_member_name,
                 duckdb_union_type_member_type);
}

static void read_enum(struct arena *a, struct duck_type *t, duckdb_logical_type type)
{
    size_t n = duckdb_enum_dictionary_size(type);
    room(a, t, 0, n);
    t->internal = duckdb_enum_internal_type(type);
    for (size_t i = 0; i < n; i++) {
        t->names[i] = take_text(a, duckdb_enum_dictionary_value(type, i));
    }
}

static void read_map(struct arena *a, struct duck_type *t, duckdb_logical_type type)
{
    room(a, t, 2, 0);
    t->parts[0] = part(a, duckdb_map_type_key_type(type));
    t->parts[1] = part(a, duckdb_map_type_value_type(type));
}

static void read_one(struct arena *a, struct duck_type *t, duckdb_logical_type child)
{
    room(a, t, 1, 0);
    t->parts[0] = part(a, child);
}

static void read_alias(struct duck_type *t, duckdb_logical_type type)
{
    char *alias = duckdb_logical_type_get_alias(type);
    t->is_json = alias && strcmp(alias, "JSON") == 0;
    duckdb_free(alias);
}

struct duck_type *duck_type_of(struct arena *a, duckdb_logical_type type)
{
    struct duck_type *t = arena_zalloc(a, sizeof(*t));
    t->id = duckdb_get_type_id(type);
    switch (t->id) {
    case DUCKDB_TYPE_VARCHAR:
        read_alias(t, type);
        break;
    case DUCKDB_TYPE_DECIMAL:
        t->width = duckdb_decimal_width(type);
        t->scale = duckdb_decimal_scale(type);
        t->internal = duckdb_decimal_internal_type(type);
        break;
    case DUCKDB_TYPE_ENUM:
        read_enum(a, t, type);
        break;
    case DUCKDB_TYPE_LIST:
        read_one(a, t, duckdb_list_type_child_type(type));
        break;
    case DUCKDB_TYPE_ARRAY:
        read_one(a, t, duckdb_array_type_child_type(type));
        t->size = duckdb_array_type_array_size(type);
        break;
    case DUCKDB_TYPE_STRUCT:
        read_struct(a, t, type);
        break;
    case DUCKDB_TYPE_UNION:
        read_union(a, t, type);
        break;
    case DUCKDB_TYPE_MAP:
        read_map(a, t, type);
        break;
    default:
        break;
    }
    return t;
}

bool duck_type_is_unnamed(const struct duck_type *t)
{
    return t->n_names > 0 && !t->names[0][0];
}

/* ---- spelling it ---- */

/* How one type is spelled: as it is, or as it is kept. Both walk the same tree. */
struct speller {
    struct buf *out;
    bool is_stored;
    enum duck_wide wide;
    struct err *err; /* of what cannot be kept */
    int rc;
};

static void spell(struct speller *s, const struct duck_type *t);

static void spell_fields(struct speller *s, const struct duck_type *t, const char *head)
{
    buf_add_str(s->out, head);
    for (size_t i = 0; i < t->n_parts; i++) {
        if (i > 0) {
            buf_add_str(s->out, ", ");
        }
        if (t->names[i][0]) {
            duck_quote_name(s->out, t->names[i]);
            buf_add_char(s->out, ' ');
        }
        spell(s, t->parts[i]);
    }
    buf_add_char(s->out, ')');
}

static void spell_map(struct speller *s, const struct duck_type *t)
{
    buf_add_str(s->out, "MAP(");
    spell(s, t->parts[0]);
    buf_add_str(s->out, ", ");
    spell(s, t->parts[1]);
    buf_add_char(s->out, ')');
}

static void spell_enum(struct buf *out, const struct duck_type *t)
{
    buf_add_str(out, "ENUM(");
    for (size_t i = 0; i < t->n_names; i++) {
        if (i > 0) {
            buf_add_str(out, ", ");
        }
        duck_quote_text(out, t->names[i]);
    }
    buf_add_char(out, ')');
}

static void spell_itself(struct speller *s, const struct duck_type *t)
{
    size_t row = row_of(t->id);
    switch (t->id) {
    case DUCKDB_TYPE_DECIMAL:
        buf_addf(s->out, "DECIMAL(%u,%u)", t->width, t->scale);
        break;
    case DUCKDB_TYPE_ENUM:
        spell_enum(s->out, t);
        break;
    case DUCKDB_TYPE_LIST:
        spell(s, t->parts[0]);
        buf_add_str(s->out, "[]");
        break;
    case DUCKDB_TYPE_ARRAY:
        spell(s, t->parts[0]);
        if (s->is_stored) {
            buf_add_str(s->out, "[]");
        } else {
            buf_addf(s->out, "[%" PRIu64 "]", t->size);
        }
        break;
    case DUCKDB_TYPE_STRUCT:
        spell_fields(s, t, "STRUCT(");
        break;
    case DUCKDB_TYPE_UNION:
        spell_fields(s, t, "UNION(");
        break;
    case DUCKDB_TYPE_MAP:
        spell_map(s, t);
        break;
    case DUCKDB_TYPE_SQLNULL:
        buf_add_str(s->out, "\"NULL\"");
        break;
    default:
        buf_add_str(s->out, t->is_json ? "JSON" : row < ARRAY_LEN(rows) ? rows[row].doc.name : "?");
    }
}

static void refuse(struct speller *s, const struct duck_type *t, const char *remedy)
{
    auto_buf struct buf name = {0};
    struct speller own = {.out = &name};
    spell_itself(&own, t);
    if (s->rc == 0) {
        s->rc = err_set(s->err, ERR_UNSUPPORTED,
                        "type %s cannot be kept without loss in a Parquet file; %s", buf_str(&name),
                        remedy);
    }
}

static void spell(struct speller *s, const struct duck_type *t)
{
    size_t row = row_of(t->id);
    enum keep keep = row < ARRAY_LEN(rows) ? rows[row].keep : NEVER;
    if (!s->is_stored) {
        spell_itself(s, t);
        return;
    }
    switch (keep) {
    case WIDE:
        buf_add_str(s->out, s->wide == DUCK_WIDE_BIGINT ? "BIGINT" : "DECIMAL(38,0)");
        break;
    case NARROW:
        buf_add_str(s->out, "TIMESTAMP");
        break;
    case VARCHAR:
        buf_add_str(s->out, "VARCHAR");
        break;
    case INTEGER:
        buf_add_str(s->out, "INTEGER");
        break;
    case NEVER:
        refuse(s, t, "cast it to another type in the source");
        break;
    case PARTS:
        if (t->id == DUCKDB_TYPE_STRUCT && duck_type_is_unnamed(t)) {
            refuse(s, t, "name its fields");
        }
        spell_itself(s, t);
        break;
    default:
        spell_itself(s, t);
    }
}

void duck_type_sql(const struct duck_type *t, struct buf *out)
{
    struct speller s = {.out = out};
    spell(&s, t);
}

int duck_type_stored(const struct duck_type *t, enum duck_wide wide, struct buf *out, struct err *e)
{
    struct speller s = {.out = out, .is_stored = true, .wide = wide, .err = e};
    spell(&s, t);
    return s.rc;
}

bool duck_type_is_wide(const struct duck_type *t)
{
    size_t row = row_of(t->id);
    bool is_wide = row < ARRAY_LEN(rows) && rows[row].keep == WIDE;
    for (size_t i = 0; i < t->n_parts && !is_wide; i++) {
        is_wide = duck_type_is_wide(t->parts[i]);
    }
    return is_wide;
}
