/* What lies at a path of this host: a directory, or an archive as one file. */
#include "common/base/buf.h"
#include "services/planner/package/package.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARCHIVE_FILE_MAX (UINT64_C(1) << 30)

static int read_file(int fd, const char *path, struct buf *out, struct err *e)
{
    char piece[16 * 1024];
    for (;;) {
        ssize_t n = read(fd, piece, sizeof piece);
        if (n == 0) {
            return 0;
        }
        if (n < 0 && errno != EINTR) {
            return err_set(e, ERR_IO, "cannot read the archive '%s': %s", path, strerror(errno));
        }
        if (n > 0) {
            buf_add(out, piece, (size_t)n);
        }
        if (out->len > ARCHIVE_FILE_MAX) {
            return err_set(e, ERR_ARCHIVE, "the archive '%s' is larger than 1 GiB", path);
        }
    }
}

int package_read_local(struct arena *a, const char *path, const struct package_limits *lim,
                       struct package_files *out, struct err *e)
{
    /* Not blocking: a named pipe would wait for its writer. */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0) {
            close(fd);
        }
        return package_read_dir(a, path, lim, out, e);
    }
    auto_buf struct buf bytes = {0};
    int rc = read_file(fd, path, &bytes, e);
    close(fd);
    return rc < 0 ? rc : package_read_archive(a, buf_slice(&bytes), lim, out, e);
}
