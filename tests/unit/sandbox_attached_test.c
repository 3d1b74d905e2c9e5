/* Sandboxes with databases beside them: held against writers, found again when they are replaced,
 * told by name when they cannot be had, and only ever read as tables. */
#include "tests/support/suite.h"
#include "tests/unit/sandbox_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static struct duck_instance *writer(const char *path)
{
    struct duck_instance *i;
    struct err e;
    const struct duck_settings s = {.what = "writer", .file = path, .unlocked = true};
    int rc = duck_instance_open(&s, &i, &e);
    ck_assert_msg(rc == 0, "%s", err_text(&e));
    return i;
}

static struct duck_pool *pool;

struct made {
    struct duck_job job;
    const char *sql;
    bool is_done;
};

static int work_sql(struct duck_job *job, struct duck_conn *conn, struct err *e)
{
    return duck_exec(conn, ((struct made *)job->data)->sql, e);
}

static void on_made(struct duck_job *job)
{
    ((struct made *)job->data)->is_done = true;
}

static void run(struct duck_instance *i, const char *sql)
{
    struct made m = {.job = {.instance = i, .loop = f.loop, .work_pool = work_sql, .done = on_made},
                     .sql = sql};
    m.job.data = &m;
    duck_job_start(pool, &m.job);
    turn_until(&m.is_done);
    ck_assert_msg(m.job.rc == 0, "%s", err_text(&m.job.err));
}

/* A database file with a table of so many columns. */
static const char *database(const char *name, const char *columns)
{
    const char *path = in(f.base, name);
    struct duck_instance *i = writer(path);
    run(i, arena_printf(&f.arena, "CREATE TABLE t AS SELECT %s", columns));
    duck_instance_unref(i);
    return path;
}

static void setup(void)
{
    sandbox_setup();
    pool = duck_pool_new(1, 0);
}

static void teardown(void)
{
    duck_pool_free(pool);
    sandbox_teardown();
}

static struct wh_attached ref;

static void ask_attached(struct asked *a, const char *path, bool is_alone)
{
    ref = (struct wh_attached){.name = "ref", .file = path};
    *a = (struct asked){.get = {.connection = "lake",
                                .digest = "../any fingerprint",
                                .version = "1",
                                .attached = &ref,
                                .n_attached = 1,
                                .is_alone = is_alone}};
    asked_start(a);
}

static struct sandbox *attached(const char *path)
{
    struct asked a;
    ask_attached(&a, path, false);
    return asked_box(&a);
}

/* As another program that wants to write it: refused with the lock that is in its way. */
static bool is_held(const char *path)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    bool held = fcntl(fd, F_OFD_SETLK, &lock) != 0;
    (void)close(fd);
    return held;
}

START_TEST(tables_are_read_and_files_are_not)
{
    const char *why;
    const char *path = database("a.duckdb", "1 AS a, 2 AS b");
    struct sandbox *b = attached(path);

    ck_assert_int_eq(columns_of(b, "ref.t", &why), 2);
    ck_assert_int_eq(columns_of(b, "ref.main.t", &why), 2);
    ck_assert_int_eq(columns_of(b, "ref.main.none", &why), 0);
    ck_assert_int_eq(columns_of(b, path, &why), 0);
    ck_assert_msg(strstr(why, "no files"), "%s", why);
    ck_assert_int_eq(columns_of(b, "other.t", &why), 0);

    sandbox_put(b);
}
END_TEST

START_TEST(a_file_is_held_against_writers_until_the_last_one_closes)
{
    const char *path = database("a.duckdb", "1 AS a");
    struct asked one, two;
    ask_attached(&one, path, true);
    ask_attached(&two, path, true);
    struct sandbox *first = asked_box(&one), *second = asked_box(&two);
    ck_assert_ptr_ne(first, second);
    ck_assert(is_held(path));

    sandbox_put(first);
    while (sandboxes_open(f.set) > 1) {
        (void)loop_turn(f.loop, MS(20));
    }
    ck_assert(is_held(path));
    sandbox_put(second);
    while (sandboxes_open(f.set) > 0) {
        (void)loop_turn(f.loop, MS(20));
    }
    ck_assert(!is_held(path));
}
END_TEST

