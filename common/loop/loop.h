/* The event loop of a process: timers, deferred tasks, signals, the inbox from other threads,
 * offload. */
#pragma once
#include "common/base/list.h"
#include "common/base/ms.h"
#include "common/err/err.h"
#include "common/flow/flow.h"
#include <pthread.h>

struct loop;
struct uv_loop_s;

struct loop *loop_new(void) MUST_USE;
/* After loop_run returned. Closes what the loop itself opened; must() that no flow, timer, task,
 * job or handle is left. */
void loop_free(struct loop *l);
/* Runs until loop_stop; may be called again. The calling thread owns the loop from then on. */
void loop_run(struct loop *l);
void loop_stop(struct loop *l); /* loop thread only; returns at the end of the turn */
/* One turn for tests: waits at most max_wait for something to happen. False when nothing is alive;
 * it waits even then, because a post from another thread may come. */
bool loop_turn(struct loop *l, struct ms max_wait);
struct ms loop_now(struct loop *l);          /* monotonic */
int64_t loop_unix_us(void);                  /* wall clock, for records only */
struct uv_loop_s *loop_uv(struct loop *l);   /* for adapter files only */
void loop_assert_here(const struct loop *l); /* must() that this is the loop's thread */
struct flow_env *loop_flows(struct loop *l); /* flows run on this */

/* Timer: caller-allocated; stop is idempotent and immediate: after it, fn is not called. */
struct loop_timer {
    struct loop *loop;
    void (*fn)(struct loop_timer *t);
    void *data;
    struct ms due;
    size_t heap_at; /* place in the loop's heap + 1; 0 unarmed */
};
void loop_timer_init(struct loop_timer *t, struct loop *l, void (*fn)(struct loop_timer *),
                     void *data);
void loop_timer_start(struct loop_timer *t, struct ms after);
void loop_timer_stop(struct loop_timer *t);

/* Task on the next turn; caller-allocated; deferring twice is harmless. */
struct loop_task {
    void (*fn)(struct loop_task *t);
    void *data;
    struct list link;
};
void loop_task_init(struct loop_task *t, void (*fn)(struct loop_task *), void *data);
void loop_defer(struct loop *l, struct loop_task *t);
void loop_task_cancel(struct loop_task *t);

/* Inbox: the only way into the loop from another thread. item is handed to the loop, fn runs there,
 * in order. */
struct inbox_item {
    void (*fn)(struct inbox_item *item);
    struct inbox_item *next;
};
void loop_post(struct loop *l, struct inbox_item *item); /* any thread */

/* A loop on a thread of its own, from loop_thread_start until loop_stop is called there. Join
 * blocks until then: only where the stop is under way. Afterwards the loop is the caller's, to be
 * freed. */
struct loop_thread {
    pthread_t id;
    struct loop *loop;
};
void loop_thread_start(struct loop_thread *t, struct loop *l);
void loop_thread_join(struct loop_thread *t);
unsigned loop_cores(void); /* that this process may run on; at least 1 */

/* Offload: a pure function on the thread pool; `done` comes on the loop. work must touch nothing
 * but its job. */
struct offload_job {
    void (*work_offload)(struct offload_job *job);
    void (*done)(struct offload_job *job);
    void *data;
    void *impl; /* the loop's */
};
void loop_offload(struct loop *l, struct offload_job *job);

/* SIGTERM and SIGINT call fn on the loop; SIGPIPE is ignored. */
void loop_on_signal(struct loop *l, void (*fn)(void *data, int signum), void *data);
