#include "services/planner/package/package.h"
#include "tests/support/suite.h"

static struct arena arena;
static struct err fault;

static void set_up(void)
{
    arena_init(&arena);
    err_clear(&fault);
}

static void tear_down(void)
{
    arena_fini(&arena);
}

static const char *test_env(const char *name)
{
    return strcmp(name, "PG_PASSWORD") == 0 ? "a\"b\\c" : strcmp(name, "HOST_1") == 0 ? "db" : NULL;
}

static struct publisher_config parsed(const char *text)
{
    struct publisher_config c;
    int rc = publisher_config_parse(&arena, slice_of(text), "/etc/kiln", test_env, &c, &fault);
    ck_assert_msg(rc == 0, "%s", fault.text);
    return c;
}

static int refused(const char *text)
{
    struct publisher_config c;
    return publisher_config_parse(&arena, slice_of(text), "/etc/kiln", test_env, &c, &fault);
}

START_TEST(environments_packages_connections_and_destinations_are_read)
{
    struct publisher_config c =
        parsed("{\"frozenConfig\":true,\"environments\":[{\"name\":\"prod\",\"readme\":\"r\","
               "\"packages\":[{\"name\":\"sales\",\"location\":\"./sales\"}],"
               "\"connections\":[{\"name\":\"pg\",\"type\":\"postgres\",\"postgresConnection\":{"
               "\"host\":\"h\"}}],"
               "\"storageDestinations\":[{\"name\":\"lake\",\"type\":\"ducklake\","
               "\"ducklakeConnection\":{\"catalog\":"
               "{\"postgresConnection\":{}},\"storage\":{\"bucketUrl\":\"/b\"}}}]}]}");

    ck_assert(c.frozen);
    ck_assert_uint_eq(c.n, 1);
    ck_assert_uint_eq(c.n_warnings, 0);
    ck_assert_str_eq(c.base_dir, "/etc/kiln");
    struct config_environment *env = &c.environments[0];
    ck_assert_str_eq(env->name, "prod");
    ck_assert_str_eq(env->readme, "r");
    ck_assert_uint_eq(env->n_packages, 1);
    ck_assert_str_eq(env->packages[0].location, "./sales");
    ck_assert_uint_eq(env->n_connections, 1);
    ck_assert_str_eq(env->connections[0].type, "postgres");
    ck_assert_ptr_nonnull(
        strstr(env->connections[0].json, "\"postgresConnection\":{\"host\":\"h\"}"));
    ck_assert_uint_eq(env->n_destinations, 1);
}
END_TEST

START_TEST(variables_are_put_in_as_text_wherever_a_string_stands)
{
    struct publisher_config c = parsed("{\"environments\":[{\"name\":\"e\",\"connections\":[{"
                                       "\"name\":\"pg\",\"type\":\"postgres\","
                                       "\"postgresConnection\":{\"host\":\"${HOST_1}.x.${HOST_1}\","
                                       "\"password\":\"${PG_PASSWORD}\","
                                       "\"databaseName\":\"${lower} $x ${}\"}}]}]}");

    const char *json = c.environments[0].connections[0].json;
    ck_assert_ptr_nonnull(strstr(json, "\"host\":\"db.x.db\""));
    ck_assert_ptr_nonnull(strstr(json, "\"password\":\"a\\\"b\\\\c\""));
    ck_assert_ptr_nonnull(strstr(json, "\"databaseName\":\"${lower} $x ${}\""));
}
END_TEST

START_TEST(unset_variable_is_an_error_that_names_it_and_the_place)
{
    int rc = refused("{\"environments\":[{\"name\":\"e\",\"packages\":[{\"name\":\"p\","
                     "\"location\":\"${GONE}\"}]}]}");

    ck_assert_int_eq(rc, ERR_CONF);
    ck_assert_ptr_nonnull(strstr(fault.text, "GONE"));
    ck_assert_ptr_nonnull(strstr(fault.text, "environments[0].packages[0].location"));
}
END_TEST

START_TEST(broken_text_and_wrong_shapes_are_refused)
{
    ck_assert_int_eq(refused("{"), ERR_CONF);
    ck_assert_ptr_nonnull(strstr(fault.text, "does not parse"));
    ck_assert_int_eq(refused(""), ERR_CONF);
    ck_assert_int_eq(refused("[]"), ERR_CONF);
    ck_assert_int_eq(refused("{\"environments\":{}}"), ERR_CONF);
    ck_assert_int_eq(
        refused("{\"environments\":[{\"name\":\"e\",\"connections\":[{\"name\":\"duckdb\"}]}]}"),
        ERR_CONF);
    ck_assert_ptr_nonnull(strstr(fault.text, "reserved"));
}
END_TEST