START_TEST(a_file_that_was_replaced_is_read_by_the_next_who_asks)
{
    const char *why;
    const char *path = database("a.duckdb", "1 AS a");
    const char *next = database("b.duckdb", "1 AS a, 2 AS b");
    struct sandbox *old = attached(path);
    ck_assert_int_eq(rename(next, path), 0);

    struct sandbox *new = attached(path);
    ck_assert_ptr_ne(old, new);
    ck_assert_int_eq(columns_of(old, "ref.t", &why), 1);
    ck_assert_int_eq(columns_of(new, "ref.t", &why), 2);
    struct sandbox *again = attached(path);
    ck_assert_ptr_eq(new, again);

    sandbox_put(old);
    sandbox_put(new);
    sandbox_put(again);
}
END_TEST

START_TEST(what_cannot_be_attached_is_told_by_name_and_tried_again)
{
    struct asked a;
    const char *path = in(f.base, "a.duckdb");
    ask_attached(&a, path, false);
    struct sandbox *b = asked_box(&a);
    ck_assert(wh_duckdb_is_lacking(sandbox_wh(b)));
    struct err e;
    ck_assert_int_eq(refusal_of(b, "ref.t", &e), ERR_WH_CONNECT);
    ck_assert_str_eq(e.text, arena_printf(&f.arena,
                                          "connection 'lake': the attached database 'ref': cannot "
                                          "read '%s': No such file or directory",
                                          path));
    sandbox_put(b);

    (void)database("a.duckdb", "1 AS a");
    int64_t end = loop_now(f.loop).v + 10000;
    for (bool lacks = true; lacks;) {
        ck_assert_int_lt(loop_now(f.loop).v, end);
        b = attached(path);
        lacks = wh_duckdb_is_lacking(sandbox_wh(b));
        sandbox_put(b);
        (void)loop_turn(f.loop, MS(20));
    }
}
END_TEST

START_TEST(a_file_that_is_written_is_told_with_the_process)
{
    const char *path = in(f.base, "a.duckdb");
    struct duck_instance *other = writer(path);
    struct sandbox *b = attached(path);
    struct err e;

    ck_assert_int_eq(refusal_of(b, "ref.t", &e), ERR_WH_CONNECT);
    ck_assert_msg(strstr(e.text, arena_printf(&f.arena, "process %d has '%s' open to write",
                                              (int)getpid(), path)),
                  "%s", e.text);

    sandbox_put(b);
    duck_instance_unref(other);
}
END_TEST

START_TEST(a_file_that_is_none_of_duckdbs_is_told)
{
    const char *path = in(f.base, "a.duckdb");
    write_text(path, "no database");
    struct sandbox *b = attached(path);
    struct err e;
    ck_assert_int_eq(refusal_of(b, "ref.t", &e), ERR_WH_CONNECT);
    ck_assert_msg(strstr(e.text, "'ref'") && strstr(e.text, "not a valid DuckDB database"), "%s",
                  e.text);
    sandbox_put(b);
}
END_TEST

START_TEST(names_of_folders_are_made_of_no_fingerprint)
{
    const char *hex = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    ck_assert_str_eq(sandbox_dataset(&f.arena, hex), "package-0123456789abcdef01234567");
    const char *other = sandbox_dataset(&f.arena, "../../etc");
    ck_assert_ptr_null(strchr(other, '/'));
    ck_assert_uint_eq(strlen(other), strlen("package-") + 24);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sandbox with databases beside it");
    TCase *tc = tcase_create("attached");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, tables_are_read_and_files_are_not);
    tcase_add_test(tc, a_file_is_held_against_writers_until_the_last_one_closes);
    tcase_add_test(tc, a_file_that_was_replaced_is_read_by_the_next_who_asks);
    tcase_add_test(tc, what_cannot_be_attached_is_told_by_name_and_tried_again);
    tcase_add_test(tc, a_file_that_is_written_is_told_with_the_process);
    tcase_add_test(tc, a_file_that_is_none_of_duckdbs_is_told);
    tcase_add_test(tc, names_of_folders_are_made_of_no_fingerprint);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
