/* The process of a child: what it is started with, what it says on standard error, how it ends. */
#include "common/compiler/compiler_internal.h"
#include "common/log/log.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_MAX_LEN 1000 /* of standard error; the rest of a line is a line of its own */
#define LAST_WORDS 65536  /* bytes read of a child that has ended */

/* A program by path or from the PATH, absolute: the child starts in "/". NULL when there is none.
 */
static char *find_program(const char *name)
{
    if (strchr(name, '/')) {
        char *path = access(name, X_OK) == 0 ? realpath(name, NULL) : NULL;
        return path;
    }
    const char *path = getenv("PATH");
    struct slice rest = slice_of(path ? path : "/usr/local/bin:/usr/bin:/bin");
    for (struct slice dir; slice_cut(&rest, ':', &dir);) {
        auto_free char *at = xasprintf("%.*s/%s", SLICE_FMT(dir), name);
        if (dir.len && access(at, X_OK) == 0) {
            return realpath(at, NULL);
        }
    }
    return NULL;
}

/* Node prints a place in the source first, then the error. */
static bool tells_why(const char *line)
{
    return strcasestr(line, "error: ") || strstr(line, "bad option");
}

static void note_line(struct compiler_child *c, const char *line)
{
    if (!*line) {
        return;
    }
    bool thawing = c->from_snapshot && c->state == CHILD_STARTING; /* fails in one line, of ours */
    (thawing ? log_debug : log_warn)("compiler.stderr", "pid=%d text=%s", c->process.pid,
                                     log_q(line));
    bool better = tells_why(line) && !tells_why(c->said);
    if (!*c->said || better) {
        (void)snprintf(c->said, sizeof c->said, "%.250s", line);
    }
}

static void note_stderr(struct compiler_child *c, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] != '\n') {
            buf_add_char(&c->line, p[i]);
        }
        if (p[i] == '\n' || c->line.len == LINE_MAX_LEN) {
            note_line(c, buf_str(&c->line));
            buf_clear(&c->line);
        }
    }
}

static void on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    struct compiler_child *c = h->data;
    *out = uv_buf_init(c->room, sizeof c->room);
}

static void on_stderr(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
    if (n > 0) {
        note_stderr(s->data, b->base, (size_t)n);
    } else if (n < 0) {
        (void)uv_read_stop(s);
    }
}

/* What it wrote before it ended may not have been read yet, and tells why. */
static void read_last_words(struct compiler_child *c)
{
    int fd = -1;
    if (uv_fileno((uv_handle_t *)&c->errors, &fd)) {
        return;
    }
    for (size_t sum = 0; sum < LAST_WORDS;) {
        ssize_t n = read(fd, c->room, sizeof c->room);
        if (n <= 0) {
            break;
        }
        sum += (size_t)n;
        note_stderr(c, c->room, (size_t)n);
    }
    note_line(c, buf_str(&c->line));
    buf_clear(&c->line);
}

static char *describe_end(const struct compiler_child *c, int64_t status, int signum)
{
    const struct compiler_pool *p = c->pool;
    if (strstr(c->said, "bad option")) {
        return xasprintf("Node ('%s') is older than version 20 (%s); install Node 20 or newer, or "
                         "name its program in the configuration",
                         p->node, c->said);
    }
    bool starts = c->state == CHILD_STARTING;
    bool starved = signum == SIGABRT && !(starts && c->from_snapshot);
    const char *what = starts ? "did not start" : "ended";
    const char *sep = *c->said ? ": " : "";
    if (signum) {
        return xasprintf("the Malloy compiler %s (signal %d%s)%s%s", what, signum,
                         starved ? ", its heap may be too small" : "", sep, c->said);
    }
    return xasprintf("the Malloy compiler %s (exit code %d)%s%s", what, (int)status, sep, c->said);
}

static void on_child_exit(uv_process_t *process, int64_t status, int signum)
{
    struct compiler_child *c = process->data;
    c->exited = true;
    read_last_words(c);
    if (c->state == CHILD_ENDING) {
        compiler_process_close(c);
        return;
    }
    auto_free char *why = describe_end(c, status, signum);
    compiler_child_lost(c, why);
}

static void on_closed(uv_handle_t *h)
{
    struct compiler_child *c = h->data;
    if (--c->handles > 0) {
        return;
    }
    struct compiler_pool *p = c->pool;
    list_del(&c->link);
    compiler_copies_fini(c);
    buf_fini(&c->in);
    buf_fini(&c->line);
    free(c->asked_load);
    free(c);
    compiler_pool_child_gone(p);
}

