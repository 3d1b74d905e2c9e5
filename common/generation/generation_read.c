/* Reading generations back: lists, manifests, and whether the files are those of the manifest. */
#include "common/generation/generation.h"
#include "common/generation/generation_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST_MOST ((size_t)64 * 1024 * 1024)
#define TOUCHED_MOST (UINT64_C(1) << 30)

/* ---- lists ---- */

struct collector {
    struct arena *a;
    struct generation_names *out;
    size_t cap;
    bool (*wanted)(const char *name);
};

static int collect(void *data, const char *name)
{
    struct collector *c = data;
    if (!c->wanted(name)) {
        return 0;
    }
    if (c->out->n == c->cap) {
        size_t cap = c->cap ? c->cap * 2 : 32;
        const char **bigger = arena_zalloc(c->a, cap * sizeof(*bigger));
        if (c->cap > 0) {
            memcpy(bigger, c->out->items, c->cap * sizeof(*bigger));
        }
        c->out->items = bigger;
        c->cap = cap;
    }
    c->out->items[c->out->n++] = arena_strdup(c->a, name);
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int list(struct arena *a, const char *dir, bool (*wanted)(const char *name),
                struct generation_names *out, struct err *e)
{
    struct collector c = {.a = a, .out = out, .wanted = wanted};
    *out = (struct generation_names){0};
    int rc = gen_io_walk(dir, collect, &c, e);
    if (rc == 0 && out->n > 0) {
        qsort(out->items, out->n, sizeof(*out->items), by_text);
    }
    return rc;
}

int generation_list(struct arena *a, const char *root, const char *dataset,
                    struct generation_names *out, struct err *e)
{
    if (!generation_is_dataset(dataset)) {
        return err_set(e, ERR_PATH, "'%s' is no name of a dataset", dataset);
    }
    auto_free char *dir = xasprintf("%s/%s", root, dataset);
    return list(a, dir, generation_is_id, out, e);
}

int generation_datasets(struct arena *a, const char *root, struct generation_names *out,
                        struct err *e)
{
    return list(a, root, generation_is_dataset, out, e);
}

/* ---- manifests ---- */

int generation_read(struct arena *a, const struct generation_ref *r,
                    struct generation_manifest *out, struct err *e)
{
    char *path;
    int rc = generation_path(a, r, &path, e);
    if (rc < 0) {
        return rc;
    }
    auto_free char *file = xasprintf("%s/" GENERATION_MANIFEST, path);
    auto_buf struct buf text = {0};
    rc = gen_io_get(file, MANIFEST_MOST, &text, e);
    if (rc < 0) {
        return rc;
    }
    struct generation_manifest m;
    rc = generation_manifest_parse(a, buf_slice(&text), &m, e);
    if (rc < 0) {
        (void)err_wrap(e, "generation '%s'", path);
        return rc;
    }
    if (strcmp(m.id, r->id) != 0 || strcmp(m.dataset, r->dataset) != 0) {
        return err_set(
            e, ERR_GENERATION,
            "generation '%s': manifest.json is of generation %s of %s; the directory was "
            "moved or copied by hand",
            path, m.id, m.dataset);
    }
    *out = m;
    return 0;
}

/* ---- files ---- */

static int hash_file(const char *path, struct sha256 *out, struct err *e)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return gen_io_error(e, "open", path);
    }
    uint64_t bytes;
    int rc = gen_io_hash(fd, out, &bytes) < 0 ? gen_io_error(e, "read", path) : 0;
    (void)close(fd);
    return rc;
}

static int64_t ns_of(struct timespec t)
{
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

struct check {
    enum generation_depth depth;
    struct stat manifest;
    uint64_t touched; /* bytes of files that someone touched after it was written */
};

static bool is_touched(const struct check *c, const struct stat *st)
{
    return ns_of(st->st_ctim) > ns_of(c->manifest.st_ctim);
}

static bool is_rewritten(const struct check *c, const struct stat *st)
{
    return ns_of(st->st_mtim) > ns_of(c->manifest.st_mtim);
}

static int other_file(struct err *e, const char *path, const char *how)
{
    return err_set(e, ERR_GENERATION, "'%s' is not the file that was built: %s", path, how);
}

static int verify_size(struct check *c, const char *path, const struct generation_file *f,
                       struct err *e)
{
    struct stat st;
    if (lstat(path, &st) < 0) {
        return gen_io_error(e, "find", path);
    }
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != f->bytes) {
        return err_set(e, ERR_GENERATION,
                       "'%s' is not the file that was built: %llu bytes instead of %llu", path,
                       (unsigned long long)st.st_size, (unsigned long long)f->bytes);
    }
    c->touched += is_touched(c, &st) ? f->bytes : 0;
    return 0;
}

static int verify_content(const struct check *c, const char *path, const struct generation_file *f,
                          struct err *e)
{
    struct stat st;
    if (lstat(path, &st) < 0) {
        return gen_io_error(e, "find", path);
    }
    if (c->depth == GENERATION_TOUCHED && !is_touched(c, &st)) {
        return 0;
    }
    if (c->depth == GENERATION_TOUCHED && c->touched > TOUCHED_MOST) {
        return is_rewritten(c, &st) ? other_file(e, path, "it was written later") : 0;
    }
    struct sha256 sum;
    int rc = hash_file(path, &sum, e);
    bool same = rc == 0 && memcmp(sum.b, f->sum.b, sizeof sum.b) == 0;
    return rc < 0 || same ? rc : other_file(e, path, "its hash is another");
}

struct counter {
    size_t n;
};

static int count_data(void *data, const char *name)
{
    ((struct counter *)data)->n += generation_is_data_file(name);
    return 0;
}

int generation_verify(const struct generation_ref *r, const struct generation_manifest *m,
                      enum generation_depth depth, struct err *e)
{
    struct arena a;
    struct counter there = {0};
    char *path;
    arena_init(&a);
    struct check c = {.depth = depth};
    int rc = generation_path(&a, r, &path, e);
    if (rc == 0) {
        const char *manifest = arena_printf(&a, "%s/" GENERATION_MANIFEST, path);
        rc = lstat(manifest, &c.manifest) < 0 ? gen_io_error(e, "find", manifest) : 0;
    }
    for (size_t i = 0; rc == 0 && i < m->n_files; i++) {
        rc = verify_size(&c, generation_file_path(&a, r, m->files[i].name), &m->files[i], e);
    }
    for (size_t i = 0; rc == 0 && i < m->n_files; i++) {
        rc = verify_content(&c, generation_file_path(&a, r, m->files[i].name), &m->files[i], e);
    }
    if (rc == 0) {
        rc = gen_io_walk(path, count_data, &there, e);
    }
    if (rc == 0 && there.n != m->n_files) {
        rc = err_set(e, ERR_GENERATION,
                     "generation '%s' has %zu data files and its manifest %zu; the directory was "
                     "changed by hand",
                     path, there.n, m->n_files);
    }
    arena_fini(&a);
    return rc;
}
