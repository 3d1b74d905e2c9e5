#include "common/log/log_internal.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

static size_t key_len(struct slice s)
{
    size_t n = 0;
    while (n < s.len && is_key_char(s.p[n])) {
        n++;
    }
    return n < s.len && s.p[n] == '=' ? n : 0;
}

static struct slice skip(struct slice s, size_t n)
{
    return slice_make(s.p + n, s.len - n);
}

/* One escape of log_q, s at the letter after the backslash; returns the bytes used. */
static size_t unescape(struct slice s, struct buf *out)
{
    uint8_t byte;
    switch (s.p[0]) {
    case 'n':
        buf_add_char(out, '\n');
        return 1;
    case 'r':
        buf_add_char(out, '\r');
        return 1;
    case 't':
        buf_add_char(out, '\t');
        return 1;
    case 'x':
        if (s.len >= 3) {
            char digits[] = {'0', '0', 0};
            memcpy(digits, s.p + 1, 2);
            char *end;
            byte = (uint8_t)strtoul(digits, &end, 16);
            if (end == digits + 2) {
                buf_add(out, &byte, 1);
                return 3;
            }
        }
        break;
    default:
        break;
    }
    buf_add_char(out, s.p[0]);
    return 1;
}

/* rest stands after the opening quote. */
static void read_quoted(struct slice *rest, struct buf *value)
{
    while (rest->len && rest->p[0] != '"') {
        if (rest->p[0] == '\\' && rest->len > 1) {
            *rest = skip(*rest, 1);
            *rest = skip(*rest, unescape(*rest, value));
            continue;
        }
        buf_add_char(value, rest->p[0]);
        *rest = skip(*rest, 1);
    }
    if (rest->len) {
        *rest = skip(*rest, 1);
    }
}

bool log_next_field(struct slice *rest, struct slice *key, struct buf *value)
{
    buf_clear(value);
    while (rest->len && is_blank(rest->p[0])) {
        *rest = skip(*rest, 1);
    }
    if (rest->len == 0) {
        return false;
    }
    size_t n = key_len(*rest);
    *key = slice_make(rest->p, n);
    if (n) {
        *rest = skip(*rest, n + 1);
    }
    if (rest->len && rest->p[0] == '"') {
        *rest = skip(*rest, 1);
        read_quoted(rest, value);
        return true;
    }
    size_t end = 0;
    while (end < rest->len && !is_blank(rest->p[end])) {
        end++;
    }
    buf_add(value, rest->p, end);
    *rest = skip(*rest, end);
    return true;
}