void compiler_process_close(struct compiler_child *c)
{
    if (c->closing) {
        return;
    }
    c->closing = true;
    if (c->spawned) {
        uv_close((uv_handle_t *)&c->process, on_closed);
    }
    uv_close((uv_handle_t *)&c->channel, on_closed);
    uv_close((uv_handle_t *)&c->errors, on_closed);
}

static int spawn(struct compiler_child *c, char *self, char **args, struct err *e)
{
    auto_free char *parent = xasprintf(COMPILER_PARENT_ENV "=%d", (int)getpid());
    char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", node[] = "NODE_OPTIONS=", zone[] = "TZ=UTC",
         lang[] = "LANG=C.UTF-8", root[] = "/";
    char *env[] = {path, node, zone, lang, parent, NULL}; /* nothing of ours: no secrets */
    uv_stdio_container_t io[4] = {
        {.flags = UV_IGNORE},
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&c->errors},
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE | UV_WRITABLE_PIPE,
         .data.stream = (uv_stream_t *)&c->channel}};
    uv_process_options_t o = {.file = self,
                              .args = args,
                              .env = env,
                              .cwd = root,
                              .stdio = io,
                              .stdio_count = 4,
                              /* a session of its own: Ctrl-C is for us, who let calls end first */
                              .flags = UV_PROCESS_DETACHED,
                              .exit_cb = on_child_exit};
    c->spawned = true;
    c->handles++;
    int rv = uv_spawn(loop_uv(c->pool->loop), &c->process, &o);
    if (rv) {
        return err_set(e, ERR_COMPILER_DOWN, "cannot start '%s' for the Malloy compiler: %s", self,
                       uv_strerror(rv));
    }
    return uv_read_start((uv_stream_t *)&c->errors, on_alloc, on_stderr);
}

/* The engine's state after it had read and warmed the bundle, made from it: x.blob beside x.js.
 * NULL when there is none, or one of an earlier bundle. */
static char *find_snapshot(const char *bundle)
{
    struct stat made, from;
    size_t len = strlen(bundle);
    if (len < 3 || strcmp(bundle + len - 3, ".js") != 0) {
        return NULL;
    }
    auto_free char *path = xasprintf("%.*s.blob", (int)(len - 3), bundle);
    bool fits = stat(path, &made) == 0 && S_ISREG(made.st_mode) && access(path, R_OK) == 0 &&
                stat(bundle, &from) == 0 && made.st_mtime >= from.st_mtime;
    return fits ? xstrdup(path) : NULL;
}

static int spawn_node(struct compiler_child *c, char *self, char *node, char *bundle, struct err *e)
{
    char child[] = "--compiler-child", permission[] = "--experimental-permission",
         quiet[] = "--no-warnings";
    auto_free char *heap = xasprintf("--max-old-space-size=%lld", (long long)c->pool->heap_mb);
    auto_free char *snapshot = c->pool->no_snapshot ? NULL : find_snapshot(bundle);
    /* Node has the snapshot before it forbids itself to read; only a bundle is read after that. */
    auto_free char *from = snapshot ? xasprintf("--snapshot-blob=%s", snapshot)
                                    : xasprintf("--allow-fs-read=%s", bundle);
    char *args[] = {self, child, node, heap, permission, quiet, from, bundle, NULL};
    c->from_snapshot = snapshot != NULL;
    return spawn(c, self, args, e);
}

static void handles_init(struct compiler_child *c)
{
    struct uv_loop_s *l = loop_uv(c->pool->loop);
    must(uv_pipe_init(l, &c->channel, 0) == 0);
    must(uv_pipe_init(l, &c->errors, 0) == 0);
    c->handles = 2;
    c->process.data = c;
    c->channel.data = c;
    c->errors.data = c;
}

int compiler_process_spawn(struct compiler_child *c, struct err *e)
{
    const struct compiler_pool *p = c->pool;
    handles_init(c);
    auto_free char *node = find_program(p->node);
    auto_free char *bundle = realpath(p->bundle, NULL);
    int no_bundle = bundle && access(bundle, R_OK) == 0 ? 0 : errno;
    auto_free char *self = find_program(p->self);
    if (!node) {
        return err_set(e, ERR_COMPILER_DOWN,
                       "Node is missing: there is no program '%s'%s; install Node 20 or newer, or "
                       "name its program in the configuration",
                       p->node, strchr(p->node, '/') ? "" : " on the PATH");
    }
    if (no_bundle) {
        return err_set(e, ERR_COMPILER_DOWN,
                       "the Malloy compiler is missing: cannot read '%s' (%s); name the file "
                       "kiln-compiler.js in the configuration",
                       p->bundle, strerror(no_bundle));
    }
    if (!self) {
        return err_set(e, ERR_COMPILER_DOWN,
                       "cannot start the Malloy compiler: there is no program '%s'", p->self);
    }
    return spawn_node(c, self, node, bundle, e);
}
