#include "services/planner/package/package_intake.h"

#include "common/base/map.h"
#include "services/planner/package/package_path.h"
#include "services/planner/package/package_spill.h"
#include <stdio.h>

enum { TEXT_MAX = 16 << 20 };

struct intake_file {
    const char *path;
    enum package_kind kind;
    struct buf held;        /* until it grows too large for memory */
    struct spill spill;     /* then here */
    struct sha256_run *run; /* NULL once ended */
    struct sha256 sha256;
    uint64_t bytes;
    struct slice content; /* in the arena once ended */
};

void intake_init(struct intake *in, struct arena *a, const struct package_limits *lim, int refusal)
{
    *in = (struct intake){.arena = a, .lim = *lim, .refusal = refusal};
    in->lim.small_bytes = lim->small_bytes ? lim->small_bytes : UINT64_C(1) << 20;
    in->lim.archive_bytes = lim->archive_bytes ? lim->archive_bytes : UINT64_C(1) << 30;
    in->lim.archive_ratio = lim->archive_ratio ? lim->archive_ratio : 200;
    in->lim.files = lim->files ? lim->files : 10000;
}

void intake_fini(struct intake *in)
{
    for (size_t i = 0; i < in->n; i++) {
        buf_fini(&in->files[i].held);
        spill_drop(&in->files[i].spill);
        if (in->files[i].run) {
            sha256_finish(in->files[i].run);
        }
    }
    free(in->files);
    in->files = NULL;
    in->n = in->cap = 0;
}

int intake_begin(struct intake *in, const char *path, struct err *e)
{
    must(!in->open);
    if (in->n == in->lim.files) {
        return err_set(e, in->refusal, "the package has more than %u files", in->lim.files);
    }
    if (in->n == in->cap) {
        in->cap = in->cap ? 2 * in->cap : 64;
        in->files = xrealloc(in->files, in->cap * sizeof *in->files);
    }
    struct intake_file *f = &in->files[in->n++];
    *f = (struct intake_file){.path = arena_strdup(in->arena, path), .spill = {.fd = -1}};
    f->kind = package_kind_of(slice_of(path));
    f->run = sha256_start();
    in->open = true;
    return 0;
}

static uint64_t memory_limit(const struct intake *in, const struct intake_file *f)
{
    bool text = f->kind == PACKAGE_MODEL || f->kind == PACKAGE_JSON;
    return text && in->lim.small_bytes < TEXT_MAX ? (uint64_t)TEXT_MAX : in->lim.small_bytes;
}

static int start_spill(struct intake *in, struct intake_file *f, struct err *e)
{
    if (f->kind == PACKAGE_MODEL || slice_is(slice_of(f->path), "publisher.json")) {
        return err_set(e, in->refusal, "'%s' is larger than %d MiB", f->path, TEXT_MAX >> 20);
    }
    if (!in->lim.package_store) {
        return err_set(
            e, in->refusal,
            "'%s' is larger than %llu bytes and no package_store is configured to keep it in",
            f->path, (unsigned long long)in->lim.small_bytes);
    }
    int rc = spill_open(&f->spill, in->arena, in->lim.package_store, e);
    if (rc < 0) {
        return rc;
    }
    rc = spill_write(&f->spill, buf_slice(&f->held), e);
    in->held -= f->held.len;
    buf_fini(&f->held);
    return rc;
}

int intake_bytes(struct intake *in, struct slice bytes, struct err *e)
{
    must(in->open);
    struct intake_file *f = &in->files[in->n - 1];
    sha256_add(f->run, bytes.p, bytes.len);
    f->bytes += bytes.len;
    if (!f->spill.temp && f->bytes > memory_limit(in, f)) {
        int rc = start_spill(in, f, e);
        if (rc < 0) {
            return rc;
        }
    }
    if (f->spill.temp) {
        return spill_write(&f->spill, bytes, e);
    }
    in->held += bytes.len;
    if (in->held > in->lim.archive_bytes) {
        return err_set(e, in->refusal, "the package is larger than %llu bytes",
                       (unsigned long long)in->lim.archive_bytes);
    }
    buf_add_slice(&f->held, bytes);
    return 0;
}

