#include "common/sandbox/sandbox_attach.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files ---- */

static void note_file(struct sandbox_hold *h, const struct stat *st)
{
    h->device = st->st_dev;
    h->inode = st->st_ino;
    h->bytes = st->st_size;
    h->changed_ns = st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec;
}

static int cannot_read(const char *what, const struct wh_attached *at, struct err *e)
{
    return err_set(e, ERR_WH_CONNECT, "%s: the attached database '%s': cannot read '%s': %s", what,
                   at->name, at->file, strerror(errno));
}

static int cannot_lock(const char *what, const struct wh_attached *at, int fd, struct err *e)
{
    bool is_held = errno == EAGAIN || errno == EACCES;
    struct flock who = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    if (!is_held) {
        return cannot_read(what, at, e);
    }
    bool is_known = fcntl(fd, F_OFD_GETLK, &who) == 0 && who.l_type != F_UNLCK && who.l_pid > 0;
    auto_free char *pid = is_known ? xasprintf(" %lld", (long long)who.l_pid) : xstrdup("");
    return err_set(e, ERR_WH_CONNECT,
                   "%s: the attached database '%s': process%s has '%s' open to write; close it "
                   "there",
                   what, at->name, pid, at->file);
}

int sandbox_hold(const char *what, const struct wh_attached *at, struct sandbox_hold *out,
                 struct err *e)
{
    struct stat st;
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    int fd = open(at->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc = 0;
    if (fd < 0 || fstat(fd, &st) < 0) {
        rc = cannot_read(what, at, e);
    } else if (!S_ISREG(st.st_mode)) {
        rc = err_set(e, ERR_WH_CONNECT, "%s: the attached database '%s': '%s' is no file", what,
                     at->name, at->file);
    } else if (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
        rc = cannot_lock(what, at, fd, e);
    }
    if (rc < 0) {
        if (fd >= 0) {
            close(fd);
        }
        return rc;
    }
    out->fd = fd;
    note_file(out, &st);
    return 0;
}

void sandbox_release(struct sandbox_hold *h)
{
    if (h->fd >= 0) {
        close(h->fd);
        h->fd = -1;
    }
}

bool sandbox_hold_is_old(const struct sandbox_hold *h, const char *file)
{
    struct stat st;
    struct sandbox_hold now;
    if (h->fd < 0) {
        return false;
    }
    if (stat(file, &st) < 0) {
        return true;
    }
    note_file(&now, &st);
    return now.device != h->device || now.inode != h->inode || now.bytes != h->bytes ||
           now.changed_ns != h->changed_ns;
}

/* ---- statements ---- */

static void add_setting(struct buf *sql, const char *key, const char *value)
{
    if (value[0]) {
        buf_addf(sql, ", %s ", key);
        duck_quote_text(sql, value);
    }
}

/* Who and where lie in a secret, whose password no query sees; the string of ATTACH is shown. */
static char *secret_of(struct arena *a, const struct wh_attached *at)
{
    auto_buf struct buf sql = {0};
    auto_free char *name = xasprintf("kiln_%s", at->name);
    buf_add_str(&sql, "CREATE TEMPORARY SECRET ");
    duck_quote_name(&sql, name);
    buf_add_str(&sql, " (TYPE postgres");
    add_setting(&sql, "HOST", at->host);
    add_setting(&sql, "PORT", at->port);
    add_setting(&sql, "DATABASE", at->database);
    add_setting(&sql, "USER", at->user);
    add_setting(&sql, "PASSWORD", at->password);
    buf_add_char(&sql, ')');
    return arena_strdup(a, buf_str(&sql));
}

/* DuckDB waits for a server that computes, whoever interrupts it; its own setting of a limit does
 * not hold for all of its sessions. */
static const char *options_of(struct arena *a, const struct wh_attached *at, struct ms limit)
{
    return limit.v > 0 && !strstr(at->options, " options=")
               ? arena_printf(a, "%s options='-c statement_timeout=%lld'", at->options,
                              (long long)limit.v)
               : at->options;
}

static char *attach_of(struct arena *a, const struct wh_attached *at, struct ms limit)
{
    auto_buf struct buf sql = {0};
    buf_add_str(&sql, "ATTACH ");
    duck_quote_text(&sql, at->file ? at->file : options_of(a, at, limit));
    buf_add_str(&sql, " AS ");
    duck_quote_name(&sql, at->name);
    buf_add_str(&sql, at->file ? " (TYPE duckdb" : " (TYPE postgres");
    buf_add_str(&sql, ", READ_ONLY");
    if (!at->file) {
        auto_free char *name = xasprintf("kiln_%s", at->name);
        buf_add_str(&sql, ", SECRET ");
        duck_quote_name(&sql, name);
    }
    buf_add_char(&sql, ')');
    return arena_strdup(a, buf_str(&sql));
}

const char *const *sandbox_attach_statements(struct arena *a, const struct wh_attached *at,
                                             struct ms server_limit)
{
    const char **list = arena_zalloc(a, 4 * sizeof(*list));
    size_t n = 0;
    if (!at->file) {
        /* Else a column that got another type of the same size is read as what it was. */
        list[n++] = "SET GLOBAL pg_staleness_query_enabled = true";
        list[n++] = secret_of(a, at);
    }
    list[n] = attach_of(a, at, server_limit);
    return list;
}

const char *const *sandbox_forbidden(void)
{
    /* All that the extension of PostgreSQL brings but its two functions of hstore (a test
     * compares): some write in spite of READ_ONLY (postgres_execute ends the transaction), some
     * take any address (postgres_scan). What shows secrets. And readers of the attached files
     * themselves, which DuckDB allows: tables are read, not what was deleted from them. */
    static const char *const names[] = {"postgres_scan",
                                        "postgres_scan_pushdown",
                                        "postgres_query",
                                        "postgres_execute",
                                        "postgres_attach",
                                        "postgres_configure_pool",
                                        "pg_clear_cache",
                                        "read_postgres_binary",
                                        "duckdb_secrets",
                                        "which_secret",
                                        "read_blob",
                                        "read_text",
                                        "read_duckdb",
                                        "query_table",
                                        NULL};
    return names;
}
