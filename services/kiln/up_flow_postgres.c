/* Flow: the private PostgreSQL comes up. INITDB and CREATE make its data in a directory of another
 * name, NAME syncs it and gives it its name (so that it is complete or not there), OLD waits for a
 * server of an earlier kiln up to be gone, READY starts the server and waits until it says so, END.
 * The server is a child like the others: it is started again when it dies. */
#include "common/log/log.h"
#include "services/kiln/up.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { INITDB, CREATE, NAME, OLD, READY, END };
#define POLL_MS 10
#define POLL_SLOW_MS 100 /* after the first 2 s: recovery may take its time */

static struct up *of(struct flow *f)
{
    return container_of(f, struct up, pg.flow);
}

/* ---- children ---- */
static char *const *plain_environment(void)
{
    static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", locale[] = "LC_ALL=C",
                zone[] = "TZ=UTC";
    static char *const environment[] = {path, locale, zone, NULL};
    return environment;
}

static void init_child(struct up *u, struct up_child *c, const char *name)
{
    up_child_init(c, u, name);
    c->user = u->pg.user.name;
    c->log_path = u->pg.log;
    c->env = arena_dup(&u->arena, plain_environment(), 4 * sizeof(char *));
    c->stop_signal = SIGINT;  /* "fast": sessions are ended, the data is left clean */
    c->death_signal = SIGINT; /* the same when kiln up is killed */
}

static char **words(struct up *u, const char *const *list)
{
    size_t n = 0;
    while (list[n]) {
        n++;
    }
    char **out = arena_zalloc(&u->arena, (n + 1) * sizeof(*out));
    for (size_t i = 0; i < n; i++) {
        out[i] = arena_strdup(&u->arena, list[i]);
    }
    return out;
}

static void init_server(struct up *u)
{
    struct up_postgres *pg = &u->pg;
    const char *line[] = {arena_printf(&u->arena, "%s/postgres", pg->bin),
                          "-D",
                          pg->data,
                          "-c",
                          "listen_addresses=",
                          "-c",
                          arena_printf(&u->arena, "unix_socket_directories=%s", pg->socket_dir),
                          "-c",
                          "unix_socket_permissions=0700",
                          "-c",
                          "port=5432",
                          "-c",
                          "shared_buffers=32MB",
                          "-c",
                          "max_connections=100",
                          "-c",
                          "wal_level=minimal",
                          "-c",
                          "max_wal_senders=0",
                          "-c",
                          "fsync=on",
                          "-c",
                          "huge_pages=off",
                          "-c",
                          "jit=off",
                          "-c",
                          "logging_collector=off",
                          "-c",
                          "log_destination=stderr",
                          NULL};
    init_child(u, &pg->server, "postgres");
    pg->server.argv = words(u, line);
}

static char *draft_dir(struct up *u)
{
    return arena_printf(&u->arena, "%s.new", u->pg.data);
}

/* ---- INITDB, CREATE ---- */
static void on_made(struct up_child *c, bool ok)
{
    flow_resume(&c->up->pg.flow, ok ? 0 : ERR_IO, NULL);
}

static void kill_maker(struct flow *f)
{
    up_child_kill(&of(f)->pg.maker); /* what it has not finished is thrown away anyway */
}

static enum flow_next not_made(struct flow *f)
{
    struct up *u = of(f);
    const char *why = u->pg.maker.last_error;
    return flow_fail(f, END, ERR_IO, "PostgreSQL cannot make its data directory %s: %s (see %s)",
                     u->pg.data, why[0] ? why : "it does not say why", u->pg.log);
}

