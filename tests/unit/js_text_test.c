/* Numbers and times as JavaScript prints them; expectations come from node. */
#include "services/gateway/core/js_text.h"
#include "tests/support/suite.h"

static const struct {
    const char *text, *printed;
} numbers[] = {
    {"0", "0"},
    {"-0", "0"},
    {"0.0", "0"},
    {"-0.00", "0"},
    {"1", "1"},
    {"-1", "-1"},
    {"22.470", "22.47"},
    {"1.0", "1"},
    {"100.00", "100"},
    {"0.1", "0.1"},
    {"0.10", "0.1"},
    {"0.000001", "0.000001"},
    {"0.0000010", "0.000001"},
    {"0.0000001", "1e-7"},
    {"-0.00000012", "-1.2e-7"},
    {"123456789012345", "123456789012345"},
    {"1234567890123456", "1234567890123456"},
    {"9007199254740993", "9007199254740992"},
    {"12345678901234567890", "12345678901234567000"},
    {"123456789012345678901", "123456789012345680000"},
    {"1234567890123456789012", "1.2345678901234568e+21"},
    {"100000000000000000000", "100000000000000000000"},
    {"1000000000000000000000", "1e+21"},
    {"1e21", "1e+21"},
    {"1E+2", "100"},
    {"1.5e-7", "1.5e-7"},
    {"1e-7", "1e-7"},
    {"5e-324", "5e-324"},
    {"4.94e-324", "5e-324"},
    {"2.2250738585072014e-308", "2.2250738585072014e-308"},
    {"2.2250738585072011e-308", "2.225073858507201e-308"},
    {"1.7976931348623157e308", "1.7976931348623157e+308"},
    {"0.3333333333333333", "0.3333333333333333"},
    {"0.33333333333333333333", "0.3333333333333333"},
    {"0.30000000000000004", "0.30000000000000004"},
    {"5.684341886080802e-14", "5.684341886080802e-14"},
    {"5.6843418860808015e-14", "5.684341886080802e-14"},
    {"9.5367431640625e-7", "9.5367431640625e-7"},
    {"9007199254740992", "9007199254740992"},
    {"9007199254740991", "9007199254740991"},
    {"0.1234567890123456789", "0.12345678901234568"},
    {"20646.7200000", "20646.72"},
    {"1.470", "1.47"},
    {"123456.7890123456", "123456.7890123456"},
    {"4503599627370496.5", "4503599627370496"},
    {"99999999999999999", "100000000000000000"},
    {"999999999999999999999", "1e+21"},
    {"0.999999999999999999", "1"},
    {"1.7976931348623157e+308", "1.7976931348623157e+308"},
    {"3.141592653589793", "3.141592653589793"},
    {"1234.5678901234567", "1234.5678901234567"},
    {"1e15", "1000000000000000"},
    {"1e16", "10000000000000000"},
    {"1.0e-6", "0.000001"},
    {"12e3", "12000"},
    {"1e-6", "0.000001"},
    {"1e-300", "1e-300"},
    {"6.02214076e23", "6.02214076e+23"},
};

START_TEST(numbers_are_the_shortest_that_read_back_the_same)
{
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        auto_buf struct buf out = {0};
        ck_assert_msg(js_number(&out, slice_of(numbers[i].text)), "%s", numbers[i].text);
        ck_assert_str_eq(buf_str(&out), numbers[i].printed);
    }
}
END_TEST

START_TEST(what_is_no_finite_number_prints_nothing)
{
    static const char *const none[] = {"",   "-",  ".",   "NaN", "Infinity", "1e",
                                       "1x", "e5", "1e+", "--1", "1.2.3",    "1e999"};
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        auto_buf struct buf out = {0};
        ck_assert_msg(!js_number(&out, slice_of(none[i])), "%s", none[i]);
        ck_assert_uint_eq(out.len, 0);
    }
}
END_TEST

START_TEST(a_number_too_small_for_a_double_is_zero)
{
    auto_buf struct buf out = {0};
    ck_assert(js_number(&out, SLICE("-1e-400")));
    ck_assert_str_eq(buf_str(&out), "0");
}
END_TEST

