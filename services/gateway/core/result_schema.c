#include "services/gateway/core/result_internal.h"

#include "common/json/json.h"

enum { TYPE_DEPTH_MAX = 64 };
struct making {
    struct arena *a;
    struct result_schema *schema;
    struct err *e;
};

static const struct {
    const char *name;
    enum result_kind kind;
} kinds[] = {
    {"string_type", RESULT_STRING},       {"boolean_type", RESULT_BOOLEAN},
    {"number_type", RESULT_NUMBER},       {"date_type", RESULT_DATE},
    {"timestamp_type", RESULT_TIMESTAMP}, {"timestamptz_type", RESULT_TIMESTAMP},
    {"json_type", RESULT_JSON},           {"sql_native_type", RESULT_NATIVE},
    {"array_type", RESULT_ARRAY},         {"record_type", RESULT_RECORD},
};

static enum result_kind kind_of(const json_t *type)
{
    const char *name = json_str(type, "kind", "");
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return kinds[i].kind;
        }
    }
    return RESULT_NATIVE;
}

static struct slice keep(struct arena *a, struct slice text)
{
    return slice_make(arena_slice(a, text), text.len);
}

static int make_type(struct making *m, const json_t *in, struct result_type *out, int depth);

static int make_number(struct making *m, const json_t *in, struct result_type *out)
{
    const char *subtype = json_str(in, "subtype", NULL);
    auto_buf struct buf plain = {0};
    auto_buf struct buf escaped = {0};
    if (!subtype) {
        return 0;
    }
    if (strcmp(subtype, "bigint") == 0) {
        out->kind = RESULT_BIGINT;
    }
    buf_add_str(&plain, ",\"subtype\":");
    jsonw_str(&plain, slice_of(subtype));
    result_escape(&escaped, buf_slice(&plain));
    out->after_number = keep(m->a, buf_slice(&escaped));
    return 0;
}

static void make_names(struct making *m, const char *name, struct result_field *out)
{
    auto_buf struct buf key = {0};
    auto_buf struct buf plain = {0};
    auto_buf struct buf label = {0};
    jsonw_escaped(&key, slice_of(name));
    buf_addf(&plain, "\"%s\":", buf_str(&key));
    result_escape(&label, buf_slice(&plain));
    out->key = keep(m->a, buf_slice(&key));
    out->label = keep(m->a, buf_slice(&label));
}

static int make_record(struct making *m, const json_t *fields, struct result_type *out, int depth)
{
    if (!json_is_array(fields)) {
        return err_set(m->e, ERR_INTERNAL, "a record of the result's schema has no fields");
    }
    out->kind = RESULT_RECORD;
    out->n_fields = json_array_size(fields);
    out->fields = arena_zalloc(m->a, (out->n_fields + 1) * sizeof(*out->fields));
    out->first_slot = m->schema->n_slots;
    out->number = m->schema->n_records++;
    m->schema->n_slots += out->n_fields;
    for (size_t i = 0; i < out->n_fields; i++) {
        const json_t *field = json_array_get(fields, i);
        const char *name = json_str(field, "name", NULL);
        if (!name) {
            return err_set(m->e, ERR_INTERNAL, "a field of the result's schema has no name");
        }
        make_names(m, name, &out->fields[i]);
        int rc = make_type(m, json_object_get(field, "type"), &out->fields[i].type, depth);
        if (rc) {
            return rc;
        }
    }
    return 0;
}

static int make_type(struct making *m, const json_t *in, struct result_type *out, int depth)
{
    if (depth == 0) {
        return err_set(m->e, ERR_INTERNAL, "the result nests deeper than %d", TYPE_DEPTH_MAX);
    }
    out->kind = kind_of(in);
    switch (out->kind) {
    case RESULT_NUMBER:
        return make_number(m, in, out);
    case RESULT_ARRAY:
        out->element = arena_zalloc(m->a, sizeof(*out->element));
        return make_type(m, json_object_get(in, "element_type"), out->element, depth - 1);
    case RESULT_RECORD:
        return make_record(m, json_object_get(in, "fields"), out, depth - 1);
    default:
        return 0;
    }
}

struct result_schema *result_schema_make(struct arena *a, struct slice fields_json, struct err *e)
{
    struct result_schema *s = arena_zalloc(a, sizeof(*s));
    struct making m = {a, s, e};
    json_t *fields = json_parse(fields_json, e);
    if (!fields) {
        err_wrap(e, "schema of the result");
        return NULL;
    }
    int rc = make_record(&m, fields, &s->row, TYPE_DEPTH_MAX);
    json_decref(fields);
    return rc ? NULL : s;
}
