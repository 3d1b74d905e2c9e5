/* Children that hang, die, talk rubbish or grow; calls that wait, are cancelled or refused. */
#include "tests/support/compiler_client.h"
#include "tests/support/suite.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define LONG MS(PATIENCE)

static struct pool_fixture f;

static void setup_one(void)
{
    pool_open_ready(&f, (struct compiler_settings){.children = 1});
}

static void teardown(void)
{
    pool_shut(&f);
}

static void turn_done(const struct question *q, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        turn_until(f.loop, q[i].dones);
    }
}

#define assert_has(text, part)                                                                     \
    ck_assert_msg(strstr((text), (part)) != NULL, "'%s' lacks '%s'", (text), (part))

/* ---- answers ---- */

START_TEST(error_answer_is_a_compile_error_with_the_childs_text)
{
    struct question q = {.dones = 0};

    const char *said = question_ask(&q, &f, NULL, "fail m.malloy:3: no such field");

    ck_assert_int_eq(q.rc, ERR_COMPILE);
    ck_assert_str_eq(said, "m.malloy:3: no such field");
    question_fini(&q);
}
END_TEST

START_TEST(large_answers_come_whole)
{
    struct question q = {.dones = 0};

    const char *said = question_ask(&q, &f, NULL, "big 20000000");

    ck_assert_uint_eq(strlen(said), 20000000);
    ck_assert_uint_eq(strspn(said, "x"), 20000000);
    ck_assert_str_eq(question_ask(&q, &f, NULL, "echo small"), "small");
    question_fini(&q);
}
END_TEST

static struct question second;

static void ask_second(struct question *q)
{
    question_start(&second, q->pool, NULL, LONG, "echo again");
}

START_TEST(call_may_be_started_inside_of_done)
{
    struct question q = {.then = ask_second};
    question_start(&q, &f, NULL, LONG, "echo first");
    turn_done(&q, 1);
    turn_done(&second, 1);

    ck_assert_str_eq(buf_str(&second.reply), "again");
    question_fini(&q);
    question_fini(&second);
}
END_TEST

START_TEST(calls_are_answered_in_the_order_they_came)
{
    struct question q[5] = {{.dones = 0}};
    for (size_t i = 0; i < ARRAY_LEN(q); i++) {
        question_start(&q[i], &f, NULL, LONG, "echo x");
    }
    turn_done(q, ARRAY_LEN(q));

    for (size_t i = 1; i < ARRAY_LEN(q); i++) {
        ck_assert_int_eq(q[i].order, q[i - 1].order + 1);
    }
    for (size_t i = 0; i < ARRAY_LEN(q); i++) {
        question_fini(&q[i]);
    }
}
END_TEST

/* ---- children that fail ---- */

START_TEST(hanging_child_is_killed_at_the_deadline_and_the_next_call_works)
{
    struct question q = {.dones = 0};
    int pid = pool_child_pid(&f);
    struct ms begun = loop_now(f.loop);
    question_start(&q, &f, NULL, MS(200), "hang");
    turn_done(&q, 1);

    ck_assert_int_eq(q.rc, ERR_COMPILER_TIMEOUT);
    assert_has(q.problem, "'query' took the Malloy compiler longer than 200 ms");
    ck_assert_int_ge(ms_sub(loop_now(f.loop), begun).v, 200);
    ck_assert_uint_eq(pool_stats(&f).timeouts, 1);
    ck_assert_int_ne(pool_child_pid(&f), pid);
    ck_assert_int_eq(kill(pid, 0), -1);
    question_fini(&q);
}
END_TEST

START_TEST(child_that_crashes_under_three_waiting_calls_fails_only_its_own)
{
    struct question q[4] = {{.dones = 0}};
    question_start(&q[0], &f, NULL, LONG, "crash");
    for (size_t i = 1; i < ARRAY_LEN(q); i++) {
        question_start(&q[i], &f, NULL, LONG, "echo alive");
    }
    turn_done(q, ARRAY_LEN(q));

    ck_assert_int_eq(q[0].rc, ERR_COMPILER_DOWN);
    assert_has(q[0].problem, "2 Malloy compilers ended over this request ('query')");
    assert_has(q[0].problem, "exit code 3");
    assert_has(q[0].problem, "TypeError: on purpose");
    ck_assert_uint_eq(pool_stats(&f).died, 2);
    for (size_t i = 0; i < ARRAY_LEN(q); i++) {
        ck_assert_int_eq(q[i].dones, 1);
        ck_assert_str_eq(buf_str(&q[i].reply), i ? "alive" : "");
        question_fini(&q[i]);
    }
}
END_TEST

