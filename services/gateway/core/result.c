#include "services/gateway/core/result_internal.h"

#include "services/gateway/core/js_text.h"
#include "services/gateway/core/jscan.h"

/* Full form, escaped: what stands before a cell's value. Everything but numbers ends with "}". */
#define CELL(name, member) SLICE("{\\\"kind\\\":\\\"" name "\\\",\\\"" member "\\\":")
static const struct slice opens[RESULT_KINDS] = {
    [RESULT_STRING] = CELL("string_cell", "string_value"),
    [RESULT_BOOLEAN] = CELL("boolean_cell", "boolean_value"),
    [RESULT_NUMBER] = CELL("number_cell", "number_value"),
    [RESULT_BIGINT] = CELL("number_cell", "number_value"),
    [RESULT_DATE] = CELL("date_cell", "date_value"),
    [RESULT_TIMESTAMP] = CELL("timestamp_cell", "timestamp_value"),
    [RESULT_JSON] = CELL("json_cell", "json_value"),
    [RESULT_NATIVE] = CELL("sql_native_cell", "sql_native_value"),
    [RESULT_ARRAY] = CELL("array_cell", "array_value"),
    [RESULT_RECORD] = CELL("record_cell", "record_value"),
};
static const struct slice null_cell = SLICE("{\\\"kind\\\":\\\"null_cell\\\"}");
static const struct slice null_text = SLICE("null");
static const struct slice quote = SLICE("\\\"");

static int put_value(struct result_writer *w, const struct result_type *t, struct jscan *s);

void result_escape_at(struct buf *out, struct slice json, int level)
{
    static const struct slice quotes[] = {SLICE("\\\""), SLICE("\\\\\\\"")};
    static const struct slice strokes[] = {SLICE("\\\\"), SLICE("\\\\\\\\")};
    const char *end = json.p + json.len;
    const char *plain = json.p;
    for (const char *p = json.p; p < end; p++) {
        if (*p == '"' || *p == '\\') {
            buf_add(out, plain, (size_t)(p - plain));
            buf_add_slice(out, *p == '"' ? quotes[level - 1] : strokes[level - 1]);
            plain = p + 1;
        }
    }
    buf_add(out, plain, (size_t)(end - plain));
}

void result_escape(struct buf *out, struct slice json)
{
    result_escape_at(out, json, 1);
}

/* White space inside of a string is its own; a line end there would be escaped. */
static void escape_minified(struct buf *out, struct slice json, int level)
{
    bool in_string = false;
    size_t from = 0;
    for (size_t i = 0; i < json.len; i++) {
        char c = json.p[i];
        if (c == '"') {
            in_string = !in_string;
        } else if (in_string) {
            i += c == '\\';
        } else if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
            result_escape_at(out, slice_make(json.p + from, i - from), level);
            from = i + 1;
        }
    }
    result_escape_at(out, slice_make(json.p + from, json.len - from), level);
}

void result_escape_compact(struct buf *out, struct slice json)
{
    escape_minified(out, json, 1);
}

void result_writer_init(struct result_writer *w, const struct result_schema *schema,
                        enum result_form form, struct buf *out)
{
    *w = (struct result_writer){.schema = schema, .form = form, .out = out};
    w->slots = xcalloc(schema->n_slots + 1, sizeof(*w->slots));
    w->by_name = xcalloc(schema->n_records + 1, sizeof(*w->by_name));
}

void result_writer_fini(struct result_writer *w)
{
    free(w->slots);
    free(w->by_name);
    w->slots = NULL;
    w->by_name = NULL;
}

static void put_null(struct result_writer *w)
{
    buf_add_slice(w->out, w->form == RESULT_FULL ? null_cell : null_text);
}

static void put_quoted(struct result_writer *w, struct slice inside)
{
    buf_add_slice(w->out, quote);
    result_escape(w->out, inside);
    buf_add_slice(w->out, quote);
}

