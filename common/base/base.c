#include "common/base/base.h"

#include <stdarg.h>
#include <stdio.h>

NORETURN void must_failed(const char *claim, const char *file, int line)
{
    fprintf(stderr, "bug: %s does not hold at %s:%d\n", claim, file, line);
    abort();
}

static NORETURN void out_of_memory(size_t len)
{
    fprintf(stderr, "out of memory: %zu bytes were asked for\n", len);
    abort();
}

void *xmalloc(size_t len)
{
    void *p = malloc(len ? len : 1);
    if (!p) {
        out_of_memory(len);
    }
    return p;
}

void *xcalloc(size_t n, size_t len)
{
    void *p = calloc(n ? n : 1, len ? len : 1);
    if (!p) {
        out_of_memory(n * len);
    }
    return p;
}

void *xrealloc(void *old, size_t len)
{
    void *p = realloc(old, len ? len : 1);
    if (!p) {
        out_of_memory(len);
    }
    return p;
}

char *xstrdup(const char *text)
{
    return text ? xstrndup(text, strlen(text)) : NULL;
}

char *xstrndup(const char *text, size_t len)
{
    if (!text) {
        return NULL;
    }
    len = strnlen(text, len);
    char *copy = xmalloc(len + 1);
    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

char *xasprintf(const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    int rc = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (rc < 0) {
        out_of_memory(0);
    }
    return text;
}

void auto_free_(void *p)
{
    void *held;
    memcpy(&held, p, sizeof held);
    free(held);
}
