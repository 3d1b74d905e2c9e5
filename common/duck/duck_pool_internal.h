/* What the pool and its jobs share. */
#pragma once
#include "common/duck/duck_internal.h"
#include "common/duck/duck_pool.h"

#define RING 4

struct duck_pool {
    pthread_mutex_t lock; /* also of the queues in the instances */
    pthread_cond_t wake;
    unsigned threads, reserved;
    unsigned running; /* ordinary jobs */
    size_t jobs;      /* waiting and running */
    bool stopping;
    struct list in_turn; /* instances with jobs that wait */
    pthread_t *ids;
};
/* A job in flight. */
struct duck_run {
    struct duck_job *job;
    struct duck_pool *pool;
    struct list link;          /* in the instance's queue while it waits */
    bool is_extra, is_counted; /* the pool's, about what it takes up */
    struct loop_timer deadline, again;
    bool reader_stopped; /* on_page refused a page */
    /* shared with the thread, under the lock */
    pthread_mutex_t lock;
    pthread_cond_t room;
    struct duck_conn *conn; /* while it runs */
    struct duck_page *ring[RING];
    unsigned first, n; /* unread pages */
    bool page_posted;  /* the loop has been told */
    int stop;          /* a code: end with it */
    struct err stop_err;
    /* posted */
    struct inbox_item page_item, end_item;
    int rc;
    struct err err;
};

/* Pool thread, around a job's work: memory for it, waiting up to 2 s for what others hold. */
void duck_budget_enter(struct duck_job *job);
void duck_budget_leave(struct duck_job *job);
void duck_pool_add(struct duck_pool *p, struct duck_run *run);
/* Out of the queue; false: a thread has it, or had it. */
bool duck_pool_remove(struct duck_pool *p, struct duck_run *run);
void duck_run_work(struct duck_run *run);     /* pool thread */
void duck_run_post_end(struct duck_run *run); /* pool thread */
