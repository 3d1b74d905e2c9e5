/* The result writer: both shapes of Publisher, exact for every type, nested, in any key order. */
#include "services/gateway/core/result.h"

#include "common/json/json.h"
#include "tests/support/suite.h"

struct shape {
    struct arena a;
    struct result_schema *schema;
};

static void shape_init(struct shape *s, const char *fields)
{
    struct err e = {0};
    arena_init(&s->a);
    s->schema = result_schema_make(&s->a, slice_of(fields), &e);
    ck_assert_msg(s->schema, "%s", err_text(&e));
}

static int write_rows(const struct shape *s, enum result_form form, const char *const *rows,
                      size_t n, struct buf *out, struct err *e)
{
    struct result_writer w;
    int rc = 0;
    result_writer_init(&w, s->schema, form, out);
    result_begin(&w, SLICE("{\\\"data\\\":"));
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = result_row(&w, slice_of(rows[i]), e);
    }
    result_end(&w, SLICE(",\\\"sql\\\":1}"));
    result_writer_fini(&w);
    return rc;
}

/* What is written is the inside of a JSON string: `expected` is the text that a client decodes. */
static void expect_rows(const char *fields, enum result_form form, const char *const *rows,
                        size_t n, const char *expected)
{
    struct shape s;
    auto_buf struct buf out = {0};
    auto_buf struct buf wanted = {0};
    struct err e = {0};
    shape_init(&s, fields);
    ck_assert_msg(write_rows(&s, form, rows, n, &out, &e) == 0, "%s", err_text(&e));
    jsonw_escaped(&wanted, slice_of(expected));
    ck_assert_str_eq(buf_str(&out), buf_str(&wanted));
    arena_fini(&s.a);
}

static void expect(const char *fields, enum result_form form, const char *row, const char *expected)
{
    expect_rows(fields, form, &row, 1, expected);
}

#define FIELD(name, type) "{\"kind\":\"dimension\",\"name\":\"" name "\",\"type\":{" type "}}"
#define KIND(kind) "\"kind\":\"" kind "\""
#define NUMBER(subtype) KIND("number_type") ",\"subtype\":\"" subtype "\""
#define FULL(cells)                                                                                \
    "{\"data\":{\"kind\":\"array_cell\",\"array_value\":[{\"kind\":\"record_cell\","               \
    "\"record_value\":[" cells "]}]},\"sql\":1}"
#define CELL(kind, member, value) "{\"kind\":\"" kind "\",\"" member "\":" value "}"

START_TEST(string_keeps_every_escape)
{
    const char *field = "[" FIELD("s", KIND("string_type")) "]";
    const char *row = "{\"s\":\"a\\\"b\\\\c\\n\\u0001 \xc3\xbc/\"}";

    expect(field, RESULT_COMPACT, row, "[{\"s\":\"a\\\"b\\\\c\\n\\u0001 \xc3\xbc/\"}]");
    expect(field, RESULT_FULL, row,
           FULL(CELL("string_cell", "string_value", "\"a\\\"b\\\\c\\n\\u0001 \xc3\xbc/\"")));
}
END_TEST

START_TEST(numbers_print_as_javascript_does)
{
    const char *fields = "[" FIELD("i", NUMBER("integer")) "," FIELD(
        "d", NUMBER("decimal")) "," FIELD("n", KIND("number_type")) "]";

    expect(fields, RESULT_COMPACT, "{\"i\":7,\"d\":22.470,\"n\":1000000000000000000000}",
           "[{\"i\":7,\"d\":22.47,\"n\":1e+21}]");
    expect(fields, RESULT_FULL, "{\"i\":-7,\"d\":1.470,\"n\":0.5}",
           FULL("{\"kind\":\"number_cell\",\"number_value\":-7,\"subtype\":\"integer\"},"
                "{\"kind\":\"number_cell\",\"number_value\":1.47,\"subtype\":\"decimal\"},"
                "{\"kind\":\"number_cell\",\"number_value\":0.5}"));
}
END_TEST

