#include "services/kiln/rows.h"
#include "common/base/map.h"
#include "common/json/json.h"

/* A cursor over JSON text that only finds where values begin and end. */
struct scan {
    struct slice text;
    size_t at;
};

static char peek(struct scan *s)
{
    while (s->at < s->text.len && strchr(" \t\r\n", s->text.p[s->at])) {
        s->at++;
    }
    return s->at < s->text.len ? s->text.p[s->at] : '\0';
}

static bool eat(struct scan *s, char c)
{
    if (peek(s) != c || s->at >= s->text.len) {
        return false;
    }
    s->at++;
    return true;
}

static bool skip_string(struct scan *s)
{
    for (s->at++; s->at < s->text.len; s->at++) {
        char c = s->text.p[s->at];
        if (c == '\\') {
            s->at++;
        } else if (c == '"') {
            s->at++;
            return true;
        }
    }
    return false;
}

/* Nested brackets by depth: inside of them only strings can hide a bracket. */
static bool skip_nested(struct scan *s)
{
    size_t depth = 0;
    while (s->at < s->text.len) {
        char c = s->text.p[s->at];
        if (c == '"') {
            if (!skip_string(s)) {
                return false;
            }
            continue;
        }
        s->at++;
        depth += c == '{' || c == '[';
        if ((c == '}' || c == ']') && --depth == 0) {
            return true;
        }
    }
    return false;
}

static bool value(struct scan *s, struct slice *out)
{
    char c = peek(s);
    size_t from = s->at;
    bool ok = true;
    if (c == '"') {
        ok = skip_string(s);
    } else if (c == '{' || c == '[') {
        ok = skip_nested(s);
    } else {
        while (s->at < s->text.len && !strchr(",]} \t\r\n", s->text.p[s->at])) {
            s->at++;
        }
    }
    *out = slice_make(s->text.p + from, s->at - from);
    return ok && out->len > 0;
}

/* The text of a JSON string token, in the arena; NULL when it is broken. */
static char *unquoted(struct arena *a, struct slice token)
{
    if (token.len >= 2 && !memchr(token.p, '\\', token.len)) {
        return arena_strndup(a, token.p + 1, token.len - 2);
    }
    auto_buf struct buf wrapped = {0};
    buf_add_char(&wrapped, '[');
    buf_add_slice(&wrapped, token);
    buf_add_char(&wrapped, ']');
    struct err ignored = {0};
    json_t *list = json_parse(buf_slice(&wrapped), &ignored);
    const char *text = json_string_value(json_array_get(list, 0));
    char *out = text ? arena_strdup(a, text) : NULL;
    json_decref(list);
    return out;
}

struct member {
    const char *name;
    struct slice token;
};
struct row {
    struct member *members;
    size_t n, cap;
};

static int read_row(struct scan *s, struct arena *a, struct row *r)
{
    r->n = 0;
    if (!eat(s, '{')) {
        return -1;
    }
    if (eat(s, '}')) {
        return 0;
    }
    do {
        struct slice key;
        struct member m;
        if (peek(s) != '"' || !value(s, &key) || !eat(s, ':') || !value(s, &m.token)) {
            return -1;
        }
        m.name = unquoted(a, key);
        if (!m.name) {
            return -1;
        }
        if (r->n == r->cap) {
            r->cap = r->cap ? 2 * r->cap : 16;
            r->members = xrealloc(r->members, r->cap * sizeof(*r->members));
        }
        r->members[r->n++] = m;
    } while (eat(s, ','));
    return eat(s, '}') ? 0 : -1;
}

static void add_cell(struct table *t, struct slice token)
{
    if (token.len && token.p[0] == '"') {
        const char *text = unquoted(&t->arena, token);
        table_add(t, text ? text : "");
    } else {
        table_add_slice(t, token);
    }
}

/* Members mostly come in the order of the columns; elsewhere they are looked for. */
static struct slice token_of(const struct row *r, size_t column, const char *name)
{
    if (column < r->n && strcmp(r->members[column].name, name) == 0) {
        return r->members[column].token;
    }
    for (size_t i = 0; i < r->n; i++) {
        if (strcmp(r->members[i].name, name) == 0) {
            return r->members[i].token;
        }
    }
    return SLICE_NONE;
}

static void begin_table(struct table *t, const struct row *first)
{
    auto_free const char **heads = xcalloc(first->n + 1, sizeof(*heads));
    for (size_t i = 0; i < first->n; i++) {
        heads[i] = first->members[i].name;
    }
    table_init(t, heads, first->n);
}

static int read_rows(struct scan *s, struct arena *names, struct table *t, struct row *r, size_t *n)
{
    do {
        if (read_row(s, names, r)) {
            return -1;
        }
        if (*n == 0) {
            begin_table(t, r);
        }
        for (size_t i = 0; i < t->columns; i++) {
            add_cell(t, token_of(r, i, t->cells[i]));
        }
        ++*n;
    } while (eat(s, ','));
    return eat(s, ']') && peek(s) == '\0' ? 0 : -1;
}

int rows_table(struct slice text, struct table *t, size_t *n)
{
    struct scan s = {.text = text};
    struct arena names;
    struct row r = {0};
    *n = 0;
    if (!eat(&s, '[')) {
        return -1;
    }
    if (eat(&s, ']')) {
        table_init(t, NULL, 0);
        return 0;
    }
    arena_init(&names);
    int rc = read_rows(&s, &names, t, &r, n);
    if (rc && *n) {
        table_fini(t);
    }
    free(r.members);
    arena_fini(&names);
    return rc;
}
