/* When a gateway's binding sets are in doubt. */
#include "services/gateway/core/sets.h"

#include "tests/support/suite.h"

static bool is_good(const struct sets_watch *w, int64_t now)
{
    return now < w->good_until;
}

START_TEST(sets_are_good_for_a_minute_after_they_were_read)
{
    struct sets_watch w = {0};
    ck_assert(!is_good(&w, 1000)); /* a process that has just started */
    sets_read(&w, MS(1000));
    ck_assert(is_good(&w, 60999));
    ck_assert(!is_good(&w, 61000));
    sets_read(&w, MS(500)); /* an answer to an older question */
    ck_assert(is_good(&w, 60999));
    ck_assert(!sets_look(&w, MS(2000)));
    ck_assert(is_good(&w, 60999));
}
END_TEST

START_TEST(gateway_that_is_awake_and_hears_nobody_never_doubts_its_sets)
{
    struct sets_watch w = {0};
    int n_told = 0;
    sets_read(&w, MS(1000));
    for (int64_t now = 3000; now < 600000; now += 2000) {
        n_told += sets_look(&w, MS(now));
        ck_assert(is_good(&w, now));
    }
    ck_assert_int_eq(n_told, 1);
    sets_read(&w, MS(600000)); /* somebody is back */
    ck_assert(is_good(&w, 659999));
    ck_assert(!is_good(&w, 660000));
}
END_TEST

START_TEST(gateway_that_slept_reads_its_sets_again_before_they_are_good)
{
    struct sets_watch w = {0};
    sets_read(&w, MS(1000));
    (void)sets_look(&w, MS(3000));
    ck_assert(!is_good(&w, 100000));
    ck_assert(!sets_look(&w, MS(100000)));
    ck_assert(!sets_look(&w, MS(102000)));
    ck_assert(!is_good(&w, 102000));
    sets_read(&w, MS(100000));
    ck_assert(is_good(&w, 102000));
}
END_TEST

START_TEST(gateway_that_slept_and_hears_nobody_goes_on_after_three_seconds)
{
    struct sets_watch w = {0};
    sets_read(&w, MS(1000));
    ck_assert(!sets_look(&w, MS(100000)));
    ck_assert(!sets_look(&w, MS(102999)));
    ck_assert(!is_good(&w, 102999));
    ck_assert(sets_look(&w, MS(103000)));
    ck_assert(is_good(&w, 103000));
    ck_assert(!sets_look(&w, MS(105000)));
}
END_TEST

START_TEST(gateway_that_starts_without_planner_and_redis_goes_on_after_three_seconds)
{
    struct sets_watch w = {0};
    ck_assert(!sets_look(&w, MS(10)));
    ck_assert(!is_good(&w, 10));
    ck_assert(sets_look(&w, MS(3010)));
    ck_assert(is_good(&w, 3010));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sets");
    TCase *t = tcase_create("all");
    tcase_add_test(t, sets_are_good_for_a_minute_after_they_were_read);
    tcase_add_test(t, gateway_that_is_awake_and_hears_nobody_never_doubts_its_sets);
    tcase_add_test(t, gateway_that_slept_reads_its_sets_again_before_they_are_good);
    tcase_add_test(t, gateway_that_slept_and_hears_nobody_goes_on_after_three_seconds);
    tcase_add_test(t, gateway_that_starts_without_planner_and_redis_goes_on_after_three_seconds);
    suite_add_tcase(s, t);
    return suite_run(s);
}
