/* Sandboxes: files where models expect them, one instance for all who ask, closed when nobody does.
 */
#include "common/sandbox/sandbox.h"
#include "tests/support/suite.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000 };
static struct fx {
    struct loop *loop;
    struct sandboxes *set;
    char base[64], store[80], root[80], dir[80];
    struct arena arena;
    struct sandbox_file files[4];
    size_t n;
    bool closed;
} f;

static char *in(const char *dir, const char *name)
{
    return arena_printf(&f.arena, "%s/%s", dir, name);
}

static void write_text(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    ck_assert_int_ge(fputs(text, out), 0);
    ck_assert_int_eq(fclose(out), 0);
}

/* Into the package store, as the planner keeps it. */
static void add_file(const char *path, const char *text)
{
    struct sandbox_file *x = &f.files[f.n++];
    *x = (struct sandbox_file){.path = path, .bytes = strlen(text)};
    x->sha256 = sha256_of(text, strlen(text));
    char hex[65];
    hex_encode(x->sha256.b, 32, hex);
    char *dir = arena_printf(&f.arena, "%s/%.2s", f.store, hex);
    (void)mkdir(dir, 0755);
    write_text(in(dir, hex), text);
}

static void setup(void)
{
    f = (struct fx){0};
    arena_init(&f.arena);
    snprintf(f.base, sizeof(f.base), "/tmp/kt-sandbox.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(f.base));
    snprintf(f.store, sizeof(f.store), "%s/store", f.base);
    snprintf(f.root, sizeof(f.root), "%s/root", f.base);
    snprintf(f.dir, sizeof(f.dir), "%s/a/b", f.base);
    ck_assert_int_eq(mkdir(f.store, 0755) | mkdir(f.root, 0755), 0);
    f.loop = loop_new();
    struct err e;
    const struct sandbox_conf c = {.package_store = f.store,
                                   .dir = f.dir,
                                   .generation_root = f.root,
                                   .memory_bytes = UINT64_C(512) << 20,
                                   .threads = 1,
                                   .idle = MS(50)};
    ck_assert_int_eq(sandboxes_new(f.loop, &c, &f.set, &e), 0);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void on_closed(void *data)
{
    (void)data;
    f.closed = true;
}

static void turn_until(const bool *what)
{
    int64_t end = loop_now(f.loop).v + PATIENCE_MS;
    while (!*what) {
        ck_assert_int_lt(loop_now(f.loop).v, end);
        (void)loop_turn(f.loop, MS(20));
    }
}

static void teardown(void)
{
    sandboxes_close(f.set, on_closed, NULL);
    turn_until(&f.closed);
    sandboxes_free(f.set);
    loop_free(f.loop);
    ck_assert_int_eq(chdir("/"), 0);
    (void)nftw(f.base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    arena_fini(&f.arena);
}

struct asked {
    struct sandbox_get get;
    bool is_done;
};

static void on_done(struct sandbox_get *q)
{
    ((struct asked *)q->data)->is_done = true;
}

static void ask(struct asked *a, const char *version)
{
    *a = (struct asked){.get = {.digest = "0123456789abcdef0123456789abcdef",
                                .version = version,
                                .files = f.files,
                                .n_files = f.n,
                                .done = on_done,
                                .data = a}};
    sandbox_get_start(f.set, &a->get);
    ck_assert(!a->is_done);
}

static struct sandbox *get(const char *version)
{
    struct asked a;
    ask(&a, version);
    turn_until(&a.is_done);
    ck_assert_msg(a.get.rc == 0, "%s", err_text(&a.get.err));
    return a.get.box;
}

struct described {
    struct wh_op op;
    bool is_done;
};

static void on_described(struct wh_op *op)
{
    ((struct described *)op->data)->is_done = true;
}

/* Number of columns of a table path; the error's code when it has none. */
static int columns_of(struct sandbox *b, const char *path, const char **why)
{
    struct described d = {.op = {.wh = sandbox_wh(b), .arena = &f.arena, .done = on_described}};
    d.op.data = &d;
    sandbox_wh(b)->ops->catalog_tables(&d.op, &path, 1);
    turn_until(&d.is_done);
    ck_assert_int_eq(d.op.rc, 0);
    *why = d.op.facts.schema_errors[0];
    return (int)d.op.facts.schemas[0].n;
}

START_TEST(models_find_data_files_by_their_relative_names_and_nothing_else)
{
    const char *why;
    add_file("orders.csv", "id,amount\n1,2\n");
    add_file("deep/er/more.csv", "a,b,c\n1,2,3\n");
    write_text(in(f.base, "secret.csv"), "password\nx\n");
    struct sandbox *b = get("1111");

    ck_assert_int_eq(columns_of(b, "orders.csv", &why), 2);
    ck_assert_int_eq(columns_of(b, "deep/er/more.csv", &why), 3);
    ck_assert_int_eq(columns_of(b, in(f.base, "secret.csv"), &why), 0);
    ck_assert_ptr_nonnull(why);
    ck_assert_int_eq(columns_of(b, "../../../secret.csv", &why), 0);
    ck_assert_int_eq(columns_of(b, "/etc/passwd", &why), 0);

    sandbox_put(b);
}
END_TEST

START_TEST(working_directory_is_empty_and_files_cannot_be_written)
{
    char here[256];
    add_file("orders.csv", "id,amount\n1,2\n");
    struct sandbox *b = get("1111");

    ck_assert_ptr_nonnull(getcwd(here, sizeof(here)));
    ck_assert_str_eq(here, in(f.dir, "empty"));
    ck_assert_int_ne(rmdir(in(f.dir, "none")), 0);
    ck_assert_int_eq(rmdir(here), 0); /* it is empty */
    ck_assert_int_eq(mkdir(here, 0700), 0);

    sandbox_put(b);
}
END_TEST

START_TEST(all_who_ask_at_once_share_one_instance)
{
    struct asked a[3];
    add_file("orders.csv", "id,amount\n1,2\n");
    for (size_t i = 0; i < 3; i++) {
        ask(&a[i], i == 2 ? "2222" : "1111");
    }
    for (size_t i = 0; i < 3; i++) {
        turn_until(&a[i].is_done);
        ck_assert_int_eq(a[i].get.rc, 0);
    }
    ck_assert_ptr_eq(a[0].get.box, a[1].get.box);
    ck_assert_ptr_ne(a[0].get.box, a[2].get.box);
    for (size_t i = 0; i < 3; i++) {
        sandbox_put(a[i].get.box);
    }
}
END_TEST

START_TEST(unused_instance_is_closed_and_its_files_go)
{
    add_file("orders.csv", "id,amount\n1,2\n");
    sandbox_put(get("1111"));
    int64_t end = loop_now(f.loop).v + PATIENCE_MS;
    while (sandboxes_open(f.set) > 0) {
        ck_assert_int_lt(loop_now(f.loop).v, end);
        (void)loop_turn(f.loop, MS(20));
    }
    const char *why;
    struct sandbox *again = get("1111");
    ck_assert_int_eq(columns_of(again, "orders.csv", &why), 2);
    sandbox_put(again);
}
END_TEST

START_TEST(missing_or_other_data_file_is_told_by_name_leaves_the_others_and_can_be_mended)
{
    const char *why;
    add_file("orders.csv", "id,amount\n1,2\n");
    add_file("gone.csv", "a\n1\n");
    char hex[65];
    hex_encode(f.files[1].sha256.b, 32, hex);
    char *path = arena_printf(&f.arena, "%s/%.2s/%s", f.store, hex, hex);
    ck_assert_int_eq(unlink(path), 0);

    struct sandbox *b = get("1111");
    ck_assert_int_eq(columns_of(b, "orders.csv", &why), 2);
    ck_assert_int_eq(columns_of(b, "gone.csv", &why), 0);
    ck_assert_ptr_nonnull(strstr(why, "'gone.csv' is not in the package store"));
    sandbox_put(b);

    write_text(path, "truncated?");
    b = get("2222");
    ck_assert_int_eq(columns_of(b, "gone.csv", &why), 0);
    ck_assert_ptr_nonnull(strstr(why, "'gone.csv' has 10 bytes"));
    sandbox_put(b);

    write_text(path, "a\n1\n");
    b = get("3333");
    ck_assert_int_eq(columns_of(b, "gone.csv", &why), 1);
    sandbox_put(b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sandbox");
    TCase *tc = tcase_create("sandbox");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, models_find_data_files_by_their_relative_names_and_nothing_else);
    tcase_add_test(tc, working_directory_is_empty_and_files_cannot_be_written);
    tcase_add_test(tc, all_who_ask_at_once_share_one_instance);
    tcase_add_test(tc, unused_instance_is_closed_and_its_files_go);
    tcase_add_test(tc,
                   missing_or_other_data_file_is_told_by_name_leaves_the_others_and_can_be_mended);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
