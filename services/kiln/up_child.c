#include "services/kiln/up_child.h"
#include "common/log/log.h"
#include "services/kiln/up.h"
#include "services/kiln/up_launch.h"
#include "services/kiln/up_output.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define DEATH_WINDOW_MS 10000
#define BACKOFF_LEAST_MS 100
#define BACKOFF_MOST_MS 5000
#define EXIT_CONFIGURATION 2 /* of service_run */
#define LAST_WORDS_MS 50     /* grandchildren may keep the pipe open: not longer than this */

/* ---- output ---- */
static void take_line(struct up_child *c, struct slice line)
{
    bool is_error = false;
    auto_buf struct buf sentence = {0};
    up_output_line(line);
    up_child_sentence(line, &sentence, &is_error);
    if (sentence.len && (is_error || !c->last_is_error)) {
        (void)snprintf(c->last_error, sizeof(c->last_error), "%s", buf_str(&sentence));
        c->last_is_error = is_error;
    }
}

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *out)
{
    struct up_child *c = container_of((uv_pipe_t *)h, struct up_child, pipe);
    (void)hint;
    *out = uv_buf_init(c->read_space, sizeof(c->read_space));
}

static void on_closed_pipe(uv_handle_t *h)
{
    struct up_child *c = container_of((uv_pipe_t *)h, struct up_child, pipe);
    c->pipe_open = false;
    up_stop_child_gone(c->up);
}

static void close_pipe(struct up_child *c)
{
    if (c->pipe_open && !uv_is_closing((uv_handle_t *)&c->pipe)) {
        if (c->line.len) {
            take_line(c, buf_slice(&c->line));
            buf_clear(&c->line);
        }
        uv_close((uv_handle_t *)&c->pipe, on_closed_pipe);
    }
}

static void judge(struct up_child *c);

static void on_read(uv_stream_t *s, ssize_t n, const uv_buf_t *b)
{
    struct up_child *c = container_of((uv_pipe_t *)s, struct up_child, pipe);
    if (n < 0) {
        close_pipe(c);
        if (c->state == UP_CHILD_ENDED) {
            judge(c);
        }
        return;
    }
    buf_add(&c->line, b->base, (size_t)n);
    for (char *end; (end = memchr(buf_str(&c->line), '\n', c->line.len)) != NULL;) {
        size_t len = (size_t)(end - c->line.p);
        take_line(c, slice_make(c->line.p, len));
        buf_drop(&c->line, len + 1);
    }
    if (c->line.len > 65536) { /* no line of ours is that long: pass it on as it is */
        take_line(c, buf_slice(&c->line));
        buf_clear(&c->line);
    }
}

/* ---- the end of a process ---- */
static void describe_end(const struct up_child *c, struct buf *out)
{
    if (c->signum) {
        buf_addf(out, "signal %d (%s)", c->signum, strsignal(c->signum));
    } else {
        buf_addf(out, "exit code %lld", (long long)c->status);
    }
    if (c->last_is_error) {
        buf_addf(out, ": %s", c->last_error);
    }
}

/* Whether its last deaths lie so close together that another start is of no use. */
static bool dies_too_often(struct up_child *c, struct ms now)
{
    memmove(c->deaths, c->deaths + 1, sizeof(c->deaths) - sizeof(c->deaths[0]));
    c->deaths[UP_DEATHS - 1] = now;
    c->n_deaths++;
    return c->n_deaths >= UP_DEATHS && ms_sub(now, c->deaths[0]).v <= DEATH_WINDOW_MS;
}

static bool lived_long(const struct up_child *c, struct ms now)
{
    return ms_sub(now, c->started).v >= DEATH_WINDOW_MS;
}

/* What another start cannot mend: a refused configuration, a program that does not run. */
static bool is_hopeless(const struct up_child *c)
{
    return c->signum == 0 && (c->status == EXIT_CONFIGURATION || c->status == UP_LAUNCH_FAILED ||
                              c->status == UP_LAUNCH_NO_PROGRAM);
}

static void on_again(struct loop_timer *t)
{
    up_child_start(t->data);
}

static void start_later(struct up_child *c, struct ms now, const char *why)
{
    c->backoff_ms = lived_long(c, now) || !c->backoff_ms ? BACKOFF_LEAST_MS : 2 * c->backoff_ms;
    c->backoff_ms = c->backoff_ms > BACKOFF_MOST_MS ? BACKOFF_MOST_MS : c->backoff_ms;
    log_warn("child.ended", "child=%s pid=%ld why=%s next=\"started again in %lld ms\"", c->name,
             (long)c->pid, log_q(why), (long long)c->backoff_ms);
    c->state = UP_CHILD_WAITING;
    loop_timer_init(&c->timer, c->up->loop, on_again, c);
    loop_timer_start(&c->timer, MS(c->backoff_ms));
}

