/* The list of row changes. */
#include "services/planner/core/rows.h"

enum { ROWS_FIRST = 16 };

struct row *rows_add(struct rows *r, enum row_op op)
{
    if (r->n == r->cap) {
        size_t cap = r->cap ? r->cap * 2 : ROWS_FIRST;
        struct row *items = arena_alloc(r->arena, cap * sizeof(*items));
        if (r->n) {
            memcpy(items, r->items, r->n * sizeof(*items));
        }
        r->items = items;
        r->cap = cap;
    }
    struct row *row = &r->items[r->n++];
    memset(row, 0, sizeof(*row));
    row->op = op;
    return row;
}
