/* Where kiln up keeps things (protocol.md 12). */
#include "services/kiln/up_paths.h"
#include "tests/support/suite.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[64];
static const struct up_user nobody_else = {0};

static void make_root(void)
{
    (void)snprintf(root, sizeof(root), "/tmp/kiln-paths-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void drop_root(void)
{
    struct err e = {0};
    ck_assert_int_eq(up_dir_empty(root, &e), 0);
    ck_assert_int_eq(rmdir(root), 0);
}

static char *below(const char *name)
{
    return xasprintf("%s/%s", root, name);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    ck_assert_int_eq(fchmod(fd, mode), 0);
    ck_assert_int_eq(close(fd), 0);
}

START_TEST(run_directory_of_a_deep_state_directory_is_short)
{
    char run[UP_SOCKET_MAX], sock[UP_SOCKET_MAX], state[PATH_MAX];
    struct err e = {0};
    (void)snprintf(state, sizeof(state), "%s/%0300d/kiln", root, 1);

    ck_assert_msg(up_run_open(NULL, state, &nobody_else, run, &e) == 0, "%s", e.text);

    ck_assert_int_eq(up_socket_path(run, "pg/.s.PGSQL.5432", sock, &e), 0);
    ck_assert_uint_le(strlen(sock), 58);
    struct stat st;
    ck_assert_int_eq(lstat(run, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0700);
    ck_assert_int_eq(rmdir(run), 0);
}
END_TEST

START_TEST(two_state_directories_have_two_run_directories_and_one_has_one)
{
    char a[UP_SOCKET_MAX], b[UP_SOCKET_MAX], again[UP_SOCKET_MAX];
    struct err e = {0};

    ck_assert_int_eq(up_run_open(root, "/state/a", &nobody_else, a, &e), 0);
    ck_assert_int_eq(up_run_open(root, "/state/b", &nobody_else, b, &e), 0);
    ck_assert_int_eq(up_run_open(root, "/state/a", &nobody_else, again, &e), 0);

    ck_assert_str_ne(a, b);
    ck_assert_str_eq(a, again);
    ck_assert_ptr_nonnull(strstr(a, root));
}
END_TEST

START_TEST(runtime_directory_that_is_too_long_or_odd_is_left_alone)
{
    char run[UP_SOCKET_MAX];
    struct err e = {0};
    auto_free char *longest = xasprintf("%s/%080d", root, 1);
    auto_free char *odd = below("with blank");
    ck_assert_int_eq(mkdir(longest, 0700), 0);
    ck_assert_int_eq(mkdir(odd, 0700), 0);

    ck_assert_int_eq(up_run_open(longest, "/state/long", &nobody_else, run, &e), 0);
    ck_assert_ptr_null(strstr(run, root));
    ck_assert_int_eq(rmdir(run), 0);
    ck_assert_int_eq(up_run_open(odd, "/state/odd", &nobody_else, run, &e), 0);
    ck_assert_ptr_null(strstr(run, root));
    ck_assert_int_eq(rmdir(run), 0);
}
END_TEST

START_TEST(link_in_place_of_a_directory_is_refused)
{
    struct err e = {0};
    auto_free char *target = below("target"), *link = below("link");
    ck_assert_int_eq(mkdir(target, 0700), 0);
    ck_assert_int_eq(symlink(target, link), 0);

    ck_assert_int_eq(up_dir_make(link, 0700, NULL, &e), ERR_CONF);

    ck_assert_ptr_nonnull(strstr(e.text, "is a link"));
    ck_assert_ptr_nonnull(strstr(e.text, link));
}
END_TEST

START_TEST(directory_that_others_may_write_is_refused)
{
    struct err e = {0};
    auto_free char *dir = below("open");
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    ck_assert_int_eq(chmod(dir, 0777), 0);

    ck_assert_int_eq(up_dir_make(dir, 0700, NULL, &e), ERR_CONF);

    ck_assert_ptr_nonnull(strstr(e.text, "writable by others"));
}
END_TEST

START_TEST(socket_path_of_108_bytes_is_refused)
{
    char run[UP_SOCKET_MAX], out[UP_SOCKET_MAX];
    struct err e = {0};
    (void)snprintf(run, sizeof(run), "/%0101d", 1); /* 102 bytes; "/call" makes 107 */

    ck_assert_int_eq(up_socket_path(run, "call", out, &e), 0);
    ck_assert_uint_eq(strlen(out), 107);
    ck_assert_int_eq(up_socket_path(run, "event", out, &e), ERR_CONF);
    ck_assert_ptr_nonnull(strstr(e.text, "107"));
}
END_TEST

START_TEST(second_lock_on_a_state_directory_names_the_holder)
{
    struct err e = {0};
    int fd = -1, second = -1;
    ck_assert_int_eq(up_lock(root, root, &fd, &e), 0);

    ck_assert_int_eq(up_lock(root, root, &second, &e), ERR_CONFLICT);

    char pid[32];
    (void)snprintf(pid, sizeof(pid), "process %ld", (long)getpid());
    ck_assert_ptr_nonnull(strstr(e.text, pid));
    ck_assert_ptr_nonnull(strstr(e.text, root));
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(up_lock(root, root, &second, &e), 0);
    ck_assert_int_eq(close(second), 0);
}
END_TEST

START_TEST(secret_key_is_made_once_and_for_the_owner_only)
{
    char first[65], second[65];
    struct err e = {0};
    struct stat st;
    auto_free char *path = below("secret_key");

    ck_assert_int_eq(up_secret_key(root, first, &e), 0);
    ck_assert_int_eq(up_secret_key(root, second, &e), 0);

    ck_assert_uint_eq(strspn(first, "0123456789abcdef"), 64);
    ck_assert_str_eq(first, second);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
}
END_TEST

START_TEST(secret_key_that_others_can_read_is_refused_and_not_printed)
{
    char hex[65];
    struct err e = {0};
    auto_free char *path = below("secret_key");
    write_file(path, "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n", 0644);

    ck_assert_int_eq(up_secret_key(root, hex, &e), ERR_CONF);

    ck_assert_ptr_nonnull(strstr(e.text, path));
    ck_assert_ptr_null(strstr(e.text, "00112233"));
}
END_TEST

START_TEST(damaged_secret_key_is_refused_and_kept)
{
    char hex[65];
    struct err e = {0};
    struct stat st;
    auto_free char *path = below("secret_key");
    write_file(path, "0011\n", 0600);

    ck_assert_int_eq(up_secret_key(root, hex, &e), ERR_CONF);

    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size, 5);
}
END_TEST

START_TEST(emptying_a_directory_removes_links_and_not_what_they_name)
{
    struct err e = {0};
    auto_free char *dir = below("dir"), *kept = below("kept"), *link = below("dir/link"),
                   *sub = below("dir/sub"), *file = below("dir/sub/file"), *safe = below("kept/f");
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    ck_assert_int_eq(mkdir(kept, 0700), 0);
    ck_assert_int_eq(mkdir(sub, 0700), 0);
    ck_assert_int_eq(symlink(kept, link), 0);
    write_file(file, "x", 0600);
    write_file(safe, "x", 0600);

    ck_assert_int_eq(up_dir_empty(dir, &e), 0);

    ck_assert_int_eq(rmdir(dir), 0);
    ck_assert_int_eq(access(safe, F_OK), 0);
}
END_TEST

START_TEST(directory_that_a_user_cannot_pass_is_named)
{
    struct err e = {0};
    const struct up_user other = {.name = "kiln-nobody", .uid = 61234, .gid = 61234};
    auto_free char *open_dir = below("open"), *shut = below("open/shut"),
                   *deep = below("open/shut/d");
    ck_assert_int_eq(chmod(root, 0755), 0);
    ck_assert_int_eq(mkdir(open_dir, 0755), 0);
    ck_assert_int_eq(chmod(open_dir, 0755), 0);
    ck_assert_int_eq(mkdir(shut, 0700), 0);
    ck_assert_int_eq(mkdir(deep, 0755), 0);

    ck_assert_msg(up_check_searchable(open_dir, &other, &e) == 0, "%s", e.text);
    ck_assert_int_eq(up_check_searchable(deep, &other, &e), ERR_CONF);

    ck_assert_ptr_nonnull(strstr(e.text, shut));
}
END_TEST

START_TEST(taken_port_is_named_with_the_flag_that_helps)
{
    struct err e = {0};
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    int port = ntohs(a.sin_port);

    ck_assert_int_eq(up_check_port("127.0.0.1", port, "--port", &e), ERR_CONF);

    char number[16];
    (void)snprintf(number, sizeof(number), "port %d", port);
    ck_assert_ptr_nonnull(strstr(e.text, number));
    ck_assert_ptr_nonnull(strstr(e.text, "--port"));
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(up_check_port("localhost", port, "--port", &e), 0);
    ck_assert_int_eq(up_check_port("no-number.example", port, "--port", &e), ERR_CONF);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("kiln_paths");
    TCase *t = tcase_create("paths");
    tcase_add_checked_fixture(t, make_root, drop_root);
    tcase_add_test(t, run_directory_of_a_deep_state_directory_is_short);
    tcase_add_test(t, two_state_directories_have_two_run_directories_and_one_has_one);
    tcase_add_test(t, runtime_directory_that_is_too_long_or_odd_is_left_alone);
    tcase_add_test(t, link_in_place_of_a_directory_is_refused);
    tcase_add_test(t, directory_that_others_may_write_is_refused);
    tcase_add_test(t, socket_path_of_108_bytes_is_refused);
    tcase_add_test(t, second_lock_on_a_state_directory_names_the_holder);
    tcase_add_test(t, secret_key_is_made_once_and_for_the_owner_only);
    tcase_add_test(t, secret_key_that_others_can_read_is_refused_and_not_printed);
    tcase_add_test(t, damaged_secret_key_is_refused_and_kept);
    tcase_add_test(t, emptying_a_directory_removes_links_and_not_what_they_name);
    tcase_add_test(t, directory_that_a_user_cannot_pass_is_named);
    tcase_add_test(t, taken_port_is_named_with_the_flag_that_helps);
    suite_add_tcase(s, t);
    return suite_run(s);
}
