#include "services/planner/package/package_spill.h"

#include "services/planner/package/package.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int io_fault(struct err *e, const char *what, const char *path)
{
    return err_set(e, ERR_IO, "package store: cannot %s '%s': %s", what, path, strerror(errno));
}

int spill_open(struct spill *s, struct arena *a, const char *store, struct err *e)
{
    uint8_t random[16];
    char hex[2 * sizeof random + 1];
    random_bytes(random, sizeof random);
    hex_encode(random, sizeof random, hex);
    const char *path = arena_printf(a, "%s/.new-%s", store, hex);
    s->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (s->fd < 0) {
        return io_fault(e, "make", path);
    }
    s->temp = path;
    return 0;
}

int spill_write(struct spill *s, struct slice bytes, struct err *e)
{
    for (size_t at = 0; at < bytes.len;) {
        ssize_t n = write(s->fd, bytes.p + at, bytes.len - at);
        if (n < 0 && errno != EINTR) {
            return io_fault(e, "write", s->temp);
        }
        at += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

int spill_sync(struct spill *s, struct err *e)
{
    /* Packages are never changed where they lie: readers of a generation must find the same bytes.
     */
    if (fchmod(s->fd, 0444) != 0 || fsync(s->fd) != 0) {
        return io_fault(e, "write", s->temp);
    }
    close(s->fd);
    s->fd = -1;
    return 0;
}

static int sync_dir(const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 || fsync(fd) != 0 ? io_fault(e, "sync", path) : 0;
    if (fd >= 0) {
        close(fd);
    }
    return rc;
}

int spill_keep(struct spill *s, struct arena *a, const char *store, const struct sha256 *id,
               struct err *e)
{
    const char *path = package_store_path(a, store, id);
    const char *dir = arena_strndup(a, path, (size_t)(strrchr(path, '/') - path));
    if (mkdir(dir, 0755) != 0 && errno != EEXIST) {
        return io_fault(e, "make", dir);
    }
    struct stat had, made;
    bool is_whole =
        stat(path, &had) == 0 && stat(s->temp, &made) == 0 && had.st_size == made.st_size;
    if (is_whole) { /* else someone else changed it, and this heals it */
        spill_drop(s);
        return 0;
    }
    if (rename(s->temp, path) != 0) {
        return io_fault(e, "move a file to", path);
    }
    s->temp = NULL;
    return sync_dir(dir, e);
}

void spill_drop(struct spill *s)
{
    if (s->fd >= 0) {
        close(s->fd);
        s->fd = -1;
    }
    if (s->temp) {
        unlink(s->temp);
        s->temp = NULL;
    }
}

const char *package_store_path(struct arena *a, const char *package_store, const struct sha256 *id)
{
    char hex[2 * sizeof id->b + 1];
    hex_encode(id->b, sizeof id->b, hex);
    return arena_printf(a, "%s/%.2s/%s", package_store, hex, hex);
}
