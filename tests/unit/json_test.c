#include "common/json/json.h"
#include "tests/support/suite.h"

static const char *written(struct slice text)
{
    static char out[256];
    auto_buf struct buf b = {0};
    jsonw_str(&b, text);
    ck_assert_uint_lt(b.len, sizeof out);
    memcpy(out, b.p, b.len + 1);
    return out;
}

START_TEST(a_tree_prints_as_it_was_read)
{
    struct err e = {0};
    const char *text = "{\"b\":[1,2.5,true,null],\"a\":\"x\\n\"}";
    json_t *v = json_parse(slice_of(text), &e);
    ck_assert_ptr_nonnull(v);
    auto_free char *again = json_text(v);
    ck_assert_str_eq(again, text);
    auto_buf struct buf b = {0};
    buf_add_str(&b, ">");
    json_print(v, &b);
    ck_assert_str_eq(buf_str(&b) + 1, text);
    json_decref(v);
}
END_TEST

START_TEST(single_values_are_documents)
{
    json_t *v = json_parse(SLICE("42"), NULL);
    ck_assert_int_eq(json_integer_value(v), 42);
    auto_free char *text = json_text(v);
    ck_assert_str_eq(text, "42");
    json_decref(v);
}
END_TEST

START_TEST(rubbish_is_refused_with_its_line)
{
    struct err e = {0};
    ck_assert_ptr_null(json_parse(SLICE("{\n\"a\": 1,\n}"), &e));
    ck_assert_int_eq(e.code, ERR_INVALID);
    ck_assert_int_eq(strncmp(e.text, "line 3: ", 8), 0);
    ck_assert_ptr_null(json_parse(SLICE(""), &e));
    ck_assert_ptr_null(json_parse(SLICE_NONE, &e));
    ck_assert_ptr_null(json_parse(SLICE("{} x"), &e));
    ck_assert_ptr_null(json_parse(SLICE("[1"), NULL));
    ck_assert_ptr_null(json_parse(SLICE("\"\xff\""), &e));
}
END_TEST

START_TEST(members_fall_back_to_the_default)
{
    json_t *v = json_parse(SLICE("{\"s\":\"x\",\"n\":5,\"t\":true,\"f\":false,\"z\":null}"), NULL);
    ck_assert_str_eq(json_str(v, "s", "d"), "x");
    ck_assert_str_eq(json_str(v, "n", "d"), "d");
    ck_assert_ptr_null(json_str(v, "z", NULL));
    ck_assert_int_eq(json_int(v, "n", 1), 5);
    ck_assert_int_eq(json_int(v, "s", 1), 1);
    ck_assert(json_flag(v, "t", false));
    ck_assert(!json_flag(v, "f", true));
    ck_assert(json_flag(v, "n", true));
    ck_assert_str_eq(json_str(NULL, "s", "d"), "d");
    ck_assert_int_eq(json_int(NULL, "s", 3), 3);
    ck_assert(json_flag(NULL, "s", true));
    json_decref(v);
}
END_TEST

START_TEST(members_are_set_even_from_text_that_is_no_utf8)
{
    json_t *v = json_object();
    json_set_str(v, "z", NULL);
    json_set_str(v, "s", "a\xff\"b");
    json_set_int(v, "n", INT64_MIN);
    json_set_flag(v, "f", true);
    auto_free char *text = json_text(v);
    ck_assert_str_eq(text, "{\"z\":null,\"s\":\"a\xef\xbf\xbd\\\"b\",\"n\":-9223372036854775808,"
                           "\"f\":true}");
    json_decref(v);
}
END_TEST

START_TEST(the_writer_escapes_what_json_demands)
{
    ck_assert_str_eq(written(SLICE("")), "\"\"");
    ck_assert_str_eq(written(SLICE_NONE), "\"\"");
    ck_assert_str_eq(written(SLICE("a\"\\/")), "\"a\\\"\\\\/\"");
    ck_assert_str_eq(written(SLICE("\b\t\n\v\f\r")), "\"\\b\\t\\n\\u000b\\f\\r\"");
    ck_assert_str_eq(written(SLICE("a\0b\x1f\x7f")), "\"a\\u0000b\\u001f\x7f\"");
    auto_buf struct buf b = {0};
    jsonw_escaped(&b, SLICE("{\"a\":\"\\n\"}"));
    ck_assert_str_eq(buf_str(&b), "{\\\"a\\\":\\\"\\\\n\\\"}");
}
END_TEST

