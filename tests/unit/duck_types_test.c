/* Every type of DuckDB as text and as JSON. */
#include "common/duck/duck_text.h"
#include "common/duck/duck_type.h"
#include "tests/support/suite.h"
#include "tests/unit/duck_fixture.h"

#include <stdio.h>
#include <unistd.h>

static const struct {
    const char *type, *sql, *json;
} cases[] = {
#define DUCK_CASE(type, sql, json, kept) {type, sql, json},
#include "tests/support/duck_cases.def"
#undef DUCK_CASE
};

/* The first line that differs fails the test. */
static void same_rows(const char *ours, const char *theirs)
{
    struct slice a = slice_of(ours);
    struct slice b = slice_of(theirs);
    struct slice x;
    struct slice y;
    while (slice_cut(&a, '\n', &x)) {
        ck_assert(slice_cut(&b, '\n', &y));
        ck_assert_msg(slice_eq(x, y), "we print %.*s they print %.*s", SLICE_FMT(x), SLICE_FMT(y));
    }
    ck_assert_uint_eq(b.len, 0);
}

static bool is_json_text(const char *type)
{
    static const char *const nested[] = {"LIST", "ARRAY", "STRUCT", "MAP", "UNION", "GEOMETRY"};
    for (size_t i = 0; i < ARRAY_LEN(nested); i++) {
        if (strcmp(nested[i], type) == 0) {
            return true;
        }
    }
    return false;
}

START_TEST(text_is_what_a_cast_to_varchar_gives)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        /* DuckDB leaves the 0 before the point out where no digit can stand. */
        if (is_json_text(cases[i].type) || strstr(cases[i].sql, "DECIMAL(38,38)")) {
            continue;
        }
        const char *ours = rows_of(arena_printf(&arena, "SELECT %s", cases[i].sql), DUCK_FORM_TEXT);
        const char *theirs =
            rows_of(arena_printf(&arena, "SELECT (%s)::VARCHAR", cases[i].sql), DUCK_FORM_TEXT);
        ck_assert_msg(strcmp(ours, theirs) == 0, "%s: we say %s they say %s", cases[i].sql, ours,
                      theirs);
    }
}
END_TEST

START_TEST(json_is_exact)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *row =
            rows_of(arena_printf(&arena, "SELECT %s AS \"v\"\"\"", cases[i].sql), DUCK_FORM_JSON);
        const char *wanted = arena_printf(&arena, "{\"v\\\"\":%s}\n", cases[i].json);
        ck_assert_msg(strcmp(row, wanted) == 0, "%s: %s instead of %s", cases[i].sql, row, wanted);
        ck_assert_msg(duck_is_strict_json(slice_make(row, strlen(row))), "%s", row);
    }
}
END_TEST

/* Nested text is the JSON of the value. */
START_TEST(nested_text_is_json)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (!is_json_text(cases[i].type) || strcmp(cases[i].type, "GEOMETRY") == 0) {
            continue;
        }
        const char *text = rows_of(arena_printf(&arena, "SELECT %s", cases[i].sql), DUCK_FORM_TEXT);
        const char *wanted = strcmp(cases[i].json, "null") == 0 ? "NULL" : cases[i].json;
        ck_assert_str_eq(text, arena_printf(&arena, "%s\n", wanted));
    }
}
END_TEST

/* ---- is the table complete? ---- */
struct other {
    const char *name, *type; /* type NULL: excluded */
};
static const struct other others[] = {
#define DUCK_ALIAS(name, type) {name, type},
#define DUCK_EXCLUDED(name, reason) {name, NULL},
#include "tests/support/duck_aliases.def"
#undef DUCK_ALIAS
#undef DUCK_EXCLUDED
};

static bool is_in_table(struct slice name)
{
    size_t n;
    const struct duck_type_doc *docs = duck_type_docs(&n);
    for (size_t i = 0; i < n; i++) {
        if (slice_is(name, docs[i].name)) {
            return true;
        }
    }
    return false;
}

static const struct other *other_of(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        if (slice_is(name, others[i].name)) {
            return &others[i];
        }
    }
    return NULL;
}

