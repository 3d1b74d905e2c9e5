#include "tests/support/suite.h"
#include "tests/unit/package_fixture.h"
#include "tests/unit/package_suites.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_dir(void)
{
    return package_read_dir(&fx.arena, fx.dir, &fx.lim, &fx.out, &fx.err);
}

static void fill(const char *path, size_t n)
{
    auto_free char *text = xmalloc(n + 1);
    memset(text, 'x', n);
    text[n] = '\0';
    write_file(path, text);
}

START_TEST(directory_gives_its_files_sorted_with_manifest_and_hashes)
{
    write_file("publisher.json", "{\"name\":\"p\"}");
    write_file("m/b.malloy", "source: b is a");
    write_file("a.malloy", "");
    write_file("data/x.csv", "a,b\n");
    write_file(".git/config", "secret");

    int rc = read_dir();

    ck_assert_msg(rc == 0, "%s", fx.err.text);
    ck_assert_uint_eq(fx.out.n, 4);
    ck_assert_str_eq(fx.out.items[0].path, "a.malloy");
    ck_assert_ptr_nonnull(fx.out.items[0].content.p);
    ck_assert_str_eq(fx.out.items[3].path, "publisher.json");
    ck_assert_str_eq(fx.out.manifest, "{\"name\":\"p\"}");
    struct sha256 want = sha256_of("source: b is a", 14);
    ck_assert_mem_eq(file_of("m/b.malloy")->sha256.b, want.b, sizeof want.b);
    ck_assert(file_of("data/x.csv")->is_data);
    ck_assert(!file_of("publisher.json")->is_data);
}
END_TEST

START_TEST(version_follows_content_and_path_only)
{
    write_file("publisher.json", "{}");
    write_file("a.malloy", "1");
    ck_assert_int_eq(read_dir(), 0);
    struct sha256 first = fx.out.version;

    write_file("a.malloy", "2");
    ck_assert_int_eq(read_dir(), 0);
    ck_assert_mem_ne(fx.out.version.b, first.b, sizeof first.b);
    write_file("a.malloy", "1");
    ck_assert_int_eq(read_dir(), 0);
    ck_assert_mem_eq(fx.out.version.b, first.b, sizeof first.b);
    ck_assert_int_eq(rename(at("a.malloy"), at("b.malloy")), 0);
    ck_assert_int_eq(read_dir(), 0);
    ck_assert_mem_ne(fx.out.version.b, first.b, sizeof first.b);
}
END_TEST

START_TEST(large_file_goes_to_the_package_store_by_its_hash_and_models_stay_in_memory)
{
    fill("data/x.parquet", 100 << 10);
    fill("big.malloy", 100 << 10);

    ck_assert_int_eq(read_dir(), 0);
    ck_assert_int_eq(read_dir(), 0); /* twice: the stored file stays the one */

    const struct package_file *f = file_of("data/x.parquet");
    ck_assert_ptr_null(f->content.p);
    ck_assert_uint_eq(f->bytes, 100 << 10);
    struct stat st;
    ck_assert_int_eq(stat(package_store_path(&fx.arena, fx.store, &f->sha256), &st), 0);
    ck_assert_int_eq((int)st.st_size, 100 << 10);
    ck_assert_int_eq((int)(st.st_mode & 0777), 0444);
    ck_assert_uint_eq(entries_in(fx.store), 1);
    ck_assert_uint_eq(file_of("big.malloy")->content.len, 100 << 10);
}
END_TEST

START_TEST(large_file_without_a_package_store_is_refused_by_name)
{
    fill("x.parquet", 100 << 10);
    fx.lim.package_store = NULL;

    ck_assert_int_eq(read_dir(), ERR_PATH);
    ck_assert_ptr_nonnull(strstr(fx.err.text, "x.parquet"));
}
END_TEST

