/* Loads of the pool: who holds them, when they are sent again, when they are unloaded. */
#include "common/compiler/compiler_internal.h"
#include "tests/support/compiler_client.h"
#include "tests/support/suite.h"
#include <signal.h>
#include <stdio.h>

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

static void load(const char *load_id, const char *package)
{
    struct question q = {.dones = 0};
    question_load(&q, &f, load_id, package, LONG);
    turn_until(f.loop, q.dones);
    ck_assert_msg(q.rc == 0, "%s", q.problem);
    question_fini(&q);
}

#define assert_has(text, part)                                                                     \
    ck_assert_msg(strstr((text), (part)) != NULL, "'%s' lacks '%s'", (text), (part))

START_TEST(kept_load_is_sent_before_the_first_call_that_needs_it_and_after_a_respawn)
{
    struct question q = {.dones = 0};
    pool_keep(&f, "l1", "shop");

    ck_assert_str_eq(question_ask(&q, &f, "l1", "echo one"), "one");
    ck_assert_str_eq(question_ask(&q, &f, "l1", "echo two"), "two");
    ck_assert_uint_eq(pool_stats(&f).replays, 1);
    (void)kill(pool_child_pid(&f), SIGKILL);
    turn_until(f.loop, f.ready_calls == 2);
    ck_assert_str_eq(question_ask(&q, &f, "l1", "log"), "hello load:l1 query:l1");

    ck_assert_uint_eq(pool_stats(&f).replays, 2);
    question_fini(&q);
}
END_TEST

START_TEST(call_that_loads_leaves_the_load_in_its_child)
{
    struct question q = {.dones = 0};
    load("l1", "shop");
    pool_keep(&f, "l1", "shop");

    ck_assert_str_eq(question_ask(&q, &f, "l1", "log"), "hello load:l1 query:l1");

    ck_assert_uint_eq(pool_stats(&f).replays, 0);
    question_fini(&q);
}
END_TEST

START_TEST(load_that_needs_schemas_is_no_load_yet)
{
    struct question q = {.dones = 0};
    load("l1", "lacking"); /* answers needs */
    pool_keep(&f, "l1", "shop");

    ck_assert_str_eq(question_ask(&q, &f, "l1", "log"), "hello load:l1 load:l1 query:l1");

    ck_assert_uint_eq(pool_stats(&f).replays, 1);
    question_fini(&q);
}
END_TEST

START_TEST(kept_load_that_does_not_load_fails_the_call_with_the_reason)
{
    struct question q = {.dones = 0};
    pool_keep(&f, "l1", "lacking");
    pool_keep(&f, "l2", "broken");

    const char *said = question_ask(&q, &f, "l1", "echo x");
    ck_assert_int_eq(q.rc, ERR_PACKAGE);
    assert_has(said,
               "load 'l1' again: it lacks the schema of table shop.orders of connection 'pg'");
    said = question_ask(&q, &f, "l2", "echo x");
    ck_assert_int_eq(q.rc, ERR_PACKAGE);
    assert_has(said, "load 'l2' again: m.malloy:3: no such thing");
    ck_assert_str_eq(question_ask(&q, &f, NULL, "echo fine"), "fine");
    question_fini(&q);
}
END_TEST

START_TEST(load_in_work_that_hangs_is_stopped_at_its_deadline)
{
    struct question q = {.dones = 0};
    question_load(&q, &f, "l1", "heavy", MS(200));
    turn_until(f.loop, q.dones);

    ck_assert_int_eq(q.rc, ERR_COMPILER_TIMEOUT);
    assert_has(q.problem, "'load' took the Malloy compiler longer than 200 ms");
    question_fini(&q);
}
END_TEST

START_TEST(child_that_loses_a_load_gets_it_again_but_not_for_ever)
{
    struct question q = {.dones = 0};
    pool_keep(&f, "l1", "shop");

    const char *said = question_ask(&q, &f, "l1", "lose");

    ck_assert_int_eq(q.rc, ERR_COMPILER_NOT_LOADED);
    assert_has(said, "loses load 'l1' again and again");
    ck_assert_uint_eq(pool_stats(&f).replays, 3);
    ck_assert_str_eq(question_ask(&q, &f, "l1", "echo fine"), "fine");
    question_fini(&q);
}
END_TEST

START_TEST(call_on_a_load_that_is_not_kept_is_refused)
{
    struct question q = {.dones = 0};

    const char *said = question_ask(&q, &f, "l9", "echo x");

    ck_assert_int_eq(q.rc, ERR_COMPILER_NOT_LOADED);
    assert_has(said, "load 'l9' is not kept");
    question_fini(&q);
}
END_TEST

START_TEST(forgotten_load_is_unloaded_and_refused)
{
    struct question q = {.dones = 0};
    pool_keep(&f, "l1", "shop");
    ck_assert_str_eq(question_ask(&q, &f, "l1", "echo x"), "x");
    f.pool->tidy_span = MS(0);

    compiler_forget(f.pool, "l1");
    (void)question_ask(&q, &f, "l1", "echo x");
    ck_assert_int_eq(q.rc, ERR_COMPILER_NOT_LOADED);

    ck_assert_str_eq(question_ask(&q, &f, NULL, "log"), "hello load:l1 query:l1 unload:l1 query");
    question_fini(&q);
}
END_TEST

