/* Where values come from, and how they are read. */
#include "tests/unit/conf_fixture.h"
#include "tests/unit/conf_suites.h"

#include <unistd.h>

START_TEST(defaults_hold_when_nothing_is_said)
{
    ck_assert_int_eq(load(""), CONF_RUN);
    ck_assert_str_eq(got.host, "127.0.0.1");
    ck_assert_int_eq(got.port, 4000);
    ck_assert_int_eq(got.wait, 10000);
    ck_assert_int_eq(got.limit, 64 * 1024 * 1024);
    ck_assert_str_eq(got.mode, "auto");
    ck_assert(!got.verbose);
    ck_assert_ptr_null(got.password);
    ck_assert_str_eq(error_text, "");
}
END_TEST

START_TEST(flag_beats_environment_beats_file_beats_default)
{
    const char *toml = "[gateway]\nport = 1\nhost = \"file\"\nwait = \"3s\"\n";
    setenv("T_PORT", "2", 1);
    setenv("T_HOST", "env", 1);
    ck_assert_int_eq(load_file(toml, "--port=3"), CONF_RUN);
    ck_assert_int_eq(got.port, 3);
    ck_assert_str_eq(got.host, "env");
    ck_assert_int_eq(got.wait, 3000);
    ck_assert_int_eq(got.limit, 64 * 1024 * 1024);
}
END_TEST

START_TEST(the_file_may_be_named_by_the_environment)
{
    ck_assert_int_eq(load_file("gateway.port = 9", ""), CONF_RUN);
    got.port = 0;
    setenv("KILN_CONFIG", file_path, 1);
    ck_assert_int_eq(load(""), CONF_RUN);
    ck_assert_int_eq(got.port, 9);
    setenv("KILN_CONFIG", "", 1);
    ck_assert_int_eq(load(""), CONF_RUN);
    ck_assert_int_eq(got.port, 4000);
}
END_TEST

START_TEST(flags_take_their_value_both_ways)
{
    ck_assert_int_eq(load("--port 5 --host=h=1 --verbose"), CONF_RUN);
    ck_assert_int_eq(got.port, 5);
    ck_assert_str_eq(got.host, "h=1");
    ck_assert(got.verbose);
    ck_assert_int_eq(load("--verbose=no"), CONF_RUN);
    ck_assert(!got.verbose);
    ck_assert_int_eq(load("--port"), CONF_EXIT_BAD);
    says("flag --port has no value");
    ck_assert_int_eq(load("--port --verbose"), CONF_EXIT_BAD);
    says("flag --port has no value");
}
END_TEST

START_TEST(durations_know_their_units)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"10s", 10000},  {"250ms", 250},  {"5min", 300000},
                {"1h", 3600000}, {"7", 7},        {"2_", -1},
                {"", 10000},     {"1.5s", -1},    {"-1s", -1},
                {"s", -1},       {"10 s", 10000}, {"10S", -1},
                {"0", -1},       {"2h", -1},      {"99999999999999999h", -1}};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        setenv("T_WAIT", good[i].text, 1);
        enum conf_action action = load("");
        ck_assert_msg(action == (good[i].ms < 0 ? CONF_EXIT_BAD : CONF_RUN), "%s", good[i].text);
        if (action == CONF_RUN) {
            ck_assert_int_eq(got.wait, good[i].ms);
        }
    }
}
END_TEST

START_TEST(sizes_know_their_units)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } all[] = {{"64MiB", 67108864}, {"64MB", 64000000},  {"12", 12},
               {"1KiB", 1024},      {"1kB", 1000},       {"3B", 3},
               {"1Mb", -1},         {"-1", -1},          {"0", 0},
               {"9999999TiB", -1},  {"1GiB", 1073741824}};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        enum conf_action action = load(arena_printf(&arena, "--limit=%s", all[i].text));
        ck_assert_msg(action == (all[i].bytes < 0 ? CONF_EXIT_BAD : CONF_RUN), "%s", all[i].text);
        if (action == CONF_RUN) {
            ck_assert_int_eq(got.limit, all[i].bytes);
        }
    }
}
END_TEST

