/* What ends a wait early: deadlines and cancels. */
#include "tests/unit/flow_fixture.h"
#include "tests/unit/flow_suites.h"

START_TEST(deadline_without_a_cancel_function_ends_the_wait_with_a_timeout)
{
    struct world w;
    struct job j;
    begin(&j, &w);

    pass(&w, 99);
    ck_assert(!j.flow.timed_out);
    pass(&w, 1);
    settle(&w);

    ck_assert_int_eq(j.seen_rc[ASK], ERR_TIMEOUT);
    ck_assert_str_eq(j.flow.err.text, "ask: job: ASK took longer than 100 ms");
    flow_resume(&j.flow, 0, NULL);
    ck_assert_int_eq(j.flow.final_rc, ERR_TIMEOUT);
    job_fini(&j);
}
END_TEST

START_TEST(deadline_of_an_operation_reaches_the_step_as_a_timeout_not_as_a_cancel)
{
    struct world w;
    world_init(&w);
    struct job j = {.skip_ask = true};
    start(&j, &w);
    turn(&w);

    pass(&w, 100);
    settle(&w);
    ck_assert_int_eq(j.cancels, 1);
    ck_assert(j.flow.waiting);
    ck_assert_int_eq(j.seen_rc[WORK], 0);
    flow_resume(&j.flow, ERR_CANCELLED, NULL);

    ck_assert_int_eq(j.seen_rc[WORK], ERR_TIMEOUT);
    ck_assert(j.seen_timed_out);
    ck_assert(!j.flow.cancel_asked);
    flow_resume(&j.flow, 0, NULL);
    ck_assert_int_eq(j.flow.final_rc, ERR_TIMEOUT);
    ck_assert_str_eq(j.flow.err.text, "job: WORK took longer than 100 ms");
    job_fini(&j);
}
END_TEST

START_TEST(result_that_beats_the_cancel_of_a_deadline_counts)
{
    struct world w;
    world_init(&w);
    struct job j = {.skip_ask = true};
    start(&j, &w);
    turn(&w);

    pass(&w, 100);
    flow_resume(&j.flow, 0, NULL);

    ck_assert_int_eq(j.seen_rc[WORK], 0);
    ck_assert_str_eq(flow_step_name(&j.flow), "COMMIT");
    flow_resume(&j.flow, 0, NULL);
    flow_resume(&j.flow, 0, NULL);
    job_fini(&j);
}
END_TEST

START_TEST(cancel_ends_the_operation_once_and_the_flow_decides_where_that_leads)
{
    struct world w;
    world_init(&w);
    struct job j = {.skip_ask = true};
    start(&j, &w);
    turn(&w);

    flow_cancel(&j.flow);
    flow_cancel(&j.flow);
    pass(&w, 100); /* the deadline finds a cancel under way */
    ck_assert_int_eq(j.cancels, 1);
    flow_resume(&j.flow, ERR_CANCELLED, NULL);

    ck_assert_int_eq(j.seen_rc[WORK], ERR_CANCELLED);
    ck_assert_str_eq(flow_step_name(&j.flow), "CLEAN");
    settle(&w);
    ck_assert_str_eq(flow_step_name(&j.flow), "CLEAN"); /* its wait is not ended again */
    flow_resume(&j.flow, 0, NULL);
    ck_assert_int_eq(j.flow.final_rc, ERR_CANCELLED);
    job_fini(&j);
}
END_TEST

START_TEST(cancel_of_a_wait_without_operation_comes_on_the_next_turn)
{
    struct world w;
    struct job j;
    begin(&j, &w);

    flow_cancel(&j.flow);
    ck_assert_int_eq(j.seen_rc[ASK], 0);
    settle(&w);

    ck_assert_int_eq(j.seen_rc[ASK], ERR_CANCELLED);
    flow_resume(&j.flow, 0, NULL);
    ck_assert_int_eq(j.flow.final_rc, ERR_CANCELLED);
    job_fini(&j);
}
END_TEST

