#include "services/gateway/core/js_text.h"

#include <math.h>
#include <stdio.h>

enum { EXACT_DIGITS = 15, MOST_DIGITS = 17 }; /* what a double always keeps, and ever needs */

/* A decimal text in pieces; digits point into the text. */
struct decimal {
    bool negative;
    struct slice whole, fraction;
    bool has_exponent;
};

static size_t count_digits(const char *p, const char *end)
{
    const char *start = p;
    while (p < end && *p >= '0' && *p <= '9') {
        p++;
    }
    return (size_t)(p - start);
}

static bool split(struct slice text, struct decimal *d)
{
    const char *p = text.p;
    const char *end = text.p + text.len;
    *d = (struct decimal){.negative = p < end && *p == '-'};
    p += d->negative;
    d->whole = slice_make(p, count_digits(p, end));
    p += d->whole.len;
    if (p < end && *p == '.') {
        d->fraction = slice_make(p + 1, count_digits(p + 1, end));
        p += 1 + d->fraction.len;
    }
    if (d->whole.len + d->fraction.len == 0) {
        return false;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        d->has_exponent = true;
        p++;
        p += p < end && (*p == '+' || *p == '-');
        size_t n = count_digits(p, end);
        p += n;
        if (n == 0) {
            return false;
        }
    }
    return p == end;
}

static struct slice without_leading_zeros(struct slice s)
{
    while (s.len && *s.p == '0') {
        s.p++;
        s.len--;
    }
    return s;
}

static struct slice without_trailing_zeros(struct slice s)
{
    while (s.len && s.p[s.len - 1] == '0') {
        s.len--;
    }
    return s;
}

/* At most 15 digits: they are the shortest ones already, for no two such decimals share a double.
 */
static bool print_short(struct buf *out, const struct decimal *d)
{
    struct slice whole = without_leading_zeros(d->whole);
    struct slice fraction = without_trailing_zeros(d->fraction);
    struct slice small = without_leading_zeros(fraction);
    bool is_tiny = whole.len == 0 && fraction.len - small.len >= 6 && small.len;
    if (d->has_exponent || is_tiny || whole.len + fraction.len > EXACT_DIGITS) {
        return false;
    }
    if (whole.len + fraction.len == 0) {
        buf_add_char(out, '0');
        return true;
    }
    if (d->negative) {
        buf_add_char(out, '-');
    }
    buf_add_slice(out, whole.len ? whole : SLICE("0"));
    if (fraction.len) {
        buf_add_char(out, '.');
        buf_add_slice(out, fraction);
    }
    return true;
}

/* 0.DIGITS times ten to `point`. */
struct digits {
    char d[MOST_DIGITS + 1];
    int n;
    int point;
};

static void take_digits(struct digits *out, const char *printed)
{
    const char *e = strchr(printed, 'e');
    must(e);
    out->n = 0;
    for (const char *p = printed; p < e; p++) {
        if (*p != '.') {
            out->d[out->n++] = *p;
        }
    }
    out->point = (int)strtol(e + 1, NULL, 10) + 1;
}

static double value_of(const struct digits *g)
{
    char text[MOST_DIGITS + 16] = "0.";
    memcpy(text + 2, g->d, (size_t)g->n);
    (void)snprintf(text + 2 + g->n, 14, "e%d", g->point);
    return strtod(text, NULL);
}

static void strip_zeros(struct digits *g)
{
    while (g->n > 1 && g->d[g->n - 1] == '0') {
        g->n--;
    }
}

/* One more in the last place. */
static void count_up(struct digits *g)
{
    int i = g->n - 1;
    while (i >= 0 && g->d[i] == '9') {
        g->d[i--] = '0';
    }
    if (i < 0) {
        g->d[0] = '1';
        g->point++;
        return;
    }
    g->d[i]++;
}

static void round_to(double v, int n, struct digits *g)
{
    char text[40];
    (void)snprintf(text, sizeof(text), "%.*e", n - 1, v);
    take_digits(g, text);
}

static void shortest(double v, struct digits *g)
{
    int exponent;
    bool is_power = frexp(v, &exponent) == 0.5; /* its lower neighbour is nearer than the upper */
    int from = fpclassify(v) == FP_SUBNORMAL ? 1 : EXACT_DIGITS;
    for (int n = from; n < MOST_DIGITS; n++) {
        round_to(v, n, g);
        if (value_of(g) == v) {
            strip_zeros(g);
            return;
        }
        if (is_power) {
            count_up(g);
            if (value_of(g) == v) {
                strip_zeros(g);
                return;
            }
        }
    }
    round_to(v, MOST_DIGITS, g);
    strip_zeros(g);
}

static void add_zeros(struct buf *out, int n)
{
    for (; n > 0; n--) {
        buf_add_char(out, '0');
    }
}

/* Number::toString of ECMAScript. */
static void print_digits(struct buf *out, const struct digits *g)
{
    size_t n = (size_t)g->n;
    if (g->n <= g->point && g->point <= 21) {
        buf_add(out, g->d, n);
        add_zeros(out, g->point - g->n);
    } else if (g->point > 0 && g->point <= 21) {
        size_t whole = (size_t)g->point;
        buf_add(out, g->d, whole);
        buf_add_char(out, '.');
        buf_add(out, g->d + whole, n - whole);
    } else if (g->point > -6 && g->point <= 0) {
        buf_add_slice(out, SLICE("0."));
        add_zeros(out, -g->point);
        buf_add(out, g->d, n);
    } else {
        buf_add(out, g->d, 1);
        if (n > 1) {
            buf_add_char(out, '.');
            buf_add(out, g->d + 1, n - 1);
        }
        buf_addf(out, "e%+d", g->point - 1);
    }
}

bool js_number(struct buf *out, struct slice text)
{
    struct decimal d;
    if (!split(text, &d)) {
        return false;
    }
    if (print_short(out, &d)) {
        return true;
    }
    auto_free char *copy = xstrndup(text.p, text.len);
    double v = strtod(copy, NULL);
    if (!isfinite(v)) {
        return false;
    }
    if (v == 0) {
        buf_add_char(out, '0');
        return true;
    }
    if (v < 0) {
        buf_add_char(out, '-');
    }
    struct digits g;
    shortest(fabs(v), &g);
    print_digits(out, &g);
    return true;
}

bool js_is_integer(struct slice text)
{
    struct decimal d;
    return split(text, &d) && d.whole.len && !d.has_exponent &&
           d.whole.len + d.negative == text.len;
}

bool js_is_safe_integer(struct slice text)
{
    static const char most[] = "9007199254740991";
    struct decimal d;
    if (!js_is_integer(text) || !split(text, &d)) {
        return false;
    }
    struct slice whole = without_leading_zeros(d.whole);
    return whole.len < sizeof(most) - 1 ||
           (whole.len == sizeof(most) - 1 && memcmp(whole.p, most, whole.len) <= 0);
}
