/* How a child is started: what it must not see, and what is told when it does not come up. */
#include "tests/support/compiler_client.h"
#include "tests/support/suite.h"
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct pool_fixture f;

static void setup_one(void)
{
    pool_open_ready(&f, (struct compiler_settings){.children = 1});
}

static void teardown(void)
{
    pool_shut(&f);
}

#define assert_has(text, part)                                                                     \
    ck_assert_msg(strstr((text), (part)) != NULL, "'%s' lacks '%s'", (text), (part))

START_TEST(child_sees_no_environment_of_ours_and_no_files_but_its_bundle)
{
    struct question q = {.dones = 0};
    (void)setenv("KILN_STORE_URL", "postgres://kiln:hunter22@db/kiln", 1);

    const char *env = question_ask(&q, &f, NULL, "env");
    ck_assert_str_eq(env, "LANG NODE_OPTIONS PATH TZ");
    ck_assert_str_eq(question_ask(&q, &f, NULL, "cwd"), "/");
    ck_assert_str_eq(question_ask(&q, &f, NULL, "read /etc/hostname"), "ERR_ACCESS_DENIED");
    assert_has(question_ask(&q, &f, NULL, "flags"), "--max-old-space-size=256");
    question_fini(&q);
    (void)unsetenv("KILN_STORE_URL");
}
END_TEST

START_TEST(child_has_no_network)
{
    struct question q = {.dones = 0};

    const char *said = question_ask(&q, &f, NULL, "connect");

    ck_assert_str_eq(said, "EACCES");
    question_fini(&q);
}
END_TEST

START_TEST(child_is_gone_when_its_parent_is_killed)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t parent = fork();
    if (parent == 0) {
        (void)alarm(30); /* it must not go on with our tests when it fails */
        struct pool_fixture own;
        pool_open_ready(&own, (struct compiler_settings){.children = 1});
        int pid = pool_child_pid(&own);
        (void)!write(ends[1], &pid, sizeof pid);
        (void)pause();
        _exit(0);
    }
    (void)close(ends[1]);
    int pid = 0;
    ck_assert_int_eq(read(ends[0], &pid, sizeof pid), (ssize_t)sizeof pid);

    (void)kill(parent, SIGKILL);

    ck_assert_int_eq(waitpid(parent, NULL, 0), parent);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid); /* by its signal, or by the end of its input */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 0);
    (void)close(ends[0]);
}
END_TEST

static void fails_to_start(struct compiler_settings s, const char *part)
{
    struct question q = {.dones = 0};
    pool_open(&f, s);
    turn_until(f.loop, f.down_calls);

    assert_has(f.why, part);
    assert_has(question_ask(&q, &f, NULL, "pid"), part);
    ck_assert_int_eq(q.rc, ERR_COMPILER_DOWN);
    question_fini(&q);
    pool_shut(&f);
}

START_TEST(missing_node_bundle_or_launcher_is_told_in_one_sentence)
{
    fails_to_start((struct compiler_settings){.node = "no-such-node"},
                   "Node is missing: there is no program 'no-such-node' on the PATH; install");
    fails_to_start((struct compiler_settings){.node = "/no/such/node"},
                   "Node is missing: there is no program '/no/such/node'; install");
    fails_to_start((struct compiler_settings){.bundle = "/no/such/bundle.js"},
                   "cannot read '/no/such/bundle.js' (No such file or directory)");
    fails_to_start((struct compiler_settings){.self = "/no/such/self"},
                   "there is no program '/no/such/self'");
}
END_TEST

/* A program that refuses its options as Node 18 does. */
static char *write_old_node(void)
{
    char *path = xasprintf("/tmp/kiln-old-node-%d", (int)getpid());
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fputs("#!/bin/sh\necho \"$0: bad option: --experimental-permission\" >&2\nexit 9\n",
                file);
    (void)fclose(file);
    ck_assert_int_eq(chmod(path, 0700), 0);
    return path;
}

START_TEST(old_node_is_told_by_its_version)
{
    auto_free char *path = write_old_node();
    fails_to_start((struct compiler_settings){.node = path}, "is older than version 20");
    (void)unlink(path);
}
END_TEST