START_TEST(completion_that_beats_a_pending_cancel_wins_and_nothing_is_run_twice)
{
    struct world w;
    struct job j;
    begin(&j, &w);

    flow_cancel(&j.flow);
    flow_resume(&j.flow, 0, NULL); /* to WORK, the kick is still queued */
    settle(&w);

    ck_assert_int_eq(j.seen_rc[ASK], 0);
    ck_assert_str_eq(flow_step_name(&j.flow), "WORK");
    flow_resume(&j.flow, ERR_IO, NULL);
    flow_resume(&j.flow, 0, NULL);
    ck_assert_int_eq(j.ended, 1);
    job_fini(&j);
}
END_TEST

START_TEST(cancel_before_the_first_run_ends_the_first_wait)
{
    struct world w;
    world_init(&w);
    struct job j = {0};
    start(&j, &w);

    flow_cancel(&j.flow);
    ck_assert_str_eq(j.trail, "");
    settle(&w);

    ck_assert_int_eq(j.seen_rc[ASK], ERR_CANCELLED);
    ck_assert_str_eq(j.trail, "ask clean ");
    flow_resume(&j.flow, 0, NULL);
    ck_assert_int_eq(j.ended, 1);
    job_fini(&j);
}
END_TEST

START_TEST(shielded_wait_is_not_touched_by_a_cancel_but_the_next_one_is)
{
    struct world w;
    world_init(&w);
    struct job j = {.skip_ask = true};
    start(&j, &w);
    turn(&w);
    flow_resume(&j.flow, 0, NULL);
    ck_assert_str_eq(flow_step_name(&j.flow), "COMMIT");

    flow_cancel(&j.flow);
    settle(&w);
    ck_assert_str_eq(flow_step_name(&j.flow), "COMMIT");
    flow_resume(&j.flow, 0, NULL);
    ck_assert_int_eq(j.seen_rc[COMMIT], 0);
    settle(&w);

    ck_assert_int_eq(j.seen_rc[CLEAN], ERR_CANCELLED);
    ck_assert_int_eq(j.ended, 1);
    job_fini(&j);
}
END_TEST

START_TEST(deadline_counts_from_the_entry_of_the_step_however_often_it_waits)
{
    struct world w;
    world_init(&w);
    struct job j = {.skip_ask = true, .poll = true};
    start(&j, &w);
    turn(&w);

    for (int i = 0; i < 3; i++) {
        pass(&w, 30);
        flow_resume(&j.flow, 0, NULL);
    }
    ck_assert_int_eq(j.cancels, 0);
    pass(&w, 10);

    ck_assert_int_eq(j.cancels, 1);
    flow_resume(&j.flow, 0, NULL); /* waits again: with a whole deadline, not an expired one */
    pass(&w, 99);
    ck_assert_int_eq(j.cancels, 1);
    pass(&w, 1);
    ck_assert_int_eq(j.cancels, 2);
    flow_resume(&j.flow, ERR_CANCELLED, NULL);
    flow_resume(&j.flow, 0, NULL);
    job_fini(&j);
}
END_TEST

TCase *flow_wait_tests(void)
{
    TCase *tc = tcase_create("waits");
    tcase_add_test(tc, deadline_without_a_cancel_function_ends_the_wait_with_a_timeout);
    tcase_add_test(tc, deadline_of_an_operation_reaches_the_step_as_a_timeout_not_as_a_cancel);
    tcase_add_test(tc, result_that_beats_the_cancel_of_a_deadline_counts);
    tcase_add_test(tc, cancel_ends_the_operation_once_and_the_flow_decides_where_that_leads);
    tcase_add_test(tc, cancel_of_a_wait_without_operation_comes_on_the_next_turn);
    tcase_add_test(tc, completion_that_beats_a_pending_cancel_wins_and_nothing_is_run_twice);
    tcase_add_test(tc, cancel_before_the_first_run_ends_the_first_wait);
    tcase_add_test(tc, shielded_wait_is_not_touched_by_a_cancel_but_the_next_one_is);
    tcase_add_test(tc, deadline_counts_from_the_entry_of_the_step_however_often_it_waits);
    return tc;
}
