/* Puts, and the mirrors that see them. */
#include "tests/conformance/cache_conformance_fixture.h"
#include "tests/conformance/cache_conformance_suites.h"

START_TEST(a_put_is_seen_by_every_mirror)
{
    struct rig r;
    struct mirror a;
    struct mirror b;
    rig_init(&r, _i);
    mirror_ready(&a, &r);
    mirror_ready(&b, &r);

    ck_assert_int_eq(put(&a, 7, 1732900000000001, SLICE("set")), 1732900000000001);

    until(&r, a.n_sets && b.n_sets);
    ck_assert_uint_eq(b.epoch[7], 1732900000000001);
    ck_assert_str_eq(b.packed[7], "set");
    mirror_close(&a);
    mirror_close(&b);
    rig_fini(&r);
}
END_TEST

START_TEST(a_mirror_that_opens_later_reads_what_is_there)
{
    struct rig r;
    struct mirror a;
    struct mirror b;
    rig_init(&r, _i);
    mirror_ready(&a, &r);
    for (uint64_t unit = 0; unit < UNITS; unit++) {
        ck_assert_int_eq(put(&a, unit, 100 + unit, SLICE("x")), (int64_t)(100 + unit));
    }

    mirror_ready(&b, &r);

    ck_assert_int_eq(b.n_sets, UNITS); /* all of them before the first on_synced */
    for (uint64_t unit = 0; unit < UNITS; unit++) {
        ck_assert_uint_eq(b.epoch[unit], 100 + unit);
    }
    mirror_close(&a);
    mirror_close(&b);
    rig_fini(&r);
}
END_TEST

START_TEST(only_a_greater_epoch_replaces_a_set)
{
    struct rig r;
    struct mirror a;
    rig_init(&r, _i);
    mirror_ready(&a, &r);

    ck_assert_int_eq(put(&a, 1, 20, SLICE("twenty")), 20);
    ck_assert_int_eq(put(&a, 1, 19, SLICE("older")), 20);
    ck_assert_int_eq(put(&a, 1, 20, SLICE("equal")), 20);
    until(&r, a.epoch[1] == 20);
    ck_assert_str_eq(a.packed[1], "twenty");
    ck_assert_int_eq(put(&a, 1, 21, SLICE("newer")), 21);

    until(&r, a.epoch[1] == 21);
    ck_assert_str_eq(a.packed[1], "newer");
    mirror_close(&a);
    rig_fini(&r);
}
END_TEST

START_TEST(a_set_may_hold_any_bytes_and_none)
{
    struct rig r;
    struct mirror a;
    rig_init(&r, _i);
    mirror_ready(&a, &r);

    ck_assert_int_eq(put(&a, 1, 1, SLICE("a\0b\r\n\xff")), 1);
    ck_assert_int_eq(put(&a, 2, 1, SLICE_NONE), 1);
    until(&r, a.epoch[1] && a.epoch[2]);

    ck_assert_str_eq(a.packed[1], "a");
    ck_assert_str_eq(a.packed[2], "");
    mirror_close(&a);
    rig_fini(&r);
}
END_TEST

START_TEST(another_installation_is_not_heard)
{
    struct rig r;
    struct mirror a;
    struct mirror b;
    rig_init(&r, _i);
    mirror_ready(&a, &r);
    r.installation = uuid_random();
    mirror_ready(&b, &r);

    ck_assert_int_eq(put(&a, 1, 5, SLICE("a's")), 5);
    ck_assert_int_eq(put(&b, 2, 6, SLICE("b's")), 6);
    until(&r, a.epoch[1] == 5 && b.epoch[2] == 6);

    ck_assert_uint_eq(a.epoch[2], 0);
    ck_assert_uint_eq(b.epoch[1], 0);
    mirror_close(&a);
    mirror_close(&b);
    rig_fini(&r);
}
END_TEST

START_TEST(a_set_over_the_cap_is_refused)
{
    struct rig r;
    struct mirror a;
    rig_init(&r, _i);
    mirror_ready(&a, &r);
    size_t len = (size_t)8 << 20;
    char *big = xcalloc(1, len + 1);

    ck_assert_int_eq(put(&a, 1, 1, slice_make(big, len + 1)), ERR_LIMIT);
    ck_assert_int_eq(put(&a, 1, 1, slice_make(big, len)), 1);
    until(&r, a.epoch[1] == 1);

    free(big);
    mirror_close(&a);
    rig_fini(&r);
}
END_TEST

START_TEST(closing_ends_puts_with_shutdown)
{
    struct rig r;
    struct mirror a;
    struct put p;
    struct put late;
    rig_init(&r, _i);
    mirror_ready(&a, &r);

    put_start(&p, &a, 1, 1, SLICE("x"));
    cache_close(a.cache, on_closed, &a);
    put_start(&late, &a, 1, 2, SLICE("x"));
    until(&r, a.is_closed);

    ck_assert_int_eq(p.n_done, 1);
    ck_assert_int_eq(p.put.rc, ERR_SHUTDOWN);
    ck_assert_int_eq(late.n_done, 1);
    ck_assert_int_eq(late.put.rc, ERR_SHUTDOWN);
    cache_free(a.cache);
    rig_fini(&r);
}
END_TEST

TCase *cache_conformance_put_tests(void)
{
    TCase *t = tcase_create("puts");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_put_is_seen_by_every_mirror, REDIS, RIGS);
    tcase_add_loop_test(t, a_mirror_that_opens_later_reads_what_is_there, REDIS, RIGS);
    tcase_add_loop_test(t, only_a_greater_epoch_replaces_a_set, REDIS, RIGS);
    tcase_add_loop_test(t, a_set_may_hold_any_bytes_and_none, REDIS, RIGS);
    tcase_add_loop_test(t, another_installation_is_not_heard, REDIS, RIGS);
    tcase_add_loop_test(t, a_set_over_the_cap_is_refused, REDIS, RIGS);
    tcase_add_loop_test(t, closing_ends_puts_with_shutdown, REDIS, RIGS);
    return t;
}
