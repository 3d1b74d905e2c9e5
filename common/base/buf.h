/* An owning, growable byte buffer. Always NUL-terminated one past len. */
#pragma once
#include "common/base/slice.h"
#include <stdarg.h>

struct buf {
    char *p;    /* owned; NULL until first use */
    size_t len; /* bytes in use */
    size_t cap; /* bytes allocated */
};

void buf_init(struct buf *b);
void buf_fini(struct buf *b);  /* frees and clears */
void buf_clear(struct buf *b); /* keeps the memory */
void buf_reserve(struct buf *b, size_t more);
void buf_add(struct buf *b, const void *p, size_t len);
void buf_add_slice(struct buf *b, struct slice s);
void buf_add_str(struct buf *b, const char *text);
void buf_add_char(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_vaddf(struct buf *b, const char *fmt, va_list ap);
void buf_drop(struct buf *b, size_t n);   /* removes n bytes at the front */
const char *buf_str(const struct buf *b); /* "" when empty; valid until the next change */
struct slice buf_slice(const struct buf *b);
char *buf_take(struct buf *b); /* the caller frees; b is empty afterwards; never NULL */
void buf_auto_(struct buf *b);
#define auto_buf __attribute__((cleanup(buf_auto_)))
