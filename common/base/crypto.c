#include "common/base/crypto.h"

#include <errno.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <sys/random.h>

enum { TAG_LEN = 16, NONCE_LEN = 12 };

struct sha256_run {
    EVP_MD_CTX *ctx;
};

void random_bytes(void *out, size_t len)
{
    uint8_t *at = out;
    while (len > 0) {
        ssize_t n = getrandom(at, len, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        must(n > 0);
        at += n;
        len -= (size_t)n;
    }
}

/* Looked up once: EVP_sha256() is searched for among all providers at every use. */
static EVP_MD *sha256_md;

static void fetch_sha256(void)
{
    sha256_md = EVP_MD_fetch(NULL, "SHA256", NULL);
    must(sha256_md != NULL);
}

static const EVP_MD *sha256_algorithm(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    must(pthread_once(&once, fetch_sha256) == 0);
    return sha256_md;
}

struct sha256 sha256_of(const void *p, size_t len)
{
    struct sha256 out;
    unsigned n = 0;
    must(EVP_Digest(len ? p : "", len, out.b, &n, sha256_algorithm(), NULL) == 1 &&
         n == sizeof out.b);
    return out;
}

struct sha256_run *sha256_start(void)
{
    struct sha256_run *r = xmalloc(sizeof *r);
    r->ctx = EVP_MD_CTX_new();
    must(r->ctx && EVP_DigestInit_ex(r->ctx, sha256_algorithm(), NULL) == 1);
    return r;
}

void sha256_add(struct sha256_run *r, const void *p, size_t len)
{
    if (len) {
        must(EVP_DigestUpdate(r->ctx, p, len) == 1);
    }
}

struct sha256 sha256_finish(struct sha256_run *r)
{
    struct sha256 out;
    unsigned n = 0;
    must(EVP_DigestFinal_ex(r->ctx, out.b, &n) == 1 && n == sizeof out.b);
    EVP_MD_CTX_free(r->ctx);
    free(r);
    return out;
}

void hmac_sha256(struct slice key, struct slice text, uint8_t out[32])
{
    unsigned n = 0;
    must(key.len <= INT_MAX);
    const void *k = key.len ? (const void *)key.p : "";
    const void *t = text.len ? (const void *)text.p : "";
    must(HMAC(EVP_sha256(), k, (int)key.len, t, text.len, out, &n) && n == 32);
}

bool crypto_equal(const void *a, const void *b, size_t len)
{
    return len == 0 || CRYPTO_memcmp(a, b, len) == 0;
}

void crypto_seal(const uint8_t key[32], const uint8_t nonce[12], struct slice plain,
                 struct buf *out)
{
    must(plain.len < INT_MAX - TAG_LEN);
    buf_reserve(out, plain.len + TAG_LEN);
    uint8_t *at = (uint8_t *)out->p + out->len;
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    int n = 0, tail = 0;
    must(ctx && EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, nonce) == 1);
    if (plain.len) {
        must(EVP_EncryptUpdate(ctx, at, &n, (const uint8_t *)plain.p, (int)plain.len) == 1);
    }
    must(EVP_EncryptFinal_ex(ctx, at + n, &tail) == 1 && (size_t)n + (size_t)tail == plain.len);
    must(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, TAG_LEN, at + plain.len) == 1);
    EVP_CIPHER_CTX_free(ctx);
    out->len += plain.len + TAG_LEN;
    out->p[out->len] = '\0';
}

int crypto_unseal(const uint8_t key[32], const uint8_t nonce[12], struct slice sealed,
                  struct buf *out)
{
    if (sealed.len < TAG_LEN || sealed.len > INT_MAX) {
        return -1;
    }
    size_t len = sealed.len - TAG_LEN;
    uint8_t tag[TAG_LEN];
    memcpy(tag, sealed.p + len, TAG_LEN);
    buf_reserve(out, len);
    uint8_t *at = (uint8_t *)out->p + out->len;
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    int n = 0, tail = 0;
    must(ctx && EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, nonce) == 1);
    if (len) {
        must(EVP_DecryptUpdate(ctx, at, &n, (const uint8_t *)sealed.p, (int)len) == 1);
    }
    must(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_SET_TAG, TAG_LEN, tag) == 1);
    bool good = EVP_DecryptFinal_ex(ctx, at + n, &tail) == 1;
    EVP_CIPHER_CTX_free(ctx);
    if (!good) {
        /* What did not verify must not be read by anyone. */
        OPENSSL_cleanse(at, len);
        out->p[out->len] = '\0';
        return -1;
    }
    out->len += len;
    out->p[out->len] = '\0';
    return 0;
}