START_TEST(bigint_keeps_all_its_digits)
{
    const char *field = "[" FIELD("b", NUMBER("bigint")) "]";
    const char *const rows[] = {"{\"b\":9007199254740991}", "{\"b\":9007199254740992}",
                                "{\"b\":-123456789012345678}", "{\"b\":5}"};

    expect_rows(field, RESULT_COMPACT, rows, 4,
                "[{\"b\":9007199254740991},{\"b\":\"9007199254740992\"},"
                "{\"b\":\"-123456789012345678\"},{\"b\":5}]");
    expect(field, RESULT_FULL, rows[2],
           FULL("{\"kind\":\"number_cell\",\"number_value\":-123456789012345678,"
                "\"subtype\":\"bigint\",\"string_value\":\"-123456789012345678\"}"));
}
END_TEST

START_TEST(bigint_column_with_other_values_stays_json)
{
    const char *field = "[" FIELD("b", NUMBER("bigint")) "]";

    expect(field, RESULT_COMPACT, "{\"b\":2.50}", "[{\"b\":2.5}]");
    expect(field, RESULT_COMPACT, "{\"b\":\"NaN\"}", "[{\"b\":null}]");
    expect(field, RESULT_COMPACT, "{\"b\":\"007\"}", "[{\"b\":7}]");
    expect(field, RESULT_COMPACT, "{\"b\":{\"a\": \"x\"}}", "[{\"b\":{\"a\":\"x\"}}]");
    expect(field, RESULT_COMPACT, "{\"b\":true}", "[{\"b\":true}]");
    expect(field, RESULT_COMPACT, "{\"b\":[1]}", "[{\"b\":[1]}]");
    expect(field, RESULT_COMPACT, "{\"b\":false}", "[{\"b\":false}]");
}
END_TEST

START_TEST(nan_and_infinity_are_null_as_in_json_stringify)
{
    const char *field = "[" FIELD("x", NUMBER("decimal")) "]";

    expect(field, RESULT_COMPACT, "{\"x\":\"Infinity\"}", "[{\"x\":null}]");
    expect(field, RESULT_COMPACT, "{\"x\":1e999}", "[{\"x\":null}]");
    expect(field, RESULT_FULL, "{\"x\":\"NaN\"}",
           FULL("{\"kind\":\"number_cell\",\"number_value\":null,\"subtype\":\"decimal\"}"));
}
END_TEST

START_TEST(times_become_iso_text)
{
    const char *fields = "[" FIELD("d", KIND("date_type")) "," FIELD(
        "t", KIND("timestamp_type")) "," FIELD("z", KIND("timestamptz_type")) "]";
    const char *row = "{\"d\":\"2025-01-08\",\"t\":\"2025-12-01T10:20:30.123987\","
                      "\"z\":\"2025-12-01T00:00:00+00:00\"}";

    expect(fields, RESULT_COMPACT, row,
           "[{\"d\":\"2025-01-08T00:00:00.000Z\",\"t\":\"2025-12-01T10:20:30.123Z\","
           "\"z\":\"2025-12-01T00:00:00.000Z\"}]");
    expect(fields, RESULT_FULL, row,
           FULL(CELL("date_cell", "date_value", "\"2025-01-08T00:00:00.000Z\"") "," CELL(
               "timestamp_cell", "timestamp_value",
               "\"2025-12-01T10:20:30.123Z\"") "," CELL("timestamp_cell", "timestamp_value",
                                                        "\"2025-12-01T00:00:00.000Z\"")));
}
END_TEST

START_TEST(a_time_that_is_none_goes_out_as_it_came)
{
    const char *field = "[" FIELD("t", KIND("timestamp_type")) "]";

    expect(field, RESULT_COMPACT, "{\"t\":\"infinity\"}", "[{\"t\":\"infinity\"}]");
    expect(field, RESULT_COMPACT, "{\"t\":17}", "[{\"t\":17}]");
}
END_TEST

START_TEST(booleans_and_nulls)
{
    const char *fields = "[" FIELD("b", KIND("boolean_type")) "," FIELD(
        "s", KIND("string_type")) "," FIELD("absent", KIND("string_type")) "]";

    expect(fields, RESULT_COMPACT, "{\"b\":true,\"s\":null}",
           "[{\"b\":true,\"s\":null,\"absent\":null}]");
    expect(fields, RESULT_FULL, "{\"b\":false,\"s\":null,\"absent\":\"\"}",
           FULL(CELL("boolean_cell", "boolean_value", "false") ",{\"kind\":\"null_cell\"}," CELL(
               "string_cell", "string_value", "\"\"")));
}
END_TEST

