/* What ends a call and what it outlives: deadlines, cancels, closing, servers that go and come. */
#include "tests/conformance/bus_conformance_fixture.h"
#include "tests/conformance/bus_conformance_suites.h"

START_TEST(a_call_to_nobody_ends_at_its_deadline)
{
    struct rig r;
    rig_init(&r, _i);
    struct bus *builder = rig_end(&r, "builder-1", NULL, 7);
    const char *urls[] = {r.url[0]};
    dial(builder, urls, 1);
    struct ms start = rig_now(&r);
    struct ask a;

    ask_and_wait(&r, &a, builder, "r1", 300);

    ck_assert_int_eq(a.call.rc, ERR_BUS_TIMEOUT);
    ck_assert(strstr(a.call.err.text, "not connected") != NULL);
    ck_assert(strstr(a.call.err.text, r.url[0]) != NULL);
    ck_assert_int_ge(rig_now(&r).v - start.v, 299);
    rig_fini(&r);
}
END_TEST

START_TEST(a_call_that_is_held_too_long_ends_and_may_still_be_answered)
{
    struct pair p;
    struct ask a;
    pair_with_held_call(&p, &a, _i, 400);
    until(&p.rig, a.n_done == 1);
    ck_assert_int_eq(a.call.rc, ERR_BUS_TIMEOUT);

    release(&p.server);
    p.server.holds = false;
    struct ask b;
    ask_and_wait(&p.rig, &b, p.builder, "r2", 0);

    ck_assert_int_eq(b.call.rc, 0);
    ck_assert_str_eq(b.reply, "run r2");
    ck_assert_int_eq(a.n_done, 1);
    rig_fini(&p.rig);
}
END_TEST

START_TEST(a_repeat_of_a_held_call_is_joined)
{
    struct pair p;
    pair_init(&p, _i, NULL, NULL);
    p.server.holds = true;
    struct ask a;
    ask_start(&a, p.builder, "r1", 4000); /* repeated after a third of it */
    until(&p.rig, p.server.n_held == 1);
    rig_wait(&p.rig, 1700);
    ck_assert_int_eq(p.server.n_calls, 1);
    release(&p.server);
    until(&p.rig, a.n_done == 1);

    ck_assert_msg(a.call.rc == 0, "%s", a.call.err.text);
    rig_fini(&p.rig);
}
END_TEST

START_TEST(a_cancelled_call_ends_later_with_cancelled)
{
    struct pair p;
    struct ask a;
    pair_with_held_call(&p, &a, _i, 5000);

    bus_call_cancel(&a.call);
    bus_call_cancel(&a.call);
    ck_assert_int_eq(a.n_done, 0);
    until(&p.rig, a.n_done == 1);

    ck_assert_int_eq(a.call.rc, ERR_CANCELLED);
    release(&p.server);
    p.server.holds = false;
    struct ask b;
    ask_and_wait(&p.rig, &b, p.builder, "r2", 0);
    ck_assert_str_eq(b.reply, "run r2");
    ck_assert_int_eq(a.n_done, 1);
    rig_fini(&p.rig);
}
END_TEST

START_TEST(closing_ends_calls_with_shutdown)
{
    struct pair p;
    pair_init(&p, _i, NULL, NULL);
    p.server.holds = true;
    struct ask a;
    struct ask b;
    ask_start(&a, p.builder, "r1", 5000);
    until(&p.rig, p.server.n_held == 1);

    bool is_closed = false;
    bus_close(p.builder, on_closed, &is_closed);
    b = (struct ask){.call = {.kind = BUS_GET_RUN, .done = on_done, .data = &b}};
    ck_assert_int_eq(bus_call_start(p.builder, &b.call), ERR_SHUTDOWN);
    until(&p.rig, is_closed);

    ck_assert_int_eq(a.n_done, 1);
    ck_assert_int_eq(a.call.rc, ERR_SHUTDOWN);
    ck_assert_int_eq(b.n_done, 0);
    bus_free(p.builder);
    p.rig.ends[1] = NULL;
    rig_fini(&p.rig);
}
END_TEST