START_TEST(every_name_of_a_type_is_in_the_table_or_said_to_be_another_name_or_excluded)
{
    size_t n_named = 0, n_others = 0;
    struct slice rest = slice_of(
        rows_of("SELECT DISTINCT upper(type_name), logical_type FROM duckdb_types() ORDER BY ALL",
                DUCK_FORM_TEXT));
    struct slice type;
    while (slice_cut(&rest, '\n', &type)) {
        struct slice name;
        ck_assert(slice_cut(&type, '|', &name));
        const struct other *o = other_of(name);
        n_others += o != NULL;
        n_named += !o;
        ck_assert_msg(o || is_in_table(name),
                      "%.*s is neither in duck_types.def nor in duck_aliases.def", SLICE_FMT(name));
        ck_assert_msg(!o || !is_in_table(name), "%.*s is in both", SLICE_FMT(name));
        ck_assert_msg(o ? !o->type || slice_is(type, o->type) : slice_eq(type, name),
                      "%.*s is a %.*s", SLICE_FMT(name), SLICE_FMT(type));
        ck_assert_msg(!o || !o->type || is_in_table(type), "%.*s is missing in duck_types.def",
                      SLICE_FMT(type));
    }
    size_t n;
    (void)duck_type_docs(&n);
    ck_assert_uint_eq(n_named, n); /* nothing in the table that DuckDB does not have */
    ck_assert_uint_eq(n_others, ARRAY_LEN(others));
}
END_TEST

START_TEST(every_type_of_the_table_has_a_case)
{
    size_t n;
    const struct duck_type_doc *docs = duck_type_docs(&n);
    for (size_t i = 0; i < n; i++) {
        bool has_case = false;
        for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
            has_case = has_case || strcmp(cases[k].type, docs[i].name) == 0;
        }
        ck_assert_msg(has_case, "%s has no case in duck_cases.def", docs[i].name);
    }
}
END_TEST

START_TEST(column_of_an_excluded_type_is_refused_in_one_sentence)
{
    const char *why;
    ck_assert_int_eq(fails("SELECT get_type(1) AS t", &why), ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(why, "cast it to"));
    ck_assert_ptr_null(strchr(why, '\n'));
}
END_TEST

START_TEST(many_doubles_are_printed_as_duckdb_prints_them)
{
    for (int e = 0; e < 40; e += 3) {
        const char *values = arena_printf(
            &arena, "(SELECT (hash(i) / 1e%d)::DOUBLE * (i - 500) AS d FROM range(1000) t(i))", e);
        const char *ours =
            rows_of(arena_printf(&arena, "SELECT d FROM %s", values), DUCK_FORM_TEXT);
        const char *theirs =
            rows_of(arena_printf(&arena, "SELECT d::VARCHAR FROM %s", values), DUCK_FORM_TEXT);
        same_rows(ours, theirs);
    }
}
END_TEST

/* DuckDB's own text of a FLOAT is not always the shortest: 15000000512.0 for 1.5e10. */
START_TEST(many_floats_are_printed_as_the_shortest_text_that_reads_back)
{
    for (int e = 0; e < 40; e += 3) {
        const char *rows = rows_of(
            arena_printf(&arena,
                         "SELECT f, f::VARCHAR FROM (SELECT (hash(i) / 1e%d)::FLOAT AS f FROM "
                         "range(1000) t(i))",
                         e),
            DUCK_FORM_TEXT);
        struct slice rest = slice_of(rows);
        struct slice theirs;
        while (slice_cut(&rest, '\n', &theirs)) {
            struct slice ours;
            ck_assert(slice_cut(&theirs, '|', &ours));
            ck_assert_msg(strtof(ours.p, NULL) == strtof(theirs.p, NULL) && ours.len <= theirs.len,
                          "%.*s is not %.*s", SLICE_FMT(ours), SLICE_FMT(theirs));
        }
    }
}
END_TEST

START_TEST(days_of_a_millennium_and_around_the_first_year_are_printed_right)
{
    const char *days =
        "(SELECT DATE '0002-01-01' - i::INTEGER AS d FROM range(1500) t(i) UNION ALL "
        "SELECT DATE '1600-01-01' + (i * 7)::INTEGER FROM range(50000) t(i)) ORDER BY "
        "d";
    const char *ours = rows_of(arena_printf(&arena, "SELECT d FROM %s", days), DUCK_FORM_TEXT);
    const char *theirs =
        rows_of(arena_printf(&arena, "SELECT d::VARCHAR FROM %s", days), DUCK_FORM_TEXT);
    same_rows(ours, theirs);
}
END_TEST

