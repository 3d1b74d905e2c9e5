/* Children that start from a snapshot beside the bundle, and what happens when that fails. */
#include "common/compiler/compiler_internal.h"
#include "tests/support/compiler_client.h"
#include "tests/support/suite.h"
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct pool_fixture f;
static char bundle[64], snapshot[64];

#define assert_has(text, part)                                                                     \
    ck_assert_msg(strstr((text), (part)) != NULL, "'%s' lacks '%s'", (text), (part))

static void run(const char *command)
{
    ck_assert_msg(system(command) == 0, "failed: %s", command);
}

static void setup(void)
{
    (void)snprintf(bundle, sizeof bundle, "/tmp/kiln-bundle-%d.js", (int)getpid());
    (void)snprintf(snapshot, sizeof snapshot, "/tmp/kiln-bundle-%d.blob", (int)getpid());
    auto_free char *command =
        xasprintf("cp '%s/tests/support/fake_compiler.js' '%s'", getenv("KILN_SOURCE_DIR"), bundle);
    run(command);
}

static void teardown(void)
{
    pool_shut(&f);
    (void)unlink(bundle);
    (void)unlink(snapshot);
}

/* A snapshot whose program is what `command` prints, run when a child starts from it. */
static void build_snapshot(const char *command)
{
    auto_free char *all = xasprintf(
        "{ echo 'require(`v8`).startupSnapshot.setDeserializeMainFunction(() => {'; %s; echo '});';"
        " } >'%s.source' && NODE_OPTIONS= node --max-old-space-size=256 --snapshot-blob '%s' "
        "--build-snapshot '%s.source' && rm '%s.source'",
        command, bundle, snapshot, bundle, bundle);
    run(all);
}

static void build_working_snapshot(void)
{
    auto_free char *print = xasprintf("cat '%s'", bundle);
    build_snapshot(print);
}

static void write_no_snapshot(void)
{
    auto_free char *command = xasprintf("echo 'no snapshot' >'%s'", snapshot);
    run(command);
}

START_TEST(child_of_a_snapshot_reads_no_file_at_all_and_is_confined_as_any)
{
    struct question q = {.dones = 0};
    build_working_snapshot();
    pool_open_ready(&f, (struct compiler_settings){.bundle = bundle});
    auto_free char *read_bundle = xasprintf("read %s", bundle);
    auto_free char *read_snapshot = xasprintf("read %s", snapshot);

    assert_has(question_ask(&q, &f, NULL, "flags"), "--snapshot-blob=");
    ck_assert_str_eq(question_ask(&q, &f, NULL, "read /etc/hostname"), "ERR_ACCESS_DENIED");
    ck_assert_str_eq(question_ask(&q, &f, NULL, read_bundle), "ERR_ACCESS_DENIED");
    ck_assert_str_eq(question_ask(&q, &f, NULL, read_snapshot), "ERR_ACCESS_DENIED");
    ck_assert_str_eq(question_ask(&q, &f, NULL, "connect"), "EACCES");
    ck_assert_str_eq(question_ask(&q, &f, NULL, "env"), "LANG NODE_OPTIONS PATH TZ");
    ck_assert_str_eq(question_ask(&q, &f, NULL, "cwd"), "/");
    ck_assert_uint_eq(pool_stats(&f).started, 1);
    question_fini(&q);
}
END_TEST

static void starts_from_the_bundle_after_one_attempt(unsigned children)
{
    struct question q = {.dones = 0};
    turn_until(f.loop, pool_stats(&f).ready == children);

    ck_assert_int_eq(f.down_calls, 0);
    ck_assert_uint_eq(pool_stats(&f).started, children + 1);
    ck_assert_uint_eq(pool_stats(&f).died, 0);
    assert_has(question_ask(&q, &f, NULL, "flags"), "--allow-fs-read=");
    question_fini(&q);
}

START_TEST(what_is_no_snapshot_costs_one_start_and_no_word)
{
    write_no_snapshot();
    pool_open(&f, (struct compiler_settings){.bundle = bundle, .children = 3});

    starts_from_the_bundle_after_one_attempt(3);
}
END_TEST

START_TEST(snapshot_of_another_heap_limit_is_refused_by_node)
{
    build_working_snapshot();
    pool_open(&f, (struct compiler_settings){.bundle = bundle, .heap_mb = 200});

    starts_from_the_bundle_after_one_attempt(1);
}
END_TEST

START_TEST(child_of_a_snapshot_that_ends_or_talks_rubbish_is_followed_by_one_of_the_bundle)
{
    build_snapshot("echo 'process.exit(0)'");
    pool_open(&f, (struct compiler_settings){.bundle = bundle});
    starts_from_the_bundle_after_one_attempt(1);
    pool_shut(&f);

    build_snapshot("echo 'require(`fs`).writeSync(3, Buffer.alloc(64, 0xff)); "
                   "setInterval(() => {}, 1000)'");
    pool_open(&f, (struct compiler_settings){.bundle = bundle});
    starts_from_the_bundle_after_one_attempt(1);
}
END_TEST

START_TEST(child_of_a_snapshot_that_says_nothing_is_followed_by_one_of_the_bundle)
{
    build_snapshot("echo 'setInterval(() => {}, 1000)'");
    pool_open(&f, (struct compiler_settings){.bundle = bundle, .start_after = MS(1)});
    f.pool->thaw_span = MS(300);

    starts_from_the_bundle_after_one_attempt(1);
}
END_TEST

START_TEST(snapshot_older_than_its_bundle_is_not_used)
{
    build_snapshot("echo 'process.exit(0)'");
    struct stat s;
    ck_assert_int_eq(stat(snapshot, &s), 0);
    const struct timespec later[2] = {{.tv_sec = s.st_mtime + 2}, {.tv_sec = s.st_mtime + 2}};
    ck_assert_int_eq(utimensat(AT_FDCWD, bundle, later, 0), 0);

    pool_open_ready(&f, (struct compiler_settings){.bundle = bundle});

    ck_assert_uint_eq(pool_stats(&f).started, 1);
}
END_TEST

START_TEST(missing_node_is_told_with_a_snapshot_too)
{
    write_no_snapshot();
    pool_open(&f, (struct compiler_settings){.bundle = bundle, .node = "/no/such/node"});
    turn_until(f.loop, f.down_calls);

    assert_has(f.why, "there is no program '/no/such/node'");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("compiler children of a snapshot");
    TCase *c = tcase_create("snapshot");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, child_of_a_snapshot_reads_no_file_at_all_and_is_confined_as_any);
    tcase_add_test(c, what_is_no_snapshot_costs_one_start_and_no_word);
    tcase_add_test(c, snapshot_of_another_heap_limit_is_refused_by_node);
    tcase_add_test(c,
                   child_of_a_snapshot_that_ends_or_talks_rubbish_is_followed_by_one_of_the_bundle);
    tcase_add_test(c, child_of_a_snapshot_that_says_nothing_is_followed_by_one_of_the_bundle);
    tcase_add_test(c, snapshot_older_than_its_bundle_is_not_used);
    tcase_add_test(c, missing_node_is_told_with_a_snapshot_too);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