START_TEST(link_inside_is_followed_and_link_that_leaves_is_refused_by_name)
{
    write_file("m/a.malloy", "1");
    ck_assert_int_eq(symlink("m/a.malloy", at("b.malloy")), 0);
    ck_assert_int_eq(symlink("m", at("n")), 0);

    ck_assert_int_eq(read_dir(), 0);
    ck_assert(slice_is(file_of("b.malloy")->content, "1"));
    ck_assert(slice_is(file_of("n/a.malloy")->content, "1"));

    ck_assert_int_eq(symlink("/etc/hostname", at("out.malloy")), 0);
    ck_assert_int_eq(read_dir(), ERR_PATH);
    ck_assert_ptr_nonnull(strstr(fx.err.text, "out.malloy"));
    ck_assert_int_eq(unlink(at("out.malloy")), 0);

    /* A sibling whose name begins with the package's own. */
    ck_assert_int_eq(symlink(fx.store, at("store")), 0);
    ck_assert_int_eq(read_dir(), ERR_PATH);
}
END_TEST

START_TEST(link_in_a_circle_and_link_to_nowhere_are_refused)
{
    write_file("m/a.malloy", "1");
    ck_assert_int_eq(symlink("..", at("m/up")), 0);
    ck_assert_int_eq(read_dir(), ERR_PATH);
    ck_assert_int_eq(unlink(at("m/up")), 0);

    ck_assert_int_eq(symlink("gone", at("m/gone")), 0);
    ck_assert_int_eq(read_dir(), ERR_PATH);
    ck_assert_ptr_nonnull(strstr(fx.err.text, "m/gone"));
}
END_TEST

START_TEST(pipe_and_strange_names_are_refused)
{
    ck_assert_int_eq(mkfifo(at("pipe"), 0600), 0);
    ck_assert_int_eq(read_dir(), ERR_PATH);
    ck_assert_ptr_nonnull(strstr(fx.err.text, "pipe"));
    ck_assert_int_eq(unlink(at("pipe")), 0);

    write_file("gr\xc3\xbcn x.malloy", "1");
    ck_assert_int_eq(read_dir(), 0);
    write_file("bad\xff.malloy", "1");
    ck_assert_int_eq(read_dir(), ERR_PATH);
    ck_assert_int_eq(unlink(at("bad\xff.malloy")), 0);
    write_file("a\\b", "1");
    ck_assert_int_eq(read_dir(), ERR_PATH);
}
END_TEST

START_TEST(directory_that_is_not_there_or_too_full_is_refused)
{
    int rc = package_read_dir(&fx.arena, at("gone"), &fx.lim, &fx.out, &fx.err);
    ck_assert_int_eq(rc, ERR_PATH);

    write_file("a", "");
    write_file("b", "");
    write_file("c", "");
    fx.lim.files = 2;
    ck_assert_int_eq(read_dir(), ERR_PATH);
    rc = package_read_dir(&fx.arena, at("a"), &fx.lim, &fx.out, &fx.err);
    ck_assert_int_eq(rc, ERR_PATH);
}
END_TEST

START_TEST(directory_without_a_manifest_says_so)
{
    write_file("a.malloy", "1");

    ck_assert_int_eq(read_dir(), 0);
    ck_assert_ptr_null(fx.out.manifest);
}
END_TEST

static TCase *dir_case(void)
{
    TCase *tc = tcase_create("directory");
    tcase_add_checked_fixture(tc, fixture_up, fixture_down);
    tcase_add_test(tc, directory_gives_its_files_sorted_with_manifest_and_hashes);
    tcase_add_test(tc, version_follows_content_and_path_only);
    tcase_add_test(tc, large_file_goes_to_the_package_store_by_its_hash_and_models_stay_in_memory);
    tcase_add_test(tc, large_file_without_a_package_store_is_refused_by_name);
    tcase_add_test(tc, link_inside_is_followed_and_link_that_leaves_is_refused_by_name);
    tcase_add_test(tc, link_in_a_circle_and_link_to_nowhere_are_refused);
    tcase_add_test(tc, pipe_and_strange_names_are_refused);
    tcase_add_test(tc, directory_that_is_not_there_or_too_full_is_refused);
    tcase_add_test(tc, directory_without_a_manifest_says_so);
    return tc;
}

int main(void)
{
    Suite *s = suite_create("package");
    suite_add_tcase(s, dir_case());
    suite_add_tcase(s, archive_case());
    return suite_run(s);
}
