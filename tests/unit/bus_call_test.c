/* Calls: what is sent when, and which answers are taken. */
#include "tests/unit/bus_fixture.h"
#include "tests/unit/bus_suites.h"

static void make_not_leader(struct bus_frame *f)
{
    f->error_code = ERR_NOT_LEADER;
    f->error_text = "standing by";
}

static void make_transient(struct bus_frame *f)
{
    f->error_code = ERR_STORE;
    f->error_text = "restarting";
}

static void make_old(struct bus_frame *f)
{
    f->version = BUS_VERSION + 1;
}

static void make_anothers(struct bus_frame *f)
{
    f->request_id[0] ^= 1;
}

static void make_rubbish_code(struct bus_frame *f)
{
    f->error_code = 12;
    f->error_text = "no code of ours";
}

START_TEST(budget_is_what_is_left_and_the_id_stays)
{
    struct fake f;
    struct ask a;
    struct arena arena;
    fake_dialled(&f);
    arena_init(&arena);
    ask_start(&a, &f, 6000);
    sim_time_pass(&f.time, MS(500));

    answer_sent(&f, 0, make_transient);
    sim_time_pass(&f.time, MS(100));

    ck_assert_int_eq(f.n_sent, 2);
    struct bus_frame first = frame_of(&f.sent[0].frame, &arena);
    struct bus_frame second = frame_of(&f.sent[1].frame, &arena);
    ck_assert_uint_eq(first.budget_ms, 6000);
    ck_assert_uint_eq(second.budget_ms, 5400);
    ck_assert_mem_eq(first.request_id, second.request_id, 16);
    ck_assert_mem_eq(first.trace_id, second.trace_id, 16);
    ck_assert(!id16_is_zero(first.request_id));
    answer_sent(&f, 1, NULL);
    ck_assert_int_eq(a.n_done, 1);
    ck_assert_str_eq(a.reply, "reply");
    arena_fini(&arena);
    fake_fini(&f);
}
END_TEST

START_TEST(trace_of_the_caller_goes_with_the_call_and_without_one_it_has_its_own)
{
    struct fake f;
    struct arena arena;
    struct ask a[2];
    const uint8_t trace[16] = {4, 7};
    fake_dialled(&f);
    arena_init(&arena);
    for (size_t i = 0; i < 2; i++) {
        a[i] = (struct ask){
            .call = {.kind = BUS_GET_RUN, .timeout = MS(6000), .done = on_done, .data = &a[i]}};
        if (i == 0) {
            memcpy(a[i].call.trace_id, trace, sizeof(trace));
        }
        ck_assert_int_eq(bus_call_start(f.bus, &a[i].call), 0);
    }

    struct bus_frame given = frame_of(&f.sent[0].frame, &arena);
    struct bus_frame own = frame_of(&f.sent[1].frame, &arena);
    ck_assert_mem_eq(given.trace_id, trace, 16);
    ck_assert(!id16_is_zero(own.trace_id));
    ck_assert_mem_ne(own.trace_id, trace, 16);
    arena_fini(&arena);
    fake_fini(&f);
}
END_TEST

START_TEST(pauses_double_up_to_two_seconds)
{
    static const int64_t pauses[] = {100, 200, 400, 800, 1600, 2000, 2000};
    struct fake f;
    struct ask a;
    fake_dialled(&f);
    ask_start(&a, &f, 60000);

    for (size_t i = 0; i < ARRAY_LEN(pauses); i++) {
        answer_sent(&f, (int)i, make_transient);
        sim_time_pass(&f.time, MS(pauses[i]));
        ck_assert_int_eq(f.n_sent, (int)i + 2);
        ck_assert_int_eq(f.sent[i + 1].at.v - f.sent[i].at.v, pauses[i]);
    }
    fake_fini(&f);
}
END_TEST

START_TEST(a_lost_message_is_sent_again)
{
    struct fake f;
    struct ask a;
    fake_dialled(&f);
    bus_up_connected(f.bus, 1, true);
    ask_start(&a, &f, 6000);

    sim_time_pass(&f.time, MS(2000)); /* a third of the time */

    ck_assert_int_eq(f.n_sent, 2);
    ck_assert_int_eq(f.n_cancelled, 1);
    ck_assert_uint_eq(f.sent[1].address, 1); /* the other one may fare better */
    sim_time_pass(&f.time, MS(4000));
    ck_assert_int_eq(a.n_done, 1);
    ck_assert_int_eq(a.call.rc, ERR_BUS_TIMEOUT);
    fake_fini(&f);
}
END_TEST

START_TEST(call_that_may_not_wait_for_a_connection_ends_early_but_not_while_there_is_one)
{
    struct fake f;
    struct ask a = {.call = {.kind = BUS_CREATE_RUN,
                             .timeout = MS(30000),
                             .unconnected = MS(3000),
                             .done = on_done,
                             .data = &a}};
    struct ask patient;
    fake_dialled(&f);
    ck_assert_int_eq(bus_call_start(f.bus, &a.call), 0);
    ask_start(&patient, &f, 30000);
    sim_time_pass(&f.time, MS(9000)); /* sent, without an answer */
    ck_assert_int_eq(a.n_done, 0);

    bus_up_connected(f.bus, 0, false);
    sim_time_pass(&f.time, MS(2900));
    bus_up_connected(f.bus, 1, true); /* another one, in time, and not for long */
    bus_up_connected(f.bus, 1, false);
    sim_time_pass(&f.time, MS(2900));
    ck_assert_int_eq(a.n_done, 0);
    sim_time_pass(&f.time, MS(300));

    ck_assert_int_eq(a.n_done, 1);
    ck_assert_int_eq(a.call.rc, ERR_BUS_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(a.call.err.text, "not connected"));
    ck_assert_int_eq(patient.n_done, 0);
    fake_fini(&f);
}
END_TEST

