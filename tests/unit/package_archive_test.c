#include "tests/unit/package_fixture.h"
#include "tests/unit/package_suites.h"

static int unpack(struct slice bytes)
{
    return package_read_archive(&fx.arena, bytes, &fx.lim, &fx.out, &fx.err);
}

static void refused_by_name(struct packed *p, const char *name)
{
    int rc = unpack(pack_end(p));

    ck_assert_int_eq(rc, ERR_ARCHIVE);
    ck_assert_msg(strstr(fx.err.text, name) != NULL, "%s", fx.err.text);
}

/* Sets the flag "this name is UTF-8" in every header, as other programs write it. */
static struct slice say_utf8(struct slice zip)
{
    char *p = arena_dup(&fx.arena, zip.p, zip.len);
    for (size_t i = 0; i + 10 < zip.len; i++) {
        if (memcmp(p + i, "PK\3\4", 4) == 0) {
            p[i + 7] |= 8;
        }
        if (memcmp(p + i, "PK\1\2", 4) == 0) {
            p[i + 9] |= 8;
        }
    }
    return slice_make(p, zip.len);
}

START_TEST(zip_that_says_utf8_keeps_its_names)
{
    struct packed *p = pack_zip();
    pack_text(p, "m/gr\xc3\xbcn.malloy", "1");
    pack_text(p, "publisher.json", "{}");

    int rc = unpack(say_utf8(pack_end(p)));

    ck_assert_msg(rc == 0, "%s", fx.err.text);
    ck_assert_ptr_nonnull(file_of("m/gr\xc3\xbcn.malloy"));
}
END_TEST

START_TEST(zip_gives_the_same_version_as_its_directory)
{
    write_file("publisher.json", "{}");
    write_file("m/gr\xc3\xbcn.malloy", "1");
    ck_assert_int_eq(package_read_dir(&fx.arena, fx.dir, &fx.lim, &fx.out, &fx.err), 0);
    struct sha256 want = fx.out.version;
    struct packed *p = pack_zip();
    pack_text(p, "publisher.json", "{}");
    pack_text(p, "m/gr\xc3\xbcn.malloy", "1");

    int rc = unpack(pack_end(p));

    ck_assert_msg(rc == 0, "%s", fx.err.text);
    ck_assert_mem_eq(fx.out.version.b, want.b, sizeof want.b);
    ck_assert_str_eq(fx.out.manifest, "{}");
}
END_TEST

START_TEST(tar_gz_loses_its_one_top_directory_and_its_hidden_files)
{
    struct packed *p = pack_tar_gz();
    pack_dir(p, "./");
    pack_dir(p, "./repo-1/");
    pack_text(p, "./repo-1/publisher.json", "{}");
    pack_text(p, "./repo-1/m/gr\xc3\xbcn.malloy", "1");
    pack_text(p, "./repo-1/.github/x", "1");
    pack_text(p, "__MACOSX/x", "1");

    int rc = unpack(pack_end(p));

    ck_assert_msg(rc == 0, "%s", fx.err.text);
    ck_assert_uint_eq(fx.out.n, 2);
    ck_assert_ptr_nonnull(file_of("m/gr\xc3\xbcn.malloy"));
    ck_assert_str_eq(fx.out.manifest, "{}");
}
END_TEST

START_TEST(entries_that_lead_out_are_refused_by_name)
{
    static const char *const names[] = {
        "../evil.malloy", "a/../../evil.malloy", "a/..", "/etc/evil", "a//b", "a\\..\\b"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct packed *tar = pack_tar_gz();
        pack_text(tar, names[i], "1");
        refused_by_name(tar, names[i]);
        struct packed *zip = pack_zip();
        pack_text(zip, names[i], "1");
        refused_by_name(zip, ""); /* libarchive turns backslashes of a zip round */
    }
}
END_TEST

