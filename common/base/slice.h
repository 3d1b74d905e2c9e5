/* A borrowed view of bytes: pointer and length, never owned, never stored in a long-lived struct.
 */
#pragma once
#include "common/base/base.h"

struct slice {
    const char *p; /* may be NULL only if len is 0 */
    size_t len;    /* bytes */
};

#define SLICE(lit) ((struct slice){(lit), sizeof(lit) - 1})
#define SLICE_NONE ((struct slice){NULL, 0})
/* For printf: "%.*s", SLICE_FMT(s) */
#define SLICE_FMT(s) (int)(s).len, (s).p ? (s).p : ""

struct slice slice_of(const char *text); /* NULL gives the empty slice */
struct slice slice_make(const void *p, size_t len);
bool slice_eq(struct slice a, struct slice b);
bool slice_is(struct slice a, const char *text);
bool slice_ieq(struct slice a, struct slice b); /* ASCII case folded */
bool slice_starts(struct slice a, struct slice prefix);
int slice_cmp(struct slice a, struct slice b); /* bytewise, shorter first */
struct slice slice_trim(struct slice a);       /* ASCII blanks off both ends */
/* Cuts *rest at the first `sep`; returns what stood before it. False when *rest was
 * exhausted; a separator at the very end is followed by no empty piece. */
bool slice_cut(struct slice *rest, char sep, struct slice *head);
/* Whole slice as a decimal number. 0, or -1 when it is no number or does not fit. */
int slice_to_u64(struct slice a, uint64_t *out) MUST_USE;
int slice_to_i64(struct slice a, int64_t *out) MUST_USE;
