/* Making and removing generations. */
#include "common/generation/generation.h"

#include "common/generation/generation_io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int generation_path(struct arena *a, const struct generation_ref *r, char **out, struct err *e)
{
    if (!generation_is_dataset(r->dataset) || !generation_is_id(r->id)) {
        return err_set(e, ERR_PATH, "'%s/%s' is no name of a generation", r->dataset, r->id);
    }
    *out = arena_printf(a, "%s/%s/%s", r->root, r->dataset, r->id);
    return 0;
}

char *generation_file_path(struct arena *a, const struct generation_ref *r, const char *file)
{
    return arena_printf(a, "%s/%s/%s/%s", r->root, r->dataset, r->id, file);
}

/* ---- removing ---- */

struct remover {
    const char *dir;
    struct err *err;
};

static int remove_file(void *data, const char *name)
{
    struct remover *r = data;
    auto_free char *path = xasprintf("%s/%s", r->dir, name);
    if (unlink(path) == 0 || errno == ENOENT) {
        return 0;
    }
    /* DuckDB spills into folders only elsewhere: a folder in here was made by hand. */
    return gen_io_error(r->err, "remove", path);
}

static int drop_dir(const char *path, struct err *e)
{
    struct stat st;
    if (lstat(path, &st) < 0) {
        return errno == ENOENT ? 0 : gen_io_error(e, "look at", path);
    }
    if (!S_ISDIR(st.st_mode)) {
        return err_set(e, ERR_GENERATION, "'%s' is no directory; remove it by hand", path);
    }
    /* First what makes it a generation: a crash in between leaves none that looks whole. */
    auto_free char *manifest = xasprintf("%s/" GENERATION_MANIFEST, path);
    if (unlink(manifest) < 0 && errno != ENOENT) {
        return gen_io_error(e, "remove", manifest);
    }
    struct remover r = {path, e};
    int rc = gen_io_walk(path, remove_file, &r, e);
    if (rc < 0) {
        return rc;
    }
    return rmdir(path) == 0 || errno == ENOENT ? 1 : gen_io_error(e, "remove", path);
}

int generation_drop(const struct generation_ref *r, struct err *e)
{
    struct arena a;
    char *path;
    arena_init(&a);
    int rc = generation_path(&a, r, &path, e);
    if (rc == 0) {
        rc = drop_dir(path, e);
    }
    arena_fini(&a);
    return rc;
}

/* ---- making ---- */

/* A sweep may take the empty dataset in between. */
static int make_dirs(const struct generation_ref *r, const char *path, struct err *e)
{
    auto_free char *dataset = xasprintf("%s/%s", r->root, r->dataset);
    int rc, tries = 0;
    do {
        rc = gen_io_mkdir(r->root, dataset, e);
        rc = rc < 0 ? rc : gen_io_mkdir(dataset, path, e);
    } while (rc == ERR_NOT_FOUND && ++tries < 10);
    return rc;
}

int generation_begin(const struct generation_ref *r, uint64_t token, struct err *e)
{
    struct arena a;
    char *path;
    arena_init(&a);
    int rc = generation_path(&a, r, &path, e);
    if (rc == 0) {
        rc = drop_dir(path, e);
    }
    rc = rc < 0 ? rc : make_dirs(r, path, e);
    if (rc == 0) {
        char text[24];
        int len = snprintf(text, sizeof text, "%" PRIu64, token);
        rc = gen_io_put(path, GENERATION_ATTEMPT, slice_make(text, (size_t)len), e);
    }
    arena_fini(&a);
    return rc;
}

/* Size and hash of a data file, which is on the disk when this returns. */
static int settle_file(const char *path, struct generation_file *f, struct err *e)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return gen_io_error(e, "open", path);
    }
    bool is_on_disk = gen_io_hash(fd, &f->sum, &f->bytes) == 0 && fsync(fd) == 0;
    int rc = is_on_disk ? 0 : gen_io_error(e, "write", path);
    (void)close(fd);
    return rc;
}

struct lister {
    struct arena *a;
    struct generation_manifest *m;
    size_t cap;
};

