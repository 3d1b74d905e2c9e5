/* Instances as they are opened: their connections, extensions, files and settings. */
#include "tests/unit/duck_fixture.h"
#include "tests/unit/duck_suites.h"

#include <stdio.h>
#include <sys/stat.h>

START_TEST(every_connection_is_in_utc)
{
    static struct told t[2];
    for (size_t i = 0; i < 2; i++) {
        told_init(&t[i], "SELECT current_setting('TimeZone'), count(*) FROM range(20000000)");
        told_start(&t[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(told_end(&t[i]), 0);
        ck_assert_str_eq(buf_str(&t[i].rows), "UTC|20000000\n");
        buf_fini(&t[i].rows);
    }
}
END_TEST

static const char *installed_extension(const char *name)
{
    const char *prefix = getenv("KILN_PREFIX");
    if (!prefix) {
        prefix = arena_printf(&arena, "%s/build/tools", getenv("KILN_SOURCE_DIR"));
    }
    return arena_printf(&arena, "%s/lib/duckdb/ext/v1.5.5/linux_amd64/%s.duckdb_extension", prefix,
                        name);
}

/* A folder with a copy of an extension in which one byte is another. */
static const char *changed_extension(const char *name)
{
    auto_buf struct buf bytes = {0};
    FILE *f = fopen(installed_extension(name), "r");
    ck_assert_msg(f, "%s is not installed", installed_extension(name));
    for (size_t n = 1; n > 0; bytes.len += n) {
        buf_reserve(&bytes, 1 << 20);
        n = fread(bytes.p + bytes.len, 1, 1 << 20, f);
    }
    (void)fclose(f);
    bytes.p[100000] = (char)(bytes.p[100000] ^ 1);
    ck_assert_int_eq(mkdir(in_dir("ext"), 0755), 0);
    ck_assert_int_eq(mkdir(in_dir("ext/v1.5.5"), 0755), 0);
    ck_assert_int_eq(mkdir(in_dir("ext/v1.5.5/linux_amd64"), 0755), 0);
    f = fopen(in_dir(arena_printf(&arena, "ext/v1.5.5/linux_amd64/%s.duckdb_extension", name)),
              "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes.p, 1, bytes.len, f), bytes.len);
    (void)fclose(f);
    return in_dir("ext");
}

START_TEST(extensions_are_loaded_from_the_pinned_files)
{
    static const char *const all[] = {"excel",          "httpfs",   "postgres_scanner",
                                      "sqlite_scanner", "ducklake", NULL};
    duck_reopen(&(struct duck_settings){
        .what = "connection 'duckdb'", .extensions = all, .unlocked = true});
    ck_assert_str_eq(rows_of("SELECT count(*) FROM duckdb_extensions() WHERE loaded AND "
                             "extension_name IN ('excel', 'httpfs', 'postgres_scanner', "
                             "'sqlite_scanner', 'ducklake')",
                             DUCK_FORM_TEXT),
                     "5\n");
    ck_assert_str_eq(duck_version(), "v1.5.5");
}
END_TEST

START_TEST(an_extension_that_is_missing_or_changed_by_a_byte_is_one_clear_sentence)
{
    static const char *const excel[] = {"excel", NULL};
    struct duck_settings s = {.what = "connection 'duckdb'", .extensions = excel};
    struct duck_instance *i = NULL;
    struct err e;
    s.extension_dir = in_dir("nothing");
    ck_assert_int_eq(duck_instance_open(&s, &i, &e), ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(e.text, "extension excel is missing or is not the one"));
    ck_assert_ptr_null(strchr(e.text, '\n'));
    s.extension_dir = changed_extension("excel");
    ck_assert_int_eq(duck_instance_open(&s, &i, &e), ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(e.text, "setup.sh duckdb"));
    ck_assert_ptr_null(strchr(e.text, '\n'));
    ck_assert_ptr_null(i);
}
END_TEST

START_TEST(a_database_file_is_open_once_and_readable_again_afterwards)
{
    static const char *const setup[] = {"CREATE TABLE IF NOT EXISTS t AS SELECT 42 AS n", NULL};
    struct duck_settings s = {
        .what = "connection 'duckdb'", .file = in_dir("a b.duckdb"), .setup = setup};
    struct duck_instance *second = NULL;
    struct err e;
    duck_reopen(&s);
    int rc = duck_instance_open(&s, &second, &e);
    ck_assert_msg(rc < 0, "opened twice");
    ck_assert_ptr_nonnull(strstr(e.text, "connection 'duckdb': "));
    ck_assert_str_eq(rows_of("SELECT n FROM t", DUCK_FORM_TEXT), "42\n");

    duck_reopen(&(struct duck_settings){.what = "x"});
    s.read_only = true;
    s.setup = NULL;
    duck_reopen(&s);
    ck_assert_str_eq(rows_of("SELECT n FROM t", DUCK_FORM_TEXT), "42\n");
    const char *why;
    ck_assert_int_lt(fails("INSERT INTO t VALUES (1)", &why), 0);
}
END_TEST

START_TEST(settings_that_cannot_be_are_refused)
{
    struct duck_instance *i = NULL;
    struct err e;
    struct duck_settings s = {.what = "connection 'duckdb'", .search_path = "/tmp/a,b"};
    ck_assert_int_eq(duck_instance_open(&s, &i, &e), ERR_CONF);
    ck_assert_ptr_nonnull(strstr(e.text, "comma"));
    s = (struct duck_settings){.what = "connection 'duckdb'", .file = "/nowhere/x.duckdb"};
    ck_assert_int_lt(duck_instance_open(&s, &i, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "/nowhere/x.duckdb"));
    static const char *const setup[] = {"SELECT nonsense", NULL};
    s = (struct duck_settings){.what = "connection 'duckdb'", .setup = setup};
    ck_assert_int_eq(duck_instance_open(&s, &i, &e), ERR_WH_SQL);
    ck_assert_ptr_null(i);
}
END_TEST

TCase *duck_open_tests(void)
{
    TCase *tc = tcase_create("open");
    tcase_set_timeout(tc, 180);
    tcase_add_checked_fixture(tc, duck_dir_setup, duck_dir_teardown);
    tcase_add_test(tc, every_connection_is_in_utc);
    tcase_add_test(tc, extensions_are_loaded_from_the_pinned_files);
    tcase_add_test(tc, an_extension_that_is_missing_or_changed_by_a_byte_is_one_clear_sentence);
    tcase_add_test(tc, a_database_file_is_open_once_and_readable_again_afterwards);
    tcase_add_test(tc, settings_that_cannot_be_are_refused);
    return tc;
}
