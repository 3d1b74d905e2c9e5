#include "services/planner/package/package.h"

enum { REPLAY_WINDOW_S = 300, ID_MAX = 200 };

static int refuse(struct err *e, const char *why)
{
    return err_set(e, ERR_TOKEN, "webhook refused: %s", why);
}

/* Without a full stop: it separates id and timestamp in the signed text, which would have two
 * readings otherwise. */
static bool is_good_id(struct slice id)
{
    for (size_t i = 0; i < id.len; i++) {
        if (id.p[i] <= ' ' || id.p[i] > '~' || id.p[i] == '.') {
            return false;
        }
    }
    return id.len > 0 && id.len <= ID_MAX;
}

/* The header is a list: "v1,<base64> v1,<base64>" while keys are being changed. Other versions are
 * passed over. */
static bool any_v1_is(struct slice list, const uint8_t want[32])
{
    struct slice rest = list, item;
    bool found = false;
    while (slice_cut(&rest, ' ', &item)) {
        auto_buf struct buf given = {0};
        if (slice_starts(item, SLICE("v1,")) &&
            base64_decode(slice_make(item.p + 3, item.len - 3), &given) == 0 && given.len == 32 &&
            crypto_equal(given.p, want, 32)) {
            found = true;
        }
    }
    return found;
}

static int check_time(struct slice text, int64_t now_unix, struct err *e)
{
    int64_t at = 0;
    if (slice_to_i64(text, &at) < 0 || at < 0) {
        return refuse(e, "webhook-timestamp is no unix time in seconds");
    }
    if (at < now_unix - REPLAY_WINDOW_S || at > now_unix + REPLAY_WINDOW_S) {
        return err_set(
            e, ERR_STALE,
            "webhook refused: webhook-timestamp is more than 5 minutes from this host's clock");
    }
    return 0;
}

static int verify_standard(const char *secret, const struct webhook_headers *h, struct slice body,
                           int64_t now_unix, struct slice *id, struct err *e)
{
    struct slice given = slice_trim(h->id), time = slice_trim(h->timestamp);
    if (!is_good_id(given)) {
        return refuse(e, "webhook-id is missing or not a plain id");
    }
    struct slice key_text = slice_of(secret);
    if (slice_starts(key_text, SLICE("whsec_"))) {
        key_text = slice_make(key_text.p + 6, key_text.len - 6);
    }
    auto_buf struct buf key = {0};
    if (base64_decode(key_text, &key) < 0 || key.len == 0) {
        return refuse(
            e, "KILN_WEBHOOK_SECRET is not 'whsec_' and base64, which webhook-signature needs");
    }
    auto_buf struct buf text = {0};
    buf_addf(&text, "%.*s.%.*s.", SLICE_FMT(given), SLICE_FMT(time));
    buf_add_slice(&text, body);
    uint8_t want[32];
    hmac_sha256(buf_slice(&key), buf_slice(&text), want);
    if (!any_v1_is(slice_trim(h->signature), want)) {
        return refuse(e, "webhook-signature does not match the body and KILN_WEBHOOK_SECRET");
    }
    int rc = check_time(time, now_unix, e);
    if (rc == 0) {
        *id = given;
    }
    return rc;
}

/* GitHub sends no timestamp: its deliveries are told apart by their id alone (decisions 7.5). */
static int verify_github(const char *secret, const struct webhook_headers *h, struct slice body,
                         struct slice *id, struct err *e)
{
    struct slice given = slice_trim(h->github_delivery), sum = slice_trim(h->github_signature);
    if (!is_good_id(given)) {
        return refuse(e, "X-GitHub-Delivery is missing or not a plain id");
    }
    uint8_t have[32], want[32];
    if (!slice_starts(sum, SLICE("sha256=")) ||
        hex_decode(slice_make(sum.p + 7, sum.len - 7), have, sizeof have) < 0) {
        return refuse(e, "X-Hub-Signature-256 is not 'sha256=' and 64 hex digits");
    }
    hmac_sha256(slice_of(secret), body, want);
    if (!crypto_equal(have, want, sizeof want)) {
        return refuse(e, "X-Hub-Signature-256 does not match the body and KILN_WEBHOOK_SECRET");
    }
    *id = given;
    return 0;
}

int webhook_verify(const char *secret, const struct webhook_headers *h, struct slice body,
                   int64_t now_unix, struct slice *id, struct err *e)
{
    if (!secret || !secret[0]) {
        return refuse(e, "no KILN_WEBHOOK_SECRET is set to check its signature with");
    }
    if (h->signature.len > 0) {
        return verify_standard(secret, h, body, now_unix, id, e);
    }
    if (h->github_signature.len > 0) {
        return verify_github(secret, h, body, id, e);
    }
    return refuse(e, "it has neither webhook-signature nor X-Hub-Signature-256");
}