START_TEST(forgotten_load_is_not_unloaded_before_the_calls_that_follow)
{
    struct question q = {.dones = 0};
    pool_keep(&f, "l1", "shop");
    pool_keep(&f, "l2", "shop");
    ck_assert_str_eq(question_ask(&q, &f, "l1", "echo x"), "x");

    compiler_forget(f.pool, "l1");
    ck_assert_str_eq(question_ask(&q, &f, "l2", "log"), "hello load:l1 query:l1 load:l2 query:l2");
    const char *said = "";
    while (!strstr(said, "unload:l1")) { /* poll */
        loop_turn(f.loop, MS(20));
        said = question_ask(&q, &f, NULL, "log");
    }
    question_fini(&q);
}
END_TEST

START_TEST(load_forgotten_while_it_is_loaded_is_unloaded_after)
{
    struct question q = {.dones = 0};
    f.pool->tidy_span = MS(0);
    question_load(&q, &f, "l1", "shop", LONG);
    compiler_forget(f.pool, "l1");
    turn_until(f.loop, q.dones);
    ck_assert_int_eq(q.rc, 0);

    ck_assert_str_eq(question_ask(&q, &f, NULL, "echo x"), "x");
    ck_assert_str_eq(question_ask(&q, &f, NULL, "log"), "hello load:l1 unload:l1 query query");
    question_fini(&q);
}
END_TEST

START_TEST(load_kept_anew_replaces_the_old_one)
{
    struct question q = {.dones = 0};
    pool_keep(&f, "l1", "shop");
    ck_assert_str_eq(question_ask(&q, &f, "l1", "echo x"), "x");

    pool_keep(&f, "l1", "shop"); /* the same */
    ck_assert_str_eq(question_ask(&q, &f, "l1", "echo x"), "x");
    ck_assert_uint_eq(pool_stats(&f).replays, 1);
    compiler_forget(f.pool, "l1");
    pool_keep(&f, "l1", "larger shop");

    ck_assert_str_eq(question_ask(&q, &f, "l1", "log"),
                     "hello load:l1 query:l1 query:l1 load:l1 query:l1");
    question_fini(&q);
}
END_TEST

START_TEST(child_that_holds_the_load_is_preferred)
{
    struct question q = {.dones = 0};
    pool_open_ready(&f, (struct compiler_settings){.children = 2});
    turn_until(f.loop, pool_stats(&f).ready == 2);
    pool_keep(&f, "l1", "shop");
    pool_keep(&f, "l2", "other");
    int first = atoi(question_ask(&q, &f, "l1", "pid"));
    int second = atoi(question_ask(&q, &f, "l2", "pid"));

    ck_assert_int_ne(first, second);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(atoi(question_ask(&q, &f, "l1", "pid")), first);
        ck_assert_int_eq(atoi(question_ask(&q, &f, "l2", "pid")), second);
    }
    ck_assert_uint_eq(pool_stats(&f).replays, 2);
    question_fini(&q);
    pool_shut(&f);
}
END_TEST

START_TEST(free_child_takes_the_load_when_its_holder_is_busy)
{
    struct question busy = {.dones = 0}, q = {.dones = 0};
    pool_open_ready(&f, (struct compiler_settings){.children = 2});
    turn_until(f.loop, pool_stats(&f).ready == 2);
    pool_keep(&f, "l1", "shop");
    ck_assert_str_eq(question_ask(&q, &f, "l1", "echo x"), "x");
    question_start(&busy, &f, "l1", LONG, "hang");

    ck_assert_str_eq(question_ask(&q, &f, "l1", "echo beside"), "beside");

    ck_assert_int_eq(busy.dones, 0);
    ck_assert_uint_eq(pool_stats(&f).replays, 2);
    question_fini(&q);
    pool_shut(&f);
    question_fini(&busy);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("loads of the compiler pool");
    TCase *one = tcase_create("one child");
    tcase_add_checked_fixture(one, setup_one, teardown);
    tcase_add_test(one, kept_load_is_sent_before_the_first_call_that_needs_it_and_after_a_respawn);
    tcase_add_test(one, call_that_loads_leaves_the_load_in_its_child);
    tcase_add_test(one, load_that_needs_schemas_is_no_load_yet);
    tcase_add_test(one, kept_load_that_does_not_load_fails_the_call_with_the_reason);
    tcase_add_test(one, load_in_work_that_hangs_is_stopped_at_its_deadline);
    tcase_add_test(one, child_that_loses_a_load_gets_it_again_but_not_for_ever);
    tcase_add_test(one, call_on_a_load_that_is_not_kept_is_refused);
    tcase_add_test(one, forgotten_load_is_unloaded_and_refused);
    tcase_add_test(one, forgotten_load_is_not_unloaded_before_the_calls_that_follow);
    tcase_add_test(one, load_forgotten_while_it_is_loaded_is_unloaded_after);
    tcase_add_test(one, load_kept_anew_replaces_the_old_one);
    suite_add_tcase(s, one);
    TCase *two = tcase_create("two children");
    tcase_add_test(two, child_that_holds_the_load_is_preferred);
    tcase_add_test(two, free_child_takes_the_load_when_its_holder_is_busy);
    suite_add_tcase(s, two);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
