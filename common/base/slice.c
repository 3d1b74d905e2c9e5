#include "common/base/slice.h"

#include <strings.h>

struct slice slice_of(const char *text)
{
    return text ? (struct slice){text, strlen(text)} : SLICE_NONE;
}

struct slice slice_make(const void *p, size_t len)
{
    return (struct slice){p, len};
}

bool slice_eq(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

bool slice_is(struct slice a, const char *text)
{
    return slice_eq(a, slice_of(text));
}

/* Not tolower(): header names and words of ours must not depend on the locale. */
static unsigned char ascii_fold(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

bool slice_ieq(struct slice a, struct slice b)
{
    if (a.len != b.len) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        if (ascii_fold(a.p[i]) != ascii_fold(b.p[i])) {
            return false;
        }
    }
    return true;
}

bool slice_starts(struct slice a, struct slice prefix)
{
    return a.len >= prefix.len && slice_eq(slice_make(a.p, prefix.len), prefix);
}

int slice_cmp(struct slice a, struct slice b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int rc = n ? memcmp(a.p, b.p, n) : 0;
    if (rc != 0) {
        return rc;
    }
    return (a.len > b.len) - (a.len < b.len);
}

static bool ascii_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct slice slice_trim(struct slice a)
{
    while (a.len && ascii_blank(a.p[0])) {
        a.p++;
        a.len--;
    }
    while (a.len && ascii_blank(a.p[a.len - 1])) {
        a.len--;
    }
    return a;
}

bool slice_cut(struct slice *rest, char sep, struct slice *head)
{
    if (rest->len == 0) {
        *head = SLICE_NONE;
        return false;
    }
    const char *at = memchr(rest->p, sep, rest->len);
    size_t n = at ? (size_t)(at - rest->p) : rest->len;
    size_t used = at ? n + 1 : n;
    *head = slice_make(rest->p, n);
    rest->p += used;
    rest->len -= used;
    return true;
}

int slice_to_u64(struct slice a, uint64_t *out)
{
    if (a.len == 0) {
        return -1;
    }
    uint64_t v = 0;
    for (size_t i = 0; i < a.len; i++) {
        if (a.p[i] < '0' || a.p[i] > '9') {
            return -1;
        }
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(a.p[i] - '0'), &v)) {
            return -1;
        }
    }
    *out = v;
    return 0;
}

int slice_to_i64(struct slice a, int64_t *out)
{
    bool negative = a.len > 0 && a.p[0] == '-';
    if (negative) {
        a.p++;
        a.len--;
    }
    uint64_t v;
    if (slice_to_u64(a, &v) < 0 || v > (uint64_t)INT64_MAX + (negative ? 1 : 0)) {
        return -1;
    }
    *out = negative ? (int64_t)(0 - v) : (int64_t)v;
    return 0;
}
