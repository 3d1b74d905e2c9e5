#include "tests/unit/sandbox_fixture.h"
#include <check.h>

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct fx f;

char *in(const char *dir, const char *name)
{
    return arena_printf(&f.arena, "%s/%s", dir, name);
}

void write_text(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    ck_assert_ptr_nonnull(out);
    ck_assert_int_ge(fputs(text, out), 0);
    ck_assert_int_eq(fclose(out), 0);
}

/* Into the package store, as the planner keeps it. */
void add_file(const char *path, const char *text)
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

void sandbox_setup(void)
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

void turn_until(const bool *what)
{
    int64_t end = loop_now(f.loop).v + PATIENCE_MS;
    while (!*what) {
        ck_assert_int_lt(loop_now(f.loop).v, end);
        (void)loop_turn(f.loop, MS(20));
    }
}

void sandbox_teardown(void)
{
    sandboxes_close(f.set, on_closed, NULL);
    turn_until(&f.closed);
    sandboxes_free(f.set);
    loop_free(f.loop);
    ck_assert_int_eq(chdir("/"), 0);
    (void)nftw(f.base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    arena_fini(&f.arena);
}

static void on_done(struct sandbox_get *q)
{
    ((struct asked *)q->data)->is_done = true;
}

void asked_start(struct asked *a)
{
    a->is_done = false;
    a->get.done = on_done;
    a->get.data = a;
    sandbox_get_start(f.set, &a->get);
    ck_assert(!a->is_done);
}

struct sandbox *asked_box(struct asked *a)
{
    turn_until(&a->is_done);
    ck_assert_msg(a->get.rc == 0, "%s", err_text(&a->get.err));
    return a->get.box;
}

void ask(struct asked *a, const char *version)
{
    *a = (struct asked){.get = {.digest = "0123456789abcdef0123456789abcdef",
                                .version = version,
                                .files = f.files,
                                .n_files = f.n}};
    asked_start(a);
}

struct sandbox *get(const char *version)
{
    struct asked a;
    ask(&a, version);
    return asked_box(&a);
}

struct described {
    struct wh_op op;
    bool is_done;
};

static void on_described(struct wh_op *op)
{
    ((struct described *)op->data)->is_done = true;
}

static void describe(struct described *d, struct sandbox *b, const char *path)
{
    *d = (struct described){.op = {.wh = sandbox_wh(b), .arena = &f.arena, .done = on_described}};
    d->op.data = d;
    sandbox_wh(b)->ops->catalog_tables(&d->op, &path, 1);
    turn_until(&d->is_done);
}

int columns_of(struct sandbox *b, const char *path, const char **why)
{
    struct described d;
    describe(&d, b, path);
    ck_assert_int_eq(d.op.rc, 0);
    *why = d.op.facts.schema_errors[0];
    return (int)d.op.facts.schemas[0].n;
}

int refusal_of(struct sandbox *b, const char *path, struct err *e)
{
    struct described d;
    describe(&d, b, path);
    *e = d.op.err;
    return d.op.rc;
}
