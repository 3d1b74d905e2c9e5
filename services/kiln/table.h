/* Text tables for people: columns as wide as their cells, numbers to the right. */
#pragma once
#include "common/base/arena.h"
#include "common/base/buf.h"

struct table {
    struct arena arena; /* holds the cells */
    const char **cells; /* row by row, the heads first */
    size_t columns, n, cap;
    bool wraps; /* set by the owner: a last column that is too wide goes on in further lines */
};

void table_init(struct table *t, const char *const *heads, size_t columns);
void table_fini(struct table *t);
/* Adds the next cell, copied; cells fill rows from the left. NULL is an empty cell. Control
 * characters are shown as escapes, so that data cannot drive the terminal. */
void table_add(struct table *t, const char *text);
void table_add_slice(struct table *t, struct slice text);
void table_addf(struct table *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The whole table as lines. width: columns of the terminal, 0: no limit; the widest cells are cut
 * with an ellipsis until it fits. */
void table_print(const struct table *t, size_t width, struct buf *out);
/* Columns that a text takes on a terminal. */
size_t text_width(struct slice text);
/* Columns of the terminal on fd; 0 when it is none. */
size_t terminal_width(int fd);
