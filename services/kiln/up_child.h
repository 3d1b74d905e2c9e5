/* One child of `kiln up`: started through the launcher, watched, started again when it dies. */
#pragma once
#include "common/base/buf.h"
#include "common/loop/loop.h"
#include <sys/types.h>
#include <uv.h>

struct up;
enum up_child_state {
    UP_CHILD_IDLE,    /* not started, or ended for good */
    UP_CHILD_RUNNING, /* has a process */
    UP_CHILD_ENDED,   /* the process is gone, its last words are being read */
    UP_CHILD_WAITING  /* will be started again */
};
enum { UP_DEATHS = 5 }; /* this many within 10 s before it was ever ready: kiln up gives up */

struct up_child {
    /* set by the owner, constant */
    struct up *up;
    const char *name;  /* "gateway-1" */
    const char *user;  /* NULL: as ourselves */
    char **argv;       /* argv[0] is the program's path; NULL-terminated */
    char **argv_again; /* of later starts, when they differ; NULL: argv */
    char **env;
    const char *log_path; /* standard output and error go to this file; NULL: through us */
    const char *input;    /* what standard input holds; NULL: nothing */
    int death_signal;     /* what the kernel sends it when we die */
    int stop_signal;      /* asks it to end */
    bool once;            /* not started again; `ended` tells the owner */
    void (*ended)(struct up_child *c, bool ok); /* once only */
    /* state */
    enum up_child_state state;
    int64_t starts;
    pid_t pid;
    uv_process_t process;
    uv_pipe_t pipe;
    bool process_open, pipe_open;
    char read_space[4096];
    struct buf line;       /* an unfinished line of its output */
    char last_error[1024]; /* its last line that looked like an error, else its last line */
    bool last_is_error;
    off_t log_from;          /* where this start's lines begin in log_path */
    int64_t status;          /* exit code */
    int signum;              /* signal that ended it, 0 none */
    struct loop_timer timer; /* last words, or the next start */
    struct ms started;
    struct ms deaths[UP_DEATHS];
    size_t n_deaths;
    bool proven; /* it was ready once, or lived 10 s: from then on it is only restarted */
    int64_t backoff_ms;
};

void up_child_init(struct up_child *c, struct up *u, const char *name);
void up_child_start(struct up_child *c);
/* Sends stop_signal, or SIGKILL; a child that waits for its next start is not started again. */
void up_child_stop(struct up_child *c);
void up_child_kill(struct up_child *c);
bool up_child_is_gone(const struct up_child *c);
void up_child_fini(struct up_child *c);
/* The sentence in one line of a child's log: its "error" field (JSON or text form), or the line
 * itself. *is_error: the line is of level error, or no log line. */
void up_child_sentence(struct slice line, struct buf *out, bool *is_error);
