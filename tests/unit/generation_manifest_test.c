/* A manifest that lacks something or is not what was written. */
#include "tests/unit/generation_fixture.h"
#include "tests/unit/generation_suites.h"

START_TEST(a_manifest_cut_off_anywhere_is_damaged)
{
    make(ID_1, 1);
    const char *path = path_of(ID_1, "manifest.json");
    const char *whole = read_file(path);
    size_t len = strlen(whole);
    for (size_t n = 0; n < len; n++) {
        write_file(path, arena_strndup(&arena, whole, n));
        ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_GENERATION);
    }
    write_file(path, whole);
    ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), 0);
}
END_TEST

START_TEST(a_manifest_changed_anywhere_is_damaged)
{
    make(ID_1, 1);
    const char *path = path_of(ID_1, "manifest.json");
    const char *whole = read_file(path);
    for (size_t i = 0; i < strlen(whole); i++) {
        char *changed = arena_strdup(&arena, whole);
        changed[i] = changed[i] == '7' ? '8' : '7';
        write_file(path, changed);
        ck_assert_int_eq(look(ID_1, GENERATION_TOUCHED), ERR_GENERATION);
        ck_assert_ptr_nonnull(strstr(e.text, ID_1));
    }
}
END_TEST

START_TEST(a_manifest_that_lacks_something_is_damaged)
{
    struct generation_manifest good = manifest_of(1);
    static struct generation_file files[] = {{.name = "data-0.parquet", .bytes = 1}};
    good.dataset = "sales";
    good.id = ID_1;
    good.files = files;
    good.n_files = 1;
    struct generation_manifest broken[6];
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        broken[i] = good;
    }
    static struct generation_column untyped[] = {{"n", "", "BIGINT"}};
    static struct generation_file elsewhere[] = {{.name = "../data-0.parquet", .bytes = 1}};
    broken[0].dataset = "..";
    broken[1].id = "x";
    broken[2].n_columns = 0;
    broken[3].n_files = 0;
    broken[4].columns = untyped;
    broken[4].n_columns = 1;
    broken[5].files = elsewhere;
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        auto_buf struct buf text = {0};
        struct generation_manifest m;
        generation_manifest_print(&broken[i], &text);
        ck_assert_int_eq(generation_manifest_parse(&arena, buf_slice(&text), &m, &e),
                         ERR_GENERATION);
    }
    auto_buf struct buf text = {0};
    struct generation_manifest m;
    generation_manifest_print(&good, &text);
    ck_assert_int_eq(generation_manifest_parse(&arena, buf_slice(&text), &m, &e), 0);
}
END_TEST

TCase *generation_manifest_tests(void)
{
    TCase *tc = tcase_create("manifest");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, generation_setup, generation_teardown);
    tcase_add_test(tc, a_manifest_cut_off_anywhere_is_damaged);
    tcase_add_test(tc, a_manifest_changed_anywhere_is_damaged);
    tcase_add_test(tc, a_manifest_that_lacks_something_is_damaged);
    return tc;
}
