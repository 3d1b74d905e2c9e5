#include "common/base/arena.h"

#include <stdio.h>

enum { ARENA_ALIGN = 16, ARENA_BLOCK = 4096 - 64, ARENA_BLOCK_MAX = 256 * 1024 };

struct arena_block {
    struct arena_block *older;
    size_t cap;
    size_t at;
    _Alignas(ARENA_ALIGN) char data[];
};

void arena_init(struct arena *a)
{
    *a = (struct arena){0};
}

static void free_blocks(struct arena_block *b)
{
    while (b) {
        struct arena_block *older = b->older;
        free(b);
        b = older;
    }
}

void arena_fini(struct arena *a)
{
    free_blocks(a->head);
    arena_init(a);
}

void arena_reset(struct arena *a)
{
    a->used = 0;
    if (!a->head) {
        return;
    }
    free_blocks(a->head->older);
    a->head->older = NULL;
    a->head->at = 0;
    /* One huge request must not pin its memory for the life of the arena. */
    if (a->head->cap > ARENA_BLOCK_MAX) {
        free(a->head);
        a->head = NULL;
    }
}

/* Blocks double, so that large answers take few of them and small requests stay in one page. */
static struct arena_block *add_block(struct arena *a, size_t len)
{
    size_t cap = a->head ? a->head->cap * 2 : ARENA_BLOCK;
    if (cap > ARENA_BLOCK_MAX) {
        cap = ARENA_BLOCK_MAX;
    }
    if (cap < len) {
        cap = len;
    }
    struct arena_block *b = xmalloc(sizeof *b + cap);
    b->cap = cap;
    b->at = 0;
    b->older = a->head;
    a->head = b;
    return b;
}

void *arena_alloc(struct arena *a, size_t len)
{
    must(len < SIZE_MAX / 4);
    size_t take = len ? (len + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1) : ARENA_ALIGN;
    struct arena_block *b = a->head;
    if (!b || b->cap - b->at < take) {
        b = add_block(a, take);
    }
    void *p = b->data + b->at;
    b->at += take;
    a->used += take;
    return p;
}

void *arena_zalloc(struct arena *a, size_t len)
{
    return memset(arena_alloc(a, len), 0, len);
}

char *arena_strdup(struct arena *a, const char *text)
{
    return text ? arena_strndup(a, text, strlen(text)) : NULL;
}

char *arena_strndup(struct arena *a, const char *text, size_t len)
{
    return text ? arena_slice(a, slice_make(text, strnlen(text, len))) : NULL;
}

char *arena_slice(struct arena *a, struct slice s)
{
    char *copy = arena_alloc(a, s.len + 1);
    if (s.len) {
        memcpy(copy, s.p, s.len);
    }
    copy[s.len] = '\0';
    return copy;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    must(n >= 0);
    char *text = arena_alloc(a, (size_t)n + 1);
    vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(ap);
    return text;
}

void *arena_dup(struct arena *a, const void *p, size_t len)
{
    void *copy = arena_alloc(a, len);
    if (len) {
        memcpy(copy, p, len);
    }
    return copy;
}
