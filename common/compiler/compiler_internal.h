/* Inside of the compiler pool: what its files share. Not for anyone else. */
#pragma once
#include "common/base/buf.h"
#include "common/base/list.h"
#include "common/base/map.h"
#include "common/compiler/compiler.h"
#include "proto/compiler.pb-c.h"
#include <uv.h>

#define COMPILER_FRAME_MAX (256U << 20) /* bytes; the child holds the same limit */
#define COMPILER_HELLO_MS 30000         /* a cold start on a machine that is very busy */
#define COMPILER_THAW_MS 10000          /* the same, of a child that starts from a snapshot */
#define COMPILER_TIDY_MS                                                                           \
    500 /* an unload takes a child milliseconds: not at once, when calls follow */
#define COMPILER_REPLAY_MS 60000 /* least span of a load sent again, and span of an unload */
#define COMPILER_CALL_MS 30000   /* span of a call that names none */
#define COMPILER_PARENT_ENV "KILN_COMPILER_PARENT" /* pid that the launcher must still have */

/* The life of a child; an answer is waited for in every state but IDLE and ENDING.
 *
 *   STARTING -hello-> IDLE -> REPLAYING -loaded-> CALLING -answer-> IDLE
 *                     IDLE -> CALLING, IDLE -> UNLOADING -ok-> IDLE
 *   every state -deadline, exit, rubbish-> ENDING -exit, handles closed-> freed
 */
enum compiler_child_state {
    CHILD_STARTING,
    CHILD_IDLE,
    CHILD_REPLAYING,
    CHILD_CALLING,
    CHILD_UNLOADING,
    CHILD_ENDING
};

struct compiler_child {
    struct compiler_pool *pool;
    struct list link; /* pool's children, until the last handle is closed */
    enum compiler_child_state state;
    bool retiring;              /* grown too large: ended when its substitute answers */
    bool hung_up;               /* the channel is at its end: no more calls */
    bool spawned;               /* `process` is a handle */
    bool from_snapshot;         /* started from the bundle's snapshot */
    bool exited;                /* or never ran: nothing to kill */
    bool closing;               /* handles are being closed */
    unsigned handles;           /* uv handles that are not closed yet */
    uv_process_t process;       /* the child */
    uv_pipe_t channel;          /* its descriptor 3: frames */
    uv_pipe_t errors;           /* its standard error: log lines */
    struct loop_timer deadline; /* of the answer; in ENDING: of leaving by itself */
    struct ms span;             /* what the deadline was set to */
    struct ms asked_at;         /* when the frame that is out was sent */
    uint32_t frame_id;          /* of the frame that is out */
    struct buf in;              /* of the channel, not yet a whole frame */
    struct buf line;            /* of standard error, not yet a whole line */
    char room[2048];            /* what a read of standard error goes into */
    char said[256];             /* the line of standard error that tells most */
    struct map copies;          /* load id to struct compiler_copy: what the child holds */
    char *asked_load;           /* owned; id of the load in the frame that is out, or NULL */
    bool asked_stale;           /* it was forgotten since */
    struct compiler_job *job;   /* the call in work, owned; NULL: none */
};
struct compiler_copy {
    char *id;    /* owned */
    bool loaded; /* false: the child waits for schemas */
    bool stale;  /* forgotten: to be unloaded, or replaced by a load of the same id */
    struct ms stale_since;
};
struct compiler_kept {
    char *id;          /* owned */
    struct buf packed; /* kiln.mc.Load */
};

/* One call inside of the pool: in `waiting`, in a child, or in `finished`. */
struct compiler_job {
    struct compiler_pool *pool;
    struct list link;           /* waiting or finished */
    struct compiler_call *call; /* NULL: cancelled while it ran, nobody waits for the answer */
    char *kind;                 /* owned */
    char *load_id;              /* owned; the load it needs, or NULL */
    char *own_load;             /* owned; the load it brings (kind "load"), or NULL */
    struct buf payload;         /* the packed request */
    struct ms timeout;          /* of waiting, and again of the work */
    bool queued;                /* in `waiting` */
    struct loop_timer wait;     /* runs while it is queued */
    unsigned deaths;            /* children that died over it */
    unsigned replays;           /* loads sent again for it */
};

