/* The HTTP parser: any bytes, whole and in small pieces, give the same requests and never a byte
 * too many. */
#include "common/base/crypto.h"
#include "common/http/http_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD_LIMIT = 2048, BODY_LIMIT = 4096 };

static void note_request(struct http_parse *p, struct sha256_run *seen)
{
    struct slice path;
    struct slice query;
    http_parse_target(http_parse_url(p), &path, &query);
    struct slice host = http_parse_header(p, "Host");
    must(p->body.len <= BODY_LIMIT && p->text.len <= HEAD_LIMIT);
    sha256_add(seen, path.p, path.len);
    sha256_add(seen, query.p, query.len);
    sha256_add(seen, host.p, host.len);
    sha256_add(seen, buf_str(&p->body), p->body.len);
}

/* The digest of all requests in the bytes, fed `step` at a time. */
static struct sha256 digest(const char *bytes, size_t size, size_t step, int *n, bool *too_long)
{
    struct http_parse p;
    struct sha256_run *seen = sha256_start();
    http_parse_init(&p, HEAD_LIMIT, BODY_LIMIT);
    *n = 0;
    for (size_t at = 0; at < size && p.state != HTTP_PARSE_FAILED;) {
        size_t len = step < size - at ? step : size - at;
        size_t used = http_parse_feed(&p, bytes + at, len);
        must(used <= len && (used == len || p.state == HTTP_PARSE_WHOLE));
        at += used;
        if (p.state == HTTP_PARSE_WHOLE) {
            note_request(&p, seen);
            (*n)++;
            if (!p.keep_alive) {
                break;
            }
            http_parse_reset(&p);
        }
    }
    *too_long = p.state == HTTP_PARSE_FAILED && p.fail_status == 431;
    http_parse_fini(&p);
    return sha256_finish(seen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    const char *bytes = (const char *)data + 1;
    size_t step = 1 + data[0] % 64;
    int n_whole;
    int n_pieces;
    bool long_whole;
    bool long_pieces;
    struct sha256 whole = digest(bytes, size - 1, size, &n_whole, &long_whole);
    struct sha256 pieces = digest(bytes, size - 1, step, &n_pieces, &long_pieces);
    /* How long a head may be depends a little on how its bytes arrive; what is a request does not.
     */
    if (!long_whole && !long_pieces) {
        must(n_whole == n_pieces);
        must(memcmp(&whole, &pieces, sizeof(whole)) == 0);
    }
    return 0;
}
