#include "common/base/crypto.h"
#include "tests/support/suite.h"

static void assert_hex(const void *p, size_t len, const char *hex)
{
    char text[129];
    ck_assert_uint_le(len, 64);
    hex_encode(p, len, text);
    ck_assert_str_eq(text, hex);
}

START_TEST(sha256_gives_the_published_digests)
{
    struct sha256 d = sha256_of(NULL, 0);
    assert_hex(d.b, 32, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    d = sha256_of("abc", 3);
    assert_hex(d.b, 32, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    struct sha256_run *r = sha256_start();
    sha256_add(r, "a", 1);
    sha256_add(r, NULL, 0);
    sha256_add(r, "bc", 2);
    struct sha256 pieces = sha256_finish(r);
    ck_assert_mem_eq(pieces.b, d.b, 32);
}
END_TEST

/* RFC 4231, test cases 2 and 6. */
START_TEST(hmac_gives_the_published_signatures)
{
    uint8_t mac[32];
    hmac_sha256(SLICE("Jefe"), SLICE("what do ya want for nothing?"), mac);
    assert_hex(mac, 32, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    uint8_t long_key[131];
    memset(long_key, 0xaa, sizeof long_key);
    hmac_sha256(slice_make(long_key, sizeof long_key),
                SLICE("Test Using Larger Than Block-Size Key - Hash Key First"), mac);
    assert_hex(mac, 32, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    hmac_sha256(SLICE_NONE, SLICE_NONE, mac);
    assert_hex(mac, 32, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}
END_TEST

/* The GCM specification's test cases 13 and 14: a zero key, a zero nonce. */
START_TEST(sealing_gives_the_published_ciphertext)
{
    const uint8_t key[32] = {0};
    const uint8_t nonce[12] = {0};
    const uint8_t zeros[16] = {0};
    auto_buf struct buf out = {0};
    crypto_seal(key, nonce, SLICE_NONE, &out);
    assert_hex(out.p, out.len, "530f8afbc74536b9a963b4f1c4cb738b");
    buf_clear(&out);
    crypto_seal(key, nonce, slice_make(zeros, 16), &out);
    assert_hex(out.p, out.len, "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919");
}
END_TEST

START_TEST(unsealing_refuses_any_changed_byte_and_writes_nothing)
{
    uint8_t key[32], nonce[12];
    random_bytes(key, sizeof key);
    random_bytes(nonce, sizeof nonce);
    auto_buf struct buf sealed = {0};
    auto_buf struct buf out = {0};
    crypto_seal(key, nonce, SLICE("password"), &sealed);
    buf_add_str(&out, "kept:");
    for (size_t i = 0; i < sealed.len; i++) {
        sealed.p[i] = (char)(sealed.p[i] ^ 1);
        ck_assert_int_eq(crypto_unseal(key, nonce, buf_slice(&sealed), &out), -1);
        ck_assert_str_eq(buf_str(&out), "kept:");
        sealed.p[i] = (char)(sealed.p[i] ^ 1);
    }
    ck_assert_int_eq(crypto_unseal(key, nonce, slice_make(sealed.p, 15), &out), -1);
    ck_assert_int_eq(crypto_unseal(key, nonce, SLICE_NONE, &out), -1);
    key[0] ^= 1;
    ck_assert_int_eq(crypto_unseal(key, nonce, buf_slice(&sealed), &out), -1);
    key[0] ^= 1;
    ck_assert_int_eq(crypto_unseal(key, nonce, buf_slice(&sealed), &out), 0);
    ck_assert_str_eq(buf_str(&out), "kept:password");
}
END_TEST

START_TEST(comparison_tells_equal_from_unequal)
{
    ck_assert(crypto_equal("abc", "abc", 3));
    ck_assert(!crypto_equal("abc", "abd", 3));
    ck_assert(crypto_equal(NULL, NULL, 0));
}
END_TEST

START_TEST(hex_reads_both_cases_and_exact_lengths_only)
{
    uint8_t b[2] = {0};
    ck_assert_int_eq(hex_decode(SLICE("fF0a"), b, 2), 0);
    ck_assert_uint_eq(b[0], 0xff);
    ck_assert_uint_eq(b[1], 0x0a);
    ck_assert_int_eq(hex_decode(SLICE("ff0"), b, 2), -1);
    ck_assert_int_eq(hex_decode(SLICE("ff0a0"), b, 2), -1);
    ck_assert_int_eq(hex_decode(SLICE("fg0a"), b, 2), -1);
    ck_assert_int_eq(hex_decode(SLICE_NONE, b, 0), 0);
}
END_TEST

/* RFC 4648, section 10. */
START_TEST(base64_gives_the_published_texts_both_ways)
{
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        auto_buf struct buf text = {0};
        base64_encode(slice_of(pairs[i][0]), &text);
        ck_assert_str_eq(buf_str(&text), pairs[i][1]);
        auto_buf struct buf back = {0};
        ck_assert_int_eq(base64_decode(buf_slice(&text), &back), 0);
        ck_assert_str_eq(buf_str(&back), pairs[i][0]);
    }
    auto_buf struct buf bare = {0};
    ck_assert_int_eq(base64_decode(SLICE("Zm8"), &bare), 0);
    ck_assert_str_eq(buf_str(&bare), "fo");
}
END_TEST

START_TEST(base64_refuses_rubbish_and_writes_nothing)
{
    static const char *const bad[] = {"Z",    "Zg=",   "Zm9v=", "Zm8==",  "Z===",      "====",
                                      "Zm 8", "Zm9-_", "Zh==",  "Zm9v\n", "Zm9vZm9=v", "="};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        auto_buf struct buf out = {0};
        buf_add_str(&out, "kept");
        ck_assert_msg(base64_decode(slice_of(bad[i]), &out) == -1, "took %s", bad[i]);
        ck_assert_str_eq(buf_str(&out), "kept");
    }
    auto_buf struct buf out = {0};
    ck_assert_int_eq(base64_decode(SLICE("Zm\0v"), &out), -1);
}
END_TEST

START_TEST(uuids_are_version_four_and_survive_their_text)
{
    struct uuid a = uuid_random();
    struct uuid b = uuid_random();
    ck_assert(!uuid_eq(&a, &b));
    ck_assert_uint_eq(a.b[6] >> 4, 4);
    ck_assert_uint_eq(a.b[8] >> 6, 2);
    char text[UUID_TEXT];
    uuid_format(&a, text);
    ck_assert_uint_eq(strlen(text), UUID_TEXT - 1);
    ck_assert_int_eq(uuid_parse(slice_of(text), &b), 0);
    ck_assert(uuid_eq(&a, &b));
}
END_TEST

START_TEST(uuid_texts_are_read_strictly)
{
    struct uuid u = {{0}};
    ck_assert_int_eq(uuid_parse(SLICE("00112233-4455-6677-8899-AABBCCDDEEFF"), &u), 0);
    assert_hex(u.b, 16, "00112233445566778899aabbccddeeff");
    ck_assert_int_eq(uuid_parse(SLICE("00112233445566778899aabbccddeeff"), &u), -1);
    ck_assert_int_eq(uuid_parse(SLICE("00112233-4455-6677-8899_aabbccddeeff"), &u), -1);
    ck_assert_int_eq(uuid_parse(SLICE("0011223--4455-6677-8899-aabbccddeeff"), &u), -1);
    ck_assert_int_eq(uuid_parse(SLICE("00112233-4455-6677-8899-aabbccddeef"), &u), -1);
    ck_assert_int_eq(uuid_parse(SLICE_NONE, &u), -1);
}
END_TEST

START_TEST(ulids_sort_by_time_and_hold_all_bits)
{
    uint8_t random[10];
    char text[ULID_TEXT];
    memset(random, 0xff, sizeof random);
    ulid_format((1ull << 48) - 1, random, text);
    ck_assert_str_eq(text, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
    memset(random, 0, sizeof random);
    ulid_format(0, random, text);
    ck_assert_str_eq(text, "00000000000000000000000000");
    random[9] = 1;
    random[4] = 32;
    ulid_format(1469918176385, random, text);
    ck_assert_str_eq(text, "01ARYZ6S410000001000000001");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("crypto");
    tcase_add_test(t, sha256_gives_the_published_digests);
    tcase_add_test(t, hmac_gives_the_published_signatures);
    tcase_add_test(t, sealing_gives_the_published_ciphertext);
    tcase_add_test(t, unsealing_refuses_any_changed_byte_and_writes_nothing);
    tcase_add_test(t, comparison_tells_equal_from_unequal);
    tcase_add_test(t, hex_reads_both_cases_and_exact_lengths_only);
    tcase_add_test(t, base64_gives_the_published_texts_both_ways);
    tcase_add_test(t, base64_refuses_rubbish_and_writes_nothing);
    tcase_add_test(t, uuids_are_version_four_and_survive_their_text);
    tcase_add_test(t, uuid_texts_are_read_strictly);
    tcase_add_test(t, ulids_sort_by_time_and_hold_all_bits);
    Suite *s = suite_create("crypto");
    suite_add_tcase(s, t);
    return suite_run(s);
}