START_TEST(environment_booleans_are_eight_words_only)
{
    static const char *const yes[] = {"1", "true", "yes", "on"};
    static const char *const no[] = {"0", "false", "no", "off"};
    static const char *const bad[] = {"TRUE", "y", "2", " 1", "enabled"};
    for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
        setenv("T_VERBOSE", yes[i], 1);
        ck_assert(load("") == CONF_RUN && got.verbose);
        setenv("T_VERBOSE", no[i], 1);
        ck_assert(load("") == CONF_RUN && !got.verbose);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        setenv("T_VERBOSE", bad[i], 1);
        ck_assert_int_eq(load(""), CONF_EXIT_BAD);
        says("environment variable T_VERBOSE: gateway.verbose is ");
        says("must be true or false");
    }
}
END_TEST

START_TEST(sections_of_other_programs_are_passed_over)
{
    const char *toml =
        "[planner]\nx = 1\n[planner.deep]\ny = [1, {z = 2}]\n[builder]\n[kiln]\na=1\n"
        "[log]\nlevel = \"debug\"\n[redis]\nurl = \"r\"\n[bus]\nq = 1\n"
        "[store]\npool = 3\nname = \"s\"\n[gateway.tls]\non = true\n";
    unsetenv("T_NAME");
    ck_assert_msg(load_file(toml, "") == CONF_RUN, "%s", error_text);
    ck_assert_str_eq(got.name, "s");
    ck_assert(got.tls);
}
END_TEST

START_TEST(positional_words_go_to_rest_when_allowed)
{
    spec.rest_allowed = true;
    ck_assert_int_eq(load("run --port 5 - -- --x"), CONF_RUN);
    ck_assert_str_eq(rest[0], "run");
    ck_assert_str_eq(rest[1], "-");
    ck_assert_str_eq(rest[2], "--x");
    ck_assert_ptr_null(rest[3]);
    ck_assert_int_eq(got.port, 5);
}
END_TEST

START_TEST(relative_places_are_those_of_the_directory_the_program_was_started_in)
{
    struct arena a;
    char home[4096];
    arena_init(&a);
    ck_assert_ptr_nonnull(getcwd(home, sizeof(home)));
    ck_assert_int_eq(chdir("/tmp"), 0);
    ck_assert_str_eq(conf_absolute_path(&a, "state/x"), "/tmp/state/x");
    ck_assert_str_eq(conf_absolute_path(&a, "/state"), "/state");
    ck_assert_str_eq(conf_absolute_path(&a, ""), "");
    ck_assert_str_eq(conf_absolute_addresses(&a, "unix:run/r"), "unix:/tmp/run/r");
    ck_assert_str_eq(conf_absolute_addresses(&a, "unix:/run/r"), "unix:/run/r");
    ck_assert_str_eq(conf_absolute_addresses(&a, "127.0.0.1:6379"), "127.0.0.1:6379");
    ck_assert_str_eq(conf_absolute_addresses(&a, "ipc://call, ipc:///x/y,tcp://h:1"),
                     "ipc:///tmp/call,ipc:///x/y,tcp://h:1");
    ck_assert_str_eq(conf_absolute_addresses(&a, ""), "");
    ck_assert_int_eq(chdir(home), 0);
    arena_fini(&a);
}
END_TEST

TCase *conf_load_tests(void)
{
    TCase *tc = tcase_create("load");
    tcase_add_checked_fixture(tc, conf_setup, conf_teardown);
    tcase_add_test(tc, defaults_hold_when_nothing_is_said);
    tcase_add_test(tc, flag_beats_environment_beats_file_beats_default);
    tcase_add_test(tc, the_file_may_be_named_by_the_environment);
    tcase_add_test(tc, flags_take_their_value_both_ways);
    tcase_add_test(tc, durations_know_their_units);
    tcase_add_test(tc, sizes_know_their_units);
    tcase_add_test(tc, environment_booleans_are_eight_words_only);
    tcase_add_test(tc, sections_of_other_programs_are_passed_over);
    tcase_add_test(tc, positional_words_go_to_rest_when_allowed);
    tcase_add_test(tc, relative_places_are_those_of_the_directory_the_program_was_started_in);
    return tc;
}
