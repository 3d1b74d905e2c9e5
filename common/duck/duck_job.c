/* One job: what passes between its thread and its loop, and how it is stopped. */
#include "common/duck/duck_pool_internal.h"

#define AGAIN MS(200)

/* ---- on the loop ---- */

static void finish(struct duck_run *run)
{
    struct duck_job *job = run->job;
    loop_timer_stop(&run->deadline);
    loop_timer_stop(&run->again);
    bool is_done = run->rc == 0 && run->n == 0 && !run->reader_stopped;
    job->rc = is_done ? 0 : run->stop ? run->stop : run->rc;
    job->err = run->stop ? run->stop_err : run->err;
    if (is_done) {
        err_clear(&job->err); /* a stop that came too late */
    }
    while (run->n > 0) {
        duck_page_free(run->ring[run->first]);
        run->first = (run->first + 1) % RING;
        run->n--;
    }
    pthread_cond_destroy(&run->room);
    pthread_mutex_destroy(&run->lock);
    struct duck_instance *i = job->instance;
    free(run);
    job->impl = NULL;
    job->done(job);
    duck_instance_unref(i);
}

static void on_end(struct inbox_item *item)
{
    finish(container_of(item, struct duck_run, end_item));
}

/* The first reason counts. False: it was stopped before. */
static bool set_stop(struct duck_run *run, int code, const char *why)
{
    pthread_mutex_lock(&run->lock);
    bool is_first = run->stop == 0;
    if (is_first) {
        run->stop = err_set(&run->stop_err, code, "%s: %s", run->job->instance->what, why);
        pthread_cond_signal(&run->room);
    }
    pthread_mutex_unlock(&run->lock);
    return is_first;
}

static void interrupt(struct duck_run *run)
{
    pthread_mutex_lock(&run->lock);
    if (run->conn) {
        duckdb_interrupt(run->conn->con);
    }
    pthread_mutex_unlock(&run->lock);
}

/* An interrupt that comes before the statement has begun is lost. */
static void on_again(struct loop_timer *t)
{
    struct duck_run *run = t->data;
    interrupt(run);
    loop_timer_start(t, AGAIN);
}

static void stop(struct duck_run *run, int code, const char *why)
{
    if (!set_stop(run, code, why)) {
        return;
    }
    loop_timer_stop(&run->deadline);
    if (duck_pool_remove(run->pool, run)) {
        run->rc = code;
        loop_post(run->job->loop, &run->end_item);
        return;
    }
    interrupt(run);
    loop_timer_start(&run->again, AGAIN);
}

static void on_deadline(struct loop_timer *t)
{
    stop(t->data, ERR_TIMEOUT, "the statement took longer than it may");
}

void duck_job_cancel(struct duck_job *job)
{
    if (job->impl) {
        stop(job->impl, ERR_CANCELLED, "cancelled");
    }
}

static struct duck_page *take_page(struct duck_run *run)
{
    struct duck_page *page = NULL;
    pthread_mutex_lock(&run->lock);
    if (run->n > 0 && run->stop == 0) {
        page = run->ring[run->first];
        run->first = (run->first + 1) % RING;
        run->n--;
        pthread_cond_signal(&run->room);
    } else {
        run->page_posted = false;
    }
    pthread_mutex_unlock(&run->lock);
    return page;
}

/* The end is posted behind it, so the run lives through this. */
static void on_pages(struct inbox_item *item)
{
    struct duck_run *run = container_of(item, struct duck_run, page_item);
    struct duck_page *page;
    for (unsigned i = 0; i < RING && (page = take_page(run)); i++) {
        int rc = run->job->on_page(run->job, page);
        duck_page_free(page);
        if (rc < 0) {
            run->reader_stopped = true;
            stop(run, rc, "the reader of the rows stopped");
        }
    }
    pthread_mutex_lock(&run->lock);
    /* With a page unread the thread has not posted the end. */
    bool more = run->n > 0 && run->stop == 0;
    run->page_posted = more;
    pthread_mutex_unlock(&run->lock);
    if (more) {
        loop_post(run->job->loop, item); /* others have their turn in between */
    }
}

