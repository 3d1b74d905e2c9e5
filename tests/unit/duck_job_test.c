/* Jobs of the threads over instances: their order, their ends, and turns among instances. */
#include "tests/unit/duck_fixture.h"
#include "tests/unit/duck_suites.h"

#define ENDLESS "SELECT max(hash(a.n, b.n)) FROM range(1000000000) a(n), range(1000000000) b(n)"

START_TEST(rows_come_in_order_and_the_end_comes_last)
{
    struct told t;
    told_init(&t, "SELECT i, 'row ' || i FROM range(300000) t(i)");
    told_start(&t);
    ck_assert_int_eq(told_end(&t), 0);
    ck_assert_uint_eq(t.n_rows, 300000);
    ck_assert_uint_gt(t.n_pages, 8); /* the ring went round */
    ck_assert_int_eq(strncmp(t.rows.p, "0|row 0\n1|row 1\n", 16), 0);
    ck_assert_str_eq(t.rows.p + t.rows.len - 18, "299999|row 299999\n");
    buf_fini(&t.rows);
}
END_TEST

START_TEST(a_reader_that_stops_ends_a_query_that_would_go_on_for_ever)
{
    struct told t;
    told_init(&t, "SELECT i FROM range(100000000000) t(i)");
    t.stop_after = 5;
    told_start(&t);
    ck_assert_int_eq(told_end(&t), ERR_QUERY_ROWS);
    ck_assert_uint_eq(t.n_rows, 5);
    buf_fini(&t.rows);
}
END_TEST

START_TEST(a_job_that_waits_is_cancelled_at_once_and_a_running_one_soon)
{
    static struct told t[3];
    for (size_t i = 0; i < 3; i++) {
        told_init(&t[i], ENDLESS);
        told_start(&t[i]);
    }
    uint64_t rows;
    for (int i = 0; i < 5; i++) {
        (void)loop_turn(loop, MS(20));
    }
    (void)duck_job_progress(&t[0].job, &rows);
    ck_assert_uint_eq(duck_pool_jobs(pool), 3);
    duck_job_cancel(&t[2].job);
    duck_job_cancel(&t[2].job);
    ck_assert_int_eq(told_end(&t[2]), ERR_CANCELLED);
    ck_assert_int_eq(t[0].dones + t[1].dones, 0);

    duck_job_cancel(&t[0].job);
    duck_job_cancel(&t[1].job);
    ck_assert_int_eq(told_end(&t[0]), ERR_CANCELLED);
    ck_assert_int_eq(told_end(&t[1]), ERR_CANCELLED);
    ck_assert_uint_eq(duck_pool_jobs(pool), 0);
    ck_assert_str_eq(rows_of("SELECT 1", DUCK_FORM_TEXT), "1\n"); /* its connection is sound */
}
END_TEST

/* An interrupt before the statement has begun is lost: it is sent again. */
static int work_shown(struct duck_job *job, struct duck_conn *conn, struct err *e)
{
    const char *ignored;
    int rc = duck_show_progress(conn, e);
    struct told *t = job->data;
    return rc < 0 ? rc : duck_exec_value(conn, t->sql, &arena, &ignored, e);
}

START_TEST(a_job_tells_how_far_it_is_when_it_is_asked_to_although_settings_are_locked)
{
    struct told t;
    uint64_t rows;
    (void)rows_of("CREATE TABLE many AS SELECT i FROM range(1000000) r(i)", DUCK_FORM_TEXT);
    told_init(&t, "SELECT max(hash(a.i, b.i)) FROM many a, many b");
    t.job.work_pool = work_shown;
    told_start(&t);
    turn_until(duck_job_progress(&t.job, &rows) >= 0);
    duck_job_cancel(&t.job);
    ck_assert_int_eq(told_end(&t), ERR_CANCELLED);
}
END_TEST

START_TEST(a_cancel_at_any_moment_ends_the_job)
{
    for (int i = 0; i < 60; i++) {
        struct told t;
        told_init(&t, ENDLESS);
        told_start(&t);
        for (int k = 0; k < i % 6; k++) {
            (void)loop_turn(loop, MS(1));
        }
        duck_job_cancel(&t.job);
        ck_assert_int_eq(told_end(&t), ERR_CANCELLED);
        buf_fini(&t.rows);
    }
}
END_TEST

