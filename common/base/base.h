/* Attributes, container_of, fatal allocation and assertions: what every file may use. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))
#define NORETURN __attribute__((noreturn))
#define UNUSED __attribute__((unused))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* A claim that only a bug can break: aborts in every build, naming the place. */
#define must(claim) ((claim) ? (void)0 : must_failed(#claim, __FILE__, __LINE__))
NORETURN void must_failed(const char *claim, const char *file, int line);

/* Allocation that ends the process when memory is out (house style 23). Free with free(). */
void *xmalloc(size_t len) MUST_USE;
void *xcalloc(size_t n, size_t len) MUST_USE;
void *xrealloc(void *old, size_t len) MUST_USE;
char *xstrdup(const char *text) MUST_USE; /* NULL gives NULL */
char *xstrndup(const char *text, size_t len) MUST_USE;
char *xasprintf(const char *fmt, ...) PRINTF_LIKE(1, 2) MUST_USE;

/* Scratch that frees itself at the end of its block. */
void auto_free_(void *p);
#define auto_free __attribute__((cleanup(auto_free_)))