/* Its last words are known: what comes next? */
static void judge(struct up_child *c)
{
    struct up *u = c->up;
    struct ms now = loop_now(u->loop);
    auto_buf struct buf why = {0};
    loop_timer_stop(&c->timer);
    close_pipe(c);
    c->state = UP_CHILD_IDLE;
    describe_end(c, &why);
    if (c->once) {
        c->ended(c, c->status == 0 && c->signum == 0);
    }
    if (u->stopping) {
        log_debug("child.ended", "child=%s pid=%ld why=%s next=none", c->name, (long)c->pid,
                  log_q(buf_str(&why)));
        up_stop_child_gone(u);
    }
    if (c->once || u->stopping) {
        return;
    }
    c->proven = c->proven || lived_long(c, now);
    if (!c->proven && (dies_too_often(c, now) || is_hopeless(c))) {
        log_error("child.ended", "child=%s pid=%ld why=%s next=%s", c->name, (long)c->pid,
                  log_q(buf_str(&why)), log_q("kiln up ends"));
        up_fail(u, "%s does not start: %s", c->name,
                c->last_error[0] ? c->last_error : buf_str(&why));
        return;
    }
    start_later(c, now, buf_str(&why));
}

static void on_last_words_over(struct loop_timer *t)
{
    judge(t->data);
}

/* The last line of a log file, for a child whose output does not pass through us. */
static void read_last_line(struct up_child *c)
{
    char text[2048];
    int fd = open(c->log_path, O_RDONLY | O_CLOEXEC);
    off_t size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    off_t from = size > (off_t)sizeof(text) ? size - (off_t)sizeof(text) : 0;
    from = from < c->log_from ? c->log_from : from; /* what earlier starts said is stale */
    ssize_t n = fd >= 0 ? pread(fd, text, sizeof(text), from) : 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    struct slice rest = slice_make(text, n > 0 ? (size_t)n : 0), line;
    while (slice_cut(&rest, '\n', &line)) {
        bool grave = memmem(line.p, line.len, "FATAL", 5) || memmem(line.p, line.len, "PANIC", 5);
        if (line.len && (grave || !c->last_is_error)) {
            (void)snprintf(c->last_error, sizeof(c->last_error), "%.*s", SLICE_FMT(line));
            c->last_is_error = grave;
        }
    }
}

static void on_closed_process(uv_handle_t *h)
{
    struct up_child *c = container_of((uv_process_t *)h, struct up_child, process);
    c->process_open = false;
    up_stop_child_gone(c->up);
}

static void on_process_exit(uv_process_t *p, int64_t status, int signum)
{
    struct up_child *c = container_of(p, struct up_child, process);
    c->status = status;
    c->signum = signum;
    c->state = UP_CHILD_ENDED;
    uv_close((uv_handle_t *)p, on_closed_process);
    if (c->log_path) {
        read_last_line(c);
    }
    loop_timer_init(&c->timer, c->up->loop, on_last_words_over, c);
    loop_timer_start(&c->timer, MS(c->pipe_open ? LAST_WORDS_MS : 0));
}

/* ---- start ---- */
static int open_input(const struct up_child *c)
{
    int ends[2];
    size_t len = strlen(c->input);
    if (pipe2(ends, O_CLOEXEC)) {
        return -1;
    }
    ssize_t n = write(ends[1], c->input, len); /* far below what a pipe holds */
    (void)close(ends[1]);
    if (n != (ssize_t)len) {
        (void)close(ends[0]);
        return -1;
    }
    return ends[0];
}

static size_t launch_line(const struct up_child *c, char *parent, char *signal_text,
                          const char **line, size_t max)
{
    char **argv = c->starts > 0 && c->argv_again ? c->argv_again : c->argv;
    const char *head[] = {"kiln", "--child", parent, signal_text, c->user ? c->user : "-"};
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(head); i++) {
        line[n++] = head[i];
    }
    for (size_t i = 0; argv[i]; i++) {
        must(n + 1 < max);
        line[n++] = argv[i];
    }
    line[n] = NULL;
    return n;
}

