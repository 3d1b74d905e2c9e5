/* Values as DuckDB prints them: numbers, times, bits. Pure. */
#pragma once
#include "common/base/buf.h"

typedef __int128 duck_i128;
typedef unsigned __int128 duck_u128;

void duck_put_i64(struct buf *out, int64_t v);
void duck_put_u64(struct buf *out, uint64_t v);
void duck_put_u128(struct buf *out, duck_u128 v);
void duck_put_i128(struct buf *out, duck_i128 v);
void duck_put_decimal(struct buf *out, duck_i128 v, unsigned scale);
/* Shortest decimal that reads back as the same value. */
void duck_put_double(struct buf *out, double v);
void duck_put_float(struct buf *out, float v);
/* Years before Christ end in `bc`: " (BC)" or " BC". */
void duck_put_date(struct buf *out, int32_t days, const char *bc);
void duck_put_clock(struct buf *out, int64_t ns); /* of a day */
/* A point of time: units since 1970, `per_s` of them a second. `zone` ("" or "+00") stands before
 * `bc`. */
void duck_put_moment(struct buf *out, int64_t units, int64_t per_s, const char *zone,
                     const char *bc);
void duck_put_offset(struct buf *out, int32_t seconds);
void duck_put_interval(struct buf *out, int32_t months, int32_t days, int64_t us);
void duck_put_uuid(struct buf *out, uint64_t high, uint64_t low);
void duck_put_blob(struct buf *out, struct slice bytes);
/* DuckDB's own form: a byte with the number of unused bits, then the bits. */
void duck_put_bits(struct buf *out, struct slice packed);
/* DuckDB's own form: three bytes of head, then the magnitude, all inverted when it is negative. */
void duck_put_bignum(struct buf *out, struct slice packed);
/* Is it JSON by the standard, and not deeper than a reader should go? */
bool duck_is_strict_json(struct slice text);
