#include "common/base/map.h"
#include "tests/support/suite.h"

#include <stdio.h>

static int values[5000];

static struct slice name_of(char out[32], int i)
{
    int n = snprintf(out, 32, "key-%d", i);
    return slice_make(out, (size_t)n);
}

START_TEST(a_map_finds_what_was_put_and_nothing_else)
{
    struct map m;
    map_init(&m);
    ck_assert_ptr_null(map_get(&m, SLICE("a")));
    ck_assert_ptr_null(map_del(&m, SLICE("a")));
    ck_assert_ptr_null(map_put(&m, SLICE("a"), &values[0]));
    ck_assert_ptr_eq(map_put(&m, SLICE("a"), &values[1]), &values[0]);
    ck_assert_ptr_null(map_put(&m, SLICE(""), &values[2]));
    ck_assert_ptr_null(map_put(&m, SLICE("a\0b"), &values[3]));
    ck_assert_ptr_eq(map_get(&m, SLICE("a")), &values[1]);
    ck_assert_ptr_eq(map_get(&m, SLICE_NONE), &values[2]);
    ck_assert_ptr_eq(map_get(&m, SLICE("a\0b")), &values[3]);
    ck_assert_uint_eq(map_len(&m), 3);
    ck_assert_ptr_eq(map_del(&m, SLICE("a")), &values[1]);
    ck_assert_ptr_null(map_get(&m, SLICE("a")));
    ck_assert_uint_eq(map_len(&m), 2);
    map_fini(&m);
    ck_assert_uint_eq(map_len(&m), 0);
}
END_TEST

START_TEST(keys_are_copied)
{
    struct map m;
    map_init(&m);
    char key[] = "abc";
    ck_assert_ptr_null(map_put(&m, slice_of(key), &values[0]));
    key[0] = 'x';
    ck_assert_ptr_eq(map_get(&m, SLICE("abc")), &values[0]);
    map_fini(&m);
}
END_TEST

START_TEST(iteration_follows_insertion_through_growth_and_deletes)
{
    struct map m;
    map_init(&m);
    char name[32];
    for (int i = 0; i < 5000; i++) {
        ck_assert_ptr_null(map_put(&m, name_of(name, i), &values[i]));
    }
    for (int i = 0; i < 5000; i += 2) {
        ck_assert_ptr_eq(map_del(&m, name_of(name, i)), &values[i]);
    }
    int expected = 1;
    for (struct map_iter it = map_begin(&m); map_next(&it); expected += 2) {
        ck_assert_ptr_eq(it.value, &values[expected]);
        ck_assert(slice_eq(it.key, name_of(name, expected)));
    }
    ck_assert_int_eq(expected, 5001);
    ck_assert_uint_eq(map_len(&m), 2500);
    map_fini(&m);
}
END_TEST

START_TEST(deleting_every_key_during_iteration_visits_all)
{
    struct map m;
    map_init(&m);
    char name[32];
    for (int i = 0; i < 100; i++) {
        ck_assert_ptr_null(map_put(&m, name_of(name, i), &values[i]));
    }
    int seen = 0;
    for (struct map_iter it = map_begin(&m); map_next(&it); seen++) {
        ck_assert_ptr_eq(map_del(&m, it.key), &values[seen]);
    }
    ck_assert_int_eq(seen, 100);
    ck_assert_uint_eq(map_len(&m), 0);
    map_fini(&m);
}
END_TEST

START_TEST(a_deleted_key_put_again_goes_to_the_end)
{
    struct map m;
    map_init(&m);
    ck_assert_ptr_null(map_put(&m, SLICE("a"), &values[0]));
    ck_assert_ptr_null(map_put(&m, SLICE("b"), &values[1]));
    ck_assert_ptr_eq(map_del(&m, SLICE("a")), &values[0]);
    ck_assert_ptr_null(map_put(&m, SLICE("a"), &values[2]));
    struct map_iter it = map_begin(&m);
    ck_assert(map_next(&it) && slice_is(it.key, "b"));
    ck_assert(map_next(&it) && slice_is(it.key, "a"));
    ck_assert(!map_next(&it));
    map_fini(&m);
}
END_TEST

START_TEST(a_queue_like_life_does_not_grow_the_map)
{
    struct map m;
    map_init(&m);
    for (uint64_t i = 0; i < 100000; i++) {
        ck_assert_ptr_null(map_put_u64(&m, i, &values[i % 5000]));
        if (i >= 10) {
            ck_assert_ptr_eq(map_del_u64(&m, i - 10), &values[(i - 10) % 5000]);
        }
    }
    ck_assert_uint_eq(map_len(&m), 10);
    ck_assert_uint_le(m.cap, 64);
    map_fini(&m);
}
END_TEST

START_TEST(number_keys_and_byte_keys_never_meet)
{
    struct map m;
    map_init(&m);
    uint64_t number = 0x4141414141414141u;
    ck_assert_ptr_null(map_put_u64(&m, number, &values[0]));
    ck_assert_ptr_null(map_get(&m, SLICE("AAAAAAAA")));
    ck_assert_ptr_null(map_put(&m, SLICE("AAAAAAAA"), &values[1]));
    ck_assert_ptr_eq(map_get_u64(&m, number), &values[0]);
    ck_assert_ptr_null(map_get_u64(&m, 0));
    struct map_iter it = map_begin(&m);
    ck_assert(map_next(&it));
    ck_assert_mem_eq(it.key.p, &number, sizeof number);
    map_fini(&m);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("map");
    tcase_add_test(t, a_map_finds_what_was_put_and_nothing_else);
    tcase_add_test(t, keys_are_copied);
    tcase_add_test(t, iteration_follows_insertion_through_growth_and_deletes);
    tcase_add_test(t, deleting_every_key_during_iteration_visits_all);
    tcase_add_test(t, a_deleted_key_put_again_goes_to_the_end);
    tcase_add_test(t, a_queue_like_life_does_not_grow_the_map);
    tcase_add_test(t, number_keys_and_byte_keys_never_meet);
    Suite *s = suite_create("map");
    suite_add_tcase(s, t);
    return suite_run(s);
}
