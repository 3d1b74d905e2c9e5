/* Bump allocator for the work of one request: freed as a whole, never piece by piece. */
#pragma once
#include "common/base/slice.h"
#include <stdarg.h>

struct arena_block;
struct arena {
    struct arena_block *head; /* newest block */
    size_t used;              /* bytes handed out since the last reset */
};

void arena_init(struct arena *a);
void arena_fini(struct arena *a);
void arena_reset(struct arena *a);                        /* forgets everything, keeps one block */
void *arena_alloc(struct arena *a, size_t len) MUST_USE;  /* aligned to 16, not cleared */
void *arena_zalloc(struct arena *a, size_t len) MUST_USE; /* cleared */
char *arena_strdup(struct arena *a, const char *text) MUST_USE; /* NULL gives NULL */
char *arena_strndup(struct arena *a, const char *text, size_t len) MUST_USE;
char *arena_slice(struct arena *a, struct slice s) MUST_USE; /* NUL-terminated copy */
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3) MUST_USE;
void *arena_dup(struct arena *a, const void *p, size_t len) MUST_USE;
