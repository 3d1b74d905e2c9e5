#include "services/planner/store/set_json.h"
#include "services/planner/store/sql_split.h"
#include "services/planner/store/store_sql.h"
#include "tests/support/suite.h"

static struct arena arena;

static void set_up(void)
{
    arena_init(&arena);
}

static void tear_down(void)
{
    arena_fini(&arena);
}

static const char *split(const char *text)
{
    struct buf out = {0};
    struct slice rest = slice_of(text), stmt;
    while (sql_next(&rest, &stmt)) {
        buf_addf(&out, "[%.*s]", SLICE_FMT(stmt));
    }
    char *all = arena_strdup(&arena, buf_str(&out));
    buf_fini(&out);
    return all;
}

START_TEST(statements_are_cut_at_semicolons_outside_quotes_and_comments)
{
    ck_assert_str_eq(split("a; b ;\n\nc"), "[a][b][c]");
    ck_assert_str_eq(split(""), "");
    ck_assert_str_eq(split(" ;; -- only; this\n ;"), "");
    ck_assert_str_eq(split("x ';' \";\" ''';'; y"), "[x ';' \";\" ''';'][y]");
    ck_assert_str_eq(split("f $$ a; 'b $$; g"), "[f $$ a; 'b $$][g]");
    ck_assert_str_eq(split("-- it's; so\nselect 1 -- one; two\n, 2; z"),
                     "[select 1 -- one; two\n, 2][z]");
    ck_assert_str_eq(split("open 'quote; never ends"), "[open 'quote; never ends]");
}
END_TEST

START_TEST(arrays_and_bytes_are_written_as_postgresql_reads_them)
{
    struct store_stmts b;
    stmts_init(&b, &arena);
    const char *texts[] = {"a", "b \"c\" \\", "", "NULL", "{,}"};
    uint64_t ids[] = {7, UINT64_C(9223372036854775807)};

    stmt_add(&b, NULL, "", 8);
    stmt_texts(&b, texts, 5);
    stmt_texts(&b, texts, 0);
    stmt_ids(&b, ids, 2);
    stmt_bytes(&b, slice_make("\0\xff", 2));
    stmt_bytes(&b, SLICE(""));
    stmt_bytes(&b, SLICE_NONE);
    stmt_id(&b, 0);
    stmt_flag(&b, true);
    stmts_end(&b);

    const char *const *args = b.items[0].params;
    ck_assert_str_eq(args[0], "{\"a\",\"b \\\"c\\\" \\\\\",\"\",\"NULL\",\"{,}\"}");
    ck_assert_str_eq(args[1], "{}");
    ck_assert_str_eq(args[2], "{7,9223372036854775807}");
    ck_assert_str_eq(args[3], "\\x00ff");
    ck_assert_str_eq(args[4], "\\x");
    ck_assert_ptr_null(args[5]);
    ck_assert_ptr_null(args[6]);
    ck_assert_str_eq(args[7], "t");
}
END_TEST

START_TEST(binding_set_survives_its_json)
{
    struct core_column column = {
        .name = "gr\xc3\xbcn", .data_type = "ARRAY", .element_type = "text", .nullable = true};
    const char *shared[] = {"x", "y"};
    struct core_binding binding = {.source_id = "s@mpkg://p/m.malloy",
                                   .source_name = "s",
                                   .model = "m.malloy",
                                   .target = {.target_id = 3,
                                              .place_id = 4,
                                              .warehouse = "w",
                                              .in_place = true,
                                              .physical = "\"a\".\"b\""},
                                   .generation = {.id = "01",
                                                  .token = UINT64_C(1766012345678901),
                                                  .rows = 7,
                                                  .columns = {&column, 1}},
                                   .window_s = 60,
                                   .fallback = 2,
                                   .shared_by = shared,
                                   .n_shared_by = 2};
    struct core_unbaked unbaked = {"t@mpkg://p/m.malloy", "build_failed", "because"};
    struct core_binding_set set = {.bindings = &binding,
                                   .n = 1,
                                   .unbaked = &unbaked,
                                   .n_unbaked = 1},
                            got = {0};
    struct err e;

    int rc = set_json_parse(&arena, slice_of(set_json_text(&arena, &set)), &got, &e);

    ck_assert_int_eq(rc, 0);
    ck_assert_uint_eq(got.n, 1);
    ck_assert_uint_eq(got.bindings[0].target.place_id, 4);
    ck_assert_ptr_null(got.bindings[0].target.connection);
    ck_assert_uint_eq(got.bindings[0].generation.token, binding.generation.token);
    ck_assert_str_eq(got.bindings[0].generation.columns.items[0].name, column.name);
    ck_assert_str_eq(got.bindings[0].shared_by[1], "y");
    ck_assert_int_eq(got.bindings[0].fallback, 2);
    ck_assert_str_eq(got.unbaked[0].text, "because");
}
END_TEST

START_TEST(json_of_another_shape_is_refused)
{
    struct core_binding_set set;
    struct core_columns columns;
    struct err e;

    ck_assert_int_eq(set_json_parse(&arena, SLICE("{}"), &set, &e), ERR_STORE_SCHEMA);
    ck_assert_int_eq(set_json_parse(&arena, SLICE("{"), &set, &e), ERR_STORE_SCHEMA);
    ck_assert_int_eq(columns_json_parse(&arena, SLICE("{}"), &columns, &e), ERR_STORE_SCHEMA);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("store_sql");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, statements_are_cut_at_semicolons_outside_quotes_and_comments);
    tcase_add_test(tc, arrays_and_bytes_are_written_as_postgresql_reads_them);
    tcase_add_test(tc, binding_set_survives_its_json);
    tcase_add_test(tc, json_of_another_shape_is_refused);
    Suite *s = suite_create("store_sql");
    suite_add_tcase(s, tc);
    return suite_run(s);
}
