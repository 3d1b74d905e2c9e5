#include "common/base/civil.h"
#include "services/gateway/core/js_text.h"

struct moment {
    int64_t year;
    int month, day, hour, minute, second, ms;
    int offset_s; /* east of UTC */
};

struct reader {
    const char *p, *end;
};

static bool take(struct reader *r, char c)
{
    if (r->p == r->end || *r->p != c) {
        return false;
    }
    r->p++;
    return true;
}

static bool at_digit(const struct reader *r)
{
    return r->p < r->end && *r->p >= '0' && *r->p <= '9';
}

static bool take_two(struct reader *r, int *out)
{
    if (r->end - r->p < 2 || !at_digit(r) || r->p[1] < '0' || r->p[1] > '9') {
        return false;
    }
    *out = (r->p[0] - '0') * 10 + (r->p[1] - '0');
    r->p += 2;
    return true;
}

/* Four digits at least; PostgreSQL knows years up to 294276 and back to 4713 BC. */
static bool take_year(struct reader *r, int64_t *out)
{
    const char *start = r->p;
    *out = 0;
    while (at_digit(r) && r->p - start < 7) {
        *out = *out * 10 + (*r->p++ - '0');
    }
    return r->p - start >= 4;
}

static void take_fraction(struct reader *r, int *ms)
{
    int scale = 100;
    *ms = 0;
    while (at_digit(r)) {
        *ms += (*r->p++ - '0') * scale;
        scale /= 10;
    }
}

static bool take_clock(struct reader *r, struct moment *m)
{
    if (!take_two(r, &m->hour) || !take(r, ':') || !take_two(r, &m->minute) || !take(r, ':') ||
        !take_two(r, &m->second)) {
        return false;
    }
    if (take(r, '.')) {
        take_fraction(r, &m->ms);
    }
    return true;
}

/* Z, +05, +05:30 or +05:30:15. */
static bool take_offset(struct reader *r, struct moment *m)
{
    if (r->p == r->end || *r->p == ' ' || take(r, 'Z')) {
        return true;
    }
    int sign = *r->p == '-' ? -1 : 1;
    int hours = 0;
    int minutes = 0;
    int seconds = 0;
    if ((!take(r, '+') && !take(r, '-')) || !take_two(r, &hours) ||
        (take(r, ':') && !take_two(r, &minutes)) || (take(r, ':') && !take_two(r, &seconds))) {
        return false;
    }
    m->offset_s = sign * (hours * 3600 + minutes * 60 + seconds);
    return true;
}

static bool read_moment(struct slice text, struct moment *m)
{
    struct reader r = {text.p, text.p + text.len};
    *m = (struct moment){0};
    if (!take_year(&r, &m->year) || !take(&r, '-') || !take_two(&r, &m->month) || !take(&r, '-') ||
        !take_two(&r, &m->day)) {
        return false;
    }
    if (r.p < r.end && (take(&r, 'T') || (r.end - r.p > 1 && r.p[1] != 'B' && take(&r, ' '))) &&
        (!take_clock(&r, m) || !take_offset(&r, m))) {
        return false;
    }
    struct slice rest = slice_make(r.p, (size_t)(r.end - r.p));
    if (slice_is(rest, " BC")) {
        m->year = 1 - m->year;
        return true;
    }
    return rest.len == 0 && m->month >= 1 && m->month <= 12 && m->day >= 1;
}

/* Sets date and clock from seconds since 1970. */
static void set_seconds(struct moment *m, int64_t s)
{
    int64_t days = (s >= 0 ? s : s - 86399) / 86400;
    int in_day = (int)(s - days * 86400);
    struct civil_date d = civil_of_days(days);
    m->year = d.year;
    m->month = d.month;
    m->day = d.day;
    m->hour = in_day / 3600;
    m->minute = in_day / 60 % 60;
    m->second = in_day % 60;
}

static void to_utc(struct moment *m)
{
    set_seconds(m, civil_days(m->year, m->month, m->day) * 86400 + m->hour * 3600 + m->minute * 60 +
                       m->second - m->offset_s);
}

static char *put_digits(char *to, int64_t n, int width)
{
    for (int i = width; i-- > 0; n /= 10) {
        to[i] = (char)('0' + n % 10);
    }
    return to + width;
}

static void print_moment(struct buf *out, const struct moment *m)
{
    char line[40];
    char *p = line;
    if (m->year < 0 || m->year > 9999) {
        *p++ = m->year < 0 ? '-' : '+';
        p = put_digits(p, m->year < 0 ? -m->year : m->year, 6);
    } else {
        p = put_digits(p, m->year, 4);
    }
    const int parts[] = {m->month, m->day, m->hour, m->minute, m->second};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        *p++ = "--T::"[i];
        p = put_digits(p, parts[i], 2);
    }
    *p++ = '.';
    p = put_digits(p, m->ms, 3);
    *p++ = 'Z';
    buf_add(out, line, (size_t)(p - line));
}

bool js_iso_time(struct buf *out, struct slice text)
{
    struct moment m;
    if (!read_moment(text, &m)) {
        return false;
    }
    if (m.offset_s) {
        to_utc(&m);
    }
    print_moment(out, &m);
    return true;
}

void js_iso_of_us(struct buf *out, int64_t unix_us)
{
    struct moment m = {0};
    int64_t ms = (unix_us >= 0 ? unix_us : unix_us - 999) / 1000;
    int64_t s = (ms >= 0 ? ms : ms - 999) / 1000;
    m.ms = (int)(ms - s * 1000);
    set_seconds(&m, s);
    print_moment(out, &m);
}
