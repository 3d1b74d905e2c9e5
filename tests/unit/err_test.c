#include "common/err/err.h"
#include "tests/support/suite.h"

#include <errno.h>

START_TEST(setting_gives_the_code_and_the_sentence)
{
    struct err e;
    err_clear(&e);
    ck_assert_int_eq(err_set(&e, ERR_FENCED, "target %s", "orders"), ERR_FENCED);
    ck_assert_int_eq(e.code, ERR_FENCED);
    ck_assert_str_eq(err_text(&e), "target orders");
    ck_assert_int_eq(err_set(NULL, ERR_IO, "nobody listens"), ERR_IO);
}
END_TEST

START_TEST(setting_clears_the_warehouse_code)
{
    struct err e = {.sqlstate = "42P01"};
    err_set(&e, ERR_IO, "x");
    ck_assert_str_eq(e.sqlstate, "");
}
END_TEST

START_TEST(wrapping_puts_context_in_front_and_keeps_the_code)
{
    struct err e = {0};
    err_set(&e, ERR_WH_SQL, "no column a");
    memcpy(e.sqlstate, "42703", 6);
    ck_assert_int_eq(err_wrap(&e, "load plan %d", 7), ERR_WH_SQL);
    ck_assert_str_eq(e.text, "load plan 7: no column a");
    ck_assert_str_eq(e.sqlstate, "42703");
    ck_assert_int_eq(err_wrap(NULL, "x"), ERR_INTERNAL);
}
END_TEST

START_TEST(wrapping_a_bare_code_uses_its_own_text)
{
    struct err e = {.code = ERR_TIMEOUT};
    ck_assert_int_eq(err_wrap(&e, "compile"), ERR_TIMEOUT);
    ck_assert_str_eq(e.text, "compile: took too long");
    err_clear(&e);
    ck_assert_int_eq(err_wrap(&e, "compile"), ERR_INTERNAL);
}
END_TEST

START_TEST(an_error_may_be_set_from_its_own_text)
{
    struct err e = {0};
    err_set(&e, ERR_IO, "inner");
    err_set(&e, ERR_PACKAGE, "outer (%s)", e.text);
    ck_assert_str_eq(e.text, "outer (inner)");
    err_wrap(&e, "again %s", e.text);
    ck_assert_str_eq(e.text, "again outer (inner): outer (inner)");
}
END_TEST

START_TEST(long_texts_are_cut_between_characters)
{
    char text[2 * ERR_TEXT_MAX];
    for (size_t shift = 0; shift < 3; shift++) {
        memset(text, 'x', sizeof text);
        for (size_t i = shift; i + 3 < sizeof text; i += 3) {
            memcpy(text + i, "\xe2\x82\xac", 3);
        }
        text[sizeof text - 1] = '\0';
        struct err e = {0};
        err_set(&e, ERR_IO, "%s", text);
        size_t len = strlen(e.text);
        ck_assert_uint_le(len, ERR_TEXT_MAX - 1);
        ck_assert_uint_ge(len, ERR_TEXT_MAX - 3);
        ck_assert_uint_eq((len - shift) % 3, 0);
    }
    struct err e = {0};
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    err_set(&e, ERR_IO, "%s", text);
    ck_assert_uint_eq(strlen(e.text), ERR_TEXT_MAX - 1);
    err_wrap(&e, "context");
    ck_assert(strncmp(e.text, "context: xxx", 12) == 0);
    ck_assert_uint_eq(strlen(e.text), ERR_TEXT_MAX - 1);
}
END_TEST

