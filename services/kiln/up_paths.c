#include "services/kiln/up_paths.h"
#include "common/base/crypto.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONGEST_NAME "pg/.s.PGSQL.5432" /* below a run directory */

int up_user_find(const char *name, struct up_user *out, struct err *e)
{
    const struct passwd *who = getpwnam(name);
    if (!who || who->pw_uid == 0) {
        return err_set(e, ERR_CONF,
                       "PostgreSQL cannot run as '%s' (%s); name an unprivileged user with "
                       "--pg-user, or a database of your own with --store",
                       name, who ? "it is root" : "there is no such user");
    }
    *out = (struct up_user){.name = name, .uid = who->pw_uid, .gid = who->pw_gid};
    return 0;
}

/* ---- directories ---- */
static int check_dir(const char *dir, const struct up_user *owner, struct err *e)
{
    struct stat st;
    if (lstat(dir, &st)) {
        return err_set(e, ERR_CONF, "cannot look at %s: %s", dir, strerror(errno));
    }
    if (S_ISLNK(st.st_mode) || !S_ISDIR(st.st_mode)) {
        return err_set(e, ERR_CONF,
                       "%s is %s where kiln up wants a directory of its own; remove it", dir,
                       S_ISLNK(st.st_mode) ? "a link" : "no directory");
    }
    uid_t uid = owner && owner->name ? owner->uid : geteuid();
    if (st.st_uid != uid) {
        return err_set(e, ERR_CONF,
                       "%s belongs to user %lu and not to %lu; remove it, or run kiln up as its "
                       "owner",
                       dir, (unsigned long)st.st_uid, (unsigned long)uid);
    }
    if (st.st_mode & (S_IWGRP | S_IWOTH)) {
        return err_set(e, ERR_CONF, "%s is writable by others; chmod go-w it", dir);
    }
    return 0;
}

int up_dir_make(const char *dir, mode_t mode, const struct up_user *owner, struct err *e)
{
    if (mkdir(dir, mode)) {
        if (errno != EEXIST) {
            return err_set(e, ERR_CONF, "cannot make directory %s: %s", dir, strerror(errno));
        }
        int rc = check_dir(dir, owner, e);
        if (rc == 0 && chmod(dir, mode)) {
            rc = err_set(e, ERR_CONF, "cannot chmod %s: %s", dir, strerror(errno));
        }
        return rc;
    }
    /* Whatever the umask: the mode is part of the contract. */
    if (chmod(dir, mode) || (owner && owner->name && chown(dir, owner->uid, owner->gid))) {
        return err_set(e, ERR_CONF, "cannot set up directory %s: %s", dir, strerror(errno));
    }
    return 0;
}

int up_state_open(const char *root, bool shared, char state[PATH_MAX], struct err *e)
{
    auto_free char *dir = xasprintf("%s/kiln", root);
    struct stat st;
    if (mkdir(root, 0777) && errno != EEXIST) {
        return err_set(e, ERR_CONF,
                       "cannot make the server root %s: %s; give another with "
                       "--server_root",
                       root, strerror(errno));
    }
    if (mkdir(dir, shared ? 0711 : 0700) && errno != EEXIST) {
        return err_set(e, ERR_CONF,
                       "cannot make the state directory %s: %s; give another root "
                       "with --server_root",
                       dir, strerror(errno));
    }
    if (!realpath(dir, state) || stat(state, &st) || !S_ISDIR(st.st_mode)) {
        return err_set(e, ERR_CONF,
                       "the state directory %s is no directory; remove it, or give "
                       "another root with --server_root",
                       dir);
    }
    if (st.st_uid != geteuid()) {
        return err_set(e, ERR_CONF,
                       "the state directory %s belongs to user %lu; run kiln up as that user, or "
                       "give another root with --server_root",
                       state, (unsigned long)st.st_uid);
    }
    if (chmod(state, shared ? 0711 : 0700)) {
        return err_set(e, ERR_CONF, "cannot chmod %s: %s", state, strerror(errno));
    }
    return 0;
}

static bool may_pass(const struct stat *st, const struct up_user *u)
{
    if (st->st_uid == u->uid) {
        return st->st_mode & S_IXUSR;
    }
    gid_t groups[64];
    int n = (int)ARRAY_LEN(groups);
    if (getgrouplist(u->name, u->gid, groups, &n) < 0) {
        n = (int)ARRAY_LEN(groups);
    }
    for (int i = 0; i < n; i++) {
        if (groups[i] == st->st_gid) {
            return st->st_mode & S_IXGRP;
        }
    }
    return st->st_mode & S_IXOTH;
}

