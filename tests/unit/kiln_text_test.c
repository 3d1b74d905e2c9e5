/* What the command line reads and prints: arguments, tables, rows, progress, receipts, log lines.
 */
#include "services/kiln/args.h"
#include "services/kiln/client.h"
#include "services/kiln/kiln.h"
#include "services/kiln/progress.h"
#include "services/kiln/receipt.h"
#include "services/kiln/rows.h"
#include "services/kiln/up_child.h"
#include "tests/support/suite.h"

/* ---- arguments ---- */
struct options {
    bool flag;
    const char *text;
    struct arg_list list;
    int64_t ms;
};
static const struct arg_option table_of[] = {
    {"--flag", ARG_FLAG, offsetof(struct options, flag), NULL, "a flag"},
    {"--text", ARG_TEXT, offsetof(struct options, text), "T", "a text"},
    {"--list", ARG_LIST, offsetof(struct options, list), "L", "a list"},
    {"--time", ARG_SECONDS, offsetof(struct options, ms), "S", "a span"},
};
static const struct arg_spec spec = {.verb = "try",
                                     .words = "[A] B",
                                     .summary = "Tries.",
                                     .min_words = 1,
                                     .max_words = 2,
                                     .options = table_of,
                                     .n = ARRAY_LEN(table_of)};
static struct arena arena;
static char *out_text, *err_text_;
static size_t out_len, err_len;

static enum arg_action read_words(struct options *o, struct arg_list *words,
                                  const char *const *line)
{
    char *argv[16];
    int argc = 0;
    for (; line[argc]; argc++) {
        argv[argc] = arena_strdup(&arena, line[argc]);
    }
    free(out_text);
    free(err_text_);
    FILE *out = open_memstream(&out_text, &out_len), *err = open_memstream(&err_text_, &err_len);
    enum arg_action a = args_read(&spec, &arena, o, argc, argv, words, out, err);
    (void)fclose(out);
    (void)fclose(err);
    return a;
}
#define READ(o, w, ...) read_words(o, w, (const char *const[]){"try", __VA_ARGS__, NULL})

static void set_up(void)
{
    arena_init(&arena);
}

static void tear_down(void)
{
    arena_fini(&arena);
    free(out_text);
    free(err_text_);
    out_text = err_text_ = NULL;
}

START_TEST(options_stand_before_between_and_behind_words)
{
    struct options o = {0};
    struct arg_list w;

    ck_assert_int_eq(
        READ(&o, &w, "--flag", "a", "--text=x=y", "b", "--list", "1", "--list=2", "--time", "1.5"),
        ARG_RUN);

    ck_assert(o.flag);
    ck_assert_str_eq(o.text, "x=y");
    ck_assert_uint_eq(o.list.n, 2);
    ck_assert_str_eq(o.list.items[1], "2");
    ck_assert_int_eq(o.ms, 1500);
    ck_assert_uint_eq(w.n, 2);
    ck_assert_str_eq(w.items[1], "b");
}
END_TEST

START_TEST(two_dashes_end_the_options)
{
    struct options o = {0};
    struct arg_list w;

    ck_assert_int_eq(READ(&o, &w, "--", "--flag"), ARG_RUN);

    ck_assert(!o.flag);
    ck_assert_str_eq(w.items[0], "--flag");
}
END_TEST

START_TEST(wrong_lines_are_usage_errors_that_name_the_word)
{
    struct options o = {0};
    struct arg_list w;

    ck_assert_int_eq(READ(&o, &w, "a", "--nope"), ARG_EXIT_USAGE);
    ck_assert_ptr_nonnull(strstr(err_text_, "--nope is no option"));
    ck_assert_int_eq(READ(&o, &w, "a", "--text"), ARG_EXIT_USAGE);
    ck_assert_ptr_nonnull(strstr(err_text_, "--text has no value"));
    ck_assert_int_eq(READ(&o, &w, "a", "--flag=1"), ARG_EXIT_USAGE);
    ck_assert_int_eq(READ(&o, &w, "a", "--time", "soon"), ARG_EXIT_USAGE);
    ck_assert_int_eq(READ(&o, &w, "--flag"), ARG_EXIT_USAGE);
    ck_assert_ptr_nonnull(strstr(err_text_, "[A] B"));
    ck_assert_int_eq(READ(&o, &w, "a", "b", "c"), ARG_EXIT_USAGE);
    ck_assert_ptr_nonnull(strstr(err_text_, "c is one word too many"));
    ck_assert_uint_eq(out_len, 0);
}
END_TEST

