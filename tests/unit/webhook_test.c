#include "services/planner/package/package.h"
#include "tests/support/suite.h"

/* The example of the Standard Webhooks specification. */
#define SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define SENT_AT INT64_C(1614265330)
#define BODY "{\"test\": 2432232314}"
#define GOOD "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

static struct webhook_headers standard_headers(void)
{
    return (struct webhook_headers){.id = SLICE("msg_p5jXN8AQM9LWM0D4loKWxJek"),
                                    .timestamp = SLICE("1614265330"),
                                    .signature = SLICE(GOOD)};
}

static int verify(struct webhook_headers h, const char *body, int64_t now, struct slice *id,
                  struct err *e)
{
    return webhook_verify(SECRET, &h, slice_of(body), now, id, e);
}

START_TEST(standard_signature_gives_the_id)
{
    struct slice id = SLICE_NONE;
    struct err e;

    int rc = verify(standard_headers(), BODY, SENT_AT + 10, &id, &e);

    ck_assert_int_eq(rc, 0);
    ck_assert(slice_is(id, "msg_p5jXN8AQM9LWM0D4loKWxJek"));
}
END_TEST

START_TEST(one_good_signature_of_a_list_is_enough)
{
    struct webhook_headers h = standard_headers();
    h.signature = SLICE("v1,bm9uc2Vuc2U= v1a,xyz v1,!!!  " GOOD);
    struct slice id;
    struct err e;

    ck_assert_int_eq(verify(h, BODY, SENT_AT, &id, &e), 0);
}
END_TEST

START_TEST(changed_body_id_or_time_is_refused)
{
    struct webhook_headers other_id = standard_headers();
    struct webhook_headers other_time = standard_headers();
    other_id.id = SLICE("msg_other");
    other_time.timestamp = SLICE("1614265331");
    struct slice id;
    struct err e;

    ck_assert_int_eq(verify(standard_headers(), "{\"test\": 1}", SENT_AT, &id, &e), ERR_TOKEN);
    ck_assert_ptr_null(strstr(e.text, "MfKQ"));
    ck_assert_int_eq(verify(other_id, BODY, SENT_AT, &id, &e), ERR_TOKEN);
    ck_assert_int_eq(verify(other_time, BODY, SENT_AT, &id, &e), ERR_TOKEN);
}
END_TEST

START_TEST(signature_with_another_key_is_refused)
{
    struct webhook_headers h = standard_headers();
    struct slice id;
    struct err e;

    ck_assert_int_eq(webhook_verify("whsec_AAAA", &h, SLICE(BODY), SENT_AT, &id, &e), ERR_TOKEN);
}
END_TEST

START_TEST(old_and_future_deliveries_are_stale)
{
    struct slice id;
    struct err e;

    ck_assert_int_eq(verify(standard_headers(), BODY, SENT_AT + 300, &id, &e), 0);
    ck_assert_int_eq(verify(standard_headers(), BODY, SENT_AT + 301, &id, &e), ERR_STALE);
    ck_assert_int_eq(verify(standard_headers(), BODY, SENT_AT - 301, &id, &e), ERR_STALE);
}
END_TEST

START_TEST(id_with_a_full_stop_is_refused_because_the_signed_text_could_be_cut_elsewhere)
{
    struct webhook_headers h = standard_headers();
    h.id = SLICE("msg.1");
    struct slice id;
    struct err e;

    ck_assert_int_eq(verify(h, BODY, SENT_AT, &id, &e), ERR_TOKEN);
}
END_TEST

/* The example of GitHub's documentation. */
static struct webhook_headers github_headers(void)
{
    return (struct webhook_headers){
        .github_signature =
            SLICE("sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"),
        .github_delivery = SLICE("72d3162e-cc78-11e3-81ab-4c9367dc0958"),
        .github_event = SLICE("push")};
}

START_TEST(github_signature_is_keyed_with_the_secret_as_it_stands)
{
    struct webhook_headers h = github_headers();
    struct slice id = SLICE_NONE;
    struct err e;

    int rc = webhook_verify("It's a Secret to Everybody", &h, SLICE("Hello, World!"), 0, &id, &e);

    ck_assert_int_eq(rc, 0);
    ck_assert(slice_is(id, "72d3162e-cc78-11e3-81ab-4c9367dc0958"));
}
END_TEST

START_TEST(github_signature_that_does_not_fit_is_refused)
{
    struct webhook_headers h = github_headers();
    struct webhook_headers no_delivery = github_headers();
    struct webhook_headers short_sum = github_headers();
    no_delivery.github_delivery = SLICE_NONE;
    short_sum.github_signature = SLICE("sha256=7571");
    const char *secret = "It's a Secret to Everybody";
    struct slice id, body = SLICE("Hello, World!");
    struct err e;

    ck_assert_int_eq(webhook_verify(secret, &h, SLICE("Hello, World?"), 0, &id, &e), ERR_TOKEN);
    ck_assert_int_eq(webhook_verify(secret, &no_delivery, body, 0, &id, &e), ERR_TOKEN);
    ck_assert_int_eq(webhook_verify(secret, &short_sum, body, 0, &id, &e), ERR_TOKEN);
}
END_TEST

START_TEST(webhook_without_signature_or_secret_is_refused)
{
    struct webhook_headers none = {.id = SLICE("msg_1"), .timestamp = SLICE("1614265330")};
    struct webhook_headers h = standard_headers();
    struct slice id;
    struct err e;

    ck_assert_int_eq(verify(none, BODY, SENT_AT, &id, &e), ERR_TOKEN);
    ck_assert_int_eq(webhook_verify(NULL, &h, SLICE(BODY), SENT_AT, &id, &e), ERR_TOKEN);
    ck_assert_int_eq(webhook_verify("whsec_", &h, SLICE(BODY), SENT_AT, &id, &e), ERR_TOKEN);
    ck_assert_int_eq(webhook_verify("whsec_not base64", &h, SLICE(BODY), SENT_AT, &id, &e),
                     ERR_TOKEN);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("webhook");
    tcase_add_test(tc, standard_signature_gives_the_id);
    tcase_add_test(tc, one_good_signature_of_a_list_is_enough);
    tcase_add_test(tc, changed_body_id_or_time_is_refused);
    tcase_add_test(tc, signature_with_another_key_is_refused);
    tcase_add_test(tc, old_and_future_deliveries_are_stale);
    tcase_add_test(tc,
                   id_with_a_full_stop_is_refused_because_the_signed_text_could_be_cut_elsewhere);
    tcase_add_test(tc, github_signature_is_keyed_with_the_secret_as_it_stands);
    tcase_add_test(tc, github_signature_that_does_not_fit_is_refused);
    tcase_add_test(tc, webhook_without_signature_or_secret_is_refused);
    Suite *s = suite_create("webhook");
    suite_add_tcase(s, tc);
    return suite_run(s);
}
