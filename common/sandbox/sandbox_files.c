#include "common/sandbox/sandbox_files.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int io_fault(struct err *e, const char *what, const char *path)
{
    return err_set(e, ERR_IO, "sandbox: cannot %s '%s': %s", what, path, strerror(errno));
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)at;
    if (kind == FTW_DP) {
        (void)chmod(path, 0700);
    }
    return remove(path) != 0 && errno != ENOENT ? -1 : 0;
}

/* A directory without write permission keeps its entries from being removed by anyone but root. */
static int open_up(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)at;
    if (kind == FTW_D) {
        (void)chmod(path, 0700);
    }
    return 0;
}

int sandbox_remove(const char *dir, struct err *e)
{
    if (access(dir, F_OK) != 0 && errno == ENOENT) {
        return 0;
    }
    (void)nftw(dir, open_up, 16, FTW_PHYS);
    return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0 ? 0 : io_fault(e, "remove", dir);
}

static int copy_bytes(int from, int to)
{
    char room[1 << 16];
    for (;;) {
        ssize_t n = read(from, room, sizeof(room));
        if (n == 0) {
            return 0;
        }
        for (ssize_t at = 0; at < n;) {
            ssize_t w = write(to, room + at, (size_t)(n - at));
            if (w < 0 && errno != EINTR) {
                return -1;
            }
            at += w > 0 ? w : 0;
        }
        if (n < 0 && errno != EINTR) {
            return -1;
        }
    }
}

static int copy_file(const char *from, const char *to, struct err *e)
{
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    int rc = out < 0 || copy_bytes(in, out) != 0 ? io_fault(e, "copy a file to", to) : 0;
    if (in >= 0) {
        close(in);
    }
    if (out >= 0) {
        close(out);
    }
    return rc;
}

static char *store_path(struct arena *a, const char *package_store, const struct sha256 *id)
{
    char hex[2 * sizeof(id->b) + 1];
    hex_encode(id->b, sizeof(id->b), hex);
    return arena_printf(a, "%s/%.2s/%s", package_store, hex, hex);
}

static int make_parents(char *path, struct err *e)
{
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        int rc = mkdir(path, 0755) != 0 && errno != EEXIST ? io_fault(e, "make", path) : 0;
        *at = '/';
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int place(struct arena *a, const char *package_store, const char *dir,
                 const struct sandbox_file *f, struct err *e)
{
    if (access(arena_printf(a, "%s/%s", dir, f->path), F_OK) == 0) {
        return 0;
    }
    const char *from = store_path(a, package_store, &f->sha256);
    char *to = arena_printf(a, "%s/%s", dir, f->path);
    struct stat st;
    if (stat(from, &st) != 0) {
        return err_set(e, ERR_CONF,
                       "data file '%s' is not in the package store %s (%s): planner, builders and "
                       "gateways must share one directory",
                       f->path, package_store, strerror(errno));
    }
    if ((uint64_t)st.st_size != f->bytes) {
        return err_set(
            e, ERR_CONF,
            "data file '%s' has %lld bytes in the package store and had %llu when it was "
            "published: publish the package again",
            f->path, (long long)st.st_size, (unsigned long long)f->bytes);
    }
    int rc = make_parents(to, e);
    if (rc < 0 || link(from, to) == 0) {
        return rc;
    }
    return copy_file(from, to, e); /* another file system, or a file of another user */
}

int sandbox_lay_out(const char *package_store, const char *dir, const struct sandbox_file *files,
                    size_t n, struct err *missing, struct err *e)
{
    struct arena a;
    arena_init(&a);
    char *fresh = arena_printf(&a, "%s.new", dir);
    bool is_there = access(dir, F_OK) == 0;
    int rc = is_there ? 0 : sandbox_remove(fresh, e);
    if (rc == 0 && !is_there && mkdir(fresh, 0755) != 0) {
        rc = io_fault(e, "make", fresh);
    }
    struct err why;
    err_clear(missing);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = place(&a, package_store, is_there ? dir : fresh, &files[i], &why);
        if (rc == ERR_CONF) {
            *missing = why;
            rc = 0;
        } else if (rc < 0) {
            *e = why;
        }
    }
    if (rc == 0 && !is_there && rename(fresh, dir) != 0) {
        rc = io_fault(e, "make", dir);
    }
    if (rc < 0) {
        struct err ignored;
        (void)!sandbox_remove(fresh, &ignored);
    }
    arena_fini(&a);
    return rc < 0 ? rc : 0;
}
