/* Hex and base64. */
#include "common/base/crypto.h"

static const char hex_digits[] = "0123456789abcdef";
static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void hex_encode(const void *p, size_t len, char *out)
{
    const uint8_t *b = p;
    for (size_t i = 0; i < len; i++) {
        out[2 * i] = hex_digits[b[i] >> 4];
        out[2 * i + 1] = hex_digits[b[i] & 15];
    }
    out[2 * len] = '\0';
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int hex_decode(struct slice text, uint8_t *out, size_t len)
{
    if (text.len != 2 * len) {
        return -1;
    }
    for (size_t i = 0; i < len; i++) {
        int high = hex_value(text.p[2 * i]);
        int low = hex_value(text.p[2 * i + 1]);
        if (high < 0 || low < 0) {
            return -1;
        }
        out[i] = (uint8_t)(high << 4 | low);
    }
    return 0;
}

void base64_encode(struct slice in, struct buf *out)
{
    buf_reserve(out, (in.len + 2) / 3 * 4);
    for (size_t i = 0; i < in.len; i += 3) {
        size_t n = in.len - i < 3 ? in.len - i : 3;
        uint8_t b[3] = {0};
        memcpy(b, in.p + i, n);
        uint32_t v = (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
        char quad[4] = {base64_digits[v >> 18], base64_digits[v >> 12 & 63],
                        n > 1 ? base64_digits[v >> 6 & 63] : '=',
                        n > 2 ? base64_digits[v & 63] : '='};
        buf_add(out, quad, sizeof quad);
    }
}

static int base64_value(char c)
{
    const char *at = c ? strchr(base64_digits, c) : NULL;
    return at ? (int)(at - base64_digits) : -1;
}

/* 2, 3 or 4 digits into 1, 2 or 3 bytes; bits that belong to no byte must be zero. */
static int base64_quad(const char *p, size_t n, struct buf *out)
{
    uint32_t v = 0;
    for (size_t i = 0; i < 4; i++) {
        int digit = i < n ? base64_value(p[i]) : 0;
        if (digit < 0) {
            return -1;
        }
        v = v << 6 | (uint32_t)digit;
    }
    const uint8_t b[3] = {(uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
    if ((n == 2 && (v & 0xffff) != 0) || (n == 3 && (v & 0xff) != 0)) {
        return -1;
    }
    buf_add(out, b, n - 1);
    return 0;
}

int base64_decode(struct slice in, struct buf *out)
{
    size_t before = out->len;
    size_t pad = 0;
    while (pad < 2 && in.len > 0 && in.p[in.len - 1] == '=') {
        in.len--;
        pad++;
    }
    if (in.len % 4 == 1 || (pad && (in.len + pad) % 4 != 0)) {
        return -1;
    }
    buf_reserve(out, in.len / 4 * 3 + 3);
    for (size_t i = 0; i < in.len; i += 4) {
        size_t n = in.len - i < 4 ? in.len - i : 4;
        if (base64_quad(in.p + i, n, out) < 0) {
            out->len = before;
            out->p[before] = '\0';
            return -1;
        }
    }
    return 0;
}
