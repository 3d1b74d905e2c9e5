#include "common/conf/conf_internal.h"

struct unit {
    const char *name;
    int64_t factor;
};
static const struct unit ms_units[] = {{"", 1},         {"ms", 1},        {"s", 1000},
                                       {"min", 60000},  {"m", 60000},     {"h", 3600000},
                                       {"d", 86400000}, {"day", 86400000}};
static const struct unit byte_units[] = {{"", 1},
                                         {"B", 1},
                                         {"KB", 1000},
                                         {"kB", 1000},
                                         {"MB", 1000000},
                                         {"GB", 1000000000},
                                         {"TB", 1000000000000},
                                         {"KiB", 1024},
                                         {"MiB", 1048576},
                                         {"GiB", 1073741824},
                                         {"TiB", 1099511627776}};

void conf_value_range(const struct conf_item *item, int64_t *min, int64_t *max)
{
    bool any = item->min == 0 && item->max == 0;
    bool measure = item->type == CONF_MS || item->type == CONF_BYTES;
    *min = any ? (measure ? 0 : INT64_MIN) : item->min;
    *max = any ? INT64_MAX : item->max;
}

/* "10s": a whole number and a unit, blanks between allowed. */
static int parse_measure(const char *text, const struct unit *units, size_t n, int64_t *out)
{
    struct slice all = slice_trim(slice_of(text));
    size_t digits = 0;
    while (digits < all.len && all.p[digits] >= '0' && all.p[digits] <= '9') {
        digits++;
    }
    int64_t number;
    if (slice_to_i64(slice_make(all.p, digits), &number) < 0) {
        return -1;
    }
    struct slice name = slice_trim(slice_make(all.p + digits, all.len - digits));
    for (size_t i = 0; i < n; i++) {
        if (slice_is(name, units[i].name)) {
            return __builtin_mul_overflow(number, units[i].factor, out) ? -1 : 0;
        }
    }
    return -1;
}

static int parse_bool(const char *text, bool *out)
{
    static const char *const yes[] = {"1", "true", "yes", "on"};
    static const char *const no[] = {"0", "false", "no", "off"};
    for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
        if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
            *out = strcmp(text, yes[i]) == 0;
            return 0;
        }
    }
    return -1;
}

static bool word_known(const char *words, const char *text)
{
    struct slice rest = slice_of(words);
    struct slice word;
    while (slice_cut(&rest, '|', &word)) {
        if (slice_is(word, text)) {
            return true;
        }
    }
    return false;
}

static bool is_text(enum conf_type type)
{
    return type == CONF_STR || type == CONF_ENUM;
}

/* Number of the value, in milliseconds or bytes; -1 when it is none or out of range. */
static int read_number(const struct conf_item *item, const struct conf_found *f, int64_t *out)
{
    int rc = -1;
    if (f->toml && f->toml->kind == TOML_INT) {
        *out = f->toml->i;
        rc = 0;
    } else if (f->toml && (f->toml->kind != TOML_STRING || item->type == CONF_INT)) {
        return -1;
    } else if (item->type == CONF_INT) {
        rc = slice_to_i64(slice_trim(slice_of(f->text)), out);
    } else if (item->type == CONF_MS) {
        rc = parse_measure(f->text, ms_units, ARRAY_LEN(ms_units), out);
    } else {
        rc = parse_measure(f->text, byte_units, ARRAY_LEN(byte_units), out);
    }
    int64_t min, max;
    conf_value_range(item, &min, &max);
    return rc == 0 && *out >= min && *out <= max ? 0 : -1;
}

static int read_bool(const struct conf_found *f, bool *out)
{
    if (!f->toml) {
        return parse_bool(f->text, out);
    }
    *out = f->toml->i != 0;
    return f->toml->kind == TOML_BOOL ? 0 : -1;
}

static int read_text(const struct conf_item *item, const struct conf_found *f, const char **out)
{
    if (f->toml && f->toml->kind != TOML_STRING) {
        return -1;
    }
    *out = f->text;
    return item->type != CONF_ENUM || word_known(item->words, f->text) ? 0 : -1;
}

static int store(struct conf_run *r, const struct conf_item *item, const struct conf_found *f)
{
    void *at = r->settings + item->offset;
    if (is_text(item->type)) {
        const char *text;
        if (read_text(item, f, &text) < 0) {
            return -1;
        }
        text = arena_strdup(r->arena, text);
        memcpy(at, &text, sizeof text);
        return 0;
    }
    if (item->type == CONF_BOOL) {
        bool flag;
        if (read_bool(f, &flag) < 0) {
            return -1;
        }
        memcpy(at, &flag, sizeof flag);
        return 0;
    }
    int64_t number;
    if (read_number(item, f, &number) < 0) {
        return -1;
    }
    memcpy(at, &number, sizeof number);
    return 0;
}

/* What was written, for an error: a secret never shows. */
static void add_found(const struct conf_item *item, const struct conf_found *f, struct buf *out)
{
    if (item->flags & CONF_SECRET) {
        buf_add_str(out, "***");
    } else if (!f->toml || f->toml->kind == TOML_STRING) {
        buf_addf(out, "\"%.80s\"", f->text);
    } else if (f->toml->kind == TOML_INT) {
        buf_addf(out, "%lld", (long long)f->toml->i);
    } else if (f->toml->kind == TOML_BOOL) {
        buf_add_str(out, f->toml->i ? "true" : "false");
    } else if (f->toml->kind == TOML_FLOAT) {
        buf_addf(out, "%g", f->toml->d);
    } else {
        buf_add_str(out, f->toml->kind == TOML_TABLE   ? "a table"
                         : f->toml->kind == TOML_ARRAY ? "a list"
                                                       : "a date or time");
    }
}

static void add_remedy(const struct conf_item *item, struct buf *out)
{
    if (item->def) {
        buf_addf(out, "correct it, or leave it out for the default %s",
                 item->def[0] ? item->def : "\"\"");
    } else if (item->flags & CONF_REQUIRED) {
        buf_add_str(out, "correct it");
    } else {
        buf_add_str(out, "correct it, or leave it out");
    }
}

static void refuse(struct conf_run *r, const struct conf_item *item, const struct conf_found *f)
{
    auto_buf struct buf found = {0};
    auto_buf struct buf allowed = {0};
    auto_buf struct buf remedy = {0};
    add_found(item, f, &found);
    conf_value_allowed(item, &allowed);
    add_remedy(item, &remedy);
    conf_complain(r, f->place, "%s is %s, but must be %s: %s", item->key, buf_str(&found),
                  buf_str(&allowed), buf_str(&remedy));
}

void conf_value_apply(struct conf_run *r, size_t item, const struct conf_found *found)
{
    if (store(r, &r->spec->items[item], found) < 0) {
        refuse(r, &r->spec->items[item], found);
        return;
    }
    r->sources[item] = arena_strdup(r->arena, found->source);
}