static enum flow_next step_initdb(struct flow *f)
{
    struct up *u = of(f);
    struct up_postgres *pg = &u->pg;
    char *draft = draft_dir(u);
    if (!f->entered) {
        return f->rc ? not_made(f) : flow_goto(f, CREATE);
    }
    if (up_postgres_version(pg->data)) {
        return flow_goto(f, OLD);
    }
    struct err e = {0};
    const char *line[] = {arena_printf(&u->arena, "%s/initdb", pg->bin),
                          "-D",
                          draft,
                          "--username=kiln",
                          "--encoding=UTF8",
                          "--locale=C",
                          "--auth-local=trust",
                          "--auth-host=reject",
                          "--no-sync", /* all of it is synced before it gets its name */
                          "--no-instructions",
                          NULL};
    log_info("postgres.init", "dir=%s", log_q(pg->data));
    if (up_dir_empty(draft, &e) || up_dir_make(draft, 0700, &pg->user, &e)) {
        return flow_fail(f, END, e.code, "%s", err_text(&e));
    }
    pg->maker.argv = words(u, line);
    up_child_start(&pg->maker);
    return FLOW_WAIT;
}

static enum flow_next step_create(struct flow *f)
{
    struct up *u = of(f);
    struct up_postgres *pg = &u->pg;
    if (!f->entered) {
        return f->rc ? not_made(f) : flow_goto(f, NAME);
    }
    const char *line[] = {arena_printf(&u->arena, "%s/postgres", pg->bin),
                          "--single",
                          "-F",
                          "-D",
                          draft_dir(u),
                          "postgres",
                          NULL};
    pg->maker.argv = words(u, line);
    pg->maker.input = "CREATE DATABASE kiln\n";
    up_child_start(&pg->maker);
    return FLOW_WAIT;
}

/* ---- NAME ---- */
struct name_job {
    struct offload_job job;
    char *from, *to;
    int why;
};

