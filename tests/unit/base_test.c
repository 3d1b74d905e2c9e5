/* Slices, buffers, arenas, lists and spans of time. */
#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/list.h"
#include "common/base/ms.h"
#include "tests/support/suite.h"

START_TEST(slices_compare_by_bytes_and_shorter_first)
{
    ck_assert(slice_eq(SLICE("abc"), slice_of("abc")));
    ck_assert(!slice_eq(SLICE("abc"), SLICE("abd")));
    ck_assert(slice_eq(SLICE_NONE, SLICE("")));
    ck_assert(slice_eq(slice_of(NULL), SLICE_NONE));
    ck_assert(slice_is(SLICE("x"), "x"));
    ck_assert(slice_ieq(SLICE("Content-TYPE"), SLICE("content-type")));
    ck_assert(!slice_ieq(SLICE("@"), SLICE("`")));
    ck_assert(slice_starts(SLICE("kiln.toml"), SLICE("kiln")));
    ck_assert(slice_starts(SLICE("kiln"), SLICE_NONE));
    ck_assert(!slice_starts(SLICE("ki"), SLICE("kiln")));
    ck_assert_int_lt(slice_cmp(SLICE("a"), SLICE("ab")), 0);
    ck_assert_int_gt(slice_cmp(SLICE("b"), SLICE("ab")), 0);
    ck_assert_int_gt(slice_cmp(SLICE("\xff"), SLICE("a")), 0);
    ck_assert_int_eq(slice_cmp(SLICE_NONE, SLICE("")), 0);
}
END_TEST

START_TEST(trimming_takes_blanks_off_both_ends_only)
{
    ck_assert(slice_is(slice_trim(SLICE(" \t a b\r\n")), "a b"));
    ck_assert_uint_eq(slice_trim(SLICE(" \n ")).len, 0);
    ck_assert_uint_eq(slice_trim(SLICE_NONE).len, 0);
}
END_TEST

START_TEST(cutting_gives_every_piece_and_then_stops)
{
    struct slice rest = SLICE("a,,b,");
    struct slice head;
    ck_assert(slice_cut(&rest, ',', &head) && slice_is(head, "a"));
    ck_assert(slice_cut(&rest, ',', &head) && slice_is(head, ""));
    ck_assert(slice_cut(&rest, ',', &head) && slice_is(head, "b"));
    ck_assert(!slice_cut(&rest, ',', &head));
    rest = SLICE_NONE;
    ck_assert(!slice_cut(&rest, ',', &head));
}
END_TEST

START_TEST(numbers_are_read_whole_or_refused)
{
    uint64_t u = 7;
    int64_t i = 7;
    ck_assert_int_eq(slice_to_u64(SLICE("18446744073709551615"), &u), 0);
    ck_assert(u == UINT64_MAX);
    ck_assert_int_eq(slice_to_u64(SLICE("18446744073709551616"), &u), -1);
    ck_assert_int_eq(slice_to_u64(SLICE(""), &u), -1);
    ck_assert_int_eq(slice_to_u64(SLICE("-1"), &u), -1);
    ck_assert_int_eq(slice_to_u64(SLICE(" 1"), &u), -1);
    ck_assert_int_eq(slice_to_u64(SLICE("1x"), &u), -1);
    ck_assert(u == UINT64_MAX);
    ck_assert_int_eq(slice_to_i64(SLICE("-9223372036854775808"), &i), 0);
    ck_assert(i == INT64_MIN);
    ck_assert_int_eq(slice_to_i64(SLICE("9223372036854775807"), &i), 0);
    ck_assert(i == INT64_MAX);
    ck_assert_int_eq(slice_to_i64(SLICE("9223372036854775808"), &i), -1);
    ck_assert_int_eq(slice_to_i64(SLICE("-9223372036854775809"), &i), -1);
    ck_assert_int_eq(slice_to_i64(SLICE("-"), &i), -1);
    ck_assert_int_eq(slice_to_i64(SLICE("--1"), &i), -1);
}
END_TEST

START_TEST(buffers_grow_and_stay_terminated)
{
    auto_buf struct buf b = {0};
    ck_assert_str_eq(buf_str(&b), "");
    ck_assert_uint_eq(buf_slice(&b).len, 0);
    for (int i = 0; i < 1000; i++) {
        buf_addf(&b, "%d,", i);
        ck_assert_uint_eq(strlen(buf_str(&b)), b.len);
    }
    ck_assert(slice_starts(buf_slice(&b), SLICE("0,1,2,")));
    buf_drop(&b, 4);
    ck_assert(slice_starts(buf_slice(&b), SLICE("2,3,")));
    buf_drop(&b, b.len);
    ck_assert_str_eq(buf_str(&b), "");
    buf_add(&b, "a\0b", 3);
    ck_assert_uint_eq(b.len, 3);
    buf_clear(&b);
    buf_add_str(&b, NULL);
    buf_add_slice(&b, SLICE_NONE);
    ck_assert_uint_eq(b.len, 0);
}
END_TEST

START_TEST(one_format_longer_than_the_buffer_arrives_whole)
{
    auto_buf struct buf b = {0};
    buf_addf(&b, "%0500d", 7);
    ck_assert_uint_eq(b.len, 500);
    ck_assert_uint_eq(strlen(b.p), 500);
    ck_assert_int_eq(b.p[499], '7');
}
END_TEST

START_TEST(taking_a_buffer_leaves_it_empty)
{
    struct buf b = {0};
    auto_free char *nothing = buf_take(&b);
    ck_assert_str_eq(nothing, "");
    buf_add_str(&b, "text");
    auto_free char *text = buf_take(&b);
    ck_assert_str_eq(text, "text");
    ck_assert_ptr_null(b.p);
    ck_assert_uint_eq(b.len, 0);
}
END_TEST

