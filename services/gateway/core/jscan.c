#include "services/gateway/core/jscan.h"

char jscan_peek(struct jscan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\t' || *s->p == '\r')) {
        s->p++;
    }
    return s->p < s->end ? *s->p : '\0';
}

bool jscan_take(struct jscan *s, char c)
{
    if (jscan_peek(s) != c || s->p == s->end) {
        return false;
    }
    s->p++;
    return true;
}

bool jscan_at_end(struct jscan *s)
{
    (void)jscan_peek(s);
    return s->p == s->end;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Length of the escape that begins at p, 0 when it is none. */
static size_t escape_len(const char *p, const char *end)
{
    if (end - p < 2) {
        return 0;
    }
    switch (p[1]) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        return 2;
    case 'u':
        return end - p >= 6 && is_hex(p[2]) && is_hex(p[3]) && is_hex(p[4]) && is_hex(p[5]) ? 6 : 0;
    default:
        return 0;
    }
}

int jscan_string(struct jscan *s, struct slice *inside)
{
    if (!jscan_take(s, '"')) {
        return -1;
    }
    const char *start = s->p;
    const char *p = start;
    while (p < s->end && *p != '"') {
        size_t n = 1;
        if (*p == '\\') {
            n = escape_len(p, s->end);
        } else if ((unsigned char)*p < 0x20) {
            n = 0;
        }
        if (n == 0) {
            return -1;
        }
        p += n;
    }
    if (p == s->end) {
        return -1;
    }
    *inside = slice_make(start, (size_t)(p - start));
    s->p = p + 1;
    return 0;
}

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p)) {
        p++;
    }
    return p;
}

static int skip_number(struct jscan *s)
{
    const char *p = s->p;
    if (p < s->end && *p == '-') {
        p++;
    }
    const char *digits = p;
    p = skip_digits(p, s->end);
    if (p == digits || (*digits == '0' && p > digits + 1)) {
        return -1;
    }
    if (p < s->end && *p == '.') {
        const char *fraction = p + 1;
        p = skip_digits(fraction, s->end);
        if (p == fraction) {
            return -1;
        }
    }
    if (p < s->end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < s->end && (*p == '+' || *p == '-')) {
            p++;
        }
        const char *exponent = p;
        p = skip_digits(p, s->end);
        if (p == exponent) {
            return -1;
        }
    }
    s->p = p;
    return 0;
}

static int skip_word(struct jscan *s, const char *word)
{
    struct slice rest = slice_make(s->p, (size_t)(s->end - s->p));
    if (!slice_starts(rest, slice_of(word))) {
        return -1;
    }
    s->p += strlen(word);
    return 0;
}

static int skip_value(struct jscan *s, int depth);

static int skip_array(struct jscan *s, int depth)
{
    s->p++;
    if (jscan_take(s, ']')) {
        return 0;
    }
    do {
        if (skip_value(s, depth)) {
            return -1;
        }
    } while (jscan_take(s, ','));
    return jscan_take(s, ']') ? 0 : -1;
}

static int skip_object(struct jscan *s, int depth)
{
    s->p++;
    if (jscan_take(s, '}')) {
        return 0;
    }
    do {
        struct slice key;
        if (jscan_string(s, &key) || !jscan_take(s, ':') || skip_value(s, depth)) {
            return -1;
        }
    } while (jscan_take(s, ','));
    return jscan_take(s, '}') ? 0 : -1;
}

static int skip_value(struct jscan *s, int depth)
{
    struct slice inside;
    if (depth == 0) {
        return -1;
    }
    switch (jscan_peek(s)) {
    case '{':
        return skip_object(s, depth - 1);
    case '[':
        return skip_array(s, depth - 1);
    case '"':
        return jscan_string(s, &inside);
    case 't':
        return skip_word(s, "true");
    case 'f':
        return skip_word(s, "false");
    case 'n':
        return skip_word(s, "null");
    default:
        return skip_number(s);
    }
}

int jscan_value(struct jscan *s, struct slice *text)
{
    (void)jscan_peek(s);
    const char *start = s->p;
    if (skip_value(s, JSCAN_DEPTH_MAX)) {
        return -1;
    }
    *text = slice_make(start, (size_t)(s->p - start));
    return 0;
}
