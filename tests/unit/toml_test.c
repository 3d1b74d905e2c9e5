#include "common/toml/toml.h"
#include "tests/support/suite.h"

static struct arena arena;
static struct toml_doc doc;

static void setup(void)
{
    arena_init(&arena);
}

static void teardown(void)
{
    arena_fini(&arena);
}

static void parse(const char *text)
{
    struct err e = {0};
    ck_assert_msg(toml_parse(&arena, slice_of(text), &doc, &e) == 0, "%s", err_text(&e));
}

static const struct toml_item *need(const char *path)
{
    const struct toml_item *item = toml_find(&doc, path);
    ck_assert_msg(item != NULL, "no %s", path);
    return item;
}

START_TEST(every_kind_of_value_is_read)
{
    parse("s = \"a\\tb\"\ni = -7\nf = 1.5\nb = true\nd = 1979-05-27\na = [1, 2, 3]\n"
          "[t]\nx = 0x10\n");
    ck_assert_str_eq(need("s")->text, "a\tb");
    ck_assert_int_eq(need("s")->kind, TOML_STRING);
    ck_assert_int_eq(need("i")->i, -7);
    ck_assert_int_eq(need("i")->kind, TOML_INT);
    ck_assert_double_eq(need("f")->d, 1.5);
    ck_assert_int_eq(need("f")->kind, TOML_FLOAT);
    ck_assert_int_eq(need("b")->i, 1);
    ck_assert_int_eq(need("b")->kind, TOML_BOOL);
    ck_assert_int_eq(need("d")->kind, TOML_OTHER);
    ck_assert_int_eq(need("a")->kind, TOML_ARRAY);
    ck_assert_int_eq(need("a")->i, 3);
    ck_assert_int_eq(need("a.2")->i, 3);
    ck_assert_int_eq(need("t")->kind, TOML_TABLE);
    ck_assert_int_eq(need("t.x")->i, 16);
    ck_assert_ptr_null(toml_find(&doc, "t.y"));
}
END_TEST

START_TEST(places_count_from_one)
{
    parse("\n  key = 1\n[t]\n\nx = \"y\"\n");
    ck_assert_int_eq(need("key")->line, 2);
    ck_assert_int_eq(need("key")->column, 9);
    ck_assert_int_eq(need("t")->line, 3);
    ck_assert_int_eq(need("t.x")->line, 5);
}
END_TEST

START_TEST(tables_come_in_the_order_of_the_file_after_the_values)
{
    parse("z = 1\na = 2\n[zebra]\nb = 1\na = 2\n[[dataset]]\nname = \"one\"\n[[dataset]]\n"
          "name = \"two\"\n[apple]\n");
    static const char *const order[] = {
        "a",       "z",         "zebra",          "zebra.a",   "zebra.b",
        "dataset", "dataset.0", "dataset.0.name", "dataset.1", "dataset.1.name",
        "apple"};
    ck_assert_uint_eq(doc.n, ARRAY_LEN(order));
    for (size_t i = 0; i < doc.n; i++) {
        ck_assert_str_eq(doc.items[i].path, order[i]);
    }
    ck_assert_str_eq(need("dataset.1.name")->text, "two");
    ck_assert_int_eq(need("dataset")->i, 2);
}
END_TEST

START_TEST(keys_with_dots_are_quoted_in_paths)
{
    parse("\"a.b\".c = 1\na.b.c = 2\n\"\" = 3\n");
    ck_assert_int_eq(need("\"a.b\".c")->i, 1);
    ck_assert_int_eq(need("a.b.c")->i, 2);
    ck_assert_int_eq(need("\"\"")->i, 3);
}
END_TEST

START_TEST(an_empty_document_has_no_items)
{
    parse("");
    ck_assert_uint_eq(doc.n, 0);
    struct err e = {0};
    ck_assert_int_eq(toml_parse(&arena, SLICE_NONE, &doc, &e), 0);
    parse("# only a comment");
    ck_assert_uint_eq(doc.n, 0);
}
END_TEST

START_TEST(what_does_not_parse_is_refused_with_its_place)
{
    static const struct {
        const char *text, *place;
    } bad[] = {{"a = 1\nb = \n", "line 2, "},
               {"a = 1\na = 2\n", "line 2, "},
               {"[t\n", "line 1, "},
               {"a = \"x", "line 1, "},
               {"a = 99999999999999999999", "line 1, "},
               {"a = \"\\u0000\"", "line 1, column 5: a holds a NUL"},
               {"a = \"\xff\"", "line 1, "}};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err e = {0};
        ck_assert_int_eq(toml_parse(&arena, slice_of(bad[i].text), &doc, &e), ERR_CONF_SYNTAX);
        ck_assert_msg(strncmp(e.text, bad[i].place, strlen(bad[i].place)) == 0, "%s", e.text);
    }
}
END_TEST

START_TEST(deep_nesting_is_refused_not_crashed_on)
{
    auto_free char *text = xcalloc(1, 20001);
    memset(text, '[', 20000);
    text[0] = 'a';
    text[1] = '=';
    struct err e = {0};
    ck_assert_int_eq(toml_parse(&arena, slice_of(text), &doc, &e), ERR_CONF_SYNTAX);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("toml");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, every_kind_of_value_is_read);
    tcase_add_test(t, places_count_from_one);
    tcase_add_test(t, tables_come_in_the_order_of_the_file_after_the_values);
    tcase_add_test(t, keys_with_dots_are_quoted_in_paths);
    tcase_add_test(t, an_empty_document_has_no_items);
    tcase_add_test(t, what_does_not_parse_is_refused_with_its_place);
    tcase_add_test(t, deep_nesting_is_refused_not_crashed_on);
    Suite *s = suite_create("toml");
    suite_add_tcase(s, t);
    return suite_run(s);
}
