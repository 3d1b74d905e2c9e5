/* Sessions of one pool: waited for, replaced, lost. */
#include "tests/unit/pgc_fixture.h"
#include "tests/unit/pgc_suites.h"

START_TEST(requests_wait_for_a_free_session)
{
    struct pgc_conn *one = hold();
    struct pgc_conn *two = hold();
    struct told t = {0};
    struct pgc_stmt stmt = {.sql = "SELECT 1"};
    struct pgc_batch waits = batch_of(&stmt, 1, &t);
    struct told t2 = {0};
    struct pgc_batch gives_up = batch_of(&stmt, 1, &t2);
    gives_up.timeout = MS(50);
    struct told t3 = {0};
    struct pgc_batch is_cancelled = batch_of(&stmt, 1, &t3);
    pgc_batch_start(pool, &waits);
    pgc_batch_start(pool, &gives_up);
    pgc_batch_start(pool, &is_cancelled);
    pgc_batch_cancel(&is_cancelled);

    turn_until(loop, t2.dones == 1 && t3.dones == 1);
    ck_assert_int_eq(gives_up.rc, ERR_TIMEOUT);
    ck_assert_int_eq(is_cancelled.rc, ERR_CANCELLED);
    ck_assert_int_eq(t.dones, 0);
    unsigned open;
    unsigned busy;
    unsigned waiting;
    pgc_pool_counts(pool, &open, &busy, &waiting);
    ck_assert_uint_eq(open, 2);
    ck_assert_uint_eq(busy, 2);
    ck_assert_uint_eq(waiting, 1);
    pgc_give(two, false);
    turn_until(loop, t.dones == 1);

    ck_assert_int_eq(waits.rc, 0);
    pgc_batch_fini(&waits);
    pgc_batch_fini(&gives_up);
    pgc_batch_fini(&is_cancelled);
    pgc_give(one, true);
}
END_TEST

START_TEST(an_idle_session_that_died_is_replaced_unnoticed)
{
    ck_assert_int_eq(value_of("SELECT 1"), 1);
    pg_server_exec(&server, "postgres",
                   "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid <> "
                   "pg_backend_pid() AND backend_type = 'client backend'");

    ck_assert_int_eq(value_of("SELECT 2"), 2);
}
END_TEST

START_TEST(a_lost_connection_says_that_the_outcome_is_unknown)
{
    struct told t = {0};
    struct pgc_stmt stmts[] = {{.sql = "SELECT pg_sleep(60)"}};
    struct pgc_batch b = batch_of(stmts, 1, &t);
    pgc_batch_start(pool, &b);
    char *n = NULL;
    do {
        free(n);
        (void)loop_turn(loop, MS(10));
        n = pg_server_value(&server, "postgres",
                            "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity "
                            "WHERE query LIKE '%pg_sleep(60)' AND state = 'active' AND pid <> "
                            "pg_backend_pid()");
    } while (strcmp(n, "0") == 0);
    free(n);

    turn_until(loop, t.dones == 1);

    ck_assert_int_eq(err_code_class(b.rc), ERR_CLASS_TRANSIENT);
    ck_assert_str_eq(b.err.sqlstate, "57P01");
    ck_assert(b.unknown_outcome);
    pgc_batch_fini(&b);
    ck_assert_int_eq(value_of("SELECT 3"), 3);
}
END_TEST

TCase *pgc_session_tests(void)
{
    TCase *tc = tcase_create("sessions");
    tcase_add_checked_fixture(tc, open_pool_of_two, close_pool);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, requests_wait_for_a_free_session);
    tcase_add_test(tc, an_idle_session_that_died_is_replaced_unnoticed);
    tcase_add_test(tc, a_lost_connection_says_that_the_outcome_is_unknown);
    return tc;
}
