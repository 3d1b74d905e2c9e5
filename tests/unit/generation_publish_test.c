/* Published whole or not at all, and what a directory must hold to be read. */
#include "tests/unit/generation_fixture.h"
#include "tests/unit/generation_suites.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(what_is_published_is_read_back)
{
    const struct generation_ref r = ref_of(ID_1);
    struct generation_manifest m;
    make(ID_1, 42);

    ck_assert_msg(generation_read(&arena, &r, &m, &e) == 0, "%s", e.text);
    ck_assert_int_eq(generation_verify(&r, &m, GENERATION_HASHES, &e), 0);
    ck_assert_str_eq(m.dataset, "sales");
    ck_assert_str_eq(m.id, ID_1);
    ck_assert_str_eq(m.target, "Sales \"x\"");
    ck_assert_str_eq(m.build_id, "b1");
    ck_assert(uuid_eq(&m.installation, &us));
    ck_assert_uint_eq(m.token, 42);
    ck_assert_uint_eq(m.rows, 7);
    ck_assert_uint_eq(m.bytes, 9 + 25);
    ck_assert_int_eq(m.data_as_of_us, 1700000000123456);
    ck_assert_uint_eq(m.n_columns, 2);
    ck_assert_str_eq(m.columns[0].stored, "BIGINT");
    ck_assert_str_eq(m.columns[1].name, "ü \"x\"");
    ck_assert_uint_eq(m.n_files, 2);
    ck_assert_str_eq(m.files[1].name, "data-1.parquet");
    ck_assert_uint_eq(m.files[1].bytes, 25);
    ck_assert_int_ne(access(path_of(ID_1, "manifest.json.tmp"), F_OK), 0);
}
END_TEST

START_TEST(without_its_manifest_it_is_none)
{
    const struct generation_ref r = ref_of(ID_1);
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_NOT_FOUND);
    ck_assert_int_eq(generation_begin(&r, 1, &e), 0);
    write_file(path_of(ID_1, "data-0.parquet"), "x");
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_NOT_FOUND);
    write_file(path_of(ID_1, "manifest.json.tmp"), "{");
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_NOT_FOUND);
}
END_TEST

START_TEST(nothing_is_published_without_data)
{
    const struct generation_ref r = ref_of(ID_1);
    struct generation_manifest m = manifest_of(1);
    ck_assert_int_eq(generation_begin(&r, 1, &e), 0);
    ck_assert_int_eq(generation_publish(&arena, &r, &m, &e), ERR_GENERATION);
    ck_assert_int_ne(access(path_of(ID_1, "manifest.json"), F_OK), 0);
}
END_TEST

/* Until the file system's clock tells it from the manifest. */
static void write_later(const char *id, const char *text)
{
    struct stat data, manifest;
    ck_assert_int_eq(stat(path_of(id, "manifest.json"), &manifest), 0);
    do {
        write_file(path_of(id, "data-0.parquet"), text);
        ck_assert_int_eq(stat(path_of(id, "data-0.parquet"), &data), 0);
    } while (data.st_ctim.tv_sec == manifest.st_ctim.tv_sec &&
             data.st_ctim.tv_nsec == manifest.st_ctim.tv_nsec);
}

START_TEST(a_file_of_the_same_size_in_the_place_of_another_is_noticed_whatever_its_date)
{
    make(ID_1, 1);
    const char *path = path_of(ID_1, "data-0.parquet");
    const char *whole = read_file(path);
    struct stat was;
    ck_assert_int_eq(stat(path, &was), 0);
    char *changed = arena_strdup(&arena, whole);
    changed[0] ^= 1;
    write_later(ID_1, changed);
    const struct timespec times[2] = {was.st_atim, was.st_mtim};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_GENERATION);
    ck_assert_ptr_nonnull(strstr(e.text, "its hash is another"));

    write_later(ID_1, whole); /* restored from a copy: later, and the same */
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), 0);
}
END_TEST