START_TEST(help_goes_to_standard_output_and_names_every_option)
{
    struct options o = {0};
    struct arg_list w;

    ck_assert_int_eq(READ(&o, &w, "--help"), ARG_EXIT_OK);

    for (size_t i = 0; i < ARRAY_LEN(table_of); i++) {
        ck_assert_ptr_nonnull(strstr(out_text, table_of[i].name));
    }
    ck_assert_uint_eq(err_len, 0);
}
END_TEST

/* ---- tables ---- */
static char *printed(struct table *t, size_t width)
{
    struct buf out = {0};
    table_print(t, width, &out);
    table_fini(t);
    return buf_take(&out);
}

START_TEST(numbers_stand_right_and_texts_left)
{
    static const char *const heads[] = {"name", "n"};
    struct table t;
    table_init(&t, heads, 2);
    table_add(&t, "a");
    table_add(&t, "5");
    table_add(&t, "long");
    table_add(&t, "1200.5");

    auto_free char *text = printed(&t, 0);

    ck_assert_str_eq(text, "name       n\n----  ------\na          5\nlong  1200.5\n");
}
END_TEST

START_TEST(wide_and_combining_letters_keep_columns_straight)
{
    static const char *const heads[] = {"k", "v"};
    struct table t;
    table_init(&t, heads, 2);
    table_add(&t, "\xe4\xb8\xad"); /* two columns wide */
    table_add(&t, "x");
    table_add(&t, "e\xcc\x81"); /* e and a combining accent */
    table_add(&t, "y");

    auto_free char *text = printed(&t, 0);

    ck_assert_str_eq(text, "k   v\n--  -\n\xe4\xb8\xad  x\ne\xcc\x81   y\n");
}
END_TEST

START_TEST(control_characters_do_not_reach_the_terminal)
{
    static const char *const heads[] = {"v"};
    struct table t;
    table_init(&t, heads, 1);
    table_add(&t, "a\x1b[31mb\nc\xc2\x9b");

    auto_free char *text = printed(&t, 0);

    ck_assert_ptr_null(strchr(text, '\x1b'));
    ck_assert_ptr_nonnull(strstr(text, "a\\x1b[31mb\\nc\\x9b"));
}
END_TEST

START_TEST(wide_cells_are_cut_to_the_terminal)
{
    static const char *const heads[] = {"a", "b"};
    struct table t;
    table_init(&t, heads, 2);
    table_add(&t, "0123456789x0123456789x");
    table_add(&t, "short");

    auto_free char *text = printed(&t, 20);

    struct slice rest = slice_of(text), line;
    while (slice_cut(&rest, '\n', &line)) {
        ck_assert_uint_le(text_width(line), 20);
    }
    ck_assert_ptr_nonnull(strstr(text, "\xe2\x80\xa6"));
}
END_TEST

START_TEST(last_column_wraps_at_blanks_where_it_may)
{
    static const char *const heads[] = {"k", "why"};
    struct table t;
    table_init(&t, heads, 2);
    t.wraps = true;
    table_add(&t, "x");
    table_add(&t, "one two three four");

    auto_free char *text = printed(&t, 12);

    ck_assert_str_eq(text, "k  why\n-  ---------\nx  one two\n   three\n   four\n");
}
END_TEST

