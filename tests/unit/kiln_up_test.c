/* kiln up with services that only answer probes: ready, restarts, refusals, the end. */
#include "common/base/buf.h"
#include "services/kiln/up_paths.h"
#include "tests/support/suite.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char root[64];

struct program {
    pid_t pid;
    char out[96], err[96]; /* files */
};

static void make_root(void)
{
    (void)snprintf(root, sizeof(root), "/tmp/kiln-up-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void drop_root(void)
{
    struct err e = {0};
    ck_assert_int_eq(up_dir_empty(root, &e), 0);
    ck_assert_int_eq(rmdir(root), 0);
}

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void pause_ms(long ms)
{
    struct timespec t = {.tv_sec = 0, .tv_nsec = ms * 1000000};
    (void)nanosleep(&t, NULL); /* poll */
}

/* A port of 127.0.0.1 that is free now. */
static int free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    for (int tries = 0, port = 20000 + (int)getpid() % 9000; tries < 2000; tries++, port++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        a.sin_port = htons((uint16_t)port);
        int rc = bind(fd, (struct sockaddr *)&a, sizeof(a));
        (void)close(fd);
        if (rc == 0) {
            return port;
        }
    }
    ck_abort_msg("no free port");
}

static void become_kiln(const struct program *p, const char *order, char **argv)
{
    int out = open(p->out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int err = open(p->err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(err, STDERR_FILENO);
    (void)unsetenv("KILN_FAKE");
    (void)unsetenv("XDG_RUNTIME_DIR");
    if (order) {
        (void)setenv("KILN_FAKE", order, 1);
    }
    (void)execv(argv[0], argv);
    _exit(127);
}

/* kiln up over the fakes, with a store and Redis that nobody asks for. */
static struct program start(const char *name, const char *dir, int port, const char *order,
                            const char *more)
{
    struct program p;
    char *binary = xasprintf("%s/bin/kiln", getenv("KILN_BINARY_DIR"));
    char *bin_dir = xasprintf("--bin-dir=%s/tests/kiln_fake", getenv("KILN_BINARY_DIR"));
    char *root_flag = xasprintf("--server_root=%s", dir), *port_flag = xasprintf("--port=%d", port);
    char words[8][32] = {
        "up",           "--webhook-port=0", "--store=host=/nowhere", "--redis=127.0.0.1:1",
        "--builders=2", "--node=/bin/true"};
    char *last = more ? xstrdup(more) : NULL;
    char *argv[] = {binary,   words[0], words[1],  words[2],  words[3], words[4],
                    words[5], bin_dir,  root_flag, port_flag, last,     NULL};
    (void)snprintf(p.out, sizeof(p.out), "%s/%s.out", root, name);
    (void)snprintf(p.err, sizeof(p.err), "%s/%s.err", root, name);
    (void)fflush(stdout);
    p.pid = fork();
    ck_assert_int_ge(p.pid, 0);
    if (p.pid == 0) {
        become_kiln(&p, order, argv);
    }
    free(binary);
    free(bin_dir);
    free(root_flag);
    free(port_flag);
    free(last);
    return p;
}

static char *text_of(const char *path)
{
    struct buf text = {0};
    char piece[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t n; fd >= 0 && (n = read(fd, piece, sizeof(piece))) > 0;) {
        buf_add(&text, piece, (size_t)n);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return buf_take(&text);
}

static size_t count(const char *path, const char *what)
{
    auto_free char *text = text_of(path);
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++) {
        n++;
    }
    return n;
}

static void wait_said(const char *path, const char *what, size_t times)
{
    int64_t end = now_ms() + 20000;
    while (count(path, what) < times) {
        auto_free char *text = now_ms() > end ? text_of(path) : NULL;
        ck_assert_msg(!text, "%s does not say %s: %s", path, what, text ? text : "");
        pause_ms(10);
    }
}

static int wait_end(const struct program *p, int64_t within_ms)
{
    int status = 0;
    int64_t end = now_ms() + within_ms;
    while (waitpid(p->pid, &status, WNOHANG) == 0) {
        if (now_ms() > end) {
            (void)kill(p->pid, SIGKILL);
            (void)waitpid(p->pid, &status, 0);
            ck_abort_msg("kiln up did not end within %lld ms", (long long)within_ms);
        }
        pause_ms(10);
    }
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Processes whose command line names `dir`; the pid of the last one with `word` in it, too. */
static size_t processes(const char *dir, const char *word, pid_t *found)
{
    DIR *proc = opendir("/proc");
    size_t n = 0;
    for (struct dirent *d; (d = readdir(proc)) != NULL;) {
        char path[300], line[4096];
        (void)snprintf(path, sizeof(path), "/proc/%s/cmdline", d->d_name);
        int fd = d->d_name[0] >= '0' && d->d_name[0] <= '9' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        ssize_t len = fd >= 0 ? read(fd, line, sizeof(line)) : -1;
        if (fd >= 0) {
            (void)close(fd);
        }
        if (len > 0 && memmem(line, (size_t)len, dir, strlen(dir))) {
            n++;
            if (word && memmem(line, (size_t)len, word, strlen(word))) {
                *found = (pid_t)atol(d->d_name);
            }
        }
    }
    (void)closedir(proc);
    return n;
}

START_TEST(everything_serves_and_is_gone_after_sigterm)
{
    int port = free_port();
    struct program p = start("a", root, port, NULL, NULL);
    wait_said(p.out, "PUBLISHER_READY", 1);
    wait_said(p.err, "fake.started", 4); /* ready does not wait for builders */

    int64_t begun = now_ms();
    ck_assert_int_eq(kill(p.pid, SIGTERM), 0);
    ck_assert_int_eq(wait_end(&p, 5000), 0);

    ck_assert_int_lt(now_ms() - begun, 5000);
    ck_assert_uint_eq(processes(root, NULL, NULL), 0);
    ck_assert_uint_eq(count(p.out, "\n"), 1); /* standard output says one word */
    ck_assert_uint_eq(count(p.err, "fake.started"), 4);
    ck_assert_int_eq(up_check_port("127.0.0.1", port, "--port", NULL), 0);
}
END_TEST

START_TEST(each_child_gets_the_secrets_it_needs_and_no_others)
{
    struct program p = start("a", root, free_port(), NULL, NULL);
    wait_said(p.err, "fake.started", 4);
    (void)kill(p.pid, SIGTERM);
    ck_assert_int_eq(wait_end(&p, 5000), 0);

    ck_assert_uint_eq(count(p.err, "\"instance\":\"planner-1\",\"init\":\"0\",\"store\":\"set\","
                                   "\"redis\":\"unset\",\"key\":\"set\""),
                      1);
    ck_assert_uint_eq(count(p.err, "\"instance\":\"builder-2\",\"init\":\"0\",\"store\":\"unset\","
                                   "\"redis\":\"unset\",\"key\":\"set\""),
                      1);
    ck_assert_uint_eq(count(p.err, "\"instance\":\"gateway-1\",\"init\":\"0\",\"store\":\"unset\","
                                   "\"redis\":\"set\",\"key\":\"set\""),
                      1);
}
END_TEST

START_TEST(dead_child_is_started_again_and_said_once)
{
    pid_t planner = 0;
    struct program p = start("a", root, free_port(), NULL, "--init");
    wait_said(p.out, "PUBLISHER_READY", 1);
    (void)processes(root, "planner-1", &planner);
    ck_assert_int_gt(planner, 0);

    ck_assert_int_eq(kill(planner, SIGKILL), 0);
    wait_said(p.err, "\"instance\":\"planner-1\"", 2);

    ck_assert_uint_eq(count(p.err, "\"instance\":\"planner-1\",\"init\":\"1\""), 1);
    ck_assert_uint_eq(count(p.err, "\"instance\":\"planner-1\",\"init\":\"0\""), 1);
    ck_assert_uint_eq(count(p.err, "child.ended"), 1);
    ck_assert_uint_eq(count(p.err, "signal 9"), 1);
    ck_assert_uint_eq(count(p.err, "started again in 100 ms"), 1);
    (void)kill(p.pid, SIGINT);
    ck_assert_int_eq(wait_end(&p, 5000), 0);
}
END_TEST

START_TEST(child_that_never_comes_up_ends_kiln_up_with_its_error)
{
    struct program p = start("a", root, free_port(), "builder-2=die", NULL);

    ck_assert_int_eq(wait_end(&p, 20000), 1);

    ck_assert_uint_eq(count(p.err, "kiln up: builder-2 does not start: the moon is not full\n"), 1);
    ck_assert_uint_eq(count(p.err, "\"event\":\"child.ended\""), 5);
    ck_assert_uint_eq(processes(root, NULL, NULL), 0);
}
END_TEST

START_TEST(child_that_hears_nothing_is_killed_within_five_seconds)
{
    struct program p = start("a", root, free_port(), "gateway-1=deaf", NULL);
    wait_said(p.out, "PUBLISHER_READY", 1);

    ck_assert_int_eq(kill(p.pid, SIGTERM), 0);
    ck_assert_int_eq(wait_end(&p, 5000), 0);

    ck_assert_uint_eq(count(p.err, "child.killed"), 1);
    ck_assert_uint_eq(processes(root, NULL, NULL), 0);
}
END_TEST

START_TEST(children_die_with_a_killed_kiln_up)
{
    struct program p = start("a", root, free_port(), NULL, NULL);
    int status;
    wait_said(p.out, "PUBLISHER_READY", 1);

    ck_assert_int_eq(kill(p.pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(p.pid, &status, 0), p.pid);

    int64_t end = now_ms() + 3000;
    while (processes(root, NULL, NULL) > 0) {
        ck_assert_msg(now_ms() < end, "children live on");
        pause_ms(10);
    }
}
END_TEST

START_TEST(second_kiln_up_on_a_root_and_a_taken_port_are_refused)
{
    int port = free_port();
    struct program p = start("a", root, port, NULL, NULL);
    wait_said(p.out, "PUBLISHER_READY", 1);
    char pid[32];
    (void)snprintf(pid, sizeof(pid), "(process %ld)", (long)p.pid);
    auto_free char *other_root = xasprintf("%s/other", root);

    struct program same = start("same", root, free_port() + 1, NULL, NULL);
    ck_assert_int_eq(wait_end(&same, 5000), 1);
    struct program taken = start("taken", other_root, port, NULL, NULL);
    ck_assert_int_eq(wait_end(&taken, 5000), 1);

    ck_assert_uint_eq(count(same.err, pid), 1);
    ck_assert_uint_eq(count(same.err, root), 1);
    ck_assert_uint_eq(count(taken.err, "is taken"), 1);
    ck_assert_uint_eq(count(same.err, "fake.started") + count(taken.err, "fake.started"), 0);
    (void)kill(p.pid, SIGTERM);
    ck_assert_int_eq(wait_end(&p, 5000), 0);
}
END_TEST

START_TEST(bad_command_lines_are_refused_before_anything_starts)
{
    struct program bad = start("bad", root, free_port(), NULL, "--no-such-flag");
    ck_assert_int_eq(wait_end(&bad, 5000), 2);
    struct program host = start("host", root, free_port(), NULL, "--host=0.0.0.0");
    ck_assert_int_eq(wait_end(&host, 5000), 1);
    struct program config = start("config", root, free_port(), NULL, "--config=/nowhere.json");
    ck_assert_int_eq(wait_end(&config, 5000), 1);
    struct program node = start("node", root, free_port(), NULL, "--node=/nowhere/node");
    ck_assert_int_eq(wait_end(&node, 5000), 1);

    ck_assert_uint_eq(count(host.err, "--trusted-network"), 1);
    ck_assert_uint_eq(count(config.err, "/nowhere.json"), 1);
    ck_assert_uint_eq(count(node.err, "/nowhere/node"), 1);
    ck_assert_uint_eq(count(host.err, "fake.started"), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("kiln_up");
    TCase *t = tcase_create("up");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, make_root, drop_root);
    tcase_add_test(t, everything_serves_and_is_gone_after_sigterm);
    tcase_add_test(t, each_child_gets_the_secrets_it_needs_and_no_others);
    tcase_add_test(t, dead_child_is_started_again_and_said_once);
    tcase_add_test(t, child_that_never_comes_up_ends_kiln_up_with_its_error);
    tcase_add_test(t, child_that_hears_nothing_is_killed_within_five_seconds);
    tcase_add_test(t, children_die_with_a_killed_kiln_up);
    tcase_add_test(t, second_kiln_up_on_a_root_and_a_taken_port_are_refused);
    tcase_add_test(t, bad_command_lines_are_refused_before_anything_starts);
    suite_add_tcase(s, t);
    return suite_run(s);
}