START_TEST(old_spelling_is_taken_with_a_warning)
{
    struct publisher_config c = parsed("{\"projects\":[{\"name\":\"e\"}]}");

    ck_assert_uint_eq(c.n, 1);
    ck_assert_uint_eq(c.n_warnings, 1);
    ck_assert_ptr_nonnull(strstr(c.warnings[0], "projects"));
}
END_TEST

START_TEST(entries_that_cannot_be_kept_are_dropped_with_a_warning_each)
{
    struct publisher_config c = parsed(
        "{\"environments\":[{\"name\":\"e\",\"packages\":[{\"name\":\"p\",\"location\":\"./p\"},"
        "{\"name\":\"p\",\"location\":\"./q\"},{\"name\":\"n\"},7],"
        "\"connections\":[{\"name\":\"c\",\"type\":\"mysql\"},{\"name\":\"c\",\"type\":\"trino\"},"
        "{\"name\":\"x\",\"type\":\"oracle\"},{\"name\":\"d\",\"type\":\"duckdb\"},{\"name\":\"u\","
        "\"type\":\"publisher\"}],"
        "\"storageDestinations\":[{\"name\":\"duckdb\",\"type\":\"s3\"}]},{\"name\":\"e\"},{}]}");

    ck_assert_uint_eq(c.n, 1);
    struct config_environment *env = &c.environments[0];
    ck_assert_uint_eq(env->n_packages, 1);
    ck_assert_str_eq(env->packages[0].location, "./p");
    ck_assert_uint_eq(env->n_connections, 1);
    ck_assert_str_eq(env->connections[0].type, "mysql");
    ck_assert_uint_eq(env->n_destinations, 0);
    ck_assert_uint_eq(c.n_warnings, 3 + 4 + 1 + 2);
    bool all_defects = false;
    for (size_t i = 0; i < c.n_warnings; i++) {
        all_defects |= strstr(c.warnings[i], "reserved") && strstr(c.warnings[i], "not ducklake") &&
                       strstr(c.warnings[i], "bucketUrl");
    }
    ck_assert(all_defects);
}
END_TEST

static const char *location_of(const char *text, bool *is_archive)
{
    char *path = NULL;
    int rc = package_location(&arena, text, "/etc/kiln/", &path, is_archive, &fault);
    return rc == 0 ? path : err_code_name(rc);
}

START_TEST(locations_are_made_absolute_or_refused_in_one_sentence)
{
    bool zip = false;
    setenv("HOME", "/home/ada", 1);

    ck_assert_str_eq(location_of("./sales", &zip), "/etc/kiln/sales");
    ck_assert(!zip);
    ck_assert_str_eq(location_of("../sales.zip", &zip), "/etc/kiln/../sales.zip");
    ck_assert(zip);
    ck_assert_str_eq(location_of("~/p.tar.gz", &zip), "/home/ada/p.tar.gz");
    ck_assert(zip);
    ck_assert_str_eq(location_of("/srv/p/", &zip), "/srv/p");
    ck_assert(!zip);
    ck_assert_str_eq(location_of(".", &zip), "/etc/kiln");
    ck_assert_str_eq(location_of("https://github.com/a/b", &zip), "ERR_UNSUPPORTED");
    ck_assert_ptr_nonnull(strstr(fault.text, "remote"));
    ck_assert_str_eq(location_of("s3://a/b.zip", &zip), "ERR_UNSUPPORTED");
    ck_assert_str_eq(location_of("sales", &zip), "ERR_INVALID");
    ck_assert_ptr_nonnull(strstr(fault.text, "Invalid package path"));
    ck_assert_str_eq(location_of(".sales", &zip), "ERR_INVALID");
    ck_assert_str_eq(location_of("", &zip), "ERR_INVALID");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("publisher_config");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, environments_packages_connections_and_destinations_are_read);
    tcase_add_test(tc, variables_are_put_in_as_text_wherever_a_string_stands);
    tcase_add_test(tc, unset_variable_is_an_error_that_names_it_and_the_place);
    tcase_add_test(tc, broken_text_and_wrong_shapes_are_refused);
    tcase_add_test(tc, old_spelling_is_taken_with_a_warning);
    tcase_add_test(tc, entries_that_cannot_be_kept_are_dropped_with_a_warning_each);
    tcase_add_test(tc, locations_are_made_absolute_or_refused_in_one_sentence);
    Suite *s = suite_create("publisher_config");
    suite_add_tcase(s, tc);
    return suite_run(s);
}