START_TEST(safe_integers_end_at_two_to_53_less_one)
{
    ck_assert(js_is_safe_integer(SLICE("-9007199254740991")));
    ck_assert(js_is_safe_integer(SLICE("0009007199254740991")));
    ck_assert(!js_is_safe_integer(SLICE("9007199254740992")));
    ck_assert(!js_is_safe_integer(SLICE("10000000000000000")));
    ck_assert(!js_is_safe_integer(SLICE("1.0")));
    ck_assert(js_is_integer(SLICE("12345678901234567890")));
    ck_assert(!js_is_integer(SLICE("1e3")));
    ck_assert(!js_is_integer(SLICE("-")));
}
END_TEST

static const struct {
    const char *text, *printed;
} times[] = {
    {"2025-01-08", "2025-01-08T00:00:00.000Z"},
    {"2025-01-08 10:11:12", "2025-01-08T10:11:12.000Z"},
    {"2025-01-08T10:11:12.5", "2025-01-08T10:11:12.500Z"},
    {"2025-01-08T10:11:12.123999", "2025-01-08T10:11:12.123Z"},
    {"2025-01-08 10:11:12+00", "2025-01-08T10:11:12.000Z"},
    {"2025-01-08T10:11:12Z", "2025-01-08T10:11:12.000Z"},
    {"2025-01-01T00:11:12+05:30", "2024-12-31T18:41:12.000Z"},
    {"2024-02-28 23:30:00-01:00:30", "2024-02-29T00:30:30.000Z"},
    {"1969-12-31T23:59:59.001+01", "1969-12-31T22:59:59.001Z"},
    {"1600-03-01T00:00:00+01", "1600-02-29T23:00:00.000Z"},
    {"0044-03-15 BC", "-000043-03-15T00:00:00.000Z"},
    {"0001-01-01 00:00:00+00 BC", "0000-01-01T00:00:00.000Z"},
    {"4713-11-24 00:00:00 BC", "-004712-11-24T00:00:00.000Z"},
    {"12025-12-01T00:00:00", "+012025-12-01T00:00:00.000Z"},
    {"294276-12-31", "+294276-12-31T00:00:00.000Z"},
};

START_TEST(times_print_as_to_iso_string)
{
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        auto_buf struct buf out = {0};
        ck_assert_msg(js_iso_time(&out, slice_of(times[i].text)), "%s", times[i].text);
        ck_assert_str_eq(buf_str(&out), times[i].printed);
    }
}
END_TEST

START_TEST(what_is_no_time_prints_nothing)
{
    static const char *const none[] = {"",
                                       "infinity",
                                       "-infinity",
                                       "10:11:12",
                                       "2025",
                                       "2025-1-08",
                                       "2025-01",
                                       "2025-13-01",
                                       "2025-00-01",
                                       "2025-01-00",
                                       "2025-01-08T10",
                                       "2025-01-08T10:11",
                                       "2025-01-08T10:11:12*",
                                       "2025-01-08T10:11:12+0",
                                       "2025-01-08T10:11:12+05:",
                                       "2025-01-08T10:11:12+05:30:",
                                       "2025-01-08 AD",
                                       "2025-01-08x"};
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        auto_buf struct buf out = {0};
        ck_assert_msg(!js_iso_time(&out, slice_of(none[i])), "%s", none[i]);
        ck_assert_uint_eq(out.len, 0);
    }
}
END_TEST

START_TEST(microseconds_print_as_iso_text_on_both_sides_of_1970)
{
    auto_buf struct buf out = {0};
    js_iso_of_us(&out, 1764547200123456);
    buf_add_char(&out, ' ');
    js_iso_of_us(&out, -1);
    ck_assert_str_eq(buf_str(&out), "2025-12-01T00:00:00.123Z 1969-12-31T23:59:59.999Z");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("js_text");
    TCase *t = tcase_create("text");
    tcase_add_test(t, numbers_are_the_shortest_that_read_back_the_same);
    tcase_add_test(t, what_is_no_finite_number_prints_nothing);
    tcase_add_test(t, a_number_too_small_for_a_double_is_zero);
    tcase_add_test(t, safe_integers_end_at_two_to_53_less_one);
    tcase_add_test(t, times_print_as_to_iso_string);
    tcase_add_test(t, what_is_no_time_prints_nothing);
    tcase_add_test(t, microseconds_print_as_iso_text_on_both_sides_of_1970);
    suite_add_tcase(suite, t);
    return suite_run(suite);
}
