#include "services/planner/core/plan_internal.h"

struct letter_range {
    uint32_t first, last;
};
static const struct letter_range letters[] = {
#include "services/planner/core/names_letters.def"
};

static bool is_letter(uint32_t c)
{
    if (c < 0x80) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    }
    size_t low = 0, high = ARRAY_LEN(letters);
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (c > letters[mid].last) {
            low = mid + 1;
        } else if (c < letters[mid].first) {
            high = mid;
        } else {
            return true;
        }
    }
    return false;
}

/* One code point; its length in bytes, 0 when the bytes are no UTF-8. */
static size_t code_point(const char *text, uint32_t *out)
{
    const unsigned char *p = (const unsigned char *)text;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = p[0] < 0x80         ? 1
                 : (p[0] >> 5) == 6  ? 2
                 : (p[0] >> 4) == 14 ? 3
                 : (p[0] >> 3) == 30 ? 4
                                     : 0;
    uint32_t c = len > 1 ? p[0] & (0x7fu >> len) : p[0];
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
        c = (c << 6) | (p[i] & 0x3fu);
    }
    *out = c;
    return len && c >= least[len] && c <= 0x10ffff ? len : 0;
}

static const char *char_problem(struct arena *a, const char *at, size_t len, uint32_t c)
{
    if (len == 0) {
        return "bytes that are no UTF-8";
    }
    if (c < 0x20 || (c >= 0x7f && c < 0xa1)) {
        return arena_printf(a, "the character U+%04X", c);
    }
    return c == ' ' ? "a space" : arena_printf(a, "the character %.*s", (int)len, at);
}

/* A part in double quotes, "" standing for one; the text after it, NULL with problem. */
static const char *parse_quoted(struct arena *a, const char *at, struct plan_name *out, char **part)
{
    auto_buf struct buf inner = {0};
    for (at++;;) {
        uint32_t c;
        size_t len = code_point(at, &c);
        if (*at == '\0') {
            out->problem = "an unclosed double quote";
            return NULL;
        }
        if (len == 0 || c < 0x20 || c == 0x7f) {
            out->problem = char_problem(a, at, len, c);
            return NULL;
        }
        if (c == '"' && at[1] != '"') {
            break;
        }
        buf_add(&inner, at, len);
        at += c == '"' ? 2 : len;
    }
    if (inner.len == 0) {
        out->problem = "an empty part";
        return NULL;
    }
    *part = arena_strndup(a, inner.p, inner.len);
    return at + 1;
}

static const char *parse_bare(struct arena *a, const char *at, struct plan_name *out, char **part)
{
    const char *start = at;
    while (*at && *at != '.') {
        uint32_t c;
        size_t len = code_point(at, &c);
        if (len == 0 || !(is_letter(c) || c == '_' || c == '-')) {
            out->problem = char_problem(a, at, len, c);
            return NULL;
        }
        at += len;
    }
    if (at == start) {
        out->problem = "an empty part";
        return NULL;
    }
    *part = arena_strndup(a, start, (size_t)(at - start));
    return at;
}

void plan_name_parse(struct arena *a, const char *text, struct plan_name *out)
{
    *out = (struct plan_name){0};
    for (const char *at = text;; at++) {
        if (out->n == ARRAY_LEN(out->parts)) {
            out->problem = "more than three parts";
            return;
        }
        char *part = NULL;
        bool quoted = *at == '"';
        at = quoted ? parse_quoted(a, at, out, &part) : parse_bare(a, at, out, &part);
        if (!at) {
            return;
        }
        out->parts[out->n++] = part;
        out->is_quoted = out->is_quoted || quoted;
        if (*at == '\0') {
            return;
        }
        if (*at != '.') {
            out->problem = "text after a closing double quote";
            return;
        }
    }
}

static void add_quoted(struct buf *out, const char *segment)
{
    buf_add_char(out, '"');
    for (const char *p = segment; *p; p++) {
        if (*p == '"') {
            buf_add_char(out, '"');
        }
        buf_add_char(out, *p);
    }
    buf_add_char(out, '"');
}

char *plan_name_quoted(struct arena *a, const char *schema, const char *table)
{
    auto_buf struct buf out = {0};
    if (*schema) {
        add_quoted(&out, schema);
        buf_add_char(&out, '.');
    }
    add_quoted(&out, table);
    return arena_strdup(a, buf_str(&out));
}

char *plan_name_shown(struct arena *a, const char *schema, const char *table)
{
    return *schema ? arena_printf(a, "%s.%s", schema, table) : arena_strdup(a, table);
}

bool plan_schema_matches(const char *dialect, const char *a, const char *b)
{
    const char *usual = strcmp(dialect, "duckdb") == 0 ? "main" : "public";
    return strcmp(*a ? a : usual, *b ? b : usual) == 0;
}
