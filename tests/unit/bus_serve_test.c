/* Serving: what is answered without a handler, repeats, and answers that are taken. */
#include "tests/unit/bus_fixture.h"
#include "tests/unit/bus_suites.h"

START_TEST(the_bus_itself_answers_what_nobody_handles)
{
    struct serving s;
    serving_init(&s);

    s.req.kind = 9999;
    deliver(&s, &s.seat);
    ck_assert_int_eq(refusal(&s), ERR_UNKNOWN_KIND);
    ck_assert_mem_eq(s.rep.request_id, s.req.request_id, 16);
    s.req.kind = BUS_EVENT;
    deliver(&s, &s.seat);
    ck_assert_int_eq(refusal(&s), ERR_UNKNOWN_KIND);
    s.req = request(1);
    s.req.version = BUS_VERSION + 1;
    deliver(&s, &s.seat);
    ck_assert_int_eq(refusal(&s), ERR_VERSION);
    bus_up_request(s.f.server, &s.seat, SLICE("rubbish"));
    ck_assert_int_eq(refusal(&s), ERR_BUS_FRAME);

    ck_assert_int_eq(s.f.n_replies, 4);
    ck_assert_int_eq(s.h.n, 0);
    serving_fini(&s);
}
END_TEST

static int n_taken;
static void on_taken(struct bus_request *r, const struct bus_answer *a)
{
    n_taken++;
    ck_assert_str_eq(a->text, "not now");
    r->data = NULL;
}

START_TEST(answer_that_someone_takes_is_given_when_he_gives_it)
{
    struct serving s;
    serving_init(&s);
    n_taken = 0;

    deliver(&s, &s.seat);
    s.h.held->on_answer = on_taken;
    bus_reply_error(s.h.held, ERR_STORE, "not now", 7);
    ck_assert_int_eq(n_taken, 1);
    ck_assert_int_eq(s.f.n_replies, 0);
    deliver(&s, &s.seat); /* still held: a repeat joins it */
    ck_assert_int_eq(s.h.n, 1);
    bus_reply_error(s.h.held, ERR_CONFLICT, "no", 0);

    ck_assert_int_eq(n_taken, 1);
    ck_assert_int_eq(refusal(&s), ERR_CONFLICT);
    serving_fini(&s);
}
END_TEST

START_TEST(a_repeat_of_a_held_request_moves_its_answer)
{
    struct serving s;
    int seat_1 = 0;
    int seat_2 = 0;
    serving_init(&s);

    deliver(&s, &seat_1);
    deliver(&s, &seat_2);
    ck_assert_int_eq(s.h.n, 1);
    ck_assert_int_eq(s.f.n_abandoned, 1);
    bus_reply(s.h.held, NULL);
    ck_assert_ptr_eq(s.f.reply_seat, &seat_2);
    deliver(&s, &seat_1); /* after the answer it is a new request: handlers are idempotent */

    ck_assert_int_eq(s.h.n, 2);
    bus_reply(s.h.held, NULL);
    serving_fini(&s);
}
END_TEST

START_TEST(equal_ids_of_different_callers_are_different_requests)
{
    struct serving s;
    serving_init(&s);

    deliver(&s, &s.seat);
    s.req.boot.b[0] = 9;
    deliver(&s, &s.seat);
    s.req.kind = BUS_LIST_RUNS;
    deliver(&s, &s.seat);

    ck_assert_int_eq(s.h.n, 3);
    serving_fini(&s); /* frees what is still held */
}
END_TEST

START_TEST(a_request_without_a_budget_has_the_kinds_own)
{
    struct serving s;
    serving_init(&s);
    sim_time_pass(&s.f.time, MS(10));

    s.req.budget_ms = 0;
    deliver(&s, &s.seat);

    ck_assert_int_eq(s.h.held->deadline.v, 5010);
    serving_fini(&s);
}
END_TEST

TCase *bus_serve_tests(void)
{
    TCase *t = tcase_create("serving");
    tcase_add_test(t, the_bus_itself_answers_what_nobody_handles);
    tcase_add_test(t, answer_that_someone_takes_is_given_when_he_gives_it);
    tcase_add_test(t, a_repeat_of_a_held_request_moves_its_answer);
    tcase_add_test(t, equal_ids_of_different_callers_are_different_requests);
    tcase_add_test(t, a_request_without_a_budget_has_the_kinds_own);
    return t;
}
