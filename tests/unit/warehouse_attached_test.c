/* Attached databases as Publisher's configuration writes them. */
#include "common/warehouse/warehouse.h"
#include "common/warehouse/wh_attached.h"
#include "tests/support/suite.h"

static struct arena arena;
static struct wh_attached *list;
static size_t n;
static struct err e;

static void setup(void)
{
    arena_init(&arena);
    list = NULL;
    n = 0;
}

static void teardown(void)
{
    arena_fini(&arena);
}

#define ATTACH(entries)                                                                            \
    "{\"name\":\"lake\",\"type\":\"duckdb\",\"duckdbConnection\":{\"attachedDatabases\":[" entries \
    "]}}"
#define FILE_ENTRY(name, path)                                                                     \
    "{\"name\":\"" name "\",\"type\":\"duckdb\",\"duckdbConnection\":{\"databasePath\":\"" path    \
    "\"}}"
#define PG_ENTRY(members)                                                                          \
    "{\"name\":\"pg\",\"type\":\"postgres\",\"postgresConnection\":{" members "}}"

static int read_config(const char *config)
{
    return wh_attached_read(&arena, "lake", config, &list, &n, &e);
}

START_TEST(entries_are_read_in_their_order)
{
    int rc = read_config(ATTACH(PG_ENTRY(
        "\"host\":\"h\",\"port\":5433,\"databaseName\":\"d\",\"userName\":\"u\",\"password\":\"p\","
        "\"sslmode\":\"require\"") "," FILE_ENTRY("ref", "/data/ref.duckdb")));
    ck_assert_msg(rc == 0, "%s", err_text(&e));
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(list[0].name, "pg");
    ck_assert_ptr_null(list[0].file);
    ck_assert_str_eq(list[0].host, "h");
    ck_assert_str_eq(list[0].port, "5433");
    ck_assert_str_eq(list[0].database, "d");
    ck_assert_str_eq(list[0].user, "u");
    ck_assert_str_eq(list[0].password, "p");
    ck_assert_str_eq(list[0].options,
                     " sslmode='require' connect_timeout='5' application_name='kiln'");
    ck_assert_str_eq(list[1].name, "ref");
    ck_assert_str_eq(list[1].file, "/data/ref.duckdb");
}
END_TEST

START_TEST(a_connection_string_is_taken_apart_and_its_password_is_no_option)
{
    int rc = read_config(ATTACH(PG_ENTRY("\"connectionString\":\"postgresql://u:s3c@h:1/d"
                                         "?connect_timeout=9&application_name=x\"")));
    ck_assert_msg(rc == 0, "%s", err_text(&e));
    ck_assert_str_eq(list[0].host, "h");
    ck_assert_str_eq(list[0].password, "s3c");
    ck_assert_ptr_nonnull(strstr(list[0].options, "connect_timeout='9'"));
    ck_assert_ptr_nonnull(strstr(list[0].options, "application_name='x'"));
    ck_assert_ptr_null(strstr(list[0].options, "s3c"));
}
END_TEST

static void refused(const char *config, const char *why)
{
    ck_assert_int_eq(read_config(config), ERR_INVALID);
    ck_assert_msg(strstr(e.text, why) && strstr(e.text, "connection 'lake'"), "%s", e.text);
    ck_assert_ptr_null(strstr(e.text, "s3c"));
}

