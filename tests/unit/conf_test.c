#include "common/base/buf.h"
#include "common/conf/conf.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <unistd.h>

struct settings {
    const char *host, *password, *mode, *name;
    int64_t port, wait, limit, count;
    bool verbose, tls;
};

#define AT(member) offsetof(struct settings, member)
static const struct conf_item items[] = {
    {.key = "gateway.host",
     .type = CONF_STR,
     .offset = AT(host),
     .def = "127.0.0.1",
     .env = "T_HOST",
     .flag = "--host",
     .doc = "Address to listen on."},
    {.key = "gateway.port",
     .type = CONF_INT,
     .offset = AT(port),
     .def = "4000",
     .min = 1,
     .max = 65535,
     .env = "T_PORT",
     .flag = "--port",
     .doc = "Port to listen on."},
    {.key = "gateway.wait",
     .type = CONF_MS,
     .offset = AT(wait),
     .def = "10s",
     .min = 1,
     .max = 3600000,
     .env = "T_WAIT",
     .flag = "--wait",
     .doc = "How long to wait."},
    {.key = "gateway.limit",
     .type = CONF_BYTES,
     .offset = AT(limit),
     .def = "64MiB",
     .env = "T_LIMIT",
     .flag = "--limit",
     .doc = "Largest answer."},
    {.key = "gateway.mode",
     .type = CONF_ENUM,
     .offset = AT(mode),
     .def = "auto",
     .words = "auto|text|json",
     .env = "T_MODE",
     .doc = "Form."},
    {.key = "gateway.verbose",
     .type = CONF_BOOL,
     .offset = AT(verbose),
     .def = "false",
     .env = "T_VERBOSE",
     .flag = "--verbose",
     .doc = "Says more."},
    {.key = "gateway.tls.on", .type = CONF_BOOL, .offset = AT(tls), .def = "off", .doc = "TLS."},
    {.key = "gateway.password",
     .type = CONF_STR,
     .offset = AT(password),
     .env = "T_PASSWORD",
     .flags = CONF_SECRET,
     .doc = "Password."},
    {.key = "store.name",
     .type = CONF_STR,
     .offset = AT(name),
     .env = "T_NAME",
     .flag = "--name",
     .flags = CONF_REQUIRED,
     .doc = "Name of the store."},
    {.key = "gateway.count",
     .type = CONF_INT,
     .offset = AT(count),
     .env = "T_COUNT",
     .doc = "Any number."},
};
static struct conf_spec spec = {.program = "kiln-test",
                                .summary = "A test.",
                                .items = items,
                                .n = ARRAY_LEN(items),
                                .others = "store.pool|bus.calls"};

static struct arena arena;
static struct settings got;
static char file_path[64];
static char *out_text, *error_text;
static char **rest;

static void setup(void)
{
    arena_init(&arena);
    snprintf(file_path, sizeof file_path, "/tmp/conf_test_%d.toml", (int)getpid());
    got = (struct settings){0};
    spec.rest_allowed = false;
    setenv("T_NAME", "n", 1);
}

static void teardown(void)
{
    static const char *const names[] = {"T_HOST",  "T_PORT",     "T_WAIT",     "T_LIMIT",
                                        "T_MODE",  "T_VERBOSE",  "T_PASSWORD", "T_NAME",
                                        "T_COUNT", "KILN_CONFIG"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        unsetenv(names[i]);
    }
    unlink(file_path);
    free(out_text);
    free(error_text);
    out_text = error_text = NULL;
    arena_fini(&arena);
}

/* Runs conf_load with the blank-separated words of args behind the program's name. */
static enum conf_action load(const char *args)
{
    char *argv[32] = {arena_strdup(&arena, "kiln-test")};
    int argc = 1;
    char *words = arena_strdup(&arena, args);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
        argv[argc++] = word;
    }
    free(out_text);
    free(error_text);
    size_t out_len, error_len;
    FILE *out = open_memstream(&out_text, &out_len);
    FILE *errors = open_memstream(&error_text, &error_len);
    enum conf_action action = conf_load(&spec, &arena, &got, argc, argv, &rest, out, errors);
    fclose(out);
    fclose(errors);
    return action;
}

static enum conf_action load_file(const char *toml, const char *args)
{
    FILE *f = fopen(file_path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(toml, f);
    fclose(f);
    return load(arena_printf(&arena, "--config %s %s", file_path, args));
}

static size_t count_errors(void)
{
    size_t n = 0;
    for (const char *p = error_text; *p; p++) {
        n += *p == '\n';
    }
    return n;
}

static void says(const char *words)
{
    ck_assert_msg(strstr(error_text, words) != NULL, "no \"%s\" in: %s", words, error_text);
}

static void prints(const char *words)
{
    ck_assert_msg(strstr(out_text, words) != NULL, "no \"%s\" in: %s", words, out_text);
}

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

int main(void)
{
    TCase *t = tcase_create("conf");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, defaults_hold_when_nothing_is_said);
    tcase_add_test(t, flag_beats_environment_beats_file_beats_default);
    tcase_add_test(t, the_file_may_be_named_by_the_environment);
    tcase_add_test(t, flags_take_their_value_both_ways);
    tcase_add_test(t, durations_know_their_units);
    tcase_add_test(t, sizes_know_their_units);
    tcase_add_test(t, environment_booleans_are_eight_words_only);
    tcase_add_test(t, a_bad_value_names_place_found_allowed_and_remedy);
    tcase_add_test(t, values_of_another_type_are_refused);
    tcase_add_test(t, unknown_keys_name_the_nearest_known_one);
    tcase_add_test(t, sections_of_other_programs_are_passed_over);
    tcase_add_test(t, unknown_flags_name_the_nearest_known_one);
    tcase_add_test(t, all_errors_are_reported_at_once);
    tcase_add_test(t, a_required_value_must_come_from_somewhere);
    tcase_add_test(t, secrets_never_show);
    tcase_add_test(t, printing_shows_each_value_and_its_source);
    tcase_add_test(t, help_version_and_check_end_the_program);
    tcase_add_test(t, positional_words_go_to_rest_when_allowed);
    tcase_add_test(t, files_that_cannot_be_read_or_parsed_say_so);
    tcase_add_test(t, the_table_prints_as_markdown);
    tcase_add_test(t, relative_places_are_those_of_the_directory_the_program_was_started_in);
    Suite *s = suite_create("conf");
    suite_add_tcase(s, t);
    return suite_run(s);
}
