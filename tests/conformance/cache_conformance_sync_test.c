/* What makes a mirror unconfirmed or stale, and how it catches up. */
#include "tests/conformance/cache_conformance_fixture.h"
#include "tests/conformance/cache_conformance_suites.h"

START_TEST(a_lost_server_makes_the_mirror_unconfirmed_and_its_return_syncs_it)
{
    struct rig r;
    struct mirror a;
    struct mirror b;
    rig_init(&r, _i);
    mirror_ready(&a, &r);
    mirror_ready(&b, &r);
    ck_assert_int_eq(put(&a, 1, 5, SLICE("old")), 5);

    rig_down(&r);
    until(&r, !cache_confirmed(a.cache) && !cache_confirmed(b.cache));
    ck_assert_int_eq(put(&a, 1, 6, SLICE("lost")), ERR_REDIS);
    rig_up(&r);
    until(&r, cache_confirmed(a.cache) && cache_confirmed(b.cache));

    ck_assert_int_eq(a.n_synced, 2);
    ck_assert_int_eq(b.n_synced, 2);
    ck_assert_int_eq(put(&a, 1, 5, SLICE("again")), 5); /* Redis came back empty */
    until(&r, strcmp(b.packed[1], "again") == 0);
    mirror_close(&a);
    mirror_close(&b);
    rig_fini(&r);
}
END_TEST

START_TEST(a_server_that_is_not_there_yet_is_waited_for)
{
    struct rig r;
    struct mirror a;
    rig_init(&r, _i);
    rig_down(&r);
    mirror_open(&a, &r);
    struct put p;
    put_start(&p, &a, 1, 1, SLICE("x"));
    until(&r, p.n_done == 1);
    ck_assert_int_eq(p.put.rc, ERR_REDIS);

    rig_up(&r);
    until(&r, cache_confirmed(a.cache));

    ck_assert_int_eq(a.n_synced, 1);
    mirror_close(&a);
    rig_fini(&r);
}
END_TEST

START_TEST(a_flush_leads_to_another_sync)
{
    struct rig r;
    struct mirror a;
    rig_init(&r, _i);
    mirror_ready(&a, &r);
    ck_assert_int_eq(put(&a, 1, 5, SLICE("old")), 5);
    until(&r, a.n_sets == 1);

    rig_flush(&r);
    until(&r, a.n_synced == 2);

    ck_assert(cache_confirmed(a.cache));
    ck_assert_int_eq(put(&a, 1, 5, SLICE("again")), 5);
    until(&r, strcmp(a.packed[1], "again") == 0);
    mirror_close(&a);
    rig_fini(&r);
}
END_TEST

START_TEST(a_deleted_or_foreign_value_leads_to_another_sync)
{
    struct rig r;
    struct mirror a;
    rig_init(&r, _i);
    mirror_ready(&a, &r);
    ck_assert_int_eq(put(&a, 1, 5, SLICE("old")), 5);
    until(&r, a.n_sets == 1);

    rig_poke(&r, 1, SLICE_NONE);
    until(&r, a.n_synced == 2);
    rig_poke(&r, 1, SLICE("rubbish"));
    until(&r, a.n_synced == 3);
    rig_poke(&r, 1, SLICE("99999999999999999999 too large for 64 bits"));
    until(&r, a.n_synced == 4);

    ck_assert_int_eq(a.n_sets, 1);
    mirror_close(&a);
    rig_fini(&r);
}
END_TEST

START_TEST(rubbish_is_overwritten_by_any_epoch)
{
    struct rig r;
    struct mirror a;
    rig_init(&r, _i);
    rig_poke(&r, 1, SLICE("hello"));
    mirror_ready(&a, &r);

    ck_assert_int_eq(put(&a, 1, 1, SLICE("set")), 1);

    until(&r, a.epoch[1] == 1);
    mirror_close(&a);
    rig_fini(&r);
}
END_TEST

START_TEST(a_change_by_someone_else_is_seen)
{
    struct rig r;
    struct mirror a;
    rig_init(&r, _i);
    mirror_ready(&a, &r);

    rig_poke(&r, 3, SLICE("00000000000000000009nine"));

    until(&r, a.epoch[3] == 9);
    ck_assert_str_eq(a.packed[3], "nine");
    mirror_close(&a);
    rig_fini(&r);
}
END_TEST

TCase *cache_conformance_sync_tests(void)
{
    TCase *t = tcase_create("syncs");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_lost_server_makes_the_mirror_unconfirmed_and_its_return_syncs_it,
                        REDIS, RIGS);
    tcase_add_loop_test(t, a_server_that_is_not_there_yet_is_waited_for, REDIS, RIGS);
    tcase_add_loop_test(t, a_flush_leads_to_another_sync, REDIS, RIGS);
    tcase_add_loop_test(t, a_deleted_or_foreign_value_leads_to_another_sync, REDIS, RIGS);
    tcase_add_loop_test(t, rubbish_is_overwritten_by_any_epoch, REDIS, RIGS);
    tcase_add_loop_test(t, a_change_by_someone_else_is_seen, REDIS, RIGS);
    return t;
}