START_TEST(a_directory_edited_by_hand_is_noticed)
{
    make(ID_1, 1);
    write_file(path_of(ID_1, "notes.txt"), "harmless");
    ck_assert_int_eq(look(ID_1, GENERATION_HASHES), 0);
    write_file(path_of(ID_1, "data-2.parquet"), "more");
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_GENERATION);
    ck_assert_ptr_nonnull(strstr(e.text, "changed by hand"));
    ck_assert_int_eq(unlink(path_of(ID_1, "data-2.parquet")), 0);

    write_later(ID_1, "same size");
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_GENERATION);
    ck_assert_ptr_nonnull(strstr(e.text, "its hash is another"));
    ck_assert_int_eq(look(ID_1, GENERATION_HASHES), ERR_GENERATION);
    write_file(path_of(ID_1, "data-0.parquet"), "shorter");
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_GENERATION);
    ck_assert_int_eq(unlink(path_of(ID_1, "data-0.parquet")), 0);
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_NOT_FOUND);
    ck_assert_int_eq(symlink("/etc/hostname", path_of(ID_1, "data-0.parquet")), 0);
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_GENERATION);
}
END_TEST

START_TEST(a_directory_that_was_copied_is_not_the_generation_it_says)
{
    make(ID_1, 1);
    ck_assert_int_eq(rename(path_of(ID_1, ""), path_of(ID_2, "")), 0);
    ck_assert_int_eq(look(ID_2, GENERATION_TOUCHED), ERR_GENERATION);
    ck_assert_ptr_nonnull(strstr(e.text, "moved or copied"));
}
END_TEST

START_TEST(names_that_lead_elsewhere_are_refused)
{
    static const char *const datasets[] = {"", ".", "..", "a/b", "../x", ".hidden", "a b", "ü"};
    struct generation_names names;
    for (size_t i = 0; i < ARRAY_LEN(datasets); i++) {
        const struct generation_ref r = {root, datasets[i], ID_1};
        ck_assert_int_eq(generation_begin(&r, 1, &e), ERR_PATH);
        ck_assert_int_eq(generation_drop(&r, &e), ERR_PATH);
        ck_assert_int_eq(generation_list(&arena, root, datasets[i], &names, &e), ERR_PATH);
    }
    static const char *const ids[] = {"",
                                      "..",
                                      "01hf7yat00aaaaaaaaaaaaaaaa",
                                      "8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
                                      "01HF7YAT00AAAAAAAAAAAAAAAAA",
                                      "01HF7YAT00AAAAAAAAAAAAAAA/"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        const struct generation_ref r = ref_of(ids[i]);
        ck_assert_int_eq(generation_begin(&r, 1, &e), ERR_PATH);
    }
}
END_TEST

START_TEST(a_build_begins_in_an_empty_directory)
{
    make(ID_1, 1);
    const struct generation_ref r = ref_of(ID_1);
    ck_assert_int_eq(generation_begin(&r, 2, &e), 0);
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_NOT_FOUND);
    ck_assert_int_ne(access(path_of(ID_1, "data-0.parquet"), F_OK), 0);
    ck_assert_str_eq(read_file(path_of(ID_1, ".attempt")), "2");
}
END_TEST

TCase *generation_publish_tests(void)
{
    TCase *tc = tcase_create("publish");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, generation_setup, generation_teardown);
    tcase_add_test(tc, what_is_published_is_read_back);
    tcase_add_test(tc, without_its_manifest_it_is_none);
    tcase_add_test(tc, nothing_is_published_without_data);
    tcase_add_test(tc,
                   a_file_of_the_same_size_in_the_place_of_another_is_noticed_whatever_its_date);
    tcase_add_test(tc, a_directory_edited_by_hand_is_noticed);
    tcase_add_test(tc, a_directory_that_was_copied_is_not_the_generation_it_says);
    tcase_add_test(tc, names_that_lead_elsewhere_are_refused);
    tcase_add_test(tc, a_build_begins_in_an_empty_directory);
    return tc;
}
