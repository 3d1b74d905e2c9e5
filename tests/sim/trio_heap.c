#include "tests/sim/trio_heap.h"

#include <stdarg.h>
#include <stdio.h>

enum { BUCKETS = 1 << 14, NODES_AT_ONCE = 4096 };

/* A block of a process; freed ones wait in `spare`. */
struct block {
    struct list link; /* heap->blocks */
    struct block *next;
    struct heap *heap;
    void *p;
};
static struct heap *current;
static struct block *buckets[BUCKETS];
static struct block *spare;

void *__real_malloc(size_t len);
void *__real_calloc(size_t n, size_t len);
void *__real_realloc(void *old, size_t len);
void __real_free(void *p);
void *__wrap_malloc(size_t len);
void *__wrap_calloc(size_t n, size_t len);
void *__wrap_realloc(void *old, size_t len);
void __wrap_free(void *p);
int __wrap_vasprintf(char **out, const char *fmt, va_list ap);

static struct block **bucket_of(const void *p)
{
    return &buckets[((uintptr_t)p >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 50];
}

static void more_spare(void)
{
    struct block *list = __real_calloc(NODES_AT_ONCE, sizeof(*list));
    must(list);
    for (size_t i = 0; i < NODES_AT_ONCE; i++) {
        list[i].next = spare;
        spare = &list[i];
    }
}

static void *track(void *p, struct heap *h)
{
    if (!p || !h) {
        return p;
    }
    if (!spare) {
        more_spare();
    }
    struct block *b = spare;
    struct block **at = bucket_of(p);
    spare = b->next;
    *b = (struct block){.next = *at, .heap = h, .p = p};
    *at = b;
    list_add_tail(&h->blocks, &b->link);
    h->n++;
    return p;
}

/* Whose it was; NULL: nobody's. */
static struct heap *untrack(const void *p)
{
    for (struct block **at = bucket_of(p); *at; at = &(*at)->next) {
        struct block *b = *at;
        if (b->p == p) {
            struct heap *h = b->heap;
            *at = b->next;
            list_del(&b->link);
            h->n--;
            b->next = spare;
            spare = b;
            return h;
        }
    }
    return NULL;
}

void *__wrap_malloc(size_t len)
{
    return track(__real_malloc(len), current);
}

void *__wrap_calloc(size_t n, size_t len)
{
    return track(__real_calloc(n, len), current);
}

/* A block stays with whoever had it. */
void *__wrap_realloc(void *old, size_t len)
{
    struct heap *h = old ? untrack(old) : current;
    return track(__real_realloc(old, len), h);
}

void __wrap_free(void *p)
{
    (void)untrack(p);
    __real_free(p);
}

int __wrap_vasprintf(char **out, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    must(n >= 0);
    *out = __wrap_malloc((size_t)n + 1);
    must(*out);
    return vsnprintf(*out, (size_t)n + 1, fmt, ap);
}

void heap_init(struct heap *h)
{
    list_init(&h->blocks);
    h->n = 0;
}

struct heap *heap_enter(struct heap *h)
{
    struct heap *before = current;
    current = h;
    return before;
}

#if defined(__SANITIZE_ADDRESS__)
bool heap_clean(struct heap *h)
{
    while (!list_empty(&h->blocks)) {
        (void)untrack(list_entry(h->blocks.next, struct block, link)->p);
    }
    return true;
}
#else
bool heap_clean(struct heap *h)
{
    return h->n == 0;
}
#endif

void heap_drop(struct heap *h)
{
    while (!list_empty(&h->blocks)) {
        void *p = list_entry(h->blocks.next, struct block, link)->p;
        __wrap_free(p);
    }
    must(h->n == 0);
}
