#include "services/gateway/core/sql_shape.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

static const char *skip_line(const char *p, const char *end)
{
    while (p < end && *p != '\n') {
        p++;
    }
    return p;
}

/* Comments of this kind nest. */
static const char *skip_block(const char *p, const char *end)
{
    int depth = 0;
    for (; end - p >= 2; p++) {
        if (p[0] == '/' && p[1] == '*') {
            depth++;
            p++;
        } else if (p[0] == '*' && p[1] == '/') {
            depth--;
            p++;
            if (depth == 0) {
                return p + 1;
            }
        }
    }
    return end;
}

/* The first byte that is no blank, comment or opening parenthesis. */
static const char *skip_front(const char *p, const char *end)
{
    while (p < end) {
        if (is_blank(*p) || *p == '(') {
            p++;
        } else if (end - p >= 2 && p[0] == '-' && p[1] == '-') {
            p = skip_line(p, end);
        } else if (end - p >= 2 && p[0] == '/' && p[1] == '*') {
            p = skip_block(p, end);
        } else {
            break;
        }
    }
    return p;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}

static struct slice first_word(struct slice text)
{
    const char *end = text.p + text.len;
    const char *start = skip_front(text.p, end);
    const char *p = start;
    while (p < end && is_letter(*p)) {
        p++;
    }
    return slice_make(start, (size_t)(p - start));
}

bool sql_is_select(struct slice text, struct slice *core)
{
    static const char *const words[] = {"select", "with", "values", "table"};
    while (text.len && (is_blank(text.p[text.len - 1]) || text.p[text.len - 1] == ';')) {
        text.len--;
    }
    *core = text;
    struct slice word = first_word(text);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (slice_ieq(word, slice_of(words[i]))) {
            return true;
        }
    }
    return false;
}

char *sql_rows_as_json(struct arena *a, struct slice core, int64_t limit)
{
    char *limited = limit > 0 ? arena_printf(a, " LIMIT %lld", (long long)limit) : "";
    return arena_printf(a, "SELECT row_to_json(kiln_row) FROM (\n%.*s\n) AS kiln_row%s",
                        SLICE_FMT(core), limited);
}

char *sql_limited(struct arena *a, struct slice core, int64_t limit)
{
    return limit > 0 ? arena_printf(a, "SELECT * FROM (\n%.*s\n) AS kiln_row LIMIT %lld",
                                    SLICE_FMT(core), (long long)limit)
                     : arena_slice(a, core);
}
