/* A flow's way from its start to its one end. */
#include "tests/unit/flow_fixture.h"
#include "tests/unit/flow_suites.h"

START_TEST(first_run_is_on_the_next_turn_and_the_way_leads_to_one_end)
{
    struct world w;
    world_init(&w);
    struct job j = {0};
    start(&j, &w);
    ck_assert_str_eq(j.trail, "");

    turn(&w);
    for (int i = 0; i < 4; i++) {
        flow_resume(&j.flow, 0, NULL);
    }

    ck_assert_str_eq(j.trail, "ask work commit clean ");
    ck_assert_int_eq(j.ended, 1);
    ck_assert_int_eq(j.freed, 1);
    ck_assert_str_eq(j.note_at_end, "kept");
    ck_assert_int_eq(j.flow.final_rc, 0);
    ck_assert(list_empty(&w.env.live));
    ck_assert(!is_armed(&w, &j.flow));
    job_fini(&j);
}
END_TEST

START_TEST(error_of_a_wait_is_seen_with_its_sentence_and_stays_the_first_cause)
{
    struct world w;
    struct job j;
    begin(&j, &w);

    struct err e;
    (void)err_set(&e, ERR_STORE, "store is away");
    flow_resume(&j.flow, ERR_STORE, &e);
    (void)err_set(&e, ERR_IO, "cleaning failed too");
    flow_resume(&j.flow, ERR_IO, &e);

    ck_assert_int_eq(j.seen_rc[CLEAN], ERR_IO);
    ck_assert_int_eq(j.flow.final_rc, ERR_STORE);
    ck_assert_str_eq(j.flow.err.text, "ask: store is away");
    job_fini(&j);
}
END_TEST

START_TEST(flow_that_runs_in_circles_fails)
{
    struct world w;
    world_init(&w);
    struct job j = {.circle = true};
    start(&j, &w);

    turn(&w);

    ck_assert_int_eq(j.ended, 1);
    ck_assert_int_eq(j.flow.final_rc, ERR_LOOP);
    ck_assert_str_eq(j.flow.err.text, "flow job runs in circles in step ASK");
    job_fini(&j);
}
END_TEST

START_TEST(flow_that_is_resumed_too_often_fails)
{
    struct world w;
    world_init(&w);
    struct job j = {.skip_ask = true, .poll = true};
    start(&j, &w);
    turn(&w);

    unsigned n = 0;
    while (!j.ended && n <= FLOW_MAX_RESUMES) {
        flow_resume(&j.flow, 0, NULL);
        n++;
    }

    ck_assert_uint_eq(n, FLOW_MAX_RESUMES);
    ck_assert_int_eq(j.flow.final_rc, ERR_LOOP);
    job_fini(&j);
}
END_TEST

START_TEST(ended_flow_can_be_started_again)
{
    struct world w;
    world_init(&w);
    struct job j = {0};
    for (int round = 1; round <= 2; round++) {
        start(&j, &w);
        settle(&w);
        for (int i = 0; i < 4; i++) {
            flow_resume(&j.flow, 0, NULL);
        }
        ck_assert_int_eq(j.ended, round);
    }
    job_fini(&j);
}
END_TEST

START_TEST(what_lies_in_the_arena_before_the_start_stays)
{
    struct world w;
    world_init(&w);
    struct job j = {0};
    j.note = arena_strdup(&j.flow.arena, "early");
    start(&j, &w);
    flow_cancel(&j.flow);
    settle(&w);
    flow_resume(&j.flow, 0, NULL);

    ck_assert_str_eq(j.note_at_end, "early");
    job_fini(&j);
}
END_TEST

TCase *flow_life_tests(void)
{
    TCase *tc = tcase_create("life");
    tcase_add_test(tc, first_run_is_on_the_next_turn_and_the_way_leads_to_one_end);
    tcase_add_test(tc, error_of_a_wait_is_seen_with_its_sentence_and_stays_the_first_cause);
    tcase_add_test(tc, flow_that_runs_in_circles_fails);
    tcase_add_test(tc, flow_that_is_resumed_too_often_fails);
    tcase_add_test(tc, ended_flow_can_be_started_again);
    tcase_add_test(tc, what_lies_in_the_arena_before_the_start_stays);
    return tc;
}