START_TEST(json_is_text_in_full_and_itself_in_compact)
{
    const char *fields =
        "[" FIELD("j", KIND("json_type")) "," FIELD("v", KIND("sql_native_type")) "]";
    const char *row = "{\"j\":{\"a b\": [1, 2.50, \"x \\\" y\"],\n \"c\":null},\"v\":\"$1\"}";

    expect(fields, RESULT_COMPACT, row,
           "[{\"j\":{\"a b\":[1,2.50,\"x \\\" y\"],\"c\":null},\"v\":\"$1\"}]");
    expect(
        fields, RESULT_FULL, row,
        FULL(CELL(
            "json_cell", "json_value",
            "\"{\\\"a b\\\":[1,2.50,\\\"x \\\\\\\" y\\\"],\\\"c\\\":null}\"") "," CELL("sql_native_"
                                                                                       "cell",
                                                                                       "sql_native_"
                                                                                       "value",
                                                                                       "\"\\\"$"
                                                                                       "1\\\"\"")));
}
END_TEST

START_TEST(unknown_types_pass_as_native_json)
{
    expect("[" FIELD("g", KIND("geo_type")) "]", RESULT_FULL, "{\"g\":[1, 2]}",
           FULL(CELL("sql_native_cell", "sql_native_value", "\"[1,2]\"")));
}
END_TEST

#define NEST                                                                                       \
    "\"kind\":\"array_type\",\"element_type\":{\"kind\":\"record_type\",\"fields\":["              \
    "{\"name\":\"region\",\"type\":{" KIND("string_type") "}},{\"name\":\"n\",\"type\":{" NUMBER(  \
        "integer") "}}]}"

START_TEST(nested_records_are_mapped_by_name)
{
    const char *fields = "[" FIELD("k", KIND("string_type")) "," FIELD("nest", NEST) "]";
    const char *row =
        "{\"k\":\"a\",\"nest\":[{\"n\": 1, \"region\": \"EU\"}, {\"region\": \"US\"}, {}, null]}";

    expect(fields, RESULT_COMPACT, row,
           "[{\"k\":\"a\",\"nest\":[{\"region\":\"EU\",\"n\":1},{\"region\":\"US\",\"n\":null},"
           "{\"region\":null,\"n\":null},null]}]");
    expect(fields, RESULT_FULL, "{\"k\":\"a\",\"nest\":[{\"n\": 1, \"region\": \"EU\"}]}",
           FULL(CELL("string_cell", "string_value", "\"a\"") "," CELL(
               "array_cell", "array_value",
               "[" CELL("record_cell", "record_value",
                        "[" CELL("string_cell", "string_value",
                                 "\"EU\"") ","
                                           "{\"kind\":\"number_cell\",\"number_value\":1,"
                                           "\"subtype\":\"integer\"}]") "]")));
}
END_TEST

START_TEST(arrays_and_records_may_be_empty_or_odd)
{
    const char *fields = "[" FIELD(
        "a", "\"kind\":\"array_type\",\"element_type\":{" KIND(
                 "string_type") "}") "," FIELD("r", "\"kind\":\"record_type\",\"fields\":[]") "]";

    expect(fields, RESULT_COMPACT, "{\"a\":[],\"r\":{}}", "[{\"a\":[],\"r\":{}}]");
    expect(fields, RESULT_COMPACT, "{\"a\":[\"x\",null],\"r\":{\"more\":1}}",
           "[{\"a\":[\"x\",null],\"r\":{}}]");
    expect(fields, RESULT_COMPACT, "{\"a\":\"no array\",\"r\":3}",
           "[{\"a\":\"no array\",\"r\":3}]");
}
END_TEST

START_TEST(columns_are_found_in_any_order_and_the_last_of_two_counts)
{
    const char *fields =
        "[" FIELD("a", KIND("string_type")) "," FIELD("b", KIND("string_type")) "]";
    const char *const rows[] = {"{\"a\":\"1\",\"b\":\"2\"}", "{\"b\":\"2\",\"a\":\"1\",\"c\":{}}",
                                " { \"a\" : \"0\", \"a\" : \"1\" , \"b\":\"2\" } "};

    expect_rows(fields, RESULT_COMPACT, rows, 3,
                "[{\"a\":\"1\",\"b\":\"2\"},{\"a\":\"1\",\"b\":\"2\"},{\"a\":\"1\",\"b\":\"2\"}]");
}
END_TEST