START_TEST(bundle_that_throws_is_told_with_its_own_words)
{
    auto_free char *path = xasprintf("/tmp/kiln-broken-bundle-%d.js", (int)getpid());
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fputs("throw new Error('half a bundle');\n", file);
    (void)fclose(file);
    fails_to_start((struct compiler_settings){.bundle = path},
                   "did not start (exit code 1): Error: half a bundle");
    (void)unlink(path);
}
END_TEST

START_TEST(children_start_at_the_first_call_or_after_a_while)
{
    struct question q = {.dones = 0};
    pool_open(&f, (struct compiler_settings){.children = 2, .start_after = MS(60000)});
    (void)loop_turn(f.loop, MS(1));
    ck_assert_uint_eq(pool_stats(&f).started, 0);
    ck_assert_str_eq(question_ask(&q, &f, NULL, "echo early"), "early");
    turn_until(f.loop, pool_stats(&f).ready == 2);
    pool_shut(&f);

    pool_open_ready(&f, (struct compiler_settings){.start_after = MS(1)});
    ck_assert_uint_eq(pool_stats(&f).started, 1);
    question_fini(&q);
    pool_shut(&f);
}
END_TEST

START_TEST(pool_can_be_closed_before_its_children_start)
{
    pool_open(&f, (struct compiler_settings){.start_after = MS(60000)});
    pool_shut(&f);
}
END_TEST

START_TEST(second_child_starts_when_the_first_answers)
{
    pool_open(&f, (struct compiler_settings){.children = 3});
    ck_assert_uint_eq(pool_stats(&f).started, 1);

    turn_until(f.loop, pool_stats(&f).ready == 1);
    ck_assert_uint_eq(pool_stats(&f).started, 3);
    turn_until(f.loop, pool_stats(&f).ready == 3);

    ck_assert_uint_eq(pool_stats(&f).started, 3);
    ck_assert_int_eq(f.ready_calls, 1);
    pool_shut(&f);
}
END_TEST

START_TEST(second_child_starts_after_the_first_has_failed)
{
    auto_free char *once = xasprintf("/tmp/kiln-once-%d", (int)getpid());
    auto_free char *path = xasprintf("/tmp/kiln-late-node-%d", (int)getpid());
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    (void)fprintf(file, "#!/bin/sh\n[ -e %s ] && exec node \"$@\"\n: >%s; exit 7\n", once, once);
    (void)fclose(file);
    ck_assert_int_eq(chmod(path, 0700), 0);

    pool_open_ready(&f, (struct compiler_settings){.children = 2, .node = path});
    turn_until(f.loop, pool_stats(&f).ready == 2);

    ck_assert_int_eq(f.down_calls, 1);
    ck_assert_uint_eq(pool_stats(&f).started, 3);
    pool_shut(&f);
    (void)unlink(path);
    (void)unlink(once);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("start of compiler children");
    TCase *bare = tcase_create("pools of their own");
    tcase_set_timeout(bare, 60);
    tcase_add_test(bare, child_is_gone_when_its_parent_is_killed);
    tcase_add_test(bare, missing_node_bundle_or_launcher_is_told_in_one_sentence);
    tcase_add_test(bare, old_node_is_told_by_its_version);
    tcase_add_test(bare, bundle_that_throws_is_told_with_its_own_words);
    tcase_add_test(bare, children_start_at_the_first_call_or_after_a_while);
    tcase_add_test(bare, pool_can_be_closed_before_its_children_start);
    tcase_add_test(bare, second_child_starts_when_the_first_answers);
    tcase_add_test(bare, second_child_starts_after_the_first_has_failed);
    suite_add_tcase(s, bare);
    TCase *one = tcase_create("one child");
    tcase_add_checked_fixture(one, setup_one, teardown);
    tcase_set_timeout(one, 60);
    tcase_add_test(one, child_sees_no_environment_of_ours_and_no_files_but_its_bundle);
    tcase_add_test(one, child_has_no_network);
    suite_add_tcase(s, one);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