void duck_job_start(struct duck_pool *p, struct duck_job *job)
{
    loop_assert_here(job->loop);
    must(!job->impl && job->work_pool && job->done);
    struct duck_run *run = xcalloc(1, sizeof(*run));
    run->job = job;
    run->pool = p;
    run->end_item.fn = on_end;
    run->page_item.fn = on_pages;
    list_init(&run->link);
    must(pthread_mutex_init(&run->lock, NULL) == 0 && pthread_cond_init(&run->room, NULL) == 0);
    loop_timer_init(&run->deadline, job->loop, on_deadline, run);
    loop_timer_init(&run->again, job->loop, on_again, run);
    job->impl = run;
    job->rc = 0;
    err_clear(&job->err);
    (void)duck_instance_ref(job->instance);
    if (job->timeout.v > 0) {
        loop_timer_start(&run->deadline, job->timeout);
    }
    duck_pool_add(p, run);
}

double duck_job_progress(const struct duck_job *job, uint64_t *rows)
{
    struct duck_run *run = job->impl;
    double fraction = -1;
    *rows = 0;
    if (!run) {
        return fraction;
    }
    pthread_mutex_lock(&run->lock);
    if (run->conn) {
        duckdb_query_progress_type at = duckdb_query_progress(run->conn->con);
        fraction = at.percentage < 0 ? -1 : at.percentage / 100;
        *rows = at.rows_processed;
    }
    pthread_mutex_unlock(&run->lock);
    return fraction;
}

/* ---- on the thread ---- */

static void set_conn(struct duck_run *run, struct duck_conn *conn)
{
    pthread_mutex_lock(&run->lock);
    run->conn = conn;
    pthread_mutex_unlock(&run->lock);
}

int duck_job_stopped(struct duck_job *job, struct err *e)
{
    struct duck_run *run = job->impl;
    pthread_mutex_lock(&run->lock);
    int rc = run->stop;
    if (rc < 0) {
        *e = run->stop_err;
    }
    pthread_mutex_unlock(&run->lock);
    return rc;
}

int duck_job_push(struct duck_job *job, struct duck_page *page, struct err *e)
{
    struct duck_run *run = job->impl;
    pthread_mutex_lock(&run->lock);
    while (run->n == RING && run->stop == 0) {
        pthread_cond_wait(&run->room, &run->lock);
    }
    int rc = run->stop;
    bool tell = rc == 0 && !run->page_posted;
    if (rc == 0) {
        run->ring[(run->first + run->n) % RING] = page;
        run->n++;
        run->page_posted = true;
    } else {
        *e = run->stop_err;
    }
    pthread_mutex_unlock(&run->lock);
    if (rc < 0) {
        duck_page_free(page);
    } else if (tell) {
        loop_post(job->loop, &run->page_item);
    }
    return rc;
}

/* The loop has read all pages, or asked to stop: the end does not overtake them. */
static void wait_until_read(struct duck_run *run)
{
    pthread_mutex_lock(&run->lock);
    while (run->n > 0 && run->stop == 0) {
        pthread_cond_wait(&run->room, &run->lock);
    }
    pthread_mutex_unlock(&run->lock);
}

void duck_run_work(struct duck_run *run)
{
    struct duck_job *job = run->job;
    struct duck_conn *conn = duck_conn_take(job->instance);
    duck_budget_enter(job);
    set_conn(run, conn);
    run->rc = duck_job_stopped(job, &run->err);
    if (run->rc == 0) {
        run->rc = job->work_pool(job, conn, &run->err);
    }
    wait_until_read(run);
    set_conn(run, NULL);
    duck_budget_leave(job);
    duck_conn_give(conn);
}

void duck_run_post_end(struct duck_run *run)
{
    loop_post(run->job->loop, &run->end_item);
}