START_TEST(every_code_has_a_name_a_class_and_a_status)
{
    ck_assert_str_eq(err_code_name(ERR_FENCED), "ERR_FENCED");
    ck_assert_int_eq(err_code_class(ERR_FENCED), ERR_CLASS_FENCED);
    ck_assert_int_eq(err_code_http(ERR_STALE), 401);
    ck_assert_str_eq(err_class_name(err_code_class(ERR_LEASE_LOST)), "lost");
    ck_assert_str_eq(err_class_name(err_code_class(ERR_STOPPED)), "cancelled");
    ck_assert_str_eq(err_code_name(-ENOENT), "ENOENT");
    ck_assert_int_eq(err_code_class(-ECONNRESET), ERR_CLASS_TRANSIENT);
    ck_assert_int_eq(err_code_http(-ECONNRESET), 500);
    ck_assert_str_eq(err_code_name(-5555), "ERR_UNKNOWN");
    ck_assert_int_eq(err_code_class(-5555), ERR_CLASS_BUG);
    ck_assert_str_eq(err_code_name(-998), "ERR_UNKNOWN");
    ck_assert_str_eq(err_code_name(0), "OK");
    ck_assert_str_eq(err_text(NULL), "internal error");
}
END_TEST

START_TEST(numbers_and_names_of_codes_are_unique)
{
    static const int numbers[] = {
#define ERR_CODE(name, number, class_, http, text) number,
#include "common/err/err_codes.def"
#undef ERR_CODE
    };
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        ck_assert_int_le(numbers[i], -1000);
        for (size_t j = 0; j < i; j++) {
            ck_assert_int_ne(numbers[i], numbers[j]);
        }
    }
}
END_TEST

START_TEST(scrubbing_takes_every_copy_of_a_secret)
{
    struct err e = {0};
    err_set(&e, ERR_IO, "s3cret at s3crets3cret end s3cre");
    err_scrub(&e, "s3cret");
    ck_assert_str_eq(e.text, "*** at ****** end s3cre");
}
END_TEST

START_TEST(scrubbing_takes_the_form_with_doubled_quotes_too)
{
    struct err e = {0};
    err_set(&e, ERR_IO, "PASSWORD 'it''s me' is it's me");
    err_scrub(&e, "it's me");
    ck_assert_str_eq(e.text, "PASSWORD '***' is ***");
}
END_TEST

START_TEST(short_and_missing_secrets_change_nothing)
{
    struct err e = {0};
    err_set(&e, ERR_IO, "abc abc");
    err_scrub(&e, "abc");
    err_scrub(&e, "");
    err_scrub(&e, NULL);
    err_scrub(NULL, "abcd");
    ck_assert_str_eq(e.text, "abc abc");
}
END_TEST

START_TEST(a_secret_cut_off_at_the_limit_does_not_show_its_front)
{
    char filler[ERR_TEXT_MAX];
    memset(filler, 'x', sizeof filler);
    filler[ERR_TEXT_MAX - 1 - 7] = '\0';
    struct err e = {0};
    err_set(&e, ERR_IO, "%stopsecret-value", filler);
    ck_assert_ptr_nonnull(strstr(e.text, "topsecr"));
    err_scrub(&e, "topsecret-value");
    ck_assert_ptr_null(strstr(e.text, "tops"));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("err");
    tcase_add_test(t, setting_gives_the_code_and_the_sentence);
    tcase_add_test(t, setting_clears_the_warehouse_code);
    tcase_add_test(t, wrapping_puts_context_in_front_and_keeps_the_code);
    tcase_add_test(t, wrapping_a_bare_code_uses_its_own_text);
    tcase_add_test(t, an_error_may_be_set_from_its_own_text);
    tcase_add_test(t, long_texts_are_cut_between_characters);
    tcase_add_test(t, every_code_has_a_name_a_class_and_a_status);
    tcase_add_test(t, numbers_and_names_of_codes_are_unique);
    tcase_add_test(t, scrubbing_takes_every_copy_of_a_secret);
    tcase_add_test(t, scrubbing_takes_the_form_with_doubled_quotes_too);
    tcase_add_test(t, short_and_missing_secrets_change_nothing);
    tcase_add_test(t, a_secret_cut_off_at_the_limit_does_not_show_its_front);
    Suite *s = suite_create("err");
    suite_add_tcase(s, t);
    return suite_run(s);
}
