/* Is a text JSON by the standard? DuckDB's own type takes NaN, infinities and trailing commas. */
#include "common/duck/duck_text.h"

#define MAX_DEPTH 512

struct reader {
    const char *p, *end;
    size_t depth;
    char closers[MAX_DEPTH];
};

static void blanks(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r')) {
        r->p++;
    }
}

static bool take(struct reader *r, char c)
{
    if (r->p == r->end || *r->p != c) {
        return false;
    }
    r->p++;
    return true;
}

static bool digits(struct reader *r)
{
    const char *start = r->p;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9') {
        r->p++;
    }
    return r->p > start;
}

static bool number(struct reader *r)
{
    (void)take(r, '-');
    if (!take(r, '0') && !digits(r)) {
        return false;
    }
    if (take(r, '.') && !digits(r)) {
        return false;
    }
    if (take(r, 'e') || take(r, 'E')) {
        (void)(take(r, '+') || take(r, '-'));
        return digits(r);
    }
    return true;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool string(struct reader *r)
{
    if (!take(r, '"')) {
        return false;
    }
    while (r->p < r->end) {
        char c = *r->p++;
        if (c == '"') {
            return true;
        }
        if ((unsigned char)c < 32) {
            return false;
        }
        if (c != '\\') {
            continue;
        }
        if (r->p == r->end || !strchr("\"\\/bfnrtu", *r->p)) {
            return false;
        }
        if (*r->p++ == 'u') {
            for (int i = 0; i < 4; i++, r->p++) {
                if (r->p == r->end || !is_hex(*r->p)) {
                    return false;
                }
            }
        }
    }
    return false;
}

static bool word(struct reader *r, struct slice w)
{
    if ((size_t)(r->end - r->p) < w.len || memcmp(r->p, w.p, w.len) != 0) {
        return false;
    }
    r->p += w.len;
    return true;
}

static bool scalar(struct reader *r)
{
    if (r->p == r->end) {
        return false;
    }
    switch (*r->p) {
    case '"':
        return string(r);
    case 't':
        return word(r, SLICE("true"));
    case 'f':
        return word(r, SLICE("false"));
    case 'n':
        return word(r, SLICE("null"));
    default:
        return number(r);
    }
}

static bool key(struct reader *r)
{
    blanks(r);
    if (!string(r)) {
        return false;
    }
    blanks(r);
    return take(r, ':');
}

/* Opens objects and arrays until a value stands complete. */
static bool value(struct reader *r)
{
    for (;;) {
        blanks(r);
        bool is_object = r->p < r->end && *r->p == '{';
        if (!is_object && !(r->p < r->end && *r->p == '[')) {
            return scalar(r);
        }
        r->p++;
        blanks(r);
        if (take(r, is_object ? '}' : ']')) {
            return true;
        }
        if (r->depth == MAX_DEPTH) {
            return false;
        }
        r->closers[r->depth++] = is_object ? '}' : ']';
        if (is_object && !key(r)) {
            return false;
        }
    }
}

bool duck_is_strict_json(struct slice text)
{
    struct reader r = {.p = text.p, .end = text.p + text.len};
    if (!text.len || !value(&r)) {
        return false;
    }
    while (r.depth > 0) {
        blanks(&r);
        char closer = r.closers[r.depth - 1];
        if (take(&r, closer)) {
            r.depth--;
            continue;
        }
        if (!take(&r, ',') || (closer == '}' && !key(&r)) || !value(&r)) {
            return false;
        }
    }
    blanks(&r);
    return r.p == r.end;
}
