/* Numbers and times as JavaScript prints them, made from the text of a warehouse. Pure. */
#pragma once
#include "common/base/buf.h"

/* Appends the double that a decimal text denotes as JavaScript prints it: shortest digits that read
 * back as the same double, 1e21 and 1e-7 as such, "0" for minus zero. False, and nothing appended,
 * when the text is no number or the double is not finite. */
bool js_number(struct buf *out, struct slice text) MUST_USE;
/* A whole number that every double holds exactly: |x| <= 2^53 - 1. */
bool js_is_safe_integer(struct slice text);
/* Optional minus and digits only. */
bool js_is_integer(struct slice text);
/* Appends a date or timestamp text of PostgreSQL as toISOString() prints it: always milliseconds
 * (finer digits are cut), always UTC (no offset means UTC), a sign and six digits for years outside
 * of 0 to 9999. False, and nothing appended, when the text is none ("infinity"). */
bool js_iso_time(struct buf *out, struct slice text) MUST_USE;
/* The same of unix microseconds. */
void js_iso_of_us(struct buf *out, int64_t unix_us);