START_TEST(a_broken_connection_moves_its_calls)
{
    struct fake f;
    struct ask a;
    fake_dialled(&f);
    bus_up_connected(f.bus, 1, true);
    ask_start(&a, &f, 6000);

    bus_up_connected(f.bus, 0, false);
    sim_time_pass(&f.time, MS(100));

    ck_assert_int_eq(f.n_sent, 2);
    ck_assert_uint_eq(f.sent[1].address, 1);
    answer_sent(&f, 1, NULL);
    ck_assert_int_eq(a.call.rc, 0);
    fake_fini(&f);
}
END_TEST

START_TEST(not_leader_goes_on_at_once_and_round_again_after_a_pause)
{
    struct fake f;
    struct ask a;
    fake_dialled(&f);
    bus_up_connected(f.bus, 1, true);
    ask_start(&a, &f, 6000);

    answer_sent(&f, 0, make_not_leader);
    sim_time_pass(&f.time, MS(0));
    ck_assert_int_eq(f.n_sent, 2);
    ck_assert_uint_eq(f.sent[1].address, 1);
    answer_sent(&f, 1, make_not_leader);
    sim_time_pass(&f.time, MS(99));
    ck_assert_int_eq(f.n_sent, 2);
    sim_time_pass(&f.time, MS(1));

    ck_assert_int_eq(f.n_sent, 3);
    ck_assert_uint_eq(f.sent[2].address, 0);
    fake_fini(&f);
}
END_TEST

static void refused_answer(void (*change)(struct bus_frame *), int code)
{
    struct fake f;
    struct ask a;
    fake_dialled(&f);
    ask_start(&a, &f, 6000);

    answer_sent(&f, 0, change);

    ck_assert_int_eq(a.n_done, 1);
    ck_assert_int_eq(a.call.rc, code);
    ck_assert_int_eq(a.call.err.code, code);
    fake_fini(&f);
}

START_TEST(answers_that_do_not_fit_are_refused)
{
    refused_answer(make_old, ERR_VERSION);
    refused_answer(make_anothers, ERR_BUS_FRAME);
    refused_answer(make_rubbish_code, ERR_INTERNAL);
}
END_TEST

START_TEST(an_answer_that_is_rubbish_is_refused)
{
    struct fake f;
    struct ask a;
    fake_dialled(&f);
    ask_start(&a, &f, 6000);

    bus_up_answer(f.bus, f.sent[0].attempt, 0, SLICE("rubbish"));

    ck_assert_int_eq(a.call.rc, ERR_BUS_FRAME);
    fake_fini(&f);
}
END_TEST

START_TEST(cancelling_one_call_leaves_the_other)
{
    struct fake f;
    struct ask a;
    struct ask b;
    fake_dialled(&f);
    ask_start(&a, &f, 6000);
    ask_start(&b, &f, 6000);

    bus_call_cancel(&a.call);
    answer_sent(&f, 1, NULL);
    ck_assert_int_eq(a.n_done, 0);
    sim_time_pass(&f.time, MS(0));

    ck_assert_int_eq(a.n_done, 1);
    ck_assert_int_eq(a.call.rc, ERR_CANCELLED);
    ck_assert_int_eq(b.call.rc, 0);
    fake_fini(&f);
}
END_TEST

START_TEST(bad_calls_are_refused_at_once)
{
    struct fake f;
    struct ask a = {.call = {.kind = BUS_EVENT, .done = on_done}};
    fake_dialled(&f);

    ck_assert_int_eq(bus_call_start(f.bus, &a.call), ERR_ARG);
    a.call.kind = (enum bus_kind)9999;
    ck_assert_int_eq(bus_call_start(f.bus, &a.call), ERR_ARG);
    fake_fini(&f);
    fake_init(&f);
    a.call.kind = BUS_GET_RUN;
    ck_assert_int_eq(bus_call_start(f.bus, &a.call), ERR_ARG);
    ck_assert(strstr(a.call.err.text, "has not been dialled"));
    fake_fini(&f);
}
END_TEST

TCase *bus_call_tests(void)
{
    TCase *t = tcase_create("calls");
    tcase_add_test(t, budget_is_what_is_left_and_the_id_stays);
    tcase_add_test(t, trace_of_the_caller_goes_with_the_call_and_without_one_it_has_its_own);
    tcase_add_test(t, pauses_double_up_to_two_seconds);
    tcase_add_test(t, a_lost_message_is_sent_again);
    tcase_add_test(t,
                   call_that_may_not_wait_for_a_connection_ends_early_but_not_while_there_is_one);
    tcase_add_test(t, a_broken_connection_moves_its_calls);
    tcase_add_test(t, not_leader_goes_on_at_once_and_round_again_after_a_pause);
    tcase_add_test(t, answers_that_do_not_fit_are_refused);
    tcase_add_test(t, an_answer_that_is_rubbish_is_refused);
    tcase_add_test(t, cancelling_one_call_leaves_the_other);
    tcase_add_test(t, bad_calls_are_refused_at_once);
    return t;
}
