/* Reads JSON in place: where a value begins and ends, without making anything. Pure. */
#pragma once
#include "common/base/slice.h"

enum { JSCAN_DEPTH_MAX = 256 }; /* deeper values are refused */
/* What is left of a text. */
struct jscan {
    const char *p, *end;
};

static inline struct jscan jscan_of(struct slice text)
{
    return (struct jscan){text.p, text.p + text.len};
}
/* Skips white space; the byte that follows, '\0' at the end (no JSON value begins with it). */
char jscan_peek(struct jscan *s);
/* Takes `c` when it comes next, after white space. */
bool jscan_take(struct jscan *s, char c);
/* The string that comes next: what stands between its quotes, escapes as they are. 0, or -1. */
int jscan_string(struct jscan *s, struct slice *inside) MUST_USE;
/* The whole text of the value that comes next, checked. 0, or -1 when it is no JSON or too deep. */
int jscan_value(struct jscan *s, struct slice *text) MUST_USE;
/* Nothing but white space is left. */
bool jscan_at_end(struct jscan *s);