int up_check_searchable(const char *path, const struct up_user *user, struct err *e)
{
    auto_free char *part = xstrdup(path);
    for (char *slash = part; slash; slash = strchr(slash + 1, '/')) {
        char *end = slash == part ? slash + 1 : slash;
        char kept = *end;
        struct stat st;
        *end = '\0';
        if (stat(part, &st)) {
            return err_set(e, ERR_CONF, "cannot look at %s: %s", part, strerror(errno));
        }
        if (!may_pass(&st, user)) {
            return err_set(e, ERR_CONF,
                           "user '%s', as whom PostgreSQL runs, cannot pass %s on its way to %s; "
                           "chmod o+x it, give another --server_root, or a database with --store",
                           user->name, part, path);
        }
        *end = kept;
    }
    return 0;
}

/* ---- run directory ---- */
static bool is_plain(const char *path)
{
    /* It becomes part of connection strings and bus addresses, unquoted. */
    return path && path[0] == '/' &&
           strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_.-") ==
               strlen(path);
}

static bool runtime_is_usable(const char *runtime, const struct up_user *pg)
{
    struct stat st;
    bool fits =
        runtime && strlen(runtime) + sizeof("/kiln/0123456789/" LONGEST_NAME) <= UP_SOCKET_MAX;
    struct err ignored = {0};
    return fits && is_plain(runtime) && lstat(runtime, &st) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == geteuid() && (!pg->name || up_check_searchable(runtime, pg, &ignored) == 0);
}

int up_socket_path(const char *run, const char *name, char out[UP_SOCKET_MAX], struct err *e)
{
    int n = snprintf(out, UP_SOCKET_MAX, "%s/%s", run, name);
    if (n < 0 || n >= UP_SOCKET_MAX) {
        return err_set(
            e, ERR_CONF,
            "the socket %s/%s has a longer path than the %d bytes that the system takes; "
            "set XDG_RUNTIME_DIR to a shorter directory",
            run, name, UP_SOCKET_MAX - 1);
    }
    return 0;
}

int up_run_open(const char *runtime, const char *state, const struct up_user *pg,
                char run[UP_SOCKET_MAX], struct err *e)
{
    char base[UP_SOCKET_MAX], longest[UP_SOCKET_MAX], hex[65];
    mode_t mode = pg->name ? 0711 : 0700;
    struct sha256 digest = sha256_of(state, strlen(state));
    hex_encode(digest.b, sizeof(digest.b), hex);
    if (runtime_is_usable(runtime, pg)) {
        (void)snprintf(base, sizeof(base), "%s/kiln", runtime);
    } else {
        (void)snprintf(base, sizeof(base), "/tmp/kiln-%lu", (unsigned long)geteuid());
    }
    hex[10] = '\0';
    /* Shared by every kiln up of this user: one mode for all of them. */
    int rc = up_dir_make(base, geteuid() == 0 ? 0711 : 0700, NULL, e);
    rc = rc ? rc : up_socket_path(base, hex, run, e);
    rc = rc ? rc : up_dir_make(run, mode, NULL, e);
    return rc ? rc : up_socket_path(run, LONGEST_NAME, longest, e);
}

/* ---- lock ---- */
static int refuse_second(int fd, const char *root, struct err *e)
{
    char text[32] = {0};
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    long pid = n > 0 ? atol(text) : 0;
    (void)close(fd);
    return err_set(e, ERR_CONFLICT,
                   "a kiln up already runs on %s (process %ld); end that one, or give another "
                   "--server_root",
                   root, pid);
}

int up_lock(const char *state, const char *root, int *fd, struct err *e)
{
    auto_free char *path = xasprintf("%s/lock", state);
    int got = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (got < 0) {
        return err_set(e, ERR_CONF, "cannot open the lock %s: %s", path,
                       errno == ELOOP ? "it is a link; remove it" : strerror(errno));
    }
    if (flock(got, LOCK_EX | LOCK_NB)) {
        return refuse_second(got, root, e);
    }
    char text[32];
    int len = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    if (ftruncate(got, 0) || pwrite(got, text, (size_t)len, 0) != len) {
        int why = errno;
        (void)close(got);
        return err_set(e, ERR_CONF, "cannot write the lock %s: %s", path, strerror(why));
    }
    *fd = got;
    return 0;
}
