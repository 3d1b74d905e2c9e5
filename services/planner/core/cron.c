#include "services/planner/core/plan.h"

struct cron_field {
    const char *name;
    unsigned low, high;
    const char *const *words; /* names for values from `low` on; NULL none */
    size_t n_words;
};
static const char *const months[] = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                     "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
static const char *const days[] = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};
static const struct cron_field fields[] = {
    {"minute", 0, 59, NULL, 0},
    {"hour", 0, 23, NULL, 0},
    {"day of month", 1, 31, NULL, 0},
    {"month", 1, 12, months, ARRAY_LEN(months)},
    {"day of week", 0, 7, days, ARRAY_LEN(days)},
};

static bool read_value(const struct cron_field *f, struct slice text, unsigned *out)
{
    uint64_t number;
    if (slice_to_u64(text, &number) == 0 && number >= f->low && number <= f->high) {
        *out = (unsigned)number;
        return true;
    }
    for (size_t i = 0; i < f->n_words; i++) {
        if (slice_ieq(text, slice_of(f->words[i]))) {
            *out = f->low + (unsigned)i;
            return true;
        }
    }
    return false;
}

/* "a", "a-b", "*", each also with "/step". */
static bool is_item(const struct cron_field *f, struct slice item)
{
    struct slice range, first, step = item;
    if (!slice_cut(&step, '/', &range)) {
        return false;
    }
    if (range.len < item.len) {
        uint64_t by;
        if (slice_to_u64(step, &by) != 0 || by == 0 || by > f->high) {
            return false;
        }
    }
    if (slice_is(range, "*")) {
        return true;
    }
    unsigned low, high;
    struct slice last = range;
    if (!slice_cut(&last, '-', &first) || !read_value(f, first, &low)) {
        return false;
    }
    return first.len == range.len || (read_value(f, last, &high) && low <= high);
}

static const char *check_field(struct arena *a, const struct cron_field *f, struct slice text)
{
    struct slice rest = text, item;
    size_t n = 0, seen = 0;
    while (slice_cut(&rest, ',', &item)) {
        if (!is_item(f, item)) {
            return arena_printf(a, "the %s '%.*s' is not understood (%u-%u, lists, ranges, steps)",
                                f->name, SLICE_FMT(text), f->low, f->high);
        }
        n++;
        seen += item.len;
    }
    /* A comma at the very end leaves no piece behind it. */
    return seen + n - 1 == text.len
               ? NULL
               : arena_printf(a, "the %s '%.*s' ends with a comma", f->name, SLICE_FMT(text));
}

const char *cron_check(struct arena *a, const char *text)
{
    struct slice rest = slice_trim(slice_of(text));
    size_t n = 0;
    const char *problem = NULL;
    while (rest.len > 0) {
        size_t len = 0;
        while (len < rest.len && rest.p[len] != ' ' && rest.p[len] != '\t') {
            len++;
        }
        if (n < ARRAY_LEN(fields) && !problem) {
            problem = check_field(a, &fields[n], slice_make(rest.p, len));
        }
        n++;
        rest = slice_trim(slice_make(rest.p + len, rest.len - len));
    }
    if (n != ARRAY_LEN(fields)) {
        return arena_printf(a,
                            "it has %zu fields, a schedule has five: minute, hour, day of "
                            "month, month, day of week (UTC)",
                            n);
    }
    return problem;
}

int64_t duration_seconds(const char *text)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
    int64_t total = 0;
    struct slice rest = slice_trim(slice_of(text));
    if (rest.len == 0) {
        return -1;
    }
    while (rest.len > 0) {
        size_t len = strspn(rest.p, "0123456789");
        uint64_t number;
        int64_t each = 0;
        for (size_t i = 0; i < ARRAY_LEN(units); i++) {
            each = len < rest.len && rest.p[len] == units[i].unit ? units[i].seconds : each;
        }
        if (each == 0 || slice_to_u64(slice_make(rest.p, len), &number) != 0 ||
            number > (uint64_t)(INT32_MAX - total) / (uint64_t)each) {
            return -1;
        }
        total += (int64_t)number * each;
        rest = slice_trim(slice_make(rest.p + len + 1, rest.len - len - 1));
    }
    return total;
}
