/* A builder that is killed in the middle, and a disk that is full. */
#include "tests/unit/generation_fixture.h"
#include "tests/unit/generation_suites.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- kill -9 ---- */

/* Makes one generation after the other until it is killed. */
NORETURN static void make_for_ever(void)
{
    static char text[200000];
    memset(text, 'x', sizeof text - 1);
    for (uint64_t ms = 1700000000000;; ms++) {
        char id[ULID_TEXT];
        ulid_format(ms, (const uint8_t *)"0123456789", id);
        const struct generation_ref r = ref_of(id);
        struct generation_manifest m = manifest_of(ms);
        if (generation_begin(&r, ms, &e) < 0) {
            _exit(1);
        }
        write_file(path_of(id, "data-0.parquet"), text);
        if (generation_publish(&arena, &r, &m, &e) < 0) {
            _exit(2);
        }
    }
}

START_TEST(after_a_kill_what_has_a_manifest_is_whole_and_the_rest_is_swept)
{
    size_t whole = 0;
    for (int round = 0; round < 30; round++) {
        pid_t pid = fork();
        if (pid == 0) {
            make_for_ever();
        }
        /* At another moment each time: when so many are there. */
        struct generation_names names = {0};
        for (int i = 0; i < 1000000 && names.n <= (size_t)round % 5; i++) {
            ck_assert_int_eq(generation_list(&arena, root, "sales", &names, &e), 0);
        }
        int status;
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert(WIFSIGNALED(status));

        ck_assert_int_eq(generation_list(&arena, root, "sales", &names, &e), 0);
        size_t unfinished = 0;
        for (size_t i = 0; i < names.n; i++) {
            int rc = look(names.items[i], GENERATION_HASHES);
            ck_assert_msg(rc == 0 || rc == ERR_NOT_FOUND, "%s", e.text);
            whole += rc == 0;
            unfinished += rc != 0;
        }
        ck_assert_uint_le(unfinished, 1);
        const struct generation_record nothing = {NULL, 0, INT64_MAX};
        ck_assert_int_eq(generation_sweep(root, "sales", &nothing, &e), (int)names.n);
        ck_assert_int_eq(generation_list(&arena, root, "sales", &names, &e), 0);
        ck_assert_uint_eq(names.n, 0);
    }
    ck_assert_uint_gt(whole, 0);
}
END_TEST

/* ---- disk full ---- */

/* In a child, since limits and mounts are a process's own. 0: passed, 77: cannot be tried here. */
static int in_child(int (*body)(void))
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        _exit(body());
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int publish_without_room(void)
{
    const struct generation_ref r = ref_of(ID_1);
    struct generation_manifest m = manifest_of(1);
    static struct generation_column wide[2000];
    for (size_t i = 0; i < ARRAY_LEN(wide); i++) {
        wide[i] = (struct generation_column){"a name of some length", "BIGINT", "BIGINT"};
    }
    m.columns = wide;
    m.n_columns = ARRAY_LEN(wide); /* the manifest needs more than is left */
    int rc = generation_publish(&arena, &r, &m, &e);
    if (rc != ERR_IO || !strstr(e.text, "manifest.json")) {
        fprintf(stderr, "%d: %s\n", rc, e.text);
        return 1;
    }
    if (access(path_of(ID_1, "manifest.json"), F_OK) == 0 ||
        access(path_of(ID_1, "manifest.json.tmp"), F_OK) == 0) {
        return 2;
    }
    return generation_drop(&r, &e) == 1 ? 0 : 3;
}

static int begin_and_fill(size_t bytes)
{
    const struct generation_ref r = ref_of(ID_1);
    if (generation_begin(&r, 1, &e) < 0) {
        return -1;
    }
    FILE *f = fopen(path_of(ID_1, "data-0.parquet"), "w");
    for (size_t i = 0; f && i < bytes; i++) {
        if (fputc('x', f) < 0) {
            break;
        }
    }
    return f && fclose(f) == 0 ? 0 : -1;
}

static int on_a_small_disk(void)
{
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("tmpfs", root, "tmpfs", 0, "size=128k") < 0) {
        return 77;
    }
    return begin_and_fill(96 << 10) < 0 ? 4 : publish_without_room();
}

static int under_a_file_limit(void)
{
    struct rlimit limit = {16384, 16384};
    (void)signal(SIGXFSZ, SIG_IGN);
    if (begin_and_fill(100) < 0 || setrlimit(RLIMIT_FSIZE, &limit) < 0) {
        return 77;
    }
    return publish_without_room();
}

START_TEST(a_full_disk_publishes_nothing_and_says_so)
{
    int rc = in_child(on_a_small_disk);
    ck_assert_msg(rc == 0 || rc == 77, "on a small tmpfs: %d", rc);
    rc = in_child(under_a_file_limit);
    ck_assert_msg(rc == 0, "under a limit of file size: %d", rc);
}
END_TEST

TCase *generation_crash_tests(void)
{
    TCase *tc = tcase_create("crash");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, generation_setup, generation_teardown);
    tcase_add_test(tc, after_a_kill_what_has_a_manifest_is_whole_and_the_rest_is_swept);
    tcase_add_test(tc, a_full_disk_publishes_nothing_and_says_so);
    return tc;
}
