#include "common/generation/generation_io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int gen_io_error(struct err *e, const char *what, const char *path)
{
    int code = errno == ENOENT ? ERR_NOT_FOUND : ERR_IO;
    return err_set(e, code, "cannot %s '%s': %s", what, path, strerror(errno));
}

static int write_all(int fd, struct slice text)
{
    while (text.len > 0) {
        ssize_t n = write(fd, text.p, text.len);
        if (n < 0 && errno != EINTR) {
            return -1;
        }
        if (n > 0) {
            text = slice_make(text.p + n, text.len - (size_t)n);
        }
    }
    return 0;
}

/* Closed in any case; errno is of the first thing that failed. */
static int write_through(int fd, struct slice text)
{
    int rc = write_all(fd, text) < 0 || fsync(fd) < 0 ? -1 : 0;
    int why = errno;
    if (close(fd) < 0 && rc == 0) {
        return -1;
    }
    errno = why;
    return rc;
}

int gen_io_sync_dir(const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return gen_io_error(e, "open", path);
    }
    int rc = fsync(fd) < 0 ? gen_io_error(e, "write", path) : 0;
    (void)close(fd);
    return rc;
}

int gen_io_put(const char *dir, const char *name, struct slice text, struct err *e)
{
    auto_free char *path = xasprintf("%s/%s", dir, name);
    auto_free char *tmp = xasprintf("%s/%s.tmp", dir, name);
    (void)unlink(tmp);
    int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0) {
        return gen_io_error(e, "create", tmp);
    }
    if (write_through(fd, text) < 0 || rename(tmp, path) < 0) {
        int rc = gen_io_error(e, "write", path);
        (void)unlink(tmp);
        return rc;
    }
    return gen_io_sync_dir(dir, e);
}

static int read_all(int fd, size_t most, struct buf *out)
{
    for (;;) {
        buf_reserve(out, 65536);
        ssize_t n = read(fd, out->p + out->len, 65536);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? -1 : 0;
        }
        out->len += (size_t)n;
        out->p[out->len] = '\0';
        if (out->len > most) {
            errno = EFBIG;
            return -1;
        }
    }
}

int gen_io_get(const char *path, size_t most, struct buf *out, struct err *e)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return gen_io_error(e, "open", path);
    }
    int rc = 0;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        rc = err_set(e, ERR_GENERATION, "'%s' is no ordinary file", path);
    } else if (read_all(fd, most, out) < 0) {
        rc = gen_io_error(e, "read", path);
    }
    (void)close(fd);
    return rc;
}

int gen_io_mkdir(const char *parent, const char *path, struct err *e)
{
    if (mkdir(path, 0755) == 0) {
        return gen_io_sync_dir(parent, e);
    }
    return errno == EEXIST ? 0 : gen_io_error(e, "make the directory", path);
}

int gen_io_walk(const char *path, int (*each)(void *data, const char *name), void *data,
                struct err *e)
{
    DIR *dir = opendir(path);
    if (!dir) {
        return errno == ENOENT ? 0 : gen_io_error(e, "list", path);
    }
    int rc = 0;
    struct dirent *entry;
    while (rc >= 0 && (entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            rc = each(data, entry->d_name);
        }
    }
    (void)closedir(dir);
    return rc < 0 ? rc : 0;
}

int gen_io_hash(int fd, struct sha256 *sum, uint64_t *bytes)
{
    auto_free char *piece = xmalloc(1 << 20);
    struct sha256_run *run = sha256_start();
    ssize_t n;
    *bytes = 0;
    while ((n = read(fd, piece, 1 << 20)) > 0 || (n < 0 && errno == EINTR)) {
        if (n > 0) {
            sha256_add(run, piece, (size_t)n);
            *bytes += (uint64_t)n;
        }
    }
    *sum = sha256_finish(run);
    return n < 0 ? -1 : 0;
}