START_TEST(what_cannot_be_attached_is_refused_by_name)
{
    refused("{", "connection 'lake'");
    refused("{}", "at least one entry");
    refused(ATTACH(""), "at least one entry");
    refused(
        "{\"duckdbConnection\":{\"attachedDatabases\":[" FILE_ENTRY("a", "/x") "],\"url\":\"x\"}}",
        "nothing else");
    refused(ATTACH("{\"name\":\"m\",\"type\":\"motherduck\"}"),
            "'m' is of type 'motherduck', and only postgres and duckdb");
    refused(ATTACH("{\"name\":\"m\"}"), "is of type ''");
    refused(ATTACH("{\"type\":\"duckdb\"}"), "needs a name of letters");
    refused(ATTACH(FILE_ENTRY("1a", "/x")), "needs a name of letters");
    refused(ATTACH(FILE_ENTRY("a b", "/x")), "needs a name of letters");
    refused(ATTACH(FILE_ENTRY("MAIN", "/x")), "DuckDB keeps the name 'MAIN'");
    refused(ATTACH(FILE_ENTRY("a", "/x") "," FILE_ENTRY("A", "/y")), "two attached databases");
    refused(ATTACH(FILE_ENTRY("a", "x.duckdb")), "absolute path of a DuckDB file");
    refused(ATTACH(FILE_ENTRY("a", ":memory:")), "absolute path of a DuckDB file");
    refused(ATTACH(FILE_ENTRY("a", "s3://x/y")), "absolute path of a DuckDB file");
    refused(ATTACH("{\"name\":\"pg\",\"type\":\"postgres\"}"), "postgresConnection");
    refused(ATTACH(PG_ENTRY("\"connectionString\":\"host\"")), "does not parse");
    refused(ATTACH(PG_ENTRY("\"connectionString\":\"host=h sslpassword=s3c\"")), "sslpassword");
}
END_TEST

static const char *digest(const char *config)
{
    return wh_digest(&arena, "duckdb", config);
}

START_TEST(identity_is_over_names_and_places_and_neither_password_nor_order)
{
#define SERVER(host, password)                                                                     \
    PG_ENTRY("\"host\":\"" host "\",\"userName\":\"u\",\"password\":\"" password "\"")
    const char *a = digest(ATTACH(SERVER("h", "one") "," FILE_ENTRY("ref", "/r")));
    ck_assert_uint_eq(strlen(a), 64);
    ck_assert_str_eq(a, digest(ATTACH(FILE_ENTRY("ref", "/r") "," SERVER("h", "two"))));
    ck_assert_str_ne(a, digest(ATTACH(SERVER("i", "one") "," FILE_ENTRY("ref", "/r"))));
    ck_assert_str_ne(a, digest(ATTACH(SERVER("h", "one") "," FILE_ENTRY("ref", "/s"))));
    ck_assert_str_ne(a, digest(ATTACH(SERVER("h", "one") "," FILE_ENTRY("fer", "/r"))));
    ck_assert_str_ne(a, digest(ATTACH(SERVER("h", "one"))));
    ck_assert_str_eq(digest("{\"fingerprint\":\"mine\"}"), "mine");
}
END_TEST

START_TEST(relative_paths_are_beside_the_configuration_file)
{
    const char *text =
        wh_attached_locate(&arena,
                           ATTACH(FILE_ENTRY("a", "./a.duckdb") "," FILE_ENTRY(
                               "b", "sub/b.duckdb") "," FILE_ENTRY("c", "/c.duckdb")),
                           "/etc/kiln");
    ck_assert_int_eq(read_config(text), 0);
    ck_assert_str_eq(list[0].file, "/etc/kiln/a.duckdb");
    ck_assert_str_eq(list[1].file, "/etc/kiln/sub/b.duckdb");
    ck_assert_str_eq(list[2].file, "/c.duckdb");
    refused(wh_attached_locate(&arena, ATTACH(FILE_ENTRY("a", "s3://x")), "/etc"), "absolute path");
    ck_assert_str_eq(wh_attached_locate(&arena, "no json", "/etc"), "no json");
}
END_TEST

START_TEST(passwords_of_entries_are_known_as_secrets)
{
    const char **s = wh_secrets(&arena, ATTACH(PG_ENTRY("\"host\":\"h\",\"password\":\"s3c\"")));
    ck_assert_str_eq(s[0], "s3c");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("attached databases");
    TCase *tc = tcase_create("configuration");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, entries_are_read_in_their_order);
    tcase_add_test(tc, a_connection_string_is_taken_apart_and_its_password_is_no_option);
    tcase_add_test(tc, what_cannot_be_attached_is_refused_by_name);
    tcase_add_test(tc, identity_is_over_names_and_places_and_neither_password_nor_order);
    tcase_add_test(tc, relative_paths_are_beside_the_configuration_file);
    tcase_add_test(tc, passwords_of_entries_are_known_as_secrets);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
