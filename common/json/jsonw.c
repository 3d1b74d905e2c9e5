#include "common/json/json.h"

/* Bytes of the well-formed UTF-8 character at the front of s; 0 when there is none (overlong forms,
 * surrogates and values past U+10FFFF included). */
static size_t utf8_len(struct slice s)
{
    const unsigned char *p = (const unsigned char *)s.p;
    unsigned char lead = p[0];
    if (lead < 0x80) {
        return 1;
    }
    size_t n = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || s.len < n) {
        return 0;
    }
    unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (p[1] < low || p[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return n;
}

static void add_escape(struct buf *out, unsigned char c)
{
    static const char letters[] = "btn?fr"; /* 0x08 to 0x0d */
    if (c == '"' || c == '\\') {
        buf_add_char(out, '\\');
        buf_add_char(out, (char)c);
    } else if (c >= 0x08 && c <= 0x0d && c != 0x0b) {
        buf_add_char(out, '\\');
        buf_add_char(out, letters[c - 0x08]);
    } else {
        buf_addf(out, "\\u%04x", c);
    }
}

void jsonw_escaped(struct buf *out, struct slice text)
{
    size_t plain = 0; /* start of what is copied as it is */
    size_t at = 0;
    while (at < text.len) {
        unsigned char c = (unsigned char)text.p[at];
        bool escape = c < 0x20 || c == '"' || c == '\\';
        size_t n = escape ? 1 : utf8_len(slice_make(text.p + at, text.len - at));
        if (!escape && n) {
            at += n;
            continue;
        }
        buf_add(out, text.p + plain, at - plain);
        if (escape) {
            add_escape(out, c);
        } else {
            buf_add_str(out, "\xef\xbf\xbd");
        }
        at++;
        plain = at;
    }
    buf_add(out, text.len ? text.p + plain : NULL, at - plain);
}

void jsonw_str(struct buf *out, struct slice text)
{
    buf_add_char(out, '"');
    jsonw_escaped(out, text);
    buf_add_char(out, '"');
}