START_TEST(call_whose_child_is_killed_is_answered_by_another)
{
    struct question q = {.dones = 0};
    int pid = pool_child_pid(&f);
    char command[32];
    (void)snprintf(command, sizeof command, "hang_in %d", pid);
    question_start(&q, &f, NULL, LONG, command);

    (void)kill(pid, SIGKILL);
    turn_done(&q, 1);

    ck_assert_msg(q.rc == 0, "%s", q.problem);
    ck_assert_int_ne(atoi(buf_str(&q.reply)), pid);
    question_fini(&q);
}
END_TEST

START_TEST(outage_and_its_end_are_told)
{
    int pid = pool_child_pid(&f);

    (void)kill(pid, SIGKILL);
    turn_until(f.loop, f.down_calls == 1);
    assert_has(f.why, "signal 9");
    turn_until(f.loop, f.ready_calls == 2);

    ck_assert_str_eq(f.why, "");
    ck_assert_str_eq(compiler_version(f.pool), "fake-1");
}
END_TEST

START_TEST(child_that_answers_rubbish_is_replaced)
{
    static const char *const commands[] = {"rubbish", "nonsense", "wrong", "hang_up"};
    struct question q = {.dones = 0};
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        (void)question_ask(&q, &f, NULL, commands[i]);
        ck_assert_msg(q.rc == ERR_COMPILER_DOWN, "%s: %d %s", commands[i], q.rc, q.problem);
        ck_assert_str_eq(question_ask(&q, &f, NULL, "echo fine"), "fine");
    }
    ck_assert_uint_eq(pool_stats(&f).died, 2 * ARRAY_LEN(commands));

    ck_assert_str_eq(question_ask(&q, &f, NULL, "twice"), "one");
    turn_until(f.loop, pool_stats(&f).died == 2 * ARRAY_LEN(commands) + 1);
    ck_assert_str_eq(question_ask(&q, &f, NULL, "echo fine"), "fine");
    question_fini(&q);
}
END_TEST

START_TEST(child_grown_too_large_is_replaced_without_failing_a_call)
{
    struct question q[6] = {{.dones = 0}};
    pool_open_ready(&f, (struct compiler_settings){.children = 1, .rss_limit_mb = 200});
    int pid = pool_child_pid(&f);
    question_start(&q[0], &f, NULL, LONG, "grow 300");
    for (size_t i = 1; i < ARRAY_LEN(q); i++) {
        question_start(&q[i], &f, NULL, LONG, "echo on");
    }
    turn_done(q, ARRAY_LEN(q));
    turn_until(f.loop, kill(pid, 0) == -1);

    ck_assert_int_ne(pool_child_pid(&f), pid);
    ck_assert_uint_eq(pool_stats(&f).replaced, 1);
    ck_assert_uint_eq(pool_stats(&f).died, 0);
    ck_assert_int_eq(f.down_calls, 0);
    for (size_t i = 0; i < ARRAY_LEN(q); i++) {
        ck_assert_msg(q[i].rc == 0, "%s", q[i].problem);
        question_fini(&q[i]);
    }
    pool_shut(&f);
}
END_TEST

/* ---- waiting ---- */

START_TEST(more_calls_than_may_wait_are_refused)
{
    struct question q[4] = {{.dones = 0}};
    pool_open_ready(&f, (struct compiler_settings){.children = 1, .max_waiting = 2});
    question_start(&q[0], &f, NULL, MS(300), "hang");
    for (size_t i = 1; i < ARRAY_LEN(q); i++) {
        question_start(&q[i], &f, NULL, LONG, "echo x");
    }
    turn_done(q, ARRAY_LEN(q));

    ck_assert_int_eq(q[3].rc, ERR_COMPILER_BUSY);
    assert_has(q[3].problem, "2 calls wait for the Malloy compiler already");
    ck_assert_int_eq(q[3].order + 1, q[0].order);
    ck_assert_int_eq(q[0].rc, ERR_COMPILER_TIMEOUT);
    ck_assert_int_eq(q[1].rc, 0);
    ck_assert_int_eq(q[2].rc, 0);
    for (size_t i = 0; i < ARRAY_LEN(q); i++) {
        question_fini(&q[i]);
    }
    pool_shut(&f);
}
END_TEST

START_TEST(call_that_waits_longer_than_its_span_is_told_so)
{
    struct question q[2] = {{.dones = 0}};
    question_start(&q[0], &f, NULL, MS(800), "hang");
    question_start(&q[1], &f, NULL, MS(50), "echo x");
    turn_done(q, ARRAY_LEN(q));

    ck_assert_int_eq(q[1].rc, ERR_COMPILER_BUSY);
    assert_has(q[1].problem, "waited 50 ms for one of 1 Malloy compilers");
    question_fini(&q[0]);
    question_fini(&q[1]);
}
END_TEST

START_TEST(calls_before_the_first_hello_wait_for_it)
{
    struct question q = {.dones = 0};
    pool_open(&f, (struct compiler_settings){.children = 2});

    ck_assert_str_eq(question_ask(&q, &f, NULL, "echo early"), "early");

    question_fini(&q);
    pool_shut(&f);
}
END_TEST

