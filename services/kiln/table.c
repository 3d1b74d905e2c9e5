#include "services/kiln/table.h"
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define GAP 2   /* blanks between columns */
#define LEAST 6 /* a column is not cut below this */
#define ELLIPSIS "\xe2\x80\xa6"

/* ---- widths ---- */
struct range {
    uint32_t from, to;
};
static const struct range no_width[] = {{0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},
                                        {0x610, 0x61a},   {0x64b, 0x65f},   {0x200b, 0x200f},
                                        {0x20d0, 0x20f0}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};
static const struct range two_wide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},  {0x3041, 0xa4cf},
                                        {0xac00, 0xd7a3},   {0xf900, 0xfaff},  {0xfe30, 0xfe6f},
                                        {0xff00, 0xff60},   {0xffe0, 0xffe6},  {0x1f300, 0x1f64f},
                                        {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};

static bool in_ranges(uint32_t c, const struct range *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (c >= r[i].from && c <= r[i].to) {
            return true;
        }
    }
    return false;
}

/* The next code point of text at *at; a stray byte counts as itself. */
static uint32_t next_point(struct slice text, size_t *at)
{
    unsigned char c = (unsigned char)text.p[(*at)++];
    size_t more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;
    uint32_t point = more == 3 ? c & 0x07 : more == 2 ? c & 0x0f : more == 1 ? c & 0x1f : c;
    for (; more > 0 && *at < text.len && ((unsigned char)text.p[*at] & 0xc0) == 0x80; more--) {
        point = point << 6 | ((unsigned char)text.p[(*at)++] & 0x3f);
    }
    return point;
}

static size_t point_width(uint32_t c)
{
    if (in_ranges(c, no_width, ARRAY_LEN(no_width))) {
        return 0;
    }
    return in_ranges(c, two_wide, ARRAY_LEN(two_wide)) ? 2 : 1;
}

size_t text_width(struct slice text)
{
    size_t width = 0;
    for (size_t at = 0; at < text.len;) {
        width += point_width(next_point(text, &at));
    }
    return width;
}

/* How many bytes of text fit into `width` columns. */
static size_t bytes_that_fit(struct slice text, size_t width)
{
    size_t at = 0;
    for (size_t used = 0; at < text.len;) {
        size_t next = at;
        used += point_width(next_point(text, &next));
        if (used > width) {
            break;
        }
        at = next;
    }
    return at;
}

size_t terminal_width(int fd)
{
    struct winsize size = {0};
    if (!isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) || size.ws_col == 0) {
        return 0;
    }
    return size.ws_col;
}

/* ---- cells ---- */
void table_init(struct table *t, const char *const *heads, size_t columns)
{
    *t = (struct table){.columns = columns};
    arena_init(&t->arena);
    for (size_t i = 0; i < columns; i++) {
        table_add(t, heads[i]);
    }
}

void table_fini(struct table *t)
{
    arena_fini(&t->arena);
    free(t->cells);
    *t = (struct table){0};
}

static void add_shown(struct buf *out, struct slice text)
{
    for (size_t at = 0; at < text.len;) {
        size_t from = at;
        uint32_t c = next_point(text, &at);
        if (c == '\n' || c == '\t' || c == '\r') {
            buf_add_str(out, c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r");
        } else if (c < 0x20 || (c >= 0x7f && c < 0xa0)) {
            buf_addf(out, "\\x%02x", c);
        } else {
            buf_add(out, text.p + from, at - from);
        }
    }
}

void table_add_slice(struct table *t, struct slice text)
{
    auto_buf struct buf shown = {0};
    add_shown(&shown, text);
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 64;
        t->cells = xrealloc(t->cells, t->cap * sizeof(*t->cells));
    }
    t->cells[t->n++] = arena_strdup(&t->arena, buf_str(&shown));
}

void table_add(struct table *t, const char *text)
{
    table_add_slice(t, slice_of(text));
}

void table_addf(struct table *t, const char *fmt, ...)
{
    auto_buf struct buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    table_add_slice(t, buf_slice(&text));
}

/* ---- layout ---- */
static bool is_number(const char *text)
{
    char *end = NULL;
    size_t digits = strspn(text, "+-.0123456789eE");
    return text[0] && digits == strlen(text) && (strtod(text, &end), *end == '\0');
}

