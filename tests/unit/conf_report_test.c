/* What is refused and in which words, and what is printed. */
#include "tests/unit/conf_fixture.h"
#include "tests/unit/conf_suites.h"

#include <stdio.h>

static size_t count_errors(void)
{
    size_t n = 0;
    for (const char *p = error_text; *p; p++) {
        n += *p == '\n';
    }
    return n;
}

static void prints(const char *words)
{
    ck_assert_msg(strstr(out_text, words) != NULL, "no \"%s\" in: %s", words, out_text);
}

START_TEST(a_bad_value_names_place_found_allowed_and_remedy)
{
    ck_assert_int_eq(load_file("[gateway]\n\nport = 70000\n", ""), CONF_EXIT_BAD);
    says(file_path);
    says(".toml:3: gateway.port is 70000, but must be a whole number from 1 to 65535: correct it, "
         "or leave it out for the default 4000");
    ck_assert_int_eq(load_file("[gateway]\nmode = \"xml\"\n", ""), CONF_EXIT_BAD);
    says("gateway.mode is \"xml\", but must be one of auto, text, json");
    ck_assert_int_eq(load("--port=http"), CONF_EXIT_BAD);
    says("flag --port: gateway.port is \"http\"");
    ck_assert_int_eq(load("--wait=2h"), CONF_EXIT_BAD);
    says("a duration such as 250ms, 10s, 5min or 1h from 1ms to 1h");
}
END_TEST

START_TEST(values_of_another_type_are_refused)
{
    static const char *const bad[] = {"host = 1",       "port = \"1\"",      "port = 1.5",
                                      "port = true",    "wait = 1.5",        "wait = true",
                                      "verbose = 1",    "verbose = \"yes\"", "host = [\"a\"]",
                                      "mode = {a = 1}", "host = 2020-01-01"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const char *toml = arena_printf(&arena, "[gateway]\n%s\n", bad[i]);
        ck_assert_msg(load_file(toml, "") == CONF_EXIT_BAD, "took %s", bad[i]);
        ck_assert_uint_eq(count_errors(), 1);
        says(".toml:2: gateway.");
    }
    ck_assert_int_eq(load_file("[gateway]\nwait = 30\nlimit = 5\nverbose = true\n", ""), CONF_RUN);
    ck_assert_int_eq(got.wait, 30);
    ck_assert_int_eq(got.limit, 5);
    ck_assert(got.verbose);
}
END_TEST

START_TEST(unknown_keys_name_the_nearest_known_one)
{
    ck_assert_int_eq(load_file("[gateway]\nprot = 1\n", ""), CONF_EXIT_BAD);
    says(".toml:2: unknown key gateway.prot: did you mean gateway.port?");
    ck_assert_int_eq(load_file("[gatway]\nport = 1\nhost = 2\n", ""), CONF_EXIT_BAD);
    says(".toml:1: unknown section gatway: did you mean gateway?");
    ck_assert_uint_eq(count_errors(), 1);
    ck_assert_int_eq(load_file("[gateway.tsl]\non = true\n", ""), CONF_EXIT_BAD);
    says("unknown section gateway.tsl: did you mean ");
    ck_assert_int_eq(load_file("[gateway]\nsomething_else_entirely = 1\n", ""), CONF_EXIT_BAD);
    says("unknown key gateway.something_else_entirely: remove it");
    ck_assert_int_eq(load_file("[store]\nnmae = 1\n", ""), CONF_EXIT_BAD);
    says("did you mean store.name?");
}
END_TEST

START_TEST(unknown_flags_name_the_nearest_known_one)
{
    ck_assert_int_eq(load("--prot=1"), CONF_EXIT_BAD);
    says("unknown flag --prot: did you mean --port?");
    ck_assert_int_eq(load("--hlep"), CONF_EXIT_BAD);
    says("did you mean --help?");
    ck_assert_int_eq(load("--unheard-of-thing"), CONF_EXIT_BAD);
    says("unknown flag --unheard-of-thing: run kiln-test --help");
    ck_assert_int_eq(load("-x"), CONF_EXIT_BAD);
    ck_assert_int_eq(load("word"), CONF_EXIT_BAD);
    says("unexpected argument \"word\"");
}
END_TEST

START_TEST(all_errors_are_reported_at_once)
{
    setenv("T_WAIT", "soon", 1);
    ck_assert_int_eq(load_file("[gateway]\nport = 0\nhots = 1\n", "--nope --limit=x"),
                     CONF_EXIT_BAD);
    ck_assert_uint_eq(count_errors(), 5);
}
END_TEST