/* ---- rows ---- */
START_TEST(rows_keep_every_digit_and_show_nested_values_as_json)
{
    struct table t;
    size_t n = 0;

    ck_assert_int_eq(rows_table(SLICE("[{\"a\":12345678901234567890.10,\"b\":\"x\\u00e4\\n\","
                                      "\"c\":[{\"d\":\"]}\"}],\"e\":null}]"),
                                &t, &n),
                     0);

    ck_assert_uint_eq(n, 1);
    ck_assert_uint_eq(t.columns, 4);
    ck_assert_str_eq(t.cells[4], "12345678901234567890.10");
    ck_assert_str_eq(t.cells[5], "x\xc3\xa4\\n");
    ck_assert_str_eq(t.cells[6], "[{\"d\":\"]}\"}]");
    ck_assert_str_eq(t.cells[7], "null");
    table_fini(&t);
}
END_TEST

START_TEST(later_rows_are_read_by_name)
{
    struct table t;
    size_t n = 0;

    ck_assert_int_eq(rows_table(SLICE("[{\"a\":1,\"b\":2},{\"b\":4,\"a\":3},{\"b\":5}]"), &t, &n),
                     0);

    ck_assert_uint_eq(n, 3);
    ck_assert_str_eq(t.cells[4], "3");
    ck_assert_str_eq(t.cells[5], "4");
    ck_assert_str_eq(t.cells[6], "");
    table_fini(&t);
}
END_TEST

START_TEST(what_is_no_array_of_rows_is_refused)
{
    static const char *const bad[] = {
        "",           "{}",           "[1]",           "[{\"a\":1}",   "[{\"a\"}]",
        "[{\"a\":}]", "[{\"a\":1},]", "[{\"a\":\"x}]", "[{\"a\":[1}]", "[] x"};
    struct table t;
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(bad) - 1; i++) {
        ck_assert_msg(rows_table(slice_of(bad[i]), &t, &n) == -1, "%s", bad[i]);
    }
    ck_assert_int_eq(rows_table(SLICE("[]"), &t, &n), 0);
    ck_assert_uint_eq(n, 0);
    table_fini(&t);
}
END_TEST

/* ---- progress and receipt ---- */
static json_t *parsed(const char *text)
{
    struct err e = {0};
    json_t *v = json_parse(slice_of(text), &e);
    ck_assert_msg(v != NULL, "%s", e.text);
    return v;
}

START_TEST(progress_tells_targets_rows_and_time)
{
    json_t *run = parsed("{\"status\":\"PENDING\",\"progress\":{\"targets\":4,\"done\":1,"
                         "\"rows\":1234567,\"stage\":\"building\"}}");
    auto_buf struct buf plain = {0}, bar = {0};

    progress_line(run, 3400, 0, &plain);
    progress_line(run, 125000, 80, &bar);

    ck_assert_str_eq(buf_str(&plain), "building 1/4 targets, 1.2 M rows, 3.4 s");
    ck_assert_str_eq(buf_str(&bar),
                     "[######..................] building 1/4 targets, 1.2 M rows, 2 min 5 s");
    json_decref(run);
}
END_TEST

START_TEST(receipt_names_table_and_generation_or_the_reason)
{
    json_t *mixed = parsed(
        "{\"served\":\"mixed\",\"reason\":\"never_built\",\"sources\":[{\"name\":\"a\",\"served\":"
        "\"baked\",\"table\":\"\\\"s\\\".\\\"t\\\"\",\"generation\":\"G\",\"dataAsOf\":\"2026\"},"
        "{\"name\":\"b\",\"served\":\"live\",\"reason\":\"never_built\"}]}");
    json_t *bare = parsed("{\"served\":\"live\",\"reason\":\"not_persisted\",\"sources\":[]}");
    auto_buf struct buf one = {0}, two = {0}, three = {0};

    receipt_line(mixed, &one);
    receipt_line(bare, &two);
    receipt_line(NULL, &three);

    ck_assert_str_eq(buf_str(&one), "mixed: a from \"s\".\"t\" (generation G, data as of 2026); b "
                                    "live, never_built");
    ck_assert_str_eq(buf_str(&two), "live: not_persisted");
    ck_assert_str_eq(buf_str(&three), "no receipt came with the answer");
    json_decref(mixed);
    json_decref(bare);
}
END_TEST

