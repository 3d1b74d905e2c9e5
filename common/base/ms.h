/* Milliseconds as a type of their own: a span, or a point on the monotonic clock of one process. */
#pragma once
#include "common/base/base.h"

struct ms {
    int64_t v;
};

#define MS(n) ((struct ms){(n)})
#define MS_NONE ((struct ms){INT64_MAX}) /* no deadline */

static inline struct ms ms_add(struct ms a, struct ms b)
{
    return (a.v == INT64_MAX || b.v == INT64_MAX) ? MS_NONE : MS(a.v + b.v);
}
static inline struct ms ms_sub(struct ms a, struct ms b)
{
    return a.v == INT64_MAX ? MS_NONE : MS(a.v - b.v);
}
static inline struct ms ms_min(struct ms a, struct ms b)
{
    return a.v < b.v ? a : b;
}
static inline struct ms ms_max(struct ms a, struct ms b)
{
    return a.v > b.v ? a : b;
}
static inline bool ms_before(struct ms a, struct ms b)
{
    return a.v < b.v;
}