/* A number, or a string that stands for one: "NaN". */
static int put_number(struct result_writer *w, const struct result_type *t, struct jscan *s)
{
    struct slice text;
    bool is_quoted = jscan_peek(s) == '"';
    if (is_quoted ? jscan_string(s, &text) : jscan_value(s, &text)) {
        return -1;
    }
    bool is_whole = t->kind == RESULT_BIGINT && !is_quoted && js_is_integer(text);
    if (is_whole && (w->form == RESULT_FULL || js_is_safe_integer(text))) {
        buf_add_slice(w->out, text);
    } else if (is_whole) {
        put_quoted(w, text);
    } else if (!js_number(w->out, text)) {
        buf_add_slice(w->out, null_text); /* as JSON.stringify prints NaN and Infinity */
    }
    if (w->form == RESULT_COMPACT) {
        return 0;
    }
    buf_add_slice(w->out, t->after_number);
    if (t->kind == RESULT_BIGINT) {
        buf_add_slice(w->out, SLICE(",\\\"string_value\\\":"));
        put_quoted(w, text);
    }
    return 0;
}

/* What is no time that JavaScript can print goes out as the warehouse wrote it. */
static int put_time(struct result_writer *w, struct jscan *s)
{
    struct slice text;
    if (jscan_string(s, &text)) {
        return -1;
    }
    buf_add_slice(w->out, quote);
    if (!js_iso_time(w->out, text)) {
        result_escape(w->out, text);
    }
    buf_add_slice(w->out, quote);
    return 0;
}

static int put_json(struct result_writer *w, struct jscan *s)
{
    struct slice text;
    if (jscan_value(s, &text)) {
        return -1;
    }
    if (w->form == RESULT_COMPACT) {
        escape_minified(w->out, text, 1);
        return 0;
    }
    buf_add_slice(w->out, quote);
    escape_minified(w->out, text, 2);
    buf_add_slice(w->out, quote);
    return 0;
}

/* A value as it stands: strings, booleans, and what does not look like its type. */
static int put_as_is(struct result_writer *w, struct jscan *s)
{
    struct slice text;
    if (jscan_peek(s) == '"') {
        if (jscan_string(s, &text)) {
            return -1;
        }
        put_quoted(w, text);
        return 0;
    }
    if (jscan_value(s, &text)) {
        return -1;
    }
    escape_minified(w->out, text, 1);
    return 0;
}

static int put_array(struct result_writer *w, const struct result_type *t, struct jscan *s)
{
    if (!jscan_take(s, '[')) {
        return -1;
    }
    buf_add_char(w->out, '[');
    if (!jscan_take(s, ']')) {
        for (bool first = true; first || jscan_take(s, ','); first = false) {
            if (!first) {
                buf_add_char(w->out, ',');
            }
            if (put_value(w, t->element, s)) {
                return -1;
            }
        }
        if (!jscan_take(s, ']')) {
            return -1;
        }
    }
    buf_add_char(w->out, ']');
    return 0;
}

static void put_label(struct result_writer *w, const struct result_field *f, bool first)
{
    if (!first) {
        buf_add_char(w->out, ',');
    }
    if (w->form == RESULT_COMPACT) {
        buf_add_slice(w->out, f->label);
    }
}

/* Fields in the order of the schema, in one pass. 1: this object has another order. */
static int put_fields_in_order(struct result_writer *w, const struct result_type *t,
                               struct jscan *s)
{
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct result_field *f = &t->fields[i];
        struct slice key;
        if (i > 0 && !jscan_take(s, ',')) {
            return 1;
        }
        if (jscan_peek(s) != '"') {
            return 1;
        }
        if (jscan_string(s, &key)) {
            return -1;
        }
        if (!slice_eq(key, f->key)) {
            return 1;
        }
        put_label(w, f, i == 0);
        if (!jscan_take(s, ':') || put_value(w, &f->type, s)) {
            return -1;
        }
    }
    return jscan_take(s, '}') ? 0 : 1;
}

/* The slot of a member; the search begins behind the one found before. */
static struct slice *slot_of(struct result_writer *w, const struct result_type *t, struct slice key,
                             size_t *next)
{
    for (size_t i = 0; i < t->n_fields; i++) {
        size_t at = *next + i < t->n_fields ? *next + i : *next + i - t->n_fields;
        if (slice_eq(key, t->fields[at].key)) {
            *next = at + 1 < t->n_fields ? at + 1 : 0;
            return &w->slots[t->first_slot + at];
        }
    }
    return NULL;
}