static void name_offload(struct offload_job *job)
{
    struct name_job *n = container_of(job, struct name_job, job);
    int fd = open(n->from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && syncfs(fd) == 0 && rename(n->from, n->to) == 0;
    n->why = ok ? 0 : errno;
    if (fd >= 0) {
        (void)close(fd);
    }
}

static void on_named(struct offload_job *job)
{
    struct name_job *n = container_of(job, struct name_job, job);
    flow_resume(job->data, n->why ? -n->why : 0, NULL);
}

static enum flow_next step_name(struct flow *f)
{
    struct up *u = of(f);
    if (!f->entered) {
        return f->rc ? flow_fail(f, END, f->rc,
                                 "cannot give the new database its name %s: %s; remove what is "
                                 "there",
                                 u->pg.data, strerror(-f->rc))
                     : flow_goto(f, OLD);
    }
    struct name_job *n = arena_zalloc(&f->arena, sizeof(*n));
    n->from = draft_dir(u);
    n->to = u->pg.data;
    n->job = (struct offload_job){.work_offload = name_offload, .done = on_named, .data = f};
    loop_offload(u->loop, &n->job);
    return FLOW_WAIT;
}

/* ---- OLD ---- */
static void on_poll(struct loop_timer *t)
{
    flow_resume(t->data, 0, NULL);
}

static enum flow_next poll_again(struct up *u)
{
    bool young = ms_sub(loop_now(u->loop), u->begun).v < 2000;
    loop_timer_start(&u->pg.poll, MS(young ? POLL_MS : POLL_SLOW_MS));
    return FLOW_WAIT;
}

/* A process that works in our data directory is an old server of ours that has not ended yet; a pid
 * file without one is left over from a crash, and its number may be somebody else's by now. */
static bool old_server_runs(struct up *u)
{
    auto_free char *path = xasprintf("%s/postmaster.pid", u->pg.data);
    FILE *f = fopen(path, "re");
    long pid = 0;
    if (!f) {
        return false;
    }
    if (fscanf(f, "%ld", &pid) != 1) {
        pid = 0;
    }
    (void)fclose(f);
    char link[64], cwd[PATH_MAX], data[PATH_MAX];
    (void)snprintf(link, sizeof(link), "/proc/%ld/cwd", pid);
    ssize_t n = pid > 0 ? readlink(link, cwd, sizeof(cwd) - 1) : -1;
    cwd[n > 0 ? n : 0] = '\0';
    if (n > 0 && realpath(u->pg.data, data) && strcmp(cwd, data) == 0) {
        return true;
    }
    (void)unlink(path);
    return false;
}

static enum flow_next step_old(struct flow *f)
{
    struct up *u = of(f);
    if (!f->entered && f->rc) {
        return flow_fail(f, END, f->rc, "stopped");
    }
    if (old_server_runs(u)) {
        return poll_again(u);
    }
    return flow_goto(f, READY);
}

/* ---- ready ---- */
/* The server writes how it is into the eighth line of its pid file, as pg_ctl reads it. */
static bool server_says_ready(const struct up_postgres *pg)
{
    char text[1024] = {0};
    auto_free char *path = xasprintf("%s/postmaster.pid", pg->data);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    struct slice rest = slice_make(text, n > 0 ? (size_t)n : 0), line = SLICE_NONE;
    for (int i = 0; i < 8 && slice_cut(&rest, '\n', &line); i++) {
        if (i == 0 && atol(line.p) != (long)pg->server.pid) {
            return false;
        }
        if (i == 7) {
            return slice_starts(slice_trim(line), SLICE("ready"));
        }
    }
    return false;
}

static enum flow_next step_ready(struct flow *f)
{
    struct up *u = of(f);
    struct up_postgres *pg = &u->pg;
    if (f->entered) {
        up_child_start(&pg->server);
        return poll_again(u);
    }
    if (f->rc) {
        return flow_fail(f, END, f->rc, "stopped");
    }
    if (pg->server.state == UP_CHILD_RUNNING && server_says_ready(pg)) {
        pg->server.proven = true;
        return flow_goto(f, END);
    }
    return poll_again(u);
}

static enum flow_next step_end(struct flow *f)
{
    loop_timer_stop(&of(f)->pg.poll);
    return FLOW_END;
}

static const struct flow_step steps[] = {
    [INITDB] = {"INITDB", step_initdb, FLOW_TO(CREATE) | FLOW_TO(OLD) | FLOW_TO(END), 0, kill_maker,
                "makes the data directory, unless there is one", false},
    [CREATE] = {"CREATE", step_create, FLOW_TO(NAME) | FLOW_TO(END), 0, kill_maker,
                "makes the database kiln in it", false},
    [NAME] = {"NAME", step_name, FLOW_TO(OLD) | FLOW_TO(END), 0, NULL,
              "syncs it and gives it its name", true},
    [OLD] = {"OLD", step_old, FLOW_TO(READY) | FLOW_TO(END), 0, NULL,
             "waits until an earlier server of this directory is gone", false},
    [READY] = {"READY", step_ready, FLOW_TO(END), 0, NULL, "waits until the server says ready",
               false},
    [END] = {"END", step_end, 0, 0, NULL, "the run store is there, or why not", false},
};
const struct flow_type up_postgres_flow = {"postgres", steps, ARRAY_LEN(steps)};

static void on_flow_end(struct flow *f)
{
    struct up *u = of(f);
    if (f->final_rc == 0 && !u->stopping) {
        log_debug("postgres.ready", "after_ms=%lld",
                  (long long)ms_sub(loop_now(u->loop), u->begun).v);
        up_store_is_there(u);
    } else if (!u->stopping) {
        up_fail(u, "%s", err_text(&f->err));
    }
    up_stop_child_gone(u);
}

void up_postgres_start(struct up *u)
{
    struct up_postgres *pg = &u->pg;
    init_server(u);
    init_child(u, &pg->maker, "initdb");
    pg->maker.once = true;
    pg->maker.ended = on_made;
    loop_timer_init(&pg->poll, u->loop, on_poll, &pg->flow);
    up_add(u, &pg->maker);
    up_add(u, &pg->server);
    flow_start(&pg->flow, &up_postgres_flow, loop_flows(u->loop), NULL);
    pg->flow.on_end = on_flow_end;
}
