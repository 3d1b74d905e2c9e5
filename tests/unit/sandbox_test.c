/* Sandboxes: files where models expect them, one instance for all who ask, closed when nobody does.
 */
#include "tests/support/suite.h"
#include "tests/unit/sandbox_fixture.h"

#include <sys/stat.h>
#include <unistd.h>

START_TEST(models_find_data_files_by_their_relative_names_and_nothing_else)
{
    const char *why;
    add_file("orders.csv", "id,amount\n1,2\n");
    add_file("deep/er/more.csv", "a,b,c\n1,2,3\n");
    write_text(in(f.base, "secret.csv"), "password\nx\n");
    struct sandbox *b = get("1111");

    ck_assert_int_eq(columns_of(b, "orders.csv", &why), 2);
    ck_assert_int_eq(columns_of(b, "deep/er/more.csv", &why), 3);
    ck_assert_int_eq(columns_of(b, in(f.base, "secret.csv"), &why), 0);
    ck_assert_ptr_nonnull(why);
    ck_assert_int_eq(columns_of(b, "../../../secret.csv", &why), 0);
    ck_assert_int_eq(columns_of(b, "/etc/passwd", &why), 0);

    sandbox_put(b);
}
END_TEST

START_TEST(working_directory_is_empty_and_files_cannot_be_written)
{
    char here[256];
    add_file("orders.csv", "id,amount\n1,2\n");
    struct sandbox *b = get("1111");

    ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
    ck_assert_str_eq(here, in(f.dir, "empty"));
    ck_assert_int_ne(rmdir(in(f.dir, "none")), 0);
    ck_assert_int_eq(rmdir(here), 0); /* it is empty */
    ck_assert_int_eq(mkdir(here, 0700), 0);

    sandbox_put(b);
}
END_TEST

START_TEST(all_who_ask_at_once_share_one_instance)
{
    struct asked a[3];
    add_file("orders.csv", "id,amount\n1,2\n");
    for (size_t i = 0; i < 3; i++) {
        ask(&a[i], i == 2 ? "2222" : "1111");
    }
    for (size_t i = 0; i < 3; i++) {
        turn_until(&a[i].is_done);
        ck_assert_int_eq(a[i].get.rc, 0);
    }
    ck_assert_ptr_eq(a[0].get.box, a[1].get.box);
    ck_assert_ptr_ne(a[0].get.box, a[2].get.box);
    for (size_t i = 0; i < 3; i++) {
        sandbox_put(a[i].get.box);
    }
}
END_TEST

START_TEST(unused_instance_is_closed_and_its_files_go)
{
    add_file("orders.csv", "id,amount\n1,2\n");
    sandbox_put(get("1111"));
    int64_t end = loop_now(f.loop).v + PATIENCE_MS;
    while (sandboxes_open(f.set) > 0) {
        ck_assert_int_lt(loop_now(f.loop).v, end);
        (void)loop_turn(f.loop, MS(20));
    }
    const char *why;
    struct sandbox *again = get("1111");
    ck_assert_int_eq(columns_of(again, "orders.csv", &why), 2);
    sandbox_put(again);
}
END_TEST

START_TEST(missing_or_other_data_file_is_told_by_name_leaves_the_others_and_can_be_mended)
{
    const char *why;
    add_file("orders.csv", "id,amount\n1,2\n");
    add_file("gone.csv", "a\n1\n");
    char hex[65];
    hex_encode(f.files[1].sha256.b, 32, hex);
    char *path = arena_printf(&f.arena, "%s/%.2s/%s", f.store, hex, hex);
    ck_assert_int_eq(unlink(path), 0);

    struct sandbox *b = get("1111");
    ck_assert_int_eq(columns_of(b, "orders.csv", &why), 2);
    ck_assert_int_eq(columns_of(b, "gone.csv", &why), 0);
    ck_assert_ptr_nonnull(strstr(why, "'gone.csv' is not in the package store"));
    sandbox_put(b);

    write_text(path, "truncated?");
    b = get("2222");
    ck_assert_int_eq(columns_of(b, "gone.csv", &why), 0);
    ck_assert_ptr_nonnull(strstr(why, "'gone.csv' has 10 bytes"));
    sandbox_put(b);

    write_text(path, "a\n1\n");
    b = get("3333");
    ck_assert_int_eq(columns_of(b, "gone.csv", &why), 1);
    sandbox_put(b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sandbox");
    TCase *tc = tcase_create("sandbox");
    tcase_add_checked_fixture(tc, sandbox_setup, sandbox_teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, models_find_data_files_by_their_relative_names_and_nothing_else);
    tcase_add_test(tc, working_directory_is_empty_and_files_cannot_be_written);
    tcase_add_test(tc, all_who_ask_at_once_share_one_instance);
    tcase_add_test(tc, unused_instance_is_closed_and_its_files_go);
    tcase_add_test(tc,
                   missing_or_other_data_file_is_told_by_name_leaves_the_others_and_can_be_mended);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