START_TEST(a_required_value_must_come_from_somewhere)
{
    unsetenv("T_NAME");
    ck_assert_int_eq(load(""), CONF_EXIT_BAD);
    says("store.name is required and not set");
    says("environment variable T_NAME");
    says("flag --name");
    ck_assert_int_eq(load("--name x"), CONF_RUN);
    ck_assert_str_eq(got.name, "x");
}
END_TEST

START_TEST(files_that_cannot_be_read_or_parsed_say_so)
{
    ck_assert_int_eq(load("--config /nonexistent/kiln.toml"), CONF_EXIT_BAD);
    says("cannot read the configuration file /nonexistent/kiln.toml: No such file or directory");
    ck_assert_int_eq(load("--config /tmp"), CONF_EXIT_BAD);
    says("cannot read the configuration file /tmp: Is a directory");
    ck_assert_int_eq(load_file("[gateway\n", ""), CONF_EXIT_BAD);
    says("is not TOML: line 1, ");
}
END_TEST

START_TEST(secrets_never_show)
{
    ck_assert_int_eq(load_file("gateway.password = 12345678\n", ""), CONF_EXIT_BAD);
    says("gateway.password is ***");
    ck_assert_ptr_null(strstr(error_text, "12345678"));
    setenv("T_PASSWORD", "hunter22", 1);
    ck_assert_int_eq(load("--print-config"), CONF_EXIT_OK);
    ck_assert_str_eq(got.password, "hunter22");
    prints("gateway.password = \"***\" # environment variable T_PASSWORD\n");
    ck_assert_ptr_null(strstr(out_text, "hunter22"));
}
END_TEST

START_TEST(printing_shows_each_value_and_its_source)
{
    ck_assert_int_eq(
        load_file("[gateway]\nwait = 120000\nhost = \"a\\\"b\"\n", "--port 5 --print-config"),
        CONF_EXIT_OK);
    prints("gateway.port = 5 # flag --port\n");
    prints("gateway.wait = \"2min\" # /tmp/conf_test_");
    prints("gateway.host = \"a\\\"b\" # /tmp/conf_test_");
    prints("gateway.limit = \"64MiB\" # default\n");
    prints("gateway.verbose = false # default\n");
    prints("# gateway.count is not set\n");
    char *printed = arena_strdup(&arena, out_text);
    ck_assert_msg(load_file(printed, "") == CONF_RUN, "%s", error_text);
    ck_assert_int_eq(got.wait, 120000);
    ck_assert_str_eq(got.host, "a\"b");
}
END_TEST

START_TEST(help_version_and_check_end_the_program)
{
    ck_assert_int_eq(load("--help"), CONF_EXIT_OK);
    prints("kiln-test: A test.");
    prints("--port VALUE");
    prints("Port to listen on.");
    prints("Environment: T_PORT.");
    prints("Default: 4000.");
    ck_assert_int_eq(load("--version"), CONF_EXIT_OK);
    ck_assert_int_eq(strncmp(out_text, "kiln-test ", 10), 0);
    ck_assert_int_eq(load("--check"), CONF_EXIT_OK);
    prints("valid");
    ck_assert_int_eq(load("--check --port=0"), CONF_EXIT_BAD);
}
END_TEST

START_TEST(the_table_prints_as_markdown)
{
    char *text;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    conf_doc(&spec, f);
    fclose(f);
    ck_assert_ptr_nonnull(strstr(text, "| `gateway.port` | `4000` | a whole number from 1 to 65535 "
                                       "| `T_PORT` | `--port` | Port to listen on. |\n"));
    ck_assert_ptr_nonnull(strstr(text, "Name of the store. Required. |\n"));
    free(text);
}
END_TEST

TCase *conf_report_tests(void)
{
    TCase *tc = tcase_create("report");
    tcase_add_checked_fixture(tc, conf_setup, conf_teardown);
    tcase_add_test(tc, a_bad_value_names_place_found_allowed_and_remedy);
    tcase_add_test(tc, values_of_another_type_are_refused);
    tcase_add_test(tc, unknown_keys_name_the_nearest_known_one);
    tcase_add_test(tc, unknown_flags_name_the_nearest_known_one);
    tcase_add_test(tc, all_errors_are_reported_at_once);
    tcase_add_test(tc, a_required_value_must_come_from_somewhere);
    tcase_add_test(tc, files_that_cannot_be_read_or_parsed_say_so);
    tcase_add_test(tc, secrets_never_show);
    tcase_add_test(tc, printing_shows_each_value_and_its_source);
    tcase_add_test(tc, help_version_and_check_end_the_program);
    tcase_add_test(tc, the_table_prints_as_markdown);
    return tc;
}