static int add_file(void *data, const char *name)
{
    struct lister *l = data;
    if (!generation_is_data_file(name)) {
        return 0;
    }
    if (l->m->n_files == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 8;
        struct generation_file *bigger = arena_zalloc(l->a, cap * sizeof(*bigger));
        if (l->cap > 0) {
            memcpy(bigger, l->m->files, l->cap * sizeof(*bigger));
        }
        l->m->files = bigger;
        l->cap = cap;
    }
    l->m->files[l->m->n_files++].name = arena_strdup(l->a, name);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct generation_file *)a)->name,
                  ((const struct generation_file *)b)->name);
}

static int settle_files(struct arena *a, const char *dir, struct generation_manifest *m,
                        struct err *e)
{
    struct lister l = {.a = a, .m = m};
    m->files = NULL;
    m->n_files = 0;
    m->bytes = 0;
    int rc = gen_io_walk(dir, add_file, &l, e);
    if (rc == 0 && m->n_files == 0) {
        return err_set(e, ERR_GENERATION, "there is no data file in '%s'", dir);
    }
    if (rc == 0) {
        qsort(m->files, m->n_files, sizeof(*m->files), by_name);
    }
    for (size_t i = 0; rc == 0 && i < m->n_files; i++) {
        rc = settle_file(arena_printf(a, "%s/%s", dir, m->files[i].name), &m->files[i], e);
        m->bytes += m->files[i].bytes;
    }
    return rc;
}

int generation_publish(struct arena *a, const struct generation_ref *r,
                       struct generation_manifest *m, struct err *e)
{
    char *path;
    int rc = generation_path(a, r, &path, e);
    if (rc < 0) {
        return rc;
    }
    m->dataset = r->dataset;
    m->id = r->id;
    rc = settle_files(a, path, m, e);
    if (rc == 0) {
        rc = gen_io_sync_dir(path, e);
    }
    if (rc < 0) {
        return rc;
    }
    auto_buf struct buf text = {0};
    generation_manifest_print(m, &text);
    return gen_io_put(path, GENERATION_MANIFEST, buf_slice(&text), e);
}

/* ---- clearing up ---- */

struct clearer {
    const char *dir;
    const uint64_t *tokens; /* discard */
    size_t n_tokens;
    const struct generation_record *record; /* sweep */
    int removed;
    struct err *err;
};

static int clear_one(struct clearer *c, const char *name)
{
    auto_free char *path = xasprintf("%s/%s", c->dir, name);
    int rc = drop_dir(path, c->err);
    c->removed += rc > 0;
    return rc < 0 ? rc : 0;
}

static bool is_of_attempt(const struct clearer *c, const char *name)
{
    auto_free char *path = xasprintf("%s/%s/" GENERATION_ATTEMPT, c->dir, name);
    auto_buf struct buf text = {0};
    struct err e;
    uint64_t token;
    if (!generation_is_id(name) || gen_io_get(path, 32, &text, &e) < 0 ||
        slice_to_u64(buf_slice(&text), &token) < 0) {
        return false;
    }
    for (size_t i = 0; i < c->n_tokens; i++) {
        if (c->tokens[i] == token) {
            return true;
        }
    }
    return false;
}

static int discard_one(void *data, const char *name)
{
    struct clearer *c = data;
    return is_of_attempt(c, name) ? clear_one(c, name) : 0;
}

static int sweep_one(void *data, const char *name)
{
    struct clearer *c = data;
    return generation_is_orphan(name, c->record) ? clear_one(c, name) : 0;
}

static int clear(const char *root, const char *dataset, struct clearer *c,
                 int (*each)(void *data, const char *name))
{
    if (!generation_is_dataset(dataset)) {
        return err_set(c->err, ERR_PATH, "'%s' is no name of a dataset", dataset);
    }
    auto_free char *dir = xasprintf("%s/%s", root, dataset);
    c->dir = dir;
    int rc = gen_io_walk(dir, each, c, c->err);
    return rc < 0 ? rc : c->removed;
}

int generation_discard(const char *root, const char *dataset, const uint64_t *tokens, size_t n,
                       struct err *e)
{
    struct clearer c = {.tokens = tokens, .n_tokens = n, .err = e};
    return n > 0 ? clear(root, dataset, &c, discard_one) : 0;
}

int generation_sweep(const char *root, const char *dataset, const struct generation_record *record,
                     struct err *e)
{
    struct clearer c = {.record = record, .err = e};
    int rc = clear(root, dataset, &c, sweep_one);
    auto_free char *dir = xasprintf("%s/%s", root, dataset);
    if (rc >= 0) {
        (void)rmdir(dir); /* it stays while anything is in it */
    }
    return rc;
}