START_TEST(names_with_quotes_dots_and_unicode_are_found)
{
    const char *fields = "[" FIELD("a\\\"b.\xc3\xbc\\n", KIND("string_type")) "]";

    expect(fields, RESULT_COMPACT, "{\"a\\\"b.\xc3\xbc\\n\":\"x\"}",
           "[{\"a\\\"b.\xc3\xbc\\n\":\"x\"}]");
}
END_TEST

START_TEST(no_rows_is_an_empty_array)
{
    const char *field = "[" FIELD("a", KIND("string_type")) "]";

    expect_rows(field, RESULT_COMPACT, NULL, 0, "[]");
    expect_rows(field, RESULT_FULL, NULL, 0,
                "{\"data\":{\"kind\":\"array_cell\",\"array_value\":[]},\"sql\":1}");
}
END_TEST

START_TEST(deep_nesting_in_other_order_stays_linear)
{
    auto_buf struct buf fields = {0};
    auto_buf struct buf row = {0};
    auto_buf struct buf out = {0};
    struct shape s;
    struct err e = {0};
    enum { DEPTH = 30 };
    buf_add_str(&fields, "[");
    for (int i = 0; i < DEPTH; i++) {
        buf_add_str(&fields, "{\"name\":\"r\",\"type\":{\"kind\":\"record_type\",\"fields\":[");
        buf_add_str(&row, "{\"r\": ");
    }
    buf_add_str(&fields, FIELD("x", KIND("string_type")));
    buf_add_str(&row, "{\"x\":\"leaf\"}");
    for (int i = 0; i < DEPTH; i++) {
        buf_add_str(&fields, "]}}," FIELD("z", KIND("string_type")));
        buf_add_str(&row, ",\"y\":1,\"z\":\"v\"}");
    }
    buf_add_str(&fields, "]");
    shape_init(&s, buf_str(&fields));
    const char *text = buf_str(&row);

    int rc = write_rows(&s, RESULT_COMPACT, &text, 1, &out, &e);

    ck_assert_msg(rc == 0, "%s", err_text(&e));
    ck_assert(strstr(buf_str(&out), "leaf"));
    arena_fini(&s.a);
}
END_TEST

START_TEST(rows_that_are_no_json_objects_are_refused)
{
    static const char *const bad[] = {"",
                                      "7",
                                      "[]",
                                      "{",
                                      "{\"a\"",
                                      "{\"a\":",
                                      "{\"a\":\"x",
                                      "{\"a\":\"x\"",
                                      "{\"a\":\"x\"} 1",
                                      "{\"a\":\"\\x\"}",
                                      "{\"a\":\"\\u12g4\"}",
                                      "{\"a\":\"\n\"}",
                                      "{\"a\":nil}",
                                      "{\"a\":tru}",
                                      "{\"a\":fals}",
                                      "{\"a\":01}",
                                      "{\"a\":-}",
                                      "{\"a\":1.}",
                                      "{\"a\":1e}",
                                      "{\"a\":[1}",
                                      "{\"a\":[1,]}",
                                      "{\"a\":{1:2}}",
                                      "{\"a\":{\"b\":1,}}",
                                      "{\"a\":\"\\",
                                      "{\"b\":{}",
                                      "{\"b\" 1}",
                                      "{\"a\":\"x\",\"b\":[[}",
                                      "{\"a\":nope}",
                                      "{\"a\" \"x\"}",
                                      "{,}",
                                      "{\"n\":nul}",
                                      "{\"n\":-x}",
                                      "{\"n\":\"x}",
                                      "{\"t\":\"x}",
                                      "{\"j\":[}",
                                      "{\"l\":[1",
                                      "{\"l\":[1 2]}",
                                      "{\"l\":[nul]}",
                                      "{\"j\":{\"a\" 1}}"};
    const char *fields =
        "[" FIELD("a", KIND("string_type")) "," FIELD("n", NUMBER("bigint")) "," FIELD(
            "t",
            KIND("date_type")) "," FIELD("j",
                                         KIND("json_type")) "," FIELD("l",
                                                                      "\"kind\":\"array_type\","
                                                                      "\"element_type\":{" KIND(
                                                                          "number_type") "}") "]";
    struct shape s;
    shape_init(&s, fields);

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        for (int form = RESULT_FULL; form <= RESULT_COMPACT; form++) {
            auto_buf struct buf out = {0};
            struct err e = {0};
            int rc = write_rows(&s, (enum result_form)form, &bad[i], 1, &out, &e);
            ck_assert_msg(rc == ERR_INTERNAL, "taken: %s", bad[i]);
        }
    }
    arena_fini(&s.a);
}
END_TEST