START_TEST(a_server_may_close_with_calls_held)
{
    struct pair p;
    struct ask a;
    pair_with_held_call(&p, &a, _i, 600);

    bool is_closed = false;
    bus_close(p.planner, on_closed, &is_closed);
    release(&p.server); /* too late: only gives the request back */
    until(&p.rig, is_closed && a.n_done == 1);

    ck_assert_int_eq(a.call.rc, ERR_BUS_TIMEOUT);
    bus_free(p.planner);
    p.rig.ends[0] = NULL;
    rig_fini(&p.rig);
}
END_TEST

START_TEST(a_call_survives_a_restart_of_its_server)
{
    struct pair p;
    struct ask a;
    pair_with_held_call(&p, &a, _i, 10000);

    rig_close(&p.rig, p.planner);
    struct server reborn = {0};
    serve(rig_end(&p.rig, "planner-1", NULL, 7), p.rig.url[0], 4, &reborn);
    until(&p.rig, a.n_done == 1);

    ck_assert_msg(a.call.rc == 0, "%s", a.call.err.text);
    ck_assert_int_ge(reborn.n_calls, 1);
    ck_assert_mem_eq(reborn.last_id, p.server.last_id, 16);
    rig_fini(&p.rig);
}
END_TEST

START_TEST(a_lost_server_is_left_for_the_next_address)
{
    struct rig r;
    rig_init(&r, _i);
    struct server first = {.holds = true};
    struct server second = {0};
    struct bus *one = rig_end(&r, "planner-1", NULL, 7);
    serve(one, r.url[0], 4, &first);
    struct bus *builder = rig_end(&r, "builder-1", NULL, 7);
    const char *urls[] = {r.url[0], r.url[1]};
    dial(builder, urls, 2);
    struct ask a;
    ask_start(&a, builder, "r1", 10000);
    until(&r, first.n_held == 1);

    serve(rig_end(&r, "planner-2", NULL, 7), r.url[1], 4, &second);
    rig_close(&r, one);
    until(&r, a.n_done == 1);

    ck_assert_msg(a.call.rc == 0, "%s", a.call.err.text);
    ck_assert_int_eq(second.n_calls, 1);
    rig_fini(&r);
}
END_TEST

START_TEST(a_call_waits_until_its_server_listens)
{
    struct rig r;
    rig_init(&r, _i);
    struct bus *builder = rig_end(&r, "builder-1", NULL, 7);
    const char *urls[] = {r.url[0]};
    dial(builder, urls, 1);
    struct ask a;
    ask_start(&a, builder, "r1", 10000);
    rig_wait(&r, 150);

    struct server s = {0};
    serve(rig_end(&r, "planner-1", NULL, 7), r.url[0], 4, &s);
    until(&r, a.n_done == 1);

    ck_assert_msg(a.call.rc == 0, "%s", a.call.err.text);
    ck_assert_int_eq(s.n_calls, 1);
    rig_fini(&r);
}
END_TEST

TCase *bus_conformance_end_tests(void)
{
    TCase *t = tcase_create("ends");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_call_to_nobody_ends_at_its_deadline, NNG, RIGS);
    tcase_add_loop_test(t, a_call_that_is_held_too_long_ends_and_may_still_be_answered, NNG, RIGS);
    tcase_add_loop_test(t, a_repeat_of_a_held_call_is_joined, NNG, RIGS);
    tcase_add_loop_test(t, a_cancelled_call_ends_later_with_cancelled, NNG, RIGS);
    tcase_add_loop_test(t, closing_ends_calls_with_shutdown, NNG, RIGS);
    tcase_add_loop_test(t, a_server_may_close_with_calls_held, NNG, RIGS);
    tcase_add_loop_test(t, a_call_survives_a_restart_of_its_server, NNG, RIGS);
    tcase_add_loop_test(t, a_lost_server_is_left_for_the_next_address, NNG, RIGS);
    tcase_add_loop_test(t, a_call_waits_until_its_server_listens, NNG, RIGS);
    return t;
}
