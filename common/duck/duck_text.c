#include "common/duck/duck_text.h"
#include "common/base/civil.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

void duck_put_u64(struct buf *out, uint64_t v)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    buf_add(out, digits + at, sizeof digits - at);
}

void duck_put_i64(struct buf *out, int64_t v)
{
    if (v < 0) {
        buf_add_char(out, '-');
    }
    duck_put_u64(out, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

/* Digits of v, at least `least` of them, right-aligned in 40; returns where they begin. */
static size_t digits_of(char digits[40], duck_u128 v, size_t least)
{
    size_t at = 40;
    while (v > 0 || 40 - at < least) {
        digits[--at] = (char)('0' + (int)(v % 10));
        v /= 10;
    }
    return at;
}

void duck_put_u128(struct buf *out, duck_u128 v)
{
    char digits[40];
    size_t at = digits_of(digits, v, 1);
    buf_add(out, digits + at, 40 - at);
}

void duck_put_i128(struct buf *out, duck_i128 v)
{
    duck_put_decimal(out, v, 0);
}

void duck_put_decimal(struct buf *out, duck_i128 v, unsigned scale)
{
    char digits[40];
    if (v < 0) {
        buf_add_char(out, '-');
    }
    size_t at = digits_of(digits, v < 0 ? 0 - (duck_u128)v : (duck_u128)v, scale + 1);
    buf_add(out, digits + at, 40 - scale - at);
    if (scale > 0) {
        buf_add_char(out, '.');
        buf_add(out, digits + 40 - scale, scale);
    }
}

/* ---- floating point ---- */

/* "d.ddde+xx" of a finite value: the fewest digits that read back. Only below the normal range can
 * those be fewer than the digits that always survive, zeros at the end aside. */
static int shortest(char text[40], double v, bool is_float)
{
    int most = is_float ? 9 : 17;
    int len = 0;
    bool is_normal = is_float ? isnormal((float)v) : isnormal(v);
    for (int n = !is_normal ? 1 : is_float ? 6 : 15; n <= most; n++) {
        len = snprintf(text, 40, "%.*e", n - 1, v);
        bool same = is_float ? strtof(text, NULL) == (float)v : strtod(text, NULL) == v;
        if (same) {
            break;
        }
    }
    return len;
}

/* As DuckDB lays digits out: plain from 1e-4 to below 1e16, with ".0" when it is whole. */
static void put_layout(struct buf *out, const char *digits, size_t n, int exponent)
{
    if (exponent < -4 || exponent >= 16) {
        buf_add_char(out, digits[0]);
        if (n > 1) {
            buf_add_char(out, '.');
            buf_add(out, digits + 1, n - 1);
        }
        buf_addf(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    if (exponent < 0) {
        buf_add_str(out, "0.");
        for (int i = -1; i > exponent; i--) {
            buf_add_char(out, '0');
        }
        buf_add(out, digits, n);
        return;
    }
    size_t whole = (size_t)exponent + 1;
    for (size_t i = 0; i < whole; i++) {
        buf_add_char(out, i < n ? digits[i] : '0');
    }
    buf_add_char(out, '.');
    if (n > whole) {
        buf_add(out, digits + whole, n - whole);
    } else {
        buf_add_char(out, '0');
    }
}

static void put_real(struct buf *out, double v, bool is_float)
{
    if (isnan(v) || isinf(v)) {
        buf_add_str(out, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
        return;
    }
    if (signbit(v)) {
        buf_add_char(out, '-');
        v = -v;
    }
    char text[40];
    char digits[20];
    size_t n = 0;
    (void)shortest(text, v, is_float);
    const char *e = strchr(text, 'e');
    for (const char *p = text; p < e; p++) {
        if (*p != '.') {
            digits[n++] = *p;
        }
    }
    while (n > 1 && digits[n - 1] == '0') {
        n--;
    }
    put_layout(out, digits, n, (int)strtol(e + 1, NULL, 10));
}

void duck_put_double(struct buf *out, double v)
{
    put_real(out, v, false);
}

void duck_put_float(struct buf *out, float v)
{
    put_real(out, (double)v, true);
}

/* ---- times ---- */

static void put_two(struct buf *out, int64_t v)
{
    char two[2] = {(char)('0' + v / 10 % 10), (char)('0' + v % 10)};
    buf_add(out, two, 2);
}

/* Returns whether it is before Christ. */
static bool put_civil(struct buf *out, int64_t days)
{
    struct civil_date d = civil_of_days(days);
    buf_addf(out, "%04" PRId64 "-", d.year > 0 ? d.year : 1 - d.year);
    put_two(out, d.month);
    buf_add_char(out, '-');
    put_two(out, d.day);
    return d.year <= 0;
}

void duck_put_date(struct buf *out, int32_t days, const char *bc)
{
    if (days == INT32_MAX || days == -INT32_MAX) {
        buf_add_str(out, days > 0 ? "infinity" : "-infinity");
        return;
    }
    if (put_civil(out, days)) {
        buf_add_str(out, bc);
    }
}

/* A fraction in nanoseconds without the zeros behind. */
static void put_fraction(struct buf *out, int64_t ns)
{
    if (ns == 0) {
        return;
    }
    char digits[16];
    int len = snprintf(digits, sizeof digits, ".%09" PRId64, ns);
    while (digits[len - 1] == '0') {
        len--;
    }
    buf_add(out, digits, (size_t)len);
}

static void put_hms(struct buf *out, int64_t s, int64_t ns)
{
    int64_t hours = s / 3600;
    if (hours < 100) {
        put_two(out, hours);
    } else {
        duck_put_i64(out, hours);
    }
    buf_add_char(out, ':');
    put_two(out, s / 60 % 60);
    buf_add_char(out, ':');
    put_two(out, s % 60);
    put_fraction(out, ns);
}

void duck_put_clock(struct buf *out, int64_t ns)
{
    put_hms(out, ns / 1000000000, ns % 1000000000);
}

void duck_put_moment(struct buf *out, int64_t units, int64_t per_s, const char *zone,
                     const char *bc)
{
    if (units == INT64_MAX || units == -INT64_MAX) {
        buf_add_str(out, units > 0 ? "infinity" : "-infinity");
        return;
    }
    int64_t per_day = per_s * 86400;
    int64_t day = units / per_day - (units % per_day < 0);
    int64_t in_day = units % per_day + (units % per_day < 0 ? per_day : 0);
    bool is_bc = put_civil(out, day);
    /* DuckDB puts the era behind the date of a time point, but behind all of it in PostgreSQL's
     * way of writing, which JavaScript's readers here know. */
    bool at_date = is_bc && bc[1] == '(';
    if (at_date) {
        buf_add_str(out, bc);
    }
    buf_add_char(out, ' ');
    put_hms(out, in_day / per_s, in_day % per_s * (1000000000 / per_s));
    buf_add_str(out, zone);
    if (is_bc && !at_date) {
        buf_add_str(out, bc);
    }
}

void duck_put_offset(struct buf *out, int32_t seconds)
{
    int32_t s = abs(seconds);
    buf_add_char(out, seconds < 0 ? '-' : '+');
    put_two(out, s / 3600);
    if (s % 3600 == 0) {
        return;
    }
    buf_add_char(out, ':');
    put_two(out, s / 60 % 60);
    if (s % 60 != 0) {
        buf_add_char(out, ':');
        put_two(out, s % 60);
    }
}

static void put_unit(struct buf *out, int32_t n, const char *unit, size_t *written)
{
    if (n != 0) {
        buf_addf(out, "%s%" PRId32 " %s%s", *written > 0 ? " " : "", n, unit,
                 n == 1 || n == -1 ? "" : "s");
        (*written)++;
    }
}

void duck_put_interval(struct buf *out, int32_t months, int32_t days, int64_t us)
{
    size_t written = 0;
    put_unit(out, months / 12, "year", &written);
    put_unit(out, months % 12, "month", &written);
    put_unit(out, days, "day", &written);
    if (us == 0 && written > 0) {
        return;
    }
    if (written > 0) {
        buf_add_char(out, ' ');
    }
    if (us < 0) {
        buf_add_char(out, '-');
    }
    uint64_t abs_us = us < 0 ? 0 - (uint64_t)us : (uint64_t)us;
    put_hms(out, (int64_t)(abs_us / 1000000), (int64_t)(abs_us % 1000000) * 1000);
}

/* ---- bytes ---- */

void duck_put_uuid(struct buf *out, uint64_t high, uint64_t low)
{
    char text[40];
    int len = snprintf(
        text, sizeof text, "%08" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%04" PRIx64 "-%012" PRIx64,
        high >> 32, high >> 16 & 0xffff, high & 0xffff, low >> 48, low & UINT64_C(0xffffffffffff));
    buf_add(out, text, (size_t)len);
}

void duck_put_blob(struct buf *out, struct slice bytes)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char c = (unsigned char)bytes.p[i];
        bool is_plain = c >= 32 && c <= 126 && c != '\\' && c != '\'' && c != '"';
        if (is_plain) {
            buf_add_char(out, (char)c);
        } else {
            const char four[4] = {'\\', 'x', hex[c >> 4], hex[c & 15]};
            buf_add(out, four, 4);
        }
    }
}

void duck_put_bits(struct buf *out, struct slice packed)
{
    unsigned unused = packed.len > 0 ? (unsigned char)packed.p[0] : 0;
    for (size_t bit = unused; packed.len > 1 && bit < 8 * (packed.len - 1); bit++) {
        unsigned char c = (unsigned char)packed.p[1 + bit / 8];
        buf_add_char(out, c >> (7 - bit % 8) & 1 ? '1' : '0');
    }
}

void duck_put_bignum(struct buf *out, struct slice packed)
{
    if (packed.len < 4) {
        buf_add_char(out, '0');
        return;
    }
    bool is_negative = !((unsigned char)packed.p[0] & 0x80);
    size_t n = packed.len - 3;
    /* Decimal digits, nine to a cell, least first. */
    size_t cap = n * 8 / 29 + 2;
    auto_free uint32_t *cells = xcalloc(cap, sizeof *cells);
    size_t used = 1;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)packed.p[3 + i];
        uint64_t carry = is_negative ? (unsigned char)~c : c;
        for (size_t k = 0; k < used; k++) {
            uint64_t v = (uint64_t)cells[k] * 256 + carry;
            cells[k] = (uint32_t)(v % 1000000000);
            carry = v / 1000000000;
        }
        if (carry > 0) {
            must(used < cap);
            cells[used++] = (uint32_t)carry;
        }
    }
    buf_addf(out, "%s%" PRIu32, is_negative ? "-" : "", cells[used - 1]);
    for (size_t k = used - 1; k > 0; k--) {
        buf_addf(out, "%09" PRIu32, cells[k - 1]);
    }
}
