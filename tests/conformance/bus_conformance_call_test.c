/* A call is answered or refused: keys, installations, errors of the server. */
#include "tests/conformance/bus_conformance_fixture.h"
#include "tests/conformance/bus_conformance_suites.h"

START_TEST(a_call_is_answered)
{
    struct pair p;
    pair_init(&p, _i, NULL, NULL);
    struct ask a;

    ask_and_wait(&p.rig, &a, p.builder, "r1", 0);

    ck_assert_msg(a.call.rc == 0, "%s", a.call.err.text);
    ck_assert_str_eq(a.reply, "run r1");
    ck_assert_str_eq(p.server.last_instance, "builder-1");
    ck_assert_int_le(p.server.last_budget.v, rig_now(&p.rig).v + 5000);
    ck_assert_int_gt(p.server.last_budget.v, rig_now(&p.rig).v);
    rig_fini(&p.rig);
}
END_TEST

START_TEST(a_signed_call_is_answered)
{
    struct pair p;
    pair_init(&p, _i, "secret", "secret");
    struct ask a;

    ask_and_wait(&p.rig, &a, p.builder, "r1", 0);

    ck_assert_msg(a.call.rc == 0, "%s", a.call.err.text);
    rig_fini(&p.rig);
}
END_TEST

static void refused_by_mac(int which, const char *server_key, const char *caller_key)
{
    struct pair p;
    pair_init(&p, which, server_key, caller_key);
    struct ask a;

    ask_and_wait(&p.rig, &a, p.builder, "r1", 0);

    ck_assert_int_eq(a.call.rc, ERR_MAC);
    ck_assert(strstr(a.call.err.text, "KILN_BUS_KEY") != NULL);
    ck_assert(strstr(a.call.err.text, "secret") == NULL);
    rig_fini(&p.rig);
}

START_TEST(a_wrong_key_is_refused)
{
    refused_by_mac(_i, "secret-1", "secret-2");
}
END_TEST

START_TEST(a_missing_key_is_refused)
{
    refused_by_mac(_i, "secret-1", NULL);
}
END_TEST

START_TEST(an_unsigned_answer_is_refused)
{
    refused_by_mac(_i, NULL, "secret-2");
}
END_TEST

START_TEST(another_installation_is_refused)
{
    struct rig r;
    rig_init(&r, _i);
    struct server s = {0};
    serve(rig_end(&r, "planner-1", NULL, 7), r.url[0], 4, &s);
    struct bus *stranger = rig_end(&r, "builder-9", NULL, 8);
    const char *urls[] = {r.url[0]};
    dial(stranger, urls, 1);
    struct ask a;

    ask_and_wait(&r, &a, stranger, "r1", 0);

    ck_assert_int_eq(a.call.rc, ERR_INSTALLATION);
    ck_assert_int_eq(s.n_calls, 0);
    rig_fini(&r);
}
END_TEST

START_TEST(the_installation_is_learned_from_the_first_answer)
{
    struct rig r;
    rig_init(&r, _i);
    struct server s = {0};
    struct bus *planner = rig_end(&r, "planner-1", NULL, 7);
    serve(planner, r.url[0], 4, &s);
    struct bus *newcomer = rig_end(&r, "builder-1", NULL, 0);
    const char *urls[] = {r.url[0]};
    dial(newcomer, urls, 1);
    struct ask a;

    ask_and_wait(&r, &a, newcomer, "r1", 0);

    ck_assert_int_eq(a.call.rc, 0);
    ck_assert(uuid_eq(bus_installation(newcomer), bus_installation(planner)));
    rig_fini(&r);
}
END_TEST

