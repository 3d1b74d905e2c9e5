#include "common/json/json.h"

json_t *json_parse(struct slice text, struct err *e)
{
    json_error_t why;
    json_t *v = json_loadb(text.len ? text.p : "", text.len, JSON_DECODE_ANY, &why);
    if (!v) {
        err_set(e, ERR_INVALID, "line %d: %s", why.line > 0 ? why.line : 1, why.text);
    }
    return v;
}

static int add_piece(const char *piece, size_t len, void *out)
{
    buf_add(out, piece, len);
    return 0;
}

void json_print(const json_t *v, struct buf *out)
{
    must(v && json_dump_callback(v, add_piece, out, JSON_COMPACT | JSON_ENCODE_ANY) == 0);
}

char *json_text(const json_t *v)
{
    struct buf out = {0};
    json_print(v, &out);
    return buf_take(&out);
}

const char *json_str(const json_t *obj, const char *key, const char *def)
{
    const char *text = json_string_value(json_object_get(obj, key));
    return text ? text : def;
}

bool json_flag(const json_t *obj, const char *key, bool def)
{
    const json_t *v = json_object_get(obj, key);
    return json_is_boolean(v) ? json_is_true(v) : def;
}

int64_t json_int(const json_t *obj, const char *key, int64_t def)
{
    const json_t *v = json_object_get(obj, key);
    return json_is_integer(v) ? json_integer_value(v) : def;
}

/* jansson refuses text that is no UTF-8; what warehouses and files say may be just that. */
static json_t *any_string(const char *value)
{
    json_t *v = json_string(value);
    if (v) {
        return v;
    }
    auto_buf struct buf quoted = {0};
    jsonw_str(&quoted, slice_of(value));
    v = json_loadb(quoted.p, quoted.len, JSON_DECODE_ANY, NULL);
    must(v != NULL);
    return v;
}

void json_set_str(json_t *obj, const char *key, const char *value)
{
    must(json_object_set_new(obj, key, value ? any_string(value) : json_null()) == 0);
}

void json_set_int(json_t *obj, const char *key, int64_t value)
{
    must(json_object_set_new(obj, key, json_integer(value)) == 0);
}

void json_set_flag(json_t *obj, const char *key, bool value)
{
    must(json_object_set_new(obj, key, json_boolean(value)) == 0);
}
