/* What a package's statements may touch. */
#include "tests/unit/duck_fixture.h"
#include "tests/unit/duck_suites.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void put(const char *name, const char *text)
{
    FILE *f = fopen(in_dir(name), "w");
    ck_assert_ptr_nonnull(f);
    (void)fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

/* As a package is served: its folder, and a working directory of its own that is empty. */
static void sandbox(void)
{
    const char *const dirs[] = {".", in_dir("pkg"), NULL};
    ck_assert_int_eq(chdir(in_dir("work")), 0);
    duck_reopen(&(struct duck_settings){.what = "connection 'duckdb'",
                                        .memory_bytes = UINT64_C(512) << 20,
                                        .allowed_dirs = dirs,
                                        .search_path = in_dir("pkg")});
}

START_TEST(relative_names_are_files_of_the_package_whatever_they_look_like)
{
    static const char *const names[] = {"plain.csv",     "a b.csv",    "year=2024.csv", "it's.csv",
                                        "gr\u00fcn.csv", "da\"ta.csv", "sub/x.csv"};
    ck_assert_int_eq(mkdir(in_dir("pkg/sub"), 0755), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        put(arena_printf(&arena, "pkg/%s", names[i]), arena_printf(&arena, "n\n%zu\n", i));
    }
    sandbox();
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        auto_buf struct buf sql = {0};
        buf_add_str(&sql, "SELECT n FROM ");
        duck_quote_text(&sql, names[i]);
        ck_assert_str_eq(rows_of(buf_str(&sql), DUCK_FORM_TEXT), arena_printf(&arena, "%zu\n", i));
    }
    ck_assert_str_eq(rows_of("SELECT n FROM plain.csv", DUCK_FORM_TEXT), "0\n");
    const char *why;
    ck_assert_int_eq(fails("SELECT * FROM 'gone.csv'", &why), ERR_WH_MISSING);
    ck_assert_ptr_nonnull(strstr(why, "gone.csv"));
}
END_TEST

START_TEST(nothing_outside_of_the_package_is_reachable)
{
    put("secret.csv", "n\n42\n");
    put("pkg/own.csv", "n\n1\n");
    ck_assert_int_eq(symlink(in_dir("secret.csv"), in_dir("pkg/link.csv")), 0);
    sandbox();
    const char *const attacks[] = {
        arena_printf(&arena, "SELECT * FROM '%s'", in_dir("secret.csv")),
        "SELECT * FROM read_csv('../secret.csv')",
        "SELECT * FROM read_csv('./../secret.csv')",
        "SELECT * FROM read_csv('link.csv')",
        arena_printf(&arena, "SELECT * FROM read_csv('%s')", in_dir("pkg/../secret.csv")),
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_blob('/proc/self/environ')",
        "SELECT * FROM read_text('/proc/self/cwd/../secret.csv')",
        "SELECT * FROM read_csv('/dev/stdin')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM glob('../*')",
        "SELECT * FROM sniff_csv('/etc/passwd')",
        "SELECT * FROM parquet_metadata('/etc/passwd')",
        "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
        "SELECT * FROM query_table('/etc/passwd')",
        "SELECT getenv('HOME')",
        "ATTACH '/tmp/kt-never.db'",
        "ATTACH '' AS pg (TYPE postgres)",
        arena_printf(&arena, "COPY (SELECT 1) TO '%s'", in_dir("out.csv")),
        "COPY (SELECT 1) TO '../out.csv'",
        "EXPORT DATABASE '/tmp/kt-never'",
        "IMPORT DATABASE '/tmp'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "LOAD '/tmp/x.duckdb_extension'",
        "SELECT * FROM 'https://127.0.0.1:9/x.csv'",
        "SELECT * FROM read_csv('s3://bucket/x.csv')",
        "SET enable_external_access = true",
        "SET GLOBAL allowed_directories = ['/']",
        "SET lock_configuration = false",
        "SET extension_directory = '/tmp'",
        "SET temp_directory = '/tmp'",
        "SET file_search_path = '/etc'",
        "SET memory_limit = '100GB'",
        "SET TimeZone = 'Europe/Berlin'",
        "RESET lock_configuration",
        "PRAGMA enable_profiling = 'json'",
        "PRAGMA profiling_output = '/tmp/kt-never'",
        "CREATE PERSISTENT SECRET s (TYPE s3)",
    };
    for (size_t i = 0; i < ARRAY_LEN(attacks); i++) {
        const char *why;
        int rc = fails(attacks[i], &why);
        ck_assert_msg(rc < 0, "%s went well", attacks[i]);
        ck_assert_msg(why[0] && !strchr(why, '\n'), "%s: %s", attacks[i], why);
    }
    ck_assert_int_ne(access(in_dir("out.csv"), F_OK), 0);
    ck_assert_int_ne(access("/tmp/kt-never.db", F_OK), 0);
    ck_assert_str_eq(rows_of("SELECT * FROM own.csv", DUCK_FORM_TEXT), "1\n");
}
END_TEST

TCase *duck_reach_tests(void)
{
    TCase *tc = tcase_create("reach");
    tcase_set_timeout(tc, 180);
    tcase_add_checked_fixture(tc, duck_dir_setup, duck_dir_teardown);
    tcase_add_test(tc, relative_names_are_files_of_the_package_whatever_they_look_like);
    tcase_add_test(tc, nothing_outside_of_the_package_is_reachable);
    return tc;
}