START_TEST(links_and_devices_are_refused_by_name)
{
    struct packed *soft = pack_tar_gz();
    pack_link(soft, "soft.malloy", "/etc/passwd", false);
    refused_by_name(soft, "soft.malloy");
    struct packed *hard = pack_tar_gz();
    pack_text(hard, "a.malloy", "1");
    pack_link(hard, "hard.malloy", "a.malloy", true);
    refused_by_name(hard, "hard.malloy");
    struct packed *zip = pack_zip();
    pack_link(zip, "soft.malloy", "a", false);
    refused_by_name(zip, "soft.malloy");
    struct packed *pipe = pack_tar_gz();
    pack_fifo(pipe, "pipe");
    refused_by_name(pipe, "pipe");
}
END_TEST

START_TEST(bomb_is_refused_and_leaves_nothing_in_the_package_store)
{
    struct packed *p = pack_zip();
    pack_text(p, "publisher.json", "{}");
    pack_zeros(p, "bomb.parquet", 3 << 20);

    refused_by_name(p, "bomb.parquet");
    ck_assert_uint_eq(entries_in(fx.store), 0);

    /* Hidden entries are unpacked too while they are passed over. */
    p = pack_tar_gz();
    pack_zeros(p, ".hidden", 3 << 20);
    refused_by_name(p, ".hidden");
}
END_TEST

START_TEST(total_and_number_of_files_are_capped)
{
    fx.lim.archive_ratio = 1 << 20;
    fx.lim.archive_bytes = 200 << 10;
    struct packed *p = pack_tar_gz();
    pack_zeros(p, "a.parquet", 150 << 10);
    pack_zeros(p, "b.parquet", 150 << 10);
    refused_by_name(p, "b.parquet");

    fx.lim.files = 2;
    p = pack_tar_gz();
    pack_text(p, "a", "");
    pack_text(p, "b", "");
    pack_text(p, "c", "");
    refused_by_name(p, "2 files");
}
END_TEST

START_TEST(name_that_stands_twice_or_is_file_and_directory_is_refused)
{
    struct packed *p = pack_tar_gz();
    pack_text(p, "a.malloy", "1");
    pack_text(p, "./a.malloy", "2");
    refused_by_name(p, "a.malloy");
    p = pack_tar_gz();
    pack_text(p, "m", "1");
    pack_text(p, "m/a.malloy", "2");
    refused_by_name(p, "'m'");
}
END_TEST

START_TEST(rubbish_and_cut_archives_are_refused)
{
    ck_assert_int_eq(unpack(SLICE_NONE), ERR_ARCHIVE);
    ck_assert_int_eq(unpack(SLICE("this is no archive")), ERR_ARCHIVE);
    ck_assert_ptr_nonnull(strstr(fx.err.text, "not a zip or tar.gz"));
    struct packed *p = pack_zip();
    pack_text(p, "publisher.json", "{}");
    struct slice zip = pack_end(p);
    ck_assert_int_eq(unpack(slice_make(zip.p, zip.len - 30)), ERR_ARCHIVE);
    p = pack_tar_gz();
    pack_text(p, "publisher.json", "{}");
    struct slice tar = pack_end(p);
    ck_assert_int_eq(unpack(slice_make(tar.p, tar.len / 2)), ERR_ARCHIVE);
}
END_TEST

TCase *archive_case(void)
{
    TCase *tc = tcase_create("archive");
    tcase_add_checked_fixture(tc, fixture_up, fixture_down);
    tcase_add_test(tc, zip_that_says_utf8_keeps_its_names);
    tcase_add_test(tc, zip_gives_the_same_version_as_its_directory);
    tcase_add_test(tc, tar_gz_loses_its_one_top_directory_and_its_hidden_files);
    tcase_add_test(tc, entries_that_lead_out_are_refused_by_name);
    tcase_add_test(tc, links_and_devices_are_refused_by_name);
    tcase_add_test(tc, bomb_is_refused_and_leaves_nothing_in_the_package_store);
    tcase_add_test(tc, total_and_number_of_files_are_capped);
    tcase_add_test(tc, name_that_stands_twice_or_is_file_and_directory_is_refused);
    tcase_add_test(tc, rubbish_and_cut_archives_are_refused);
    return tc;
}
