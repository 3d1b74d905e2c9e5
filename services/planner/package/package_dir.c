#include "services/planner/package/package_intake.h"
#include "services/planner/package/package_path.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 32, PIECE = 64 * 1024 };

struct walk {
    struct intake *in;
    char root[PATH_MAX]; /* real path: what a link leads to must lie below */
    uint32_t entries;    /* directories count too: links could multiply them without end */
    char piece[PIECE];
};

static int read_file(struct walk *w, int fd, const char *path, struct err *e)
{
    int rc = intake_begin(w->in, path, e);
    ssize_t n = 1;
    while (rc == 0 && n != 0) {
        n = read(fd, w->piece, sizeof w->piece);
        if (n < 0 && errno != EINTR) {
            return err_set(e, ERR_IO, "cannot read '%s' in '%s': %s", path, w->root,
                           strerror(errno));
        }
        if (n > 0) {
            rc = intake_bytes(w->in, slice_make(w->piece, (size_t)n), e);
        }
    }
    return rc < 0 ? rc : intake_end(w->in, e);
}

static bool is_below(const char *root, const char *path)
{
    size_t n = strlen(root);
    return strncmp(path, root, n) == 0 &&
           (path[n] == '/' || path[n] == '\0' || strcmp(root, "/") == 0);
}

/* Opens what a link leads to, judged by what was opened, so that changing the link meanwhile gains
 * nothing. */
static int open_link(struct walk *w, int dir, const char *name, const char *path, struct stat *st,
                     struct err *e)
{
    int seen = openat(dir, name, O_PATH | O_CLOEXEC);
    if (seen < 0) {
        return err_set(e, ERR_PATH, "the link '%s' in '%s' leads nowhere", path, w->root);
    }
    char proc[64];
    char real[PATH_MAX];
    snprintf(proc, sizeof proc, "/proc/self/fd/%d", seen);
    ssize_t n = readlink(proc, real, sizeof real - 1);
    real[n > 0 ? n : 0] = '\0';
    int fd = -1;
    if (n <= 0 || !is_below(w->root, real)) {
        err_set(e, ERR_PATH, "the link '%s' leads out of the package '%s'", path, w->root);
    } else if (fstat(seen, st) != 0 || !(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode))) {
        err_set(e, ERR_PATH, "the link '%s' in '%s' leads to no file or directory", path, w->root);
    } else {
        fd = open(proc, O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            err_set(e, ERR_IO, "cannot open '%s' in '%s': %s", path, w->root, strerror(errno));
        }
    }
    close(seen);
    return fd >= 0 ? fd : e->code;
}

static int open_entry(struct walk *w, int dir, const char *name, const char *path, struct stat *st,
                      struct err *e)
{
    if (fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) != 0) {
        return err_set(e, ERR_IO, "cannot read '%s' in '%s': %s", path, w->root, strerror(errno));
    }
    if (S_ISLNK(st->st_mode)) {
        return open_link(w, dir, name, path, st, e);
    }
    if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode)) {
        return err_set(e, ERR_PATH, "'%s' in '%s' is a device, pipe or socket", path, w->root);
    }
    /* O_NONBLOCK: a pipe put there meanwhile must not hold us. */
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, st) != 0) {
        int why = errno;
        if (fd >= 0) {
            close(fd);
        }
        return err_set(e, ERR_IO, "cannot open '%s' in '%s': %s", path, w->root, strerror(why));
    }
    return fd;
}

static int read_dir(struct walk *w, int fd, const char *path, int depth, struct err *e);

static int read_entry(struct walk *w, int dir, const char *at, const char *name, int depth,
                      struct err *e)
{
    struct arena *a = w->in->arena;
    const char *path = *at ? arena_printf(a, "%s/%s", at, name) : arena_strdup(a, name);
    const char *fault = package_path_fault(slice_of(path));
    if (fault) {
        return err_set(e, ERR_PATH, "'%s' in '%s' %s", path, w->root, fault);
    }
    if (++w->entries > 2 * w->in->lim.files) {
        return err_set(e, ERR_PATH, "'%s' has more than %u files and directories", w->root,
                       2 * w->in->lim.files);
    }
    struct stat st;
    int fd = open_entry(w, dir, name, path, &st, e);
    if (fd < 0) {
        return fd;
    }
    if (S_ISDIR(st.st_mode)) {
        return read_dir(w, fd, path, depth + 1, e);
    }
    int rc = S_ISREG(st.st_mode)
                 ? read_file(w, fd, path, e)
                 : err_set(e, ERR_PATH, "'%s' in '%s' is no ordinary file", path, w->root);
    close(fd);
    return rc;
}

/* Takes the descriptor. */
static int read_dir(struct walk *w, int fd, const char *path, int depth, struct err *e)
{
    if (depth > DEPTH_MAX) {
        close(fd);
        return err_set(e, ERR_PATH,
                       "'%s' in '%s' lies deeper than %d directories: a link may lead in a circle",
                       path, w->root, DEPTH_MAX);
    }
    DIR *d = fdopendir(fd);
    if (!d) {
        close(fd);
        return err_set(e, ERR_IO, "cannot read the directory '%s': %s", w->root, strerror(errno));
    }
    int rc = 0;
    struct dirent *entry;
    while (rc == 0 && (entry = readdir(d)) != NULL) {
        if (entry->d_name[0] != '.') {
            rc = read_entry(w, fd, path, entry->d_name, depth, e);
        }
    }
    closedir(d);
    return rc;
}

static int open_root(struct walk *w, const char *dir, struct err *e)
{
    if (!realpath(dir, w->root)) {
        return err_set(e, ERR_PATH, "cannot read the package directory '%s': %s", dir,
                       strerror(errno));
    }
    int fd = open(w->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return err_set(e, ERR_PATH, "cannot read the package directory '%s': %s", dir,
                       strerror(errno));
    }
    return fd;
}

int package_read_dir(struct arena *a, const char *dir, const struct package_limits *lim,
                     struct package_files *out, struct err *e)
{
    struct err spare;
    e = e ? e : &spare;
    struct intake in;
    intake_init(&in, a, lim, ERR_PATH);
    auto_free struct walk *w = xcalloc(1, sizeof *w);
    w->in = &in;
    int fd = open_root(w, dir, e);
    int rc = fd < 0 ? fd : read_dir(w, fd, "", 0, e);
    rc = rc < 0 ? rc : intake_finish(&in, out, e);
    intake_fini(&in);
    return rc;
}
