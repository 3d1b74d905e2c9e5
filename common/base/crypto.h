/* Digests, signatures, sealing, random bytes and their text forms: the only file over libcrypto is
 * crypto.c. */
#pragma once
#include "common/base/buf.h"

struct sha256 {
    uint8_t b[32];
};
struct uuid {
    uint8_t b[16];
};
struct sha256_run; /* incremental digest */

void random_bytes(void *out, size_t len); /* aborts when the system has none */
struct sha256 sha256_of(const void *p, size_t len);
struct sha256_run *sha256_start(void) MUST_USE;
void sha256_add(struct sha256_run *r, const void *p, size_t len);
struct sha256 sha256_finish(struct sha256_run *r); /* frees r */
void hmac_sha256(struct slice key, struct slice text, uint8_t out[32]);
bool crypto_equal(const void *a, const void *b, size_t len); /* constant time */

/* AES-256-GCM. Out is ciphertext followed by the 16-byte tag. unseal: 0, or -1 when key or text are
 * wrong. */
void crypto_seal(const uint8_t key[32], const uint8_t nonce[12], struct slice plain,
                 struct buf *out);
int crypto_unseal(const uint8_t key[32], const uint8_t nonce[12], struct slice sealed,
                  struct buf *out) MUST_USE;

void hex_encode(const void *p, size_t len, char *out); /* 2*len + NUL */
int hex_decode(struct slice text, uint8_t *out,
               size_t len) MUST_USE; /* exactly len bytes, else -1 */
void base64_encode(struct slice in, struct buf *out);
int base64_decode(struct slice in, struct buf *out)
    MUST_USE; /* standard alphabet, padding optional; -1 on rubbish */

#define UUID_TEXT 37
#define ULID_TEXT 27
struct uuid uuid_random(void);
void uuid_format(const struct uuid *u, char out[UUID_TEXT]);
int uuid_parse(struct slice text, struct uuid *out) MUST_USE; /* 36 characters, else -1 */
bool uuid_eq(const struct uuid *a, const struct uuid *b);
bool id16_is_zero(const uint8_t id[16]); /* of a UUID or of a request or trace id: none */
/* Crockford ULID from unix milliseconds and 80 random bits (given, so that core code stays pure).
 */
void ulid_format(uint64_t unix_ms, const uint8_t random[10], char out[ULID_TEXT]);