START_TEST(a_job_ends_at_its_deadline)
{
    struct told t;
    told_init(&t, ENDLESS);
    t.job.timeout = MS(150);
    struct ms start = loop_now(loop);
    told_start(&t);
    ck_assert_int_eq(told_end(&t), ERR_TIMEOUT);
    ck_assert_int_lt(ms_sub(loop_now(loop), start).v, 5000);
    ck_assert_ptr_nonnull(strstr(t.job.err.text, "took longer"));
}
END_TEST

START_TEST(an_urgent_job_runs_beside_a_full_house)
{
    static struct told t[4];
    for (size_t i = 0; i < 3; i++) {
        told_init(&t[i], ENDLESS);
        told_start(&t[i]);
    }
    told_init(&t[3], "SELECT 1");
    t[3].job.is_urgent = true;
    told_start(&t[3]);
    ck_assert_int_eq(told_end(&t[3]), 0);
    ck_assert_int_eq(t[0].dones + t[1].dones + t[2].dones, 0);
    for (size_t i = 0; i < 3; i++) {
        duck_job_cancel(&t[i].job);
        ck_assert_int_eq(told_end(&t[i]), ERR_CANCELLED);
    }
    buf_fini(&t[3].rows);
}
END_TEST

START_TEST(an_instance_with_a_long_queue_leaves_others_their_turn)
{
    struct duck_instance *other;
    struct err e;
    int rc = duck_instance_open(
        &(struct duck_settings){
            .what = "other", .connections = 1, .threads = 1, .memory_bytes = UINT64_C(256) << 20},
        &other, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    static struct told t[40];
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        told_init(&t[i], "SELECT count(*) FROM range(3000000) t(i) WHERE hash(i) % 7 = 1");
        if (i == ARRAY_LEN(t) - 1) {
            t[i].job.instance = other;
        }
        told_start(&t[i]);
    }
    ck_assert_int_eq(told_end(&t[ARRAY_LEN(t) - 1]), 0);
    size_t before = 0;
    for (size_t i = 0; i < ARRAY_LEN(t) - 1; i++) {
        before += t[i].dones > 0;
    }
    ck_assert_uint_lt(before, 20);
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        ck_assert_int_eq(told_end(&t[i]), 0);
        buf_fini(&t[i].rows);
    }
    duck_instance_unref(other);
}
END_TEST

START_TEST(an_instance_lives_as_long_as_its_jobs)
{
    struct told t;
    told_init(&t, "SELECT count(*) FROM range(3000000) t(i) WHERE hash(i) % 7 = 1");
    told_start(&t);
    duck_instance_unref(duck);
    duck = NULL;
    ck_assert_int_eq(told_end(&t), 0);
    buf_fini(&t.rows);
}
END_TEST

START_TEST(statements_are_kept_prepared_up_to_a_limit)
{
    for (int i = 0; i < 600; i++) {
        struct told t;
        told_init(&t, arena_printf(&arena, "SELECT %d", i % 300));
        t.prepare_as = t.sql;
        told_start(&t);
        ck_assert_int_eq(told_end(&t), 0);
        ck_assert_str_eq(buf_str(&t.rows), arena_printf(&arena, "%d\n", i % 300));
        buf_fini(&t.rows);
    }
}
END_TEST

TCase *duck_job_tests(void)
{
    TCase *tc = tcase_create("job");
    tcase_set_timeout(tc, 180);
    tcase_add_checked_fixture(tc, duck_setup, duck_teardown);
    tcase_add_test(tc, rows_come_in_order_and_the_end_comes_last);
    tcase_add_test(tc, a_reader_that_stops_ends_a_query_that_would_go_on_for_ever);
    tcase_add_test(tc, a_job_that_waits_is_cancelled_at_once_and_a_running_one_soon);
    tcase_add_test(tc, a_job_tells_how_far_it_is_when_it_is_asked_to_although_settings_are_locked);
    tcase_add_test(tc, a_cancel_at_any_moment_ends_the_job);
    tcase_add_test(tc, a_job_ends_at_its_deadline);
    tcase_add_test(tc, an_urgent_job_runs_beside_a_full_house);
    tcase_add_test(tc, an_instance_with_a_long_queue_leaves_others_their_turn);
    tcase_add_test(tc, an_instance_lives_as_long_as_its_jobs);
    tcase_add_test(tc, statements_are_kept_prepared_up_to_a_limit);
    return tc;
}