START_TEST(a_permanent_error_comes_back_with_its_sentence)
{
    struct pair p;
    pair_init(&p, _i, NULL, NULL);
    p.server.answers_with = ERR_NOT_FOUND;
    p.server.failures_left = 1000;
    struct ask a;

    ask_and_wait(&p.rig, &a, p.builder, "r1", 0);

    ck_assert_int_eq(a.call.rc, ERR_NOT_FOUND);
    ck_assert_int_eq(a.call.err.code, ERR_NOT_FOUND);
    ck_assert_str_eq(a.call.err.text, "the server's sentence");
    ck_assert_int_eq(p.server.n_calls, 1);
    rig_fini(&p.rig);
}
END_TEST

START_TEST(a_transient_error_is_tried_again_under_the_same_id)
{
    struct pair p;
    pair_init(&p, _i, NULL, NULL);
    p.server.answers_with = ERR_STORE;
    p.server.failures_left = 2;
    struct ask a;

    ask_and_wait(&p.rig, &a, p.builder, "r1", 5000);

    ck_assert_msg(a.call.rc == 0, "%s", a.call.err.text);
    ck_assert_int_eq(p.server.n_calls, 3);
    ck_assert(!p.server.ids_differ);
    rig_fini(&p.rig);
}
END_TEST

START_TEST(a_lasting_transient_error_ends_with_the_servers_reason)
{
    struct pair p;
    pair_init(&p, _i, NULL, NULL);
    p.server.answers_with = ERR_STORE;
    p.server.failures_left = 1000;
    p.server.retry_after_ms = 9000;
    struct ask a;

    ask_and_wait(&p.rig, &a, p.builder, "r1", 700);

    ck_assert_int_eq(a.call.rc, ERR_STORE);
    ck_assert_uint_eq(a.call.retry_after_ms, 9000);
    rig_fini(&p.rig);
}
END_TEST

START_TEST(a_follower_sends_the_call_to_the_next_address)
{
    struct rig r;
    rig_init(&r, _i);
    struct server follower = {.answers_with = ERR_NOT_LEADER, .failures_left = 1000};
    struct server leader = {0};
    serve(rig_end(&r, "planner-1", NULL, 7), r.url[0], 4, &follower);
    serve(rig_end(&r, "planner-2", NULL, 7), r.url[1], 4, &leader);
    struct bus *builder = rig_end(&r, "builder-1", NULL, 7);
    const char *urls[] = {r.url[0], r.url[1]};
    dial(builder, urls, 2);
    struct ask a;

    ask_and_wait(&r, &a, builder, "r1", 0);
    int told = follower.n_calls;
    for (int i = 0; i < 4; i++) {
        ask_and_wait(&r, &a, builder, "r1", 0);
        ck_assert_msg(a.call.rc == 0, "%s", a.call.err.text);
    }

    ck_assert_int_eq(leader.n_calls, 5);
    ck_assert_int_eq(follower.n_calls, told); /* the leader is remembered */
    rig_fini(&r);
}
END_TEST

TCase *bus_conformance_call_tests(void)
{
    TCase *t = tcase_create("calls");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_call_is_answered, NNG, RIGS);
    tcase_add_loop_test(t, a_signed_call_is_answered, NNG, RIGS);
    tcase_add_loop_test(t, a_wrong_key_is_refused, NNG, RIGS);
    tcase_add_loop_test(t, a_missing_key_is_refused, NNG, RIGS);
    tcase_add_loop_test(t, an_unsigned_answer_is_refused, NNG, RIGS);
    tcase_add_loop_test(t, another_installation_is_refused, NNG, RIGS);
    tcase_add_loop_test(t, the_installation_is_learned_from_the_first_answer, NNG, RIGS);
    tcase_add_loop_test(t, a_permanent_error_comes_back_with_its_sentence, NNG, RIGS);
    tcase_add_loop_test(t, a_transient_error_is_tried_again_under_the_same_id, NNG, RIGS);
    tcase_add_loop_test(t, a_lasting_transient_error_ends_with_the_servers_reason, NNG, RIGS);
    tcase_add_loop_test(t, a_follower_sends_the_call_to_the_next_address, NNG, RIGS);
    return t;
}
