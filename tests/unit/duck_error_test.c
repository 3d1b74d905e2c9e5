/* Statements that fail, and those of a size or a memory past the limits. */
#include "tests/unit/duck_fixture.h"
#include "tests/unit/duck_suites.h"

START_TEST(errors_are_one_sentence_with_a_code_of_ours)
{
    static const struct {
        const char *sql;
        int code;
        const char *says;
    } wrong[] = {
        {"SELECT FROM x y z", ERR_WH_SQL, "syntax error"},
        {"SELECT x FROM (SELECT 1 AS a)", ERR_WH_SQL, "\"x\" not found"},
        {"SELECT * FROM missing", ERR_WH_MISSING, "missing does not exist"},
        {"SELECT * FROM nowhere.missing", ERR_WH_MISSING, "does not exist"},
        {"SELECT 'x'::INTEGER", ERR_WH_SQL, "Conversion"},
        {"SELECT i::TINYINT FROM range(300) t(i)", ERR_WH_SQL, "Conversion"},
        {"SELECT 1; SELECT 2", ERR_WH_SQL, "only one SELECT"},
        {"", ERR_WH_SQL, "only one SELECT"},
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        const char *why;
        int rc = fails(wrong[i].sql, &why);
        ck_assert_msg(rc == wrong[i].code, "%s: %d %s", wrong[i].sql, rc, why);
        ck_assert_msg(strstr(why, wrong[i].says), "%s: %s", wrong[i].sql, why);
        ck_assert_int_eq(strncmp(why, "connection 'duckdb': ", 21), 0);
        ck_assert_ptr_null(strchr(why, '\n'));
        ck_assert_ptr_null(strstr(why, "LINE 1"));
    }
}
END_TEST

static const char *ors(int n)
{
    auto_buf struct buf sql = {0};
    buf_add_str(&sql, "SELECT count(*) FROM range(10) t(i) WHERE i = 0");
    for (int i = 1; i <= n; i++) {
        buf_addf(&sql, " OR i = %d", i);
    }
    return arena_strdup(&arena, buf_str(&sql));
}

START_TEST(a_statement_that_nobody_could_interrupt_is_not_planned)
{
    const char *why;
    ck_assert_int_eq(fails(ors(50000), &why), ERR_WH_SQL);
    ck_assert_ptr_nonnull(strstr(why, "joins 50000 terms"));
    ck_assert_str_eq(rows_of(ors(2000), DUCK_FORM_TEXT), "10\n");
    ck_assert_str_eq(rows_of("SELECT 'a or b' AS \"x and y\", 1 AS oracle", DUCK_FORM_TEXT),
                     "a or b|1\n");
    auto_buf struct buf deep = {0};
    buf_add_str(&deep, "SELECT ");
    for (int i = 0; i < 50000; i++) {
        buf_add_char(&deep, '(');
    }
    ck_assert_int_eq(fails(buf_str(&deep), &why), ERR_WH_SQL);
    buf_clear(&deep);
    buf_add_str(&deep, "SELECT ");
    for (int i = 0; i < 20000; i++) {
        buf_add_str(&deep, "-(");
    }
    buf_add_str(&deep, "1");
    for (int i = 0; i < 20000; i++) {
        buf_add_char(&deep, ')');
    }
    ck_assert_int_eq(fails(buf_str(&deep), &why), ERR_WH_SQL);
    ck_assert_str_eq(rows_of("SELECT 1", DUCK_FORM_TEXT), "1\n");
}
END_TEST

START_TEST(ten_thousand_columns_are_read)
{
    auto_buf struct buf sql = {0};
    buf_add_str(&sql, "SELECT ");
    for (int i = 0; i < 10000; i++) {
        buf_addf(&sql, "%si + %d AS c%d", i ? ", " : "", i, i);
    }
    buf_add_str(&sql, " FROM range(20) t(i)");
    struct told t;
    told_init(&t, buf_str(&sql));
    t.form = DUCK_FORM_JSON;
    told_start(&t);
    ck_assert_msg(told_end(&t) == 0, "%s", t.job.err.text);
    ck_assert_uint_eq(t.n_rows, 20);
    ck_assert_uint_gt(t.n_pages, 5); /* cut by bytes, not by rows */
    buf_fini(&t.rows);
}
END_TEST

START_TEST(a_query_past_the_memory_limit_is_refused_and_the_instance_goes_on)
{
    duck_reopen(&(struct duck_settings){
        .what = "connection 'duckdb'", .threads = 2, .memory_bytes = UINT64_C(60) << 20});
    const char *big =
        "SELECT count(*) FROM (SELECT DISTINCT hash(i) || 'some more text to keep' FROM "
        "range(3000000) t(i))";
    const char *why;
    ck_assert_int_eq(fails(big, &why), ERR_QUERY_MEMORY);
    ck_assert_ptr_null(strstr(why, "Possible solutions"));
    ck_assert_str_eq(rows_of("SELECT 1", DUCK_FORM_TEXT), "1\n");

    duck_reopen(&(struct duck_settings){.what = "connection 'duckdb'",
                                        .threads = 2,
                                        .memory_bytes = UINT64_C(100) << 20,
                                        .temp_dir = in_dir("spill"),
                                        .temp_bytes = UINT64_C(4) << 30});
    ck_assert_str_eq(rows_of(big, DUCK_FORM_TEXT), "3000000\n");
}
END_TEST

TCase *duck_error_tests(void)
{
    TCase *tc = tcase_create("error");
    tcase_set_timeout(tc, 180);
    tcase_add_checked_fixture(tc, duck_dir_setup, duck_dir_teardown);
    tcase_add_test(tc, errors_are_one_sentence_with_a_code_of_ours);
    tcase_add_test(tc, a_statement_that_nobody_could_interrupt_is_not_planned);
    tcase_add_test(tc, ten_thousand_columns_are_read);
    tcase_add_test(tc, a_query_past_the_memory_limit_is_refused_and_the_instance_goes_on);
    return tc;
}