START_TEST(values_deeper_than_the_cap_are_refused)
{
    auto_buf struct buf row = {0};
    auto_buf struct buf out = {0};
    struct err e = {0};
    struct shape s;
    buf_add_str(&row, "{\"j\":");
    for (int i = 0; i < 300; i++) {
        buf_add_char(&row, '[');
    }
    for (int i = 0; i < 300; i++) {
        buf_add_char(&row, ']');
    }
    buf_add_char(&row, '}');
    shape_init(&s, "[" FIELD("j", KIND("json_type")) "]");
    const char *text = buf_str(&row);

    ck_assert_int_eq(write_rows(&s, RESULT_FULL, &text, 1, &out, &e), ERR_INTERNAL);
    arena_fini(&s.a);
}
END_TEST

START_TEST(a_schema_that_is_none_is_refused)
{
    static const char *const bad[] = {"", "{}", "[{}]",
                                      "[{\"name\":\"r\",\"type\":{\"kind\":\"record_type\"}}]"};
    auto_buf struct buf deep = {0};
    struct arena a;
    struct err e = {0};
    arena_init(&a);

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        ck_assert(!result_schema_make(&a, slice_of(bad[i]), &e));
        ck_assert_str_ne(err_text(&e), "");
    }
    buf_add_str(&deep, "[{\"name\":\"a\",\"type\":");
    for (int i = 0; i < 100; i++) {
        buf_add_str(&deep, "{\"kind\":\"array_type\",\"element_type\":");
    }
    buf_add_str(&deep, "{}");
    for (int i = 0; i < 100; i++) {
        buf_add_char(&deep, '}');
    }
    buf_add_str(&deep, "}]");
    ck_assert(!result_schema_make(&a, buf_slice(&deep), &e));
    arena_fini(&a);
}
END_TEST

START_TEST(escaping_keeps_or_drops_white_space_between_tokens)
{
    auto_buf struct buf kept = {0};
    auto_buf struct buf dropped = {0};

    result_escape(&kept, SLICE("{\"a\": \"x\\\\ y\"}"));
    result_escape_compact(&dropped, SLICE("{\"a\": \"x\\\\ y\"}\r\n\t"));

    ck_assert_str_eq(buf_str(&kept), "{\\\"a\\\": \\\"x\\\\\\\\ y\\\"}");
    ck_assert_str_eq(buf_str(&dropped), "{\\\"a\\\":\\\"x\\\\\\\\ y\\\"}");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("result");
    TCase *t = tcase_create("writer");
    tcase_add_test(t, string_keeps_every_escape);
    tcase_add_test(t, numbers_print_as_javascript_does);
    tcase_add_test(t, bigint_keeps_all_its_digits);
    tcase_add_test(t, bigint_column_with_other_values_stays_json);
    tcase_add_test(t, nan_and_infinity_are_null_as_in_json_stringify);
    tcase_add_test(t, times_become_iso_text);
    tcase_add_test(t, a_time_that_is_none_goes_out_as_it_came);
    tcase_add_test(t, booleans_and_nulls);
    tcase_add_test(t, json_is_text_in_full_and_itself_in_compact);
    tcase_add_test(t, unknown_types_pass_as_native_json);
    tcase_add_test(t, nested_records_are_mapped_by_name);
    tcase_add_test(t, arrays_and_records_may_be_empty_or_odd);
    tcase_add_test(t, columns_are_found_in_any_order_and_the_last_of_two_counts);
    tcase_add_test(t, names_with_quotes_dots_and_unicode_are_found);
    tcase_add_test(t, no_rows_is_an_empty_array);
    tcase_add_test(t, deep_nesting_in_other_order_stays_linear);
    tcase_add_test(t, rows_that_are_no_json_objects_are_refused);
    tcase_add_test(t, values_deeper_than_the_cap_are_refused);
    tcase_add_test(t, a_schema_that_is_none_is_refused);
    tcase_add_test(t, escaping_keeps_or_drops_white_space_between_tokens);
    suite_add_tcase(suite, t);
    return suite_run(suite);
}