/* The last of several members of one name counts, as in JavaScript. */
static int find_members(struct result_writer *w, const struct result_type *t, struct jscan *s)
{
    size_t next = 0;
    for (size_t i = 0; i < t->n_fields; i++) {
        w->slots[t->first_slot + i] = SLICE_NONE;
    }
    if (jscan_take(s, '}')) {
        return 0;
    }
    do {
        struct slice key;
        struct slice value;
        if (jscan_string(s, &key) || !jscan_take(s, ':') || jscan_value(s, &value)) {
            return -1;
        }
        struct slice *slot = slot_of(w, t, key, &next);
        if (slot) {
            *slot = value;
        }
    } while (jscan_take(s, ','));
    return jscan_take(s, '}') ? 0 : -1;
}

static int put_fields_by_name(struct result_writer *w, const struct result_type *t, struct jscan *s)
{
    if (find_members(w, t, s)) {
        return -1;
    }
    for (size_t i = 0; i < t->n_fields; i++) {
        struct slice value = w->slots[t->first_slot + i];
        put_label(w, &t->fields[i], i == 0);
        struct jscan inner = jscan_of(value);
        if (!value.len) {
            put_null(w);
        } else if (put_value(w, &t->fields[i].type, &inner)) {
            return -1;
        }
    }
    return 0;
}

/* Records are expected in the order of the schema; jsonb sorts its keys otherwise. A record found
 * so once is looked up by name from then on, so that no depth makes the work grow. */
static int put_record(struct result_writer *w, const struct result_type *t, struct jscan *s)
{
    if (!jscan_take(s, '{')) {
        return -1;
    }
    buf_add_char(w->out, w->form == RESULT_FULL ? '[' : '{');
    struct jscan start = *s;
    size_t len = w->out->len;
    int rc = w->by_name[t->number] ? 1 : put_fields_in_order(w, t, s);
    if (rc == 1) {
        w->by_name[t->number] = true;
        w->out->len = len;
        *s = start;
        rc = put_fields_by_name(w, t, s);
    }
    buf_add_char(w->out, w->form == RESULT_FULL ? ']' : '}');
    return rc;
}

static int put_bare(struct result_writer *w, const struct result_type *t, struct jscan *s)
{
    char c = jscan_peek(s);
    switch (t->kind) {
    case RESULT_NUMBER:
    case RESULT_BIGINT:
        return c == '{' || c == '[' || c == 't' || c == 'f' ? put_as_is(w, s) : put_number(w, t, s);
    case RESULT_DATE:
    case RESULT_TIMESTAMP:
        return c == '"' ? put_time(w, s) : put_as_is(w, s);
    case RESULT_JSON:
    case RESULT_NATIVE:
        return put_json(w, s);
    case RESULT_ARRAY:
        return c == '[' ? put_array(w, t, s) : put_as_is(w, s);
    case RESULT_RECORD:
        return c == '{' ? put_record(w, t, s) : put_as_is(w, s);
    default:
        return put_as_is(w, s);
    }
}

static int put_value(struct result_writer *w, const struct result_type *t, struct jscan *s)
{
    if (jscan_peek(s) == 'n') {
        struct slice text;
        put_null(w);
        return jscan_value(s, &text);
    }
    if (w->form == RESULT_COMPACT) {
        return put_bare(w, t, s);
    }
    buf_add_slice(w->out, opens[t->kind]);
    int rc = put_bare(w, t, s);
    buf_add_char(w->out, '}');
    return rc;
}

void result_begin(struct result_writer *w, struct slice head)
{
    if (w->form == RESULT_FULL) {
        buf_add_slice(w->out, head);
        buf_add_slice(w->out, opens[RESULT_ARRAY]);
    }
    buf_add_char(w->out, '[');
}

int result_row(struct result_writer *w, struct slice row_json, struct err *e)
{
    struct jscan s = jscan_of(row_json);
    if (w->rows > 0) {
        buf_add_char(w->out, ',');
    }
    if (jscan_peek(&s) != '{' || put_value(w, &w->schema->row, &s) || !jscan_at_end(&s)) {
        return err_set(e, ERR_INTERNAL,
                       "row %llu of the warehouse's answer is no JSON object that fits its schema",
                       (unsigned long long)w->rows + 1);
    }
    w->rows++;
    return 0;
}

void result_end(struct result_writer *w, struct slice tail)
{
    buf_add_char(w->out, ']');
    if (w->form == RESULT_FULL) {
        buf_add_char(w->out, '}');
        buf_add_slice(w->out, tail);
    }
}