#define FFFD "\xef\xbf\xbd"

START_TEST(the_writer_keeps_utf8_and_replaces_what_is_none)
{
    ck_assert_str_eq(written(SLICE("\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82")),
                     "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82\"");
    ck_assert_str_eq(written(SLICE("a\x80z")), "\"a" FFFD "z\"");
    ck_assert_str_eq(written(SLICE("\xc0\xaf")), "\"" FFFD FFFD "\"");
    ck_assert_str_eq(written(SLICE("\xe0\x80\x80")), "\"" FFFD FFFD FFFD "\"");
    ck_assert_str_eq(written(SLICE("\xed\xa0\x80")), "\"" FFFD FFFD FFFD "\"");
    ck_assert_str_eq(written(SLICE("\xf4\x90\x80\x80")), "\"" FFFD FFFD FFFD FFFD "\"");
    ck_assert_str_eq(written(SLICE("x\xe2\x82")), "\"x" FFFD FFFD "\"");
    ck_assert_str_eq(written(SLICE("\xe2\x82\"")), "\"" FFFD FFFD "\\\"\"");
    ck_assert_str_eq(written(SLICE("\xf5\xff")), "\"" FFFD FFFD "\"");
}
END_TEST

static char *redacted(const char *text)
{
    json_t *v = json_parse(slice_of(text), NULL);
    ck_assert_ptr_nonnull(v);
    json_redact(v);
    char *out = json_text(v);
    json_decref(v);
    return out;
}

START_TEST(credentials_are_taken_out_at_any_depth)
{
    auto_free char *text = redacted(
        "{\"host\":\"h\",\"access_token\":\"t\",\"postgresConnection\":{\"userName\":\"u\","
        "\"port\":5432,\"PASSWORD\":\"p\",\"connectionString\":\"s\"},\"list\":[{\"client-Secret\":"
        "\"s\"},[{\"k\":{\"apiKey\":1}}]],\"credentials\":{\"a\":1},\"privateThing\":\"x\"}");
    ck_assert_str_eq(text,
                     "{\"host\":\"h\",\"postgresConnection\":{\"userName\":\"u\",\"port\":5432},"
                     "\"list\":[{},[{\"k\":{}}]]}");
}
END_TEST

START_TEST(members_that_only_tell_of_a_secret_stay)
{
    static const char same[] = "{\"hasPassword\":true,\"token\":null,\"host\":\"db.internal:5432\","
                               "\"url\":\"https://host/a@b\","
                               "\"sslMode\":\"verify-full\",\"options\":[\"application_name=x\"]}";
    auto_free char *text = redacted(same);
    ck_assert_str_eq(text, same);
}
END_TEST

START_TEST(texts_that_hold_a_credential_are_taken_out_whatever_they_are_called)
{
    static const char *const secrets[] = {
        "postgres://u:p@host/db",
        "see jdbc:postgresql://u:p@host/db",
        "https://ghp_0123456789@git.host/x",
        "host=h user=u password=p",
        "Host=h;Pwd = p",
        "https://host/blob?sig=abc",
        "{\\\"private_key\\\": \\\"x\\\"}",
        "-----BEGIN RSA x-----",
    };
    for (size_t i = 0; i < ARRAY_LEN(secrets); i++) {
        auto_free char *in = xasprintf("{\"a\":\"b\",\"unknown\":\"%s\",\"l\":[\"%s\",\"c\"]}",
                                       secrets[i], secrets[i]);
        auto_free char *text = redacted(in);
        ck_assert_str_eq(text, "{\"a\":\"b\",\"l\":[\"c\"]}");
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("json");
    tcase_add_test(t, a_tree_prints_as_it_was_read);
    tcase_add_test(t, single_values_are_documents);
    tcase_add_test(t, rubbish_is_refused_with_its_line);
    tcase_add_test(t, members_fall_back_to_the_default);
    tcase_add_test(t, members_are_set_even_from_text_that_is_no_utf8);
    tcase_add_test(t, the_writer_escapes_what_json_demands);
    tcase_add_test(t, the_writer_keeps_utf8_and_replaces_what_is_none);
    tcase_add_test(t, credentials_are_taken_out_at_any_depth);
    tcase_add_test(t, members_that_only_tell_of_a_secret_stay);
    tcase_add_test(t, texts_that_hold_a_credential_are_taken_out_whatever_they_are_called);
    Suite *s = suite_create("json");
    suite_add_tcase(s, t);
    return suite_run(s);
}
