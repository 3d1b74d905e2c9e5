#include "common/json/json.h"
#include "common/log/log.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <unistd.h>

static char line[8192];

static int saved_stderr;
static FILE *captured;

/* stderr goes to a file from here until capture_end() has read what came. */
static void capture_start(void)
{
    captured = tmpfile();
    ck_assert_ptr_nonnull(captured);
    saved_stderr = dup(STDERR_FILENO);
    ck_assert_int_ge(dup2(fileno(captured), STDERR_FILENO), 0);
}

static void capture_end(void)
{
    ck_assert_int_ge(dup2(saved_stderr, STDERR_FILENO), 0);
    close(saved_stderr);
    rewind(captured);
    size_t n = fread(line, 1, sizeof line - 1, captured);
    line[n] = '\0';
    fclose(captured);
}

static json_t *captured_json(void)
{
    struct err e = {0};
    json_t *v = json_parse(slice_of(line), &e);
    ck_assert_msg(v != NULL, "%s in %s", err_text(&e), line);
    return v;
}

START_TEST(a_json_line_has_its_fields_as_members)
{
    capture_start();
    log_setup("kiln-test", LOG_INFO, LOG_FORM_JSON);
    log_info("plan.loaded", "plan=%d name=%s empty= path=a=b", 7, log_q("a \"b\"\n\\ \x01 c"));
    capture_end();
    json_t *v = captured_json();
    ck_assert_str_eq(json_str(v, "level", ""), "info");
    ck_assert_str_eq(json_str(v, "service", ""), "kiln-test");
    ck_assert_str_eq(json_str(v, "event", ""), "plan.loaded");
    ck_assert_str_eq(json_str(v, "plan", ""), "7");
    ck_assert_str_eq(json_str(v, "name", ""), "a \"b\"\n\\ \x01 c");
    ck_assert_str_eq(json_str(v, "empty", "?"), "");
    ck_assert_str_eq(json_str(v, "path", ""), "a=b");
    const char *ts = json_str(v, "ts", "");
    ck_assert_uint_eq(strlen(ts), strlen("2026-01-01T00:00:00.000Z"));
    ck_assert_int_eq(ts[10], 'T');
    ck_assert_int_eq(ts[23], 'Z');
    ck_assert_ptr_eq(strchr(line, '\n'), line + strlen(line) - 1);
    json_decref(v);
}
END_TEST

START_TEST(bare_words_and_reserved_keys_lose_nothing)
{
    capture_start();
    log_setup("kiln-test", LOG_INFO, LOG_FORM_JSON);
    log_warn("x", "two words event=mine \"quoted words\" %s", "bad\xff=1");
    capture_end();
    json_t *v = captured_json();
    ck_assert_str_eq(json_str(v, "level", ""), "warn");
    ck_assert_str_eq(json_str(v, "event", ""), "x");
    ck_assert_str_eq(json_str(v, "event_", ""), "mine");
    ck_assert_str_eq(json_str(v, "text", ""), "two words quoted words bad\xef\xbf\xbd=1");
    json_decref(v);
}
END_TEST

START_TEST(a_text_line_is_one_line)
{
    capture_start();
    log_setup("kiln-test", LOG_INFO, LOG_FORM_TEXT);
    log_error("store.lost", "why=%s", "two\nlines\x1b[31m");
    capture_end();
    ck_assert_ptr_nonnull(strstr(line, " error kiln-test store.lost why=two lines [31m\n"));
    ck_assert_ptr_eq(strchr(line, '\n'), line + strlen(line) - 1);
}
END_TEST

START_TEST(levels_below_the_set_one_are_silent)
{
    capture_start();
    log_setup("kiln-test", LOG_WARN, LOG_FORM_TEXT);
    log_info("x", "a=1");
    log_debug("x", "a=1");
    capture_end();
    ck_assert_str_eq(line, "");
    ck_assert(log_on(LOG_WARN));
    ck_assert(!log_on(LOG_INFO));
}
END_TEST

START_TEST(only_the_four_levels_have_names)
{
    enum log_level level = LOG_ERROR;
    ck_assert_int_eq(log_level_parse("debug", &level), 0);
    ck_assert_int_eq(level, LOG_DEBUG);
    ck_assert_int_eq(log_level_parse("DEBUG", &level), -1);
    ck_assert_int_eq(log_level_parse("", &level), -1);
    ck_assert_int_eq(log_level_parse(NULL, &level), -1);
}
END_TEST

START_TEST(quoting_escapes_and_shortens)
{
    ck_assert_str_eq(log_q(NULL), "\"\"");
    ck_assert_str_eq(log_q("a\tb"), "\"a\\tb\"");
    char text[3000];
    memset(text, '"', sizeof text);
    text[sizeof text - 1] = '\0';
    const char *q = log_q(text);
    size_t len = strlen(q);
    ck_assert_uint_lt(len, 1024);
    ck_assert_uint_gt(len, 1000);
    ck_assert_str_eq(q + len - 4, "...\"");
    const char *first = log_q("first");
    for (int i = 0; i < 7; i++) {
        ck_assert_str_eq(log_q("other"), "\"other\"");
    }
    ck_assert_str_eq(first, "\"first\"");
}
END_TEST

START_TEST(id_is_printed_as_hex_and_none_as_a_dash)
{
    const uint8_t none[16] = {0}, id[16] = {0xab, [15] = 1};
    ck_assert_str_eq(log_id(none), "-");
    ck_assert_str_eq(log_id(id), "ab000000000000000000000000000001");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("log");
    tcase_add_test(t, a_json_line_has_its_fields_as_members);
    tcase_add_test(t, bare_words_and_reserved_keys_lose_nothing);
    tcase_add_test(t, a_text_line_is_one_line);
    tcase_add_test(t, levels_below_the_set_one_are_silent);
    tcase_add_test(t, only_the_four_levels_have_names);
    tcase_add_test(t, quoting_escapes_and_shortens);
    tcase_add_test(t, id_is_printed_as_hex_and_none_as_a_dash);
    Suite *s = suite_create("log");
    suite_add_tcase(s, t);
    return suite_run(s);
}
