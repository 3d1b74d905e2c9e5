/* What is listed, dropped and discarded, and what a sweep takes: by record only. */
#include "tests/unit/generation_fixture.h"
#include "tests/unit/generation_suites.h"

#include <sys/stat.h>
#include <unistd.h>

START_TEST(a_drop_takes_all_of_it_once)
{
    const struct generation_ref r = ref_of(ID_1);
    make(ID_1, 1);
    write_file(path_of(ID_1, "notes.txt"), "x");
    ck_assert_int_eq(generation_drop(&r, &e), 1);
    ck_assert(!is_there(ID_1));
    ck_assert_int_eq(generation_drop(&r, &e), 0);
}
END_TEST

START_TEST(attempts_are_discarded_by_their_tokens)
{
    make(ID_1, 41);
    make(ID_2, 42);
    const uint64_t tokens[] = {7, 41};
    ck_assert_int_eq(generation_discard(root, "sales", tokens, 2, &e), 1);
    ck_assert(!is_there(ID_1) && is_there(ID_2));
    ck_assert_int_eq(generation_discard(root, "nothing", tokens, 2, &e), 0);
}
END_TEST

START_TEST(lists_name_generations_and_datasets_and_nothing_else)
{
    struct generation_names names;
    ck_assert_int_eq(generation_list(&arena, root, "sales", &names, &e), 0);
    ck_assert_uint_eq(names.n, 0);
    make(ID_2, 1);
    make(ID_1, 2);
    write_file(arena_printf(&arena, "%s/sales/readme", root), "x");
    write_file(arena_printf(&arena, "%s/.kiln-root", root), "x");
    ck_assert_int_eq(generation_list(&arena, root, "sales", &names, &e), 0);
    ck_assert_uint_eq(names.n, 2);
    ck_assert_str_eq(names.items[0], ID_1);
    ck_assert_str_eq(names.items[1], ID_2);
    ck_assert_int_eq(generation_datasets(&arena, root, &names, &e), 0);
    ck_assert_uint_eq(names.n, 1);
    ck_assert_str_eq(names.items[0], "sales");
}
END_TEST

START_TEST(a_sweep_goes_by_the_record_and_not_by_what_a_directory_holds)
{
    const int64_t now = 1700000100 * S;
    const char *const ids[] = {ID_1};
    const struct generation_record record = {ids, 1, now};
    const struct generation_ref unfinished = ref_of(ID_1);
    make(ID_2, 2);                                             /* whole, and nobody's */
    ck_assert_int_eq(generation_begin(&unfinished, 1, &e), 0); /* no manifest: it is being built */
    ck_assert_int_eq(mkdir(arena_printf(&arena, "%s/sales/mine", root), 0700), 0);

    ck_assert_int_eq(generation_sweep(root, "sales", &record, &e), 1);

    ck_assert(is_there(ID_1) && !is_there(ID_2) && is_there("mine"));
    ck_assert_int_eq(generation_sweep(root, "nothing", &record, &e), 0);
}
END_TEST

START_TEST(a_sweep_leaves_what_is_younger_than_it_may_know)
{
    const int64_t made = generation_id_time_us(ID_1);
    const struct generation_record in_an_hour = {NULL, 0, made};
    make(ID_1, 1);
    ck_assert_int_gt(made, 1699000000 * S);
    ck_assert_int_eq(generation_sweep(root, "sales", &in_an_hour, &e), 0);
    ck_assert(is_there(ID_1));
    const struct generation_record at_boot = {NULL, 0, made + 1};
    ck_assert_int_eq(generation_sweep(root, "sales", &at_boot, &e), 1);
}
END_TEST

START_TEST(a_sweep_takes_an_empty_dataset_and_the_next_build_makes_it_again)
{
    const struct generation_record nothing = {NULL, 0, INT64_MAX};
    const struct generation_ref r = ref_of(ID_2);
    const char *dataset = arena_printf(&arena, "%s/sales", root);
    make(ID_1, 1);
    ck_assert_int_eq(generation_sweep(root, "sales", &nothing, &e), 1);
    ck_assert_int_ne(access(dataset, F_OK), 0);
    ck_assert_int_eq(generation_begin(&r, 2, &e), 0);
    ck_assert(is_there(ID_2));
    const struct generation_record own = {(const char *const[]){ID_2}, 1, INT64_MAX};
    ck_assert_int_eq(generation_sweep(root, "sales", &own, &e), 0);
    ck_assert(is_there(ID_2));
}
END_TEST

TCase *generation_sweep_tests(void)
{
    TCase *tc = tcase_create("sweep");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, generation_setup, generation_teardown);
    tcase_add_test(tc, a_drop_takes_all_of_it_once);
    tcase_add_test(tc, attempts_are_discarded_by_their_tokens);
    tcase_add_test(tc, lists_name_generations_and_datasets_and_nothing_else);
    tcase_add_test(tc, a_sweep_goes_by_the_record_and_not_by_what_a_directory_holds);
    tcase_add_test(tc, a_sweep_leaves_what_is_younger_than_it_may_know);
    tcase_add_test(tc, a_sweep_takes_an_empty_dataset_and_the_next_build_makes_it_again);
    return tc;
}
