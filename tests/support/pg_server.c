#include "tests/support/pg_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BIN "/usr/lib/postgresql/15/bin/"

NORETURN PRINTF_LIKE(1, 2) static void fatal(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("pg_server: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(1);
}

static const struct passwd *server_user(void)
{
    if (geteuid() != 0) {
        return NULL; /* ourselves */
    }
    const struct passwd *pw = getpwnam("postgres");
    if (!pw) {
        fatal("PostgreSQL refuses to run as root and there is no user \"postgres\"");
    }
    return pw;
}

static void become(const struct passwd *pw)
{
    if (!pw) {
        return;
    }
    if (setgroups(0, NULL) != 0 || setgid(pw->pw_gid) != 0 || setuid(pw->pw_uid) != 0) {
        _exit(126);
    }
}

static char *read_all(int fd)
{
    size_t len = 0;
    size_t cap = 4096;
    char *out = xmalloc(cap + 1);
    ssize_t n = 0;
    while ((n = read(fd, out + len, cap - len)) > 0) {
        len += (size_t)n;
        if (len == cap) {
            cap *= 2;
            out = xrealloc(out, cap + 1);
        }
    }
    out[len] = '\0';
    return out;
}

/* Runs a program to its end; its output on the standard output and error together. */
static int run(const char *const *argv, char **output)
{
    int fds[2];
    if (pipe(fds) != 0) {
        fatal("pipe: %s", strerror(errno));
    }
    const struct passwd *pw = server_user();
    pid_t pid = fork();
    if (pid < 0) {
        fatal("fork: %s", strerror(errno));
    }
    if (pid == 0) {
        dup2(fds[1], 1);
        dup2(fds[1], 2);
        close(fds[0]);
        close(fds[1]);
        become(pw);
        if (chdir("/") != 0) {
            _exit(126);
        }
        setenv("LC_ALL", "C", 1);
        setenv("PGOPTIONS", "-c client_min_messages=warning", 1);
        /* exec takes writable strings and does not write. */
        union {
            const char *const *in;
            char *const *out;
        } args = {.in = argv};
        /* Not execv: under coverage the compiler makes that write its counters first, as a user who
         * may not, and what it says of that would be in our output. */
        execvpe(argv[0], args.out, environ);
        _exit(127);
    }
    close(fds[1]);
    *output = read_all(fds[0]);
    close(fds[0]);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void run_well(const char *const *argv)
{
    char *output = NULL;
    int rc = run(argv, &output);
    if (rc != 0) {
        fatal("%s ended with %d: %s", argv[0], rc, output);
    }
    free(output);
}

static int free_port(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) != 0 ||
        getsockname(fd, (struct sockaddr *)&a, &len) != 0) {
        fatal("no free port: %s", strerror(errno));
    }
    close(fd);
    return ntohs(a.sin_port);
}

static void ctl_start(struct pg_server *s)
{
    char options[400];
    snprintf(options, sizeof options,
             "-p %d -k %s -c listen_addresses=127.0.0.1 -c fsync=off -c full_page_writes=off "
             "-c synchronous_commit=off -c shared_buffers=32MB -c max_connections=60",
             s->port, s->dir);
    char log[100];
    snprintf(log, sizeof log, "%s/log", s->dir);
    /* Without -l the server would hold our pipe open for ever. */
    run_well((const char *[]){BIN "pg_ctl", "-D", s->data, "-w", "-l", log, "-o", options, "start",
                              NULL});
    s->is_up = true;
    char *told = pg_server_value(s, "postgres", "SHOW data_directory");
    if (strcmp(told, s->data) != 0) {
        fatal("the server on port %d is not ours: its data is in %s", s->port, told);
    }
    free(told);
}

static void ctl_stop(struct pg_server *s, const char *mode)
{
    if (!s->is_up) {
        return;
    }
    run_well((const char *[]){BIN "pg_ctl", "-D", s->data, "-w", "-m", mode, "stop", NULL});
    s->is_up = false;
}

static void clean_up(struct pg_server *s)
{
    char *output = NULL;
    (void)run((const char *[]){BIN "pg_ctl", "-D", s->data, "-w", "-m", "immediate", "stop", NULL},
              &output);
    free(output);
    must(strncmp(s->dir, "/tmp/kpg-", 9) == 0);
    run_well((const char *[]){"/bin/rm", "-rf", s->dir, NULL});
}

/* Waits for the end of the test program, however it comes, then cleans up. */
static void start_janitor(struct pg_server *s)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) {
        fatal("pipe: %s", strerror(errno));
    }
    s->owner = getpid();
    s->janitor = fork();
    if (s->janitor < 0) {
        fatal("fork: %s", strerror(errno));
    }
    if (s->janitor == 0) {
        close(fds[1]);
        setsid();
        free(read_all(fds[0]));
        clean_up(s);
        _exit(0);
    }
    close(fds[0]);
    s->janitor_pipe = fds[1];
}

void pg_server_start(struct pg_server *s)
{
    *s = (struct pg_server){.port = free_port()};
    snprintf(s->dir, sizeof s->dir, "/tmp/kpg-XXXXXX");
    if (!mkdtemp(s->dir)) {
        fatal("mkdtemp: %s", strerror(errno));
    }
    const struct passwd *pw = server_user();
    if (pw && chown(s->dir, pw->pw_uid, pw->pw_gid) != 0) {
        fatal("chown %s: %s", s->dir, strerror(errno));
    }
    if (chmod(s->dir, 0755) != 0) {
        fatal("chmod %s: %s", s->dir, strerror(errno));
    }
    snprintf(s->data, sizeof s->data, "%s/data", s->dir);
    start_janitor(s);
    run_well((const char *[]){BIN "initdb", "-D", s->data, "-U", "postgres", "-A", "trust", "-N",
                              "-E", "UTF8", "--locale=C.UTF-8", NULL});
    ctl_start(s);
}

void pg_server_stop(struct pg_server *s)
{
    if (s->owner != getpid()) {
        return;
    }
    s->owner = 0;
    close(s->janitor_pipe);
    while (waitpid(s->janitor, NULL, 0) < 0 && errno == EINTR) {
    }
    s->is_up = false;
}

void pg_server_crash(struct pg_server *s)
{
    ctl_stop(s, "immediate");
}

void pg_server_restart(struct pg_server *s)
{
    ctl_start(s);
}

const char *pg_server_conninfo(const struct pg_server *s, const char *database)
{
    static char text[200];
    snprintf(text, sizeof text, "host=%s port=%d user=postgres dbname=%s", s->dir, s->port,
             database);
    return text;
}

static int psql(const struct pg_server *s, const char *database, const char *sql, char **output)
{
    char port[12];
    snprintf(port, sizeof port, "%d", s->port);
    return run((const char *[]){BIN "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h",
                                s->dir, "-p", port, "-U", "postgres", "-d", database, "-c", sql,
                                NULL},
               output);
}

void pg_server_exec(const struct pg_server *s, const char *database, const char *sql)
{
    char *output = NULL;
    if (psql(s, database, sql, &output) != 0) {
        fatal("%s\n%s", sql, output);
    }
    free(output);
}

char *pg_server_value(const struct pg_server *s, const char *database, const char *sql)
{
    char *output = NULL;
    if (psql(s, database, sql, &output) != 0) {
        fatal("%s\n%s", sql, output);
    }
    output[strcspn(output, "\n")] = '\0';
    return output;
}