START_TEST(arena_memory_is_aligned_and_never_overlaps)
{
    struct arena a;
    arena_init(&a);
    unsigned char *blocks[300];
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
        size_t len = i * 7;
        blocks[i] = arena_alloc(&a, len);
        ck_assert_uint_eq((uintptr_t)blocks[i] % 16, 0);
        memset(blocks[i], (int)(i & 255), len);
    }
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
        for (size_t at = 0; at < i * 7; at++) {
            ck_assert_uint_eq(blocks[i][at], i & 255);
        }
    }
    ck_assert_uint_ge(a.used, 300 * 299 / 2 * 7);
    arena_fini(&a);
}
END_TEST

START_TEST(an_arena_takes_blocks_larger_than_its_own)
{
    struct arena a;
    arena_init(&a);
    size_t len = 10 * 1024 * 1024;
    char *big = arena_zalloc(&a, len);
    ck_assert_int_eq(big[len - 1], 0);
    arena_reset(&a);
    ck_assert_uint_eq(a.used, 0);
    char *small = arena_strdup(&a, "after");
    ck_assert_str_eq(small, "after");
    arena_reset(&a);
    ck_assert_ptr_nonnull(a.head);
    arena_fini(&a);
    arena_fini(&a);
}
END_TEST

START_TEST(arena_copies_are_terminated)
{
    struct arena a;
    arena_init(&a);
    ck_assert_ptr_null(arena_strdup(&a, NULL));
    ck_assert_ptr_null(arena_strndup(&a, NULL, 3));
    ck_assert_str_eq(arena_strndup(&a, "abcdef", 3), "abc");
    ck_assert_str_eq(arena_strndup(&a, "ab", 30), "ab");
    ck_assert_str_eq(arena_slice(&a, slice_make("abcdef", 2)), "ab");
    ck_assert_str_eq(arena_slice(&a, SLICE_NONE), "");
    ck_assert_str_eq(arena_printf(&a, "%s-%d", "x", 12), "x-12");
    int numbers[] = {1, 2, 3};
    int *copy = arena_dup(&a, numbers, sizeof numbers);
    ck_assert_mem_eq(copy, numbers, sizeof numbers);
    arena_fini(&a);
}
END_TEST

START_TEST(allocation_helpers_copy_what_they_say)
{
    ck_assert_ptr_null(xstrdup(NULL));
    auto_free char *a = xstrndup("abcdef", 2);
    ck_assert_str_eq(a, "ab");
    auto_free char *b = xasprintf("%s/%d", a, 5);
    ck_assert_str_eq(b, "ab/5");
    auto_free int *zero = xcalloc(4, sizeof *zero);
    ck_assert_int_eq(zero[3], 0);
}
END_TEST

struct thing {
    int n;
    struct list link;
};

START_TEST(a_list_keeps_order_and_forgets_what_is_unlinked)
{
    struct list head;
    list_init(&head);
    struct thing things[4] = {{.n = 0}, {.n = 1}, {.n = 2}, {.n = 3}};
    for (int i = 1; i < 4; i++) {
        list_add_tail(&head, &things[i].link);
    }
    list_add_head(&head, &things[0].link);
    int expected = 0;
    list_for_each (it, &head) {
        struct thing *t = list_entry(it, struct thing, link);
        ck_assert_int_eq(t->n, expected++);
        if (t->n % 2) {
            list_del(it);
        }
    }
    ck_assert_int_eq(expected, 4);
    list_del(&things[1].link);
    ck_assert(!list_linked(&things[1].link));
    ck_assert_ptr_eq(list_take_head(&head), &things[0].link);
    ck_assert_ptr_eq(list_take_head(&head), &things[2].link);
    ck_assert_ptr_null(list_take_head(&head));
    ck_assert(list_empty(&head));
}
END_TEST

START_TEST(no_deadline_stays_none_whatever_is_added)
{
    ck_assert_int_eq(ms_add(MS_NONE, MS(5)).v, INT64_MAX);
    ck_assert_int_eq(ms_add(MS(3), MS(5)).v, 8);
    ck_assert_int_eq(ms_sub(MS_NONE, MS(5)).v, INT64_MAX);
    ck_assert_int_eq(ms_min(MS_NONE, MS(5)).v, 5);
    ck_assert_int_eq(ms_max(MS(4), MS(5)).v, 5);
    ck_assert(ms_before(MS(4), MS_NONE));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("base");
    tcase_add_test(t, slices_compare_by_bytes_and_shorter_first);
    tcase_add_test(t, trimming_takes_blanks_off_both_ends_only);
    tcase_add_test(t, cutting_gives_every_piece_and_then_stops);
    tcase_add_test(t, numbers_are_read_whole_or_refused);
    tcase_add_test(t, buffers_grow_and_stay_terminated);
    tcase_add_test(t, one_format_longer_than_the_buffer_arrives_whole);
    tcase_add_test(t, taking_a_buffer_leaves_it_empty);
    tcase_add_test(t, arena_memory_is_aligned_and_never_overlaps);
    tcase_add_test(t, an_arena_takes_blocks_larger_than_its_own);
    tcase_add_test(t, arena_copies_are_terminated);
    tcase_add_test(t, allocation_helpers_copy_what_they_say);
    tcase_add_test(t, a_list_keeps_order_and_forgets_what_is_unlinked);
    tcase_add_test(t, no_deadline_stays_none_whatever_is_added);
    Suite *s = suite_create("base");
    suite_add_tcase(s, t);
    return suite_run(s);
}