START_TEST(cancelled_calls_end_at_once_and_once)
{
    struct question q[3] = {{.dones = 0}};
    int pid = pool_child_pid(&f);
    question_start(&q[0], &f, NULL, MS(300), "hang"); /* runs */
    question_start(&q[1], &f, NULL, LONG, "echo x");  /* waits */
    question_start(&q[2], &f, NULL, LONG, "echo y");  /* waits, not cancelled */
    compiler_call_cancel(&q[0].call);
    compiler_call_cancel(&q[0].call);
    compiler_call_cancel(&q[1].call);
    ck_assert_int_eq(q[0].dones + q[1].dones, 0);
    turn_done(q, 2);

    ck_assert_int_eq(q[0].rc, ERR_CANCELLED);
    ck_assert_int_eq(q[1].rc, ERR_CANCELLED);
    ck_assert_int_eq(q[2].dones, 0); /* the child is still in the first */
    turn_done(q, 3);
    ck_assert_str_eq(buf_str(&q[2].reply), "y");
    ck_assert_int_ne(pool_child_pid(&f), pid); /* the hanging one was killed all the same */
    for (size_t i = 0; i < ARRAY_LEN(q); i++) {
        ck_assert_int_eq(q[i].dones, 1);
        compiler_call_cancel(&q[i].call); /* harmless */
        question_fini(&q[i]);
    }
}
END_TEST

START_TEST(answer_to_a_cancelled_call_is_dropped_and_its_child_used_on)
{
    struct question q = {.dones = 0};
    int pid = pool_child_pid(&f);
    question_start(&q, &f, NULL, LONG, "echo late");
    compiler_call_cancel(&q.call);
    turn_done(&q, 1);

    ck_assert_int_eq(q.rc, ERR_CANCELLED);
    ck_assert_int_eq(pool_child_pid(&f), pid);
    ck_assert_int_eq(q.dones, 1);
    question_fini(&q);
}
END_TEST

START_TEST(closing_ends_every_call_once_and_leaves_no_process)
{
    struct question q[4] = {{.dones = 0}};
    pool_open_ready(&f, (struct compiler_settings){.children = 2});
    turn_until(f.loop, pool_stats(&f).ready == 2);
    for (size_t i = 0; i < ARRAY_LEN(q); i++) {
        question_start(&q[i], &f, NULL, LONG, "hang");
    }
    ck_assert_uint_eq(pool_stats(&f).running, 2);

    pool_shut(&f);

    for (size_t i = 0; i < ARRAY_LEN(q); i++) {
        ck_assert_int_eq(q[i].dones, 1);
        ck_assert_int_eq(q[i].rc, ERR_SHUTDOWN);
        question_fini(&q[i]);
    }
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
}
END_TEST

START_TEST(pool_can_be_closed_while_its_children_start)
{
    struct question q = {.dones = 0};
    pool_open(&f, (struct compiler_settings){.children = 3});
    question_start(&q, &f, NULL, LONG, "echo x");

    pool_shut(&f);

    ck_assert_int_eq(q.rc, ERR_SHUTDOWN);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    question_fini(&q);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("compiler pool");
    TCase *bare = tcase_create("pools of their own");
    tcase_set_timeout(bare, 60);
    tcase_add_test(bare, child_grown_too_large_is_replaced_without_failing_a_call);
    tcase_add_test(bare, more_calls_than_may_wait_are_refused);
    tcase_add_test(bare, calls_before_the_first_hello_wait_for_it);
    tcase_add_test(bare, closing_ends_every_call_once_and_leaves_no_process);
    tcase_add_test(bare, pool_can_be_closed_while_its_children_start);
    suite_add_tcase(s, bare);
    TCase *one = tcase_create("one child");
    tcase_add_checked_fixture(one, setup_one, teardown);
    tcase_set_timeout(one, 60);
    tcase_add_test(one, error_answer_is_a_compile_error_with_the_childs_text);
    tcase_add_test(one, large_answers_come_whole);
    tcase_add_test(one, call_may_be_started_inside_of_done);
    tcase_add_test(one, calls_are_answered_in_the_order_they_came);
    tcase_add_test(one, hanging_child_is_killed_at_the_deadline_and_the_next_call_works);
    tcase_add_test(one, child_that_crashes_under_three_waiting_calls_fails_only_its_own);
    tcase_add_test(one, call_whose_child_is_killed_is_answered_by_another);
    tcase_add_test(one, outage_and_its_end_are_told);
    tcase_add_test(one, child_that_answers_rubbish_is_replaced);
    tcase_add_test(one, call_that_waits_longer_than_its_span_is_told_so);
    tcase_add_test(one, cancelled_calls_end_at_once_and_once);
    tcase_add_test(one, answer_to_a_cancelled_call_is_dropped_and_its_child_used_on);
    suite_add_tcase(s, one);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