static int spawn(struct up_child *c, int in_fd, int log_fd)
{
    char parent[24], signal_text[12];
    const char *line[64];
    (void)snprintf(parent, sizeof(parent), "%ld", (long)getpid());
    (void)snprintf(signal_text, sizeof(signal_text), "%d", c->death_signal);
    (void)launch_line(c, parent, signal_text, line, ARRAY_LEN(line));
    uv_stdio_container_t io[3] = {
        {.flags = UV_IGNORE}, {.flags = UV_INHERIT_FD}, {.flags = UV_INHERIT_FD}};
    if (in_fd >= 0) {
        io[0].flags = UV_INHERIT_FD;
        io[0].data.fd = in_fd;
    }
    io[1].data.fd = log_fd >= 0 ? log_fd : STDERR_FILENO; /* our standard output says one word */
    io[2].data.fd = log_fd;
    if (log_fd < 0) {
        must(uv_pipe_init(loop_uv(c->up->loop), &c->pipe, 0) == 0);
        c->pipe_open = true;
        io[2].flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE;
        io[2].data.stream = (uv_stream_t *)&c->pipe;
    }
    /* libuv takes char **, and changes none of it. */
    uv_process_options_t o = {.exit_cb = on_process_exit,
                              .file = "/proc/self/exe",
                              .env = c->env,
                              .cwd = c->up->state,
                              .stdio_count = 3,
                              .stdio = io};
    memcpy(&o.args, &(const char **){line}, sizeof(o.args));
    c->process_open = true;
    return uv_spawn(loop_uv(c->up->loop), &c->process, &o);
}

static void on_not_spawned(struct loop_timer *t)
{
    judge(t->data);
}

void up_child_start(struct up_child *c)
{
    int log_fd = -1, in_fd = -1, rc = 0;
    must(!c->process_open && !c->pipe_open);
    c->last_error[0] = '\0';
    c->last_is_error = false;
    c->started = loop_now(c->up->loop);
    if (c->log_path) {
        log_fd = open(c->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
        rc = log_fd < 0 ? -errno : 0;
        c->log_from = log_fd < 0 ? 0 : lseek(log_fd, 0, SEEK_END);
    }
    if (rc == 0 && c->input) {
        in_fd = open_input(c);
        rc = in_fd < 0 ? -errno : 0;
    }
    rc = rc ? rc : spawn(c, in_fd, log_fd);
    c->starts++;
    if (log_fd >= 0) {
        (void)close(log_fd);
    }
    if (in_fd >= 0) {
        (void)close(in_fd);
    }
    if (rc == 0) {
        c->state = UP_CHILD_RUNNING;
        c->pid = c->process.pid;
        if (c->pipe_open) {
            must(uv_read_start((uv_stream_t *)&c->pipe, on_alloc, on_read) == 0);
        }
        log_debug("child.started", "child=%s pid=%ld", c->name, (long)c->pid);
        return;
    }
    (void)snprintf(c->last_error, sizeof(c->last_error), "cannot start %s: %s", c->argv[0],
                   uv_strerror(rc));
    c->status = 1;
    c->signum = 0;
    c->pid = 0;
    if (c->process_open) {
        uv_close((uv_handle_t *)&c->process, on_closed_process);
    }
    c->state = UP_CHILD_ENDED;
    loop_timer_init(&c->timer, c->up->loop, on_not_spawned, c);
    loop_timer_start(&c->timer, MS(0));
}

/* ---- life cycle ---- */
void up_child_init(struct up_child *c, struct up *u, const char *name)
{
    *c = (struct up_child){.up = u,
                           .name = name,
                           .death_signal = SIGKILL,
                           .stop_signal = SIGTERM,
                           .state = UP_CHILD_IDLE};
    buf_init(&c->line);
    loop_timer_init(&c->timer, u->loop, on_again, c);
}

static void signal_child(struct up_child *c, int signum)
{
    if (c->state == UP_CHILD_RUNNING) {
        (void)uv_process_kill(&c->process, signum);
    } else if (c->state == UP_CHILD_WAITING) {
        loop_timer_stop(&c->timer);
        c->state = UP_CHILD_IDLE;
        up_stop_child_gone(c->up);
    }
}

void up_child_stop(struct up_child *c)
{
    signal_child(c, c->stop_signal);
}

void up_child_kill(struct up_child *c)
{
    signal_child(c, SIGKILL);
}

bool up_child_is_gone(const struct up_child *c)
{
    return c->state == UP_CHILD_IDLE && !c->process_open && !c->pipe_open;
}

void up_child_fini(struct up_child *c)
{
    must(up_child_is_gone(c));
    loop_timer_stop(&c->timer);
    buf_fini(&c->line);
}