START_TEST(text_that_is_no_utf8_is_refused)
{
    char dir[] = "/tmp/kt-utf8.XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    const char *csv = arena_printf(&arena, "%s/bad.csv", dir);
    FILE *f = fopen(csv, "w");
    ck_assert_ptr_nonnull(f);
    (void)fputs("a,b\nx,\xff\xfe\n", f);
    (void)fclose(f);
    const char *const dirs[] = {dir, NULL};
    duck_reopen(&(struct duck_settings){
        .what = "connection 'duckdb'", .memory_bytes = UINT64_C(512) << 20, .allowed_dirs = dirs});
    const char *parquet = arena_printf(&arena, "%s/bad.parquet", dir);
    (void)rows_of(arena_printf(&arena, "COPY (SELECT '\\xFF'::BLOB AS v) TO '%s'", parquet),
                  DUCK_FORM_TEXT);

    const char *why;
    ck_assert_int_lt(fails(arena_printf(&arena, "SELECT * FROM '%s'", csv), &why), 0);
    ck_assert_ptr_nonnull(strcasestr(why, "utf-8"));
    ck_assert_int_lt(
        fails(arena_printf(&arena, "SELECT * FROM read_parquet('%s', binary_as_string = true)",
                           parquet),
              &why),
        0);
    ck_assert_ptr_nonnull(strcasestr(why, "utf"));
    (void)remove(csv);
    (void)remove(parquet);
    (void)rmdir(dir);
}
END_TEST

START_TEST(json_by_the_standard_is_told_from_what_duckdb_takes)
{
    static const char *const good[] = {"null",
                                       "0",
                                       "-1.5e+3",
                                       "\"a\\u00e4\"",
                                       "[]",
                                       "{}",
                                       "[1, [2, {\"a\": {}}]]",
                                       " [ ] ",
                                       "{\"a\" : 1 , \"b\" : [ ] }"};
    static const char *const bad[] = {
        "",     "nul",        "01",      "+1",       ".5",     "1.",      "1e",          "NaN",
        "[1,]", "{,}",        "{\"a\"}", "[1 2]",    "\"\n\"", "\"\\x\"", "\"\\u12g4\"", "[",
        "]",    "{\"a\":1,}", "1 2",     "Infinity", "{a:1}",  "\"a"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        ck_assert_msg(duck_is_strict_json(slice_of(good[i])), "%s", good[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        ck_assert_msg(!duck_is_strict_json(slice_of(bad[i])), "%s", bad[i]);
    }
    auto_buf struct buf deep = {0};
    for (int i = 0; i < 100000; i++) {
        buf_add_char(&deep, '[');
    }
    ck_assert(!duck_is_strict_json(buf_slice(&deep)));
}
END_TEST

START_TEST(a_variant_is_refused_with_the_remedy)
{
    const char *why;
    ck_assert_int_eq(fails("SELECT 1::VARIANT", &why), ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(why, "cast it to JSON"));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("duck_types");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, duck_setup, duck_teardown);
    tcase_add_test(tc, text_is_what_a_cast_to_varchar_gives);
    tcase_add_test(tc, json_is_exact);
    tcase_add_test(tc, nested_text_is_json);
    tcase_add_test(tc, every_name_of_a_type_is_in_the_table_or_said_to_be_another_name_or_excluded);
    tcase_add_test(tc, every_type_of_the_table_has_a_case);
    tcase_add_test(tc, column_of_an_excluded_type_is_refused_in_one_sentence);
    tcase_add_test(tc, many_doubles_are_printed_as_duckdb_prints_them);
    tcase_add_test(tc, many_floats_are_printed_as_the_shortest_text_that_reads_back);
    tcase_add_test(tc, days_of_a_millennium_and_around_the_first_year_are_printed_right);
    tcase_add_test(tc, text_that_is_no_utf8_is_refused);
    tcase_add_test(tc, json_by_the_standard_is_told_from_what_duckdb_takes);
    tcase_add_test(tc, a_variant_is_refused_with_the_remedy);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
