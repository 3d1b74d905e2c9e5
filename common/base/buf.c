#include "common/base/buf.h"

#include <stdio.h>

void buf_init(struct buf *b)
{
    *b = (struct buf){0};
}

void buf_fini(struct buf *b)
{
    free(b->p);
    buf_init(b);
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    if (b->p) {
        b->p[0] = '\0';
    }
}

void buf_reserve(struct buf *b, size_t more)
{
    must(more < SIZE_MAX / 4 && b->len < SIZE_MAX / 4);
    size_t need = b->len + more + 1;
    if (need <= b->cap) {
        return;
    }
    size_t cap = b->cap ? b->cap : 64;
    while (cap < need) {
        cap *= 2;
    }
    b->p = xrealloc(b->p, cap);
    b->cap = cap;
    b->p[b->len] = '\0';
}

void buf_add(struct buf *b, const void *p, size_t len)
{
    buf_reserve(b, len);
    if (len) {
        memcpy(b->p + b->len, p, len);
    }
    b->len += len;
    b->p[b->len] = '\0';
}

void buf_add_slice(struct buf *b, struct slice s)
{
    buf_add(b, s.p, s.len);
}

void buf_add_str(struct buf *b, const char *text)
{
    if (text) {
        buf_add(b, text, strlen(text));
    }
}

void buf_add_char(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    buf_vaddf(b, fmt, ap);
    va_end(ap);
}

void buf_vaddf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    buf_reserve(b, 1);
    int n = vsnprintf(b->p + b->len, b->cap - b->len, fmt, ap);
    must(n >= 0);
    if ((size_t)n >= b->cap - b->len) {
        b->p[b->len] = '\0';
        buf_reserve(b, (size_t)n);
        vsnprintf(b->p + b->len, b->cap - b->len, fmt, again);
    }
    va_end(again);
    b->len += (size_t)n;
}

void buf_drop(struct buf *b, size_t n)
{
    must(n <= b->len);
    if (n == 0) {
        return;
    }
    b->len -= n;
    memmove(b->p, b->p + n, b->len + 1);
}

const char *buf_str(const struct buf *b)
{
    return b->p ? b->p : "";
}

struct slice buf_slice(const struct buf *b)
{
    return slice_make(b->p, b->len);
}

char *buf_take(struct buf *b)
{
    buf_reserve(b, 0);
    char *p = b->p;
    buf_init(b);
    return p;
}

void buf_auto_(struct buf *b)
{
    buf_fini(b);
}
