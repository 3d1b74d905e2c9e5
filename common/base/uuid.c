/* Identifiers: random UUIDs (version 4) and Crockford ULIDs. */
#include "common/base/crypto.h"

struct uuid uuid_random(void)
{
    struct uuid u;
    random_bytes(u.b, sizeof u.b);
    u.b[6] = (uint8_t)((u.b[6] & 0x0f) | 0x40);
    u.b[8] = (uint8_t)((u.b[8] & 0x3f) | 0x80);
    return u;
}

static bool hyphen_before(size_t byte)
{
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

void uuid_format(const struct uuid *u, char out[UUID_TEXT])
{
    char *at = out;
    for (size_t i = 0; i < sizeof u->b; i++) {
        if (hyphen_before(i)) {
            *at++ = '-';
        }
        hex_encode(&u->b[i], 1, at);
        at += 2;
    }
}

int uuid_parse(struct slice text, struct uuid *out)
{
    if (text.len != UUID_TEXT - 1) {
        return -1;
    }
    struct uuid u;
    const char *at = text.p;
    for (size_t i = 0; i < sizeof u.b; i++) {
        if (hyphen_before(i) && *at++ != '-') {
            return -1;
        }
        if (hex_decode(slice_make(at, 2), &u.b[i], 1) < 0) {
            return -1;
        }
        at += 2;
    }
    *out = u;
    return 0;
}

bool uuid_eq(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a->b, b->b, sizeof a->b) == 0;
}

bool id16_is_zero(const uint8_t id[16])
{
    static const uint8_t zero[16];
    return memcmp(id, zero, sizeof(zero)) == 0;
}

void ulid_format(uint64_t unix_ms, const uint8_t random[10], char out[ULID_TEXT])
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    for (int i = 9; i >= 0; i--) {
        out[i] = digits[unix_ms & 31];
        unix_ms >>= 5;
    }
    /* 80 bits are 16 digits of 5; five bytes make eight of them. */
    for (size_t half = 0; half < 2; half++) {
        uint64_t v = 0;
        for (size_t i = 0; i < 5; i++) {
            v = v << 8 | random[half * 5 + i];
        }
        for (size_t i = 8; i-- > 0;) {
            out[10 + half * 8 + i] = digits[v & 31];
            v >>= 5;
        }
    }
    out[ULID_TEXT - 1] = '\0';
}