/* Right-aligned: every cell below the head is a number or empty, and one is a number. */
static bool is_numeric(const struct table *t, size_t column)
{
    bool any = false;
    for (size_t i = t->columns + column; i < t->n; i += t->columns) {
        bool number = is_number(t->cells[i]);
        if (!number && t->cells[i][0] && strcmp(t->cells[i], "null") != 0) {
            return false;
        }
        any = any || number;
    }
    return any;
}

static size_t widest(const size_t *widths, size_t n)
{
    size_t at = 0;
    for (size_t i = 1; i < n; i++) {
        at = widths[i] > widths[at] ? i : at;
    }
    return at;
}

static void fit(size_t *widths, size_t n, size_t limit)
{
    size_t total = n ? (n - 1) * GAP : 0;
    for (size_t i = 0; i < n; i++) {
        total += widths[i];
    }
    while (total > limit) {
        size_t at = widest(widths, n);
        if (widths[at] <= LEAST) {
            return;
        }
        widths[at]--;
        total--;
    }
}

static void pad(struct buf *out, size_t n)
{
    for (; n > 0; n--) {
        buf_add_char(out, ' ');
    }
}

static void print_cell(const char *text, size_t width, bool right, bool last, struct buf *out)
{
    struct slice s = slice_of(text);
    size_t used = text_width(s);
    auto_buf struct buf cut = {0};
    if (used > width) {
        buf_add(&cut, s.p, bytes_that_fit(s, width - 1));
        used = text_width(buf_slice(&cut)) + 1;
        buf_add_str(&cut, ELLIPSIS);
        s = buf_slice(&cut);
    }
    if (right) {
        pad(out, width - used);
    }
    buf_add_slice(out, s);
    if (!right && !last) {
        pad(out, width - used);
    }
    if (!last) {
        pad(out, GAP);
    }
}

/* How much of text goes into one line of `width`: up to a blank where there is one. */
static size_t line_len(struct slice text, size_t width)
{
    size_t fits = bytes_that_fit(text, width);
    if (fits == text.len) {
        return fits;
    }
    for (size_t at = fits; at > 0; at--) {
        if (text.p[at] == ' ') {
            return at;
        }
    }
    return fits ? fits : text.len;
}

static void print_wrapped(const char *text, size_t width, size_t indent, struct buf *out)
{
    struct slice rest = slice_of(text);
    do {
        size_t len = line_len(rest, width);
        buf_add(out, rest.p, len);
        rest = slice_trim(slice_make(rest.p + len, rest.len - len));
        if (rest.len) {
            buf_add_char(out, '\n');
            pad(out, indent);
        }
    } while (rest.len);
}

static size_t indent_of(const size_t *widths, size_t columns)
{
    size_t n = 0;
    for (size_t i = 0; i + 1 < columns; i++) {
        n += widths[i] + GAP;
    }
    return n;
}

static void print_rule(const size_t *widths, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < widths[i]; k++) {
            buf_add_char(out, '-');
        }
        pad(out, i + 1 < n ? GAP : 0);
    }
    buf_add_char(out, '\n');
}

void table_print(const struct table *t, size_t width, struct buf *out)
{
    if (t->columns == 0) {
        return;
    }
    auto_free size_t *widths = xcalloc(t->columns, sizeof(*widths));
    auto_free bool *right = xcalloc(t->columns, sizeof(*right));
    for (size_t i = 0; i < t->n; i++) {
        size_t w = text_width(slice_of(t->cells[i]));
        widths[i % t->columns] = w > widths[i % t->columns] ? w : widths[i % t->columns];
    }
    for (size_t i = 0; i < t->columns; i++) {
        right[i] = is_numeric(t, i);
    }
    if (width) {
        fit(widths, t->columns, width);
    }
    for (size_t i = 0; i < t->n; i++) {
        size_t column = i % t->columns;
        bool last = column + 1 == t->columns;
        if (last && t->wraps && widths[column] > 0) {
            print_wrapped(t->cells[i], widths[column], indent_of(widths, t->columns), out);
        } else {
            print_cell(t->cells[i], widths[column], right[column], last, out);
        }
        if (last) {
            buf_add_char(out, '\n');
        }
        if (i + 1 == t->columns) {
            print_rule(widths, t->columns, out);
        }
    }
}