/* ---- a child's last words ---- */
static bool sentence_is(const char *line, const char *wanted)
{
    auto_buf struct buf out = {0};
    bool is_error = false;
    up_child_sentence(slice_of(line), &out, &is_error);
    ck_assert_str_eq(buf_str(&out), wanted);
    return is_error;
}

START_TEST(last_words_are_the_error_of_a_log_line_or_the_line)
{
    ck_assert(sentence_is("{\"ts\":\"x\",\"level\":\"error\",\"event\":\"service.start\",\"error\":"
                          "\"port 4000 is taken\"}",
                          "port 4000 is taken"));
    ck_assert(!sentence_is("{\"ts\":\"x\",\"level\":\"info\",\"event\":\"service.started\"}",
                           "service.started"));
    ck_assert(sentence_is("2026-01-01T00:00:00.000Z error planner service.start part=http "
                          "error=\"port \\\"4000\\\" is taken\"",
                          "port \"4000\" is taken"));
    ck_assert(!sentence_is("2026-01-01T00:00:00.000Z info  planner service.started parts=3",
                           "planner service.started parts=3"));
    ck_assert(sentence_is("kiln-planner: KILN_STORE_URL is missing\n",
                          "kiln-planner: KILN_STORE_URL is missing"));
    ck_assert(!sentence_is("", ""));
}
END_TEST

/* ---- URLs and exit codes ---- */
START_TEST(path_segments_are_encoded)
{
    auto_buf struct buf one = {0}, many = {0};

    client_encode(&one, "a/b c\xc3\xa4%", false);
    client_encode(&many, "dir/m.malloy", true);

    ck_assert_str_eq(buf_str(&one), "a%2Fb%20c%C3%A4%25");
    ck_assert_str_eq(buf_str(&many), "dir/m.malloy");
}
END_TEST

START_TEST(exit_codes_are_those_that_are_documented)
{
    ck_assert_int_eq(kiln_exit_of(0), 0);
    ck_assert_int_eq(kiln_exit_of(ERR_INTERNAL), 1);
    ck_assert_int_eq(kiln_exit_of(ERR_ARG), 2);
    ck_assert_int_eq(kiln_exit_of(ERR_HTTP_UNREACHABLE), 3);
    ck_assert_int_eq(kiln_exit_of(ERR_CONFLICT), 4);
    ck_assert_int_eq(kiln_exit_of(ERR_NOT_FOUND), 5);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("kiln_text");
    TCase *t = tcase_create("text");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, options_stand_before_between_and_behind_words);
    tcase_add_test(t, two_dashes_end_the_options);
    tcase_add_test(t, wrong_lines_are_usage_errors_that_name_the_word);
    tcase_add_test(t, help_goes_to_standard_output_and_names_every_option);
    tcase_add_test(t, numbers_stand_right_and_texts_left);
    tcase_add_test(t, wide_and_combining_letters_keep_columns_straight);
    tcase_add_test(t, control_characters_do_not_reach_the_terminal);
    tcase_add_test(t, wide_cells_are_cut_to_the_terminal);
    tcase_add_test(t, last_column_wraps_at_blanks_where_it_may);
    tcase_add_test(t, rows_keep_every_digit_and_show_nested_values_as_json);
    tcase_add_test(t, later_rows_are_read_by_name);
    tcase_add_test(t, what_is_no_array_of_rows_is_refused);
    tcase_add_test(t, progress_tells_targets_rows_and_time);
    tcase_add_test(t, receipt_names_table_and_generation_or_the_reason);
    tcase_add_test(t, last_words_are_the_error_of_a_log_line_or_the_line);
    tcase_add_test(t, path_segments_are_encoded);
    tcase_add_test(t, exit_codes_are_those_that_are_documented);
    suite_add_tcase(s, t);
    return suite_run(s);
}
