/* The blocking threads over all DuckDB instances of a process (protocol.md 13, 14). A job belongs
 * to the loop that started it; a thread works on it and posts rows and end into that loop's inbox.
 *
 * Each instance has its own queue, and instances take turns. Ordinary jobs leave `reserved`
 * threads free for urgent ones. */
#pragma once
#include "common/duck/duck.h"
#include "common/loop/loop.h"

struct duck_pool;
struct duck_pool *duck_pool_new(unsigned threads, unsigned reserved) MUST_USE;
/* must() that no job is left; waits for the threads to end. */
void duck_pool_free(struct duck_pool *p);
size_t duck_pool_jobs(struct duck_pool *p); /* waiting and running; any thread */

/* A job: the caller's struct, untouched by the caller between start and done. */
struct duck_job {
    /* set by the caller */
    struct duck_instance *instance; /* the job holds a reference while it lasts */
    struct loop *loop;
    bool is_urgent;    /* before everything that waits; work must be short */
    struct ms timeout; /* from the start on, waiting included; 0: none */
    /* On a thread of the pool, with a connection of its own until it returns. It touches the job,
     * what the job's owner keeps for it alone, and nothing of the loop. A code and its error is how
     * the job ends, unless it was stopped before. */
    int (*work_pool)(struct duck_job *job, struct duck_conn *conn, struct err *e);
    /* On the loop: a page from duck_job_push. Negative: no more of them, the job ends with that
     * code. NULL: nothing is pushed. */
    int (*on_page)(struct duck_job *job, struct duck_page *page);
    void (*done)(struct duck_job *job); /* on the loop, once, never inside the start */
    void *data;
    /* when done */
    int rc;
    struct err err;
    void *impl;
};
void duck_job_start(struct duck_pool *p, struct duck_job *job); /* the job's loop */
/* Idempotent, the job's loop. A job that waits ends at once; a running statement is interrupted,
 * and again every 200 ms until it ends. done comes with ERR_CANCELLED, unless the work was over. */
void duck_job_cancel(struct duck_job *job);
/* 0..1, or < 0 unknown, as without duck_show_progress; never waits. The job's loop. */
double duck_job_progress(const struct duck_job *job, uint64_t *rows);

/* For work_pool: hands a page to the loop; waits while 4 are unread. A code: stop now (the page is
 * freed in any case). */
int duck_job_push(struct duck_job *job, struct duck_page *page, struct err *e) MUST_USE;
/* For work_pool between its statements: 0, or the code it is to end with. */
int duck_job_stopped(struct duck_job *job, struct err *e) MUST_USE;
/* For work_pool after ERR_QUERY_MEMORY: all the process has that others do not need, and what is
 * kept prepared is given up. False: it has had that; true: the statement can be tried again. */
bool duck_job_more_memory(struct duck_job *job, struct duck_conn *conn) MUST_USE;