struct compiler_pool {
    struct loop *loop;
    unsigned n_children, max_waiting;
    char *node, *bundle, *self; /* owned; as configured */
    int64_t heap_mb, rss_limit_mb;
    void (*on_ready)(void *data, bool ready, const char *why);
    void *data;
    char *version;           /* owned; Malloy's, "" before the first hello */
    struct list children;    /* of struct compiler_child, the ending ones too */
    struct list waiting;     /* of struct compiler_job, oldest first */
    struct list finished;    /* of struct compiler_job: done is due on the next turn */
    struct map kept;         /* load id to struct compiler_kept */
    struct loop_task finish; /* calls done of what is in `finished` */
    struct loop_task tell;   /* calls on_ready when its news is news */
    struct loop_timer tidy;  /* unloads what was forgotten from children at rest */
    struct loop_timer respawn;
    struct ms backoff;     /* before the next respawn */
    struct ms replace_at;  /* no child is replaced for its size before this */
    struct ms replace_gap; /* grows while replacing does not help */
    bool start_failed;     /* the last child did not come up */
    bool no_snapshot;      /* this Node does not take the one beside the bundle */
    struct ms thaw_span;   /* COMPILER_THAW_MS */
    struct ms tidy_span;   /* COMPILER_TIDY_MS */
    bool asleep;           /* no child starts before the first call or `respawn` */
    bool fresh_why;        /* `why` was not told yet */
    enum { TOLD_NOTHING, TOLD_READY, TOLD_DOWN } told;
    char *why; /* owned; why no child answers, NULL while all is well */
    bool closing, closed;
    void (*on_closed)(void *data);
    void *closed_data;
    struct compiler_stats stats; /* the counters; the rest is filled in when asked */
};

/* compiler_pool.c */
/* A child did not come up (`starting`) or ended: keeps the sentence. */
void compiler_pool_note_failure(struct compiler_pool *p, bool starting, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
void compiler_pool_child_ready(struct compiler_child *c, const char *malloy_version);
void compiler_pool_child_gone(struct compiler_pool *p); /* one was freed */
void compiler_pool_wake(struct compiler_pool *p);       /* there is a call: children are wanted */
bool compiler_pool_is_hopeless(
    const struct compiler_pool *p); /* none lives, the last did not start */
/* The child has nothing to do any more: replaced, ended or given the next call. */
void compiler_pool_child_rests(struct compiler_child *c);
void compiler_pool_check_closed(struct compiler_pool *p);

/* compiler_call.c */
void compiler_dispatch(struct compiler_pool *p); /* gives waiting calls to children at rest */
/* Sends the job, or first the load it needs, to a child at rest. */
void compiler_job_run(struct compiler_child *c, struct compiler_job *job);
struct compiler_job *compiler_job_detach(struct compiler_child *c); /* NULL when it has none */
/* Ends the job: done comes on the next turn. */
void compiler_job_fail(struct compiler_job *job, int rc, const char *fmt, ...) PRINTF_LIKE(3, 4);
void compiler_job_retry(struct compiler_job *job, const char *why); /* its child died over it */
/* Ends the job with the child's answer: done runs inside. */
void compiler_job_answer(struct compiler_job *job, const Kiln__Mc__Frame *f, struct slice packed);
void compiler_jobs_fail_all(struct compiler_pool *p, int rc,
                            const char *text); /* the waiting ones */
void compiler_jobs_finish(struct loop_task *t);

/* compiler_loads.c */
struct compiler_kept *compiler_kept_get(const struct compiler_pool *p, const char *load_id);
/* 2: holds it, 1: holds it in part or an old one, 0: not at all. */
int compiler_copy_rank(const struct compiler_child *c, const char *load_id);
void compiler_copy_set(struct compiler_child *c, const char *load_id, bool loaded, bool stale);
void compiler_copy_drop(struct compiler_child *c, const char *load_id);
void compiler_copies_fini(struct compiler_child *c);
/* True when an unload was sent: the child is busy with it. */
bool compiler_unload_forgotten(struct compiler_child *c);
void compiler_loads_tidy(struct loop_timer *t);
void compiler_kept_fini(struct compiler_pool *p);

/* compiler_child.c */
void compiler_child_start(struct compiler_pool *p); /* failures arrive like the end of a child */
/* Sends a frame and waits for its answer in `state`. load_id (may be NULL) is copied. */
void compiler_child_ask(struct compiler_child *c, enum compiler_child_state state, char *kind,
                        ProtobufCBinaryData payload, const char *load_id, struct ms span);
/* No answer is waited for any more; the job, if any, must be detached. SIGKILL. */
void compiler_child_kill(struct compiler_child *c);
/* It ended or talked rubbish: its job is tried again on another child. One that was to start from a
 * snapshot and did not: another one starts from the bundle, and so do all that follow. */
void compiler_child_lost(struct compiler_child *c, const char *why);
int64_t compiler_child_rss_mb(const struct compiler_child *c); /* 0 when it is not known */

/* compiler_answer.c */
void compiler_answer(struct compiler_child *c, const Kiln__Mc__Frame *f, struct slice packed);
void compiler_answer_late(struct compiler_child *c); /* its deadline has passed */

/* compiler_process.c */
int compiler_process_spawn(struct compiler_child *c, struct err *e) MUST_USE;
void compiler_process_close(
    struct compiler_child *c); /* closes the handles, then frees the child */