int intake_end(struct intake *in, struct err *e)
{
    must(in->open);
    in->open = false;
    struct intake_file *f = &in->files[in->n - 1];
    f->sha256 = sha256_finish(f->run);
    f->run = NULL;
    if (f->spill.temp) {
        return spill_sync(&f->spill, e);
    }
    /* NUL-terminated, and never a NULL pointer: that means "not held". */
    f->content = slice_make(arena_slice(in->arena, buf_slice(&f->held)), f->held.len);
    buf_fini(&f->held);
    return 0;
}

void intake_strip_top(struct intake *in)
{
    struct slice top = SLICE_NONE;
    for (size_t i = 0; i < in->n; i++) {
        struct slice rest = slice_of(in->files[i].path), head;
        bool nested = slice_cut(&rest, '/', &head) && rest.len > 0;
        if (!nested || (i > 0 && !slice_eq(head, top))) {
            return;
        }
        top = head;
    }
    for (size_t i = 0; i < in->n; i++) {
        in->files[i].path += top.len + 1;
    }
}

/* Twice the same path, or a path that is a directory of another one: it could not be laid out on
 * disk. */
static int check_paths(struct intake *in, struct err *e)
{
    struct map seen;
    map_init(&seen);
    int rc = 0;
    for (size_t i = 0; i < in->n && rc == 0; i++) {
        if (map_put(&seen, slice_of(in->files[i].path), in)) {
            rc = err_set(e, in->refusal, "'%s' stands in the package twice", in->files[i].path);
        }
    }
    for (size_t i = 0; i < in->n && rc == 0; i++) {
        const char *path = in->files[i].path;
        for (const char *at = strchr(path, '/'); at && rc == 0; at = strchr(at + 1, '/')) {
            if (map_get(&seen, slice_make(path, (size_t)(at - path)))) {
                rc = err_set(e, in->refusal, "'%.*s' is a file and a directory at once",
                             (int)(at - path), path);
            }
        }
    }
    map_fini(&seen);
    return rc;
}

static int by_path(const void *a, const void *b)
{
    const struct intake_file *left = a;
    const struct intake_file *right = b;
    return strcmp(left->path, right->path);
}

static struct sha256 version_of(const struct intake *in)
{
    struct sha256_run *run = sha256_start();
    for (size_t i = 0; i < in->n; i++) {
        const struct intake_file *f = &in->files[i];
        char size[32];
        int n = snprintf(size, sizeof size, "%llu", (unsigned long long)f->bytes);
        sha256_add(run, f->path, strlen(f->path) + 1);
        sha256_add(run, size, (size_t)n + 1);
        sha256_add(run, f->sha256.b, sizeof f->sha256.b);
    }
    return sha256_finish(run);
}

/* DuckDB reads files: small ones go there as well. */
static int spill_small(struct intake *in, struct intake_file *f, struct err *e)
{
    int rc = spill_open(&f->spill, in->arena, in->lim.package_store, e);
    rc = rc < 0 ? rc : spill_write(&f->spill, f->content, e);
    rc = rc < 0 ? rc : spill_sync(&f->spill, e);
    f->content = SLICE_NONE;
    return rc;
}

static int keep_spilled(struct intake *in, struct err *e)
{
    for (size_t i = 0; i < in->n; i++) {
        struct intake_file *f = &in->files[i];
        bool is_data = package_is_data(slice_of(f->path)) && in->lim.package_store;
        int rc = is_data && !f->spill.temp ? spill_small(in, f, e) : 0;
        if (rc < 0) {
            return rc;
        }
        rc = f->spill.temp ? spill_keep(&f->spill, in->arena, in->lim.package_store, &f->sha256, e)
                           : 0;
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

int intake_finish(struct intake *in, struct package_files *out, struct err *e)
{
    must(!in->open);
    int rc = check_paths(in, e);
    rc = rc < 0 ? rc : keep_spilled(in, e);
    if (rc < 0) {
        return rc;
    }
    if (in->n > 0) {
        qsort(in->files, in->n, sizeof *in->files, by_path);
    }
    *out = (struct package_files){.n = in->n, .version = version_of(in)};
    out->items = arena_zalloc(in->arena, (in->n + 1) * sizeof *out->items);
    for (size_t i = 0; i < in->n; i++) {
        const struct intake_file *f = &in->files[i];
        out->items[i] = (struct package_file){.path = f->path,
                                              .content = f->content,
                                              .bytes = f->bytes,
                                              .sha256 = f->sha256,
                                              .is_data = package_is_data(slice_of(f->path))};
        if (slice_is(slice_of(f->path), "publisher.json")) {
            out->manifest = f->content.p;
        }
    }
    return 0;
}
