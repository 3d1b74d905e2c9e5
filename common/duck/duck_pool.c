/* Threads, queues and turns. A running job's own part is duck_job.c. */
#include "common/duck/duck_pool_internal.h"

/* DuckDB's parser and binder recurse over a statement's text. */
#define STACK_BYTES ((size_t)64 * 1024 * 1024)

static bool may_run(const struct duck_pool *p, const struct duck_instance *i,
                    const struct duck_run *run)
{
    if (run->job->is_urgent) {
        return i->running_first == 0 || i->running < i->connections;
    }
    return p->running < p->threads - p->reserved && i->running < i->connections;
}

/* The next job whose turn it is; NULL: none can run now. */
static struct duck_run *take_next(struct duck_pool *p)
{
    list_for_each (it, &p->in_turn) {
        struct duck_instance *i = list_entry(it, struct duck_instance, in_turn);
        struct duck_run *run = list_entry(i->jobs.next, struct duck_run, link);
        if (!may_run(p, i, run)) {
            continue;
        }
        list_del(&run->link);
        list_del(&i->in_turn);
        if (!list_empty(&i->jobs)) {
            list_add_tail(&p->in_turn, &i->in_turn);
        }
        /* An urgent job beside a full house has the connection that is kept for it. */
        run->is_extra = run->job->is_urgent && i->running >= i->connections;
        i->running += !run->is_extra;
        i->running_first += run->is_extra;
        run->is_counted = !run->job->is_urgent;
        p->running += run->is_counted;
        return run;
    }
    return NULL;
}

static void ended(struct duck_pool *p, struct duck_run *run)
{
    struct duck_instance *i = run->job->instance;
    i->running -= !run->is_extra;
    i->running_first -= run->is_extra;
    p->running -= run->is_counted;
    p->jobs--;
    pthread_cond_broadcast(&p->wake);
}

static void *thread_main(void *data)
{
    struct duck_pool *p = data;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        struct duck_run *run = take_next(p);
        if (run) {
            pthread_mutex_unlock(&p->lock);
            duck_run_work(run);
            pthread_mutex_lock(&p->lock);
            ended(p, run);
            duck_run_post_end(run); /* under the lock: what it frees is no longer counted */
        } else if (p->stopping) {
            break;
        } else {
            pthread_cond_wait(&p->wake, &p->lock);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

struct duck_pool *duck_pool_new(unsigned threads, unsigned reserved)
{
    struct duck_pool *p = xcalloc(1, sizeof(*p));
    pthread_attr_t attr;
    must(threads > reserved);
    p->threads = threads;
    p->reserved = reserved;
    list_init(&p->in_turn);
    must(pthread_mutex_init(&p->lock, NULL) == 0 && pthread_cond_init(&p->wake, NULL) == 0);
    p->ids = xcalloc(threads, sizeof(*p->ids));
    must(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, STACK_BYTES) == 0);
    for (unsigned i = 0; i < threads; i++) {
        must(pthread_create(&p->ids[i], &attr, thread_main, p) == 0);
        (void)pthread_setname_np(p->ids[i], "duck");
    }
    pthread_attr_destroy(&attr);
    return p;
}

void duck_pool_free(struct duck_pool *p)
{
    pthread_mutex_lock(&p->lock);
    must(p->jobs == 0);
    p->stopping = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->threads; i++) {
        must(pthread_join(p->ids[i], NULL) == 0);
    }
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    free(p->ids);
    free(p);
}

size_t duck_pool_jobs(struct duck_pool *p)
{
    pthread_mutex_lock(&p->lock);
    size_t n = p->jobs;
    pthread_mutex_unlock(&p->lock);
    return n;
}

/* Behind the urgent ones that came before. */
static void enqueue(struct duck_instance *i, struct duck_run *run)
{
    struct list *before = &i->jobs;
    if (run->job->is_urgent) {
        before = i->jobs.next;
        while (before != &i->jobs && list_entry(before, struct duck_run, link)->job->is_urgent) {
            before = before->next;
        }
    }
    list_add_tail(before, &run->link);
}

void duck_pool_add(struct duck_pool *p, struct duck_run *run)
{
    struct duck_instance *i = run->job->instance;
    pthread_mutex_lock(&p->lock);
    enqueue(i, run);
    if (!list_linked(&i->in_turn)) {
        list_add_tail(&p->in_turn, &i->in_turn);
    }
    p->jobs++;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

bool duck_pool_remove(struct duck_pool *p, struct duck_run *run)
{
    struct duck_instance *i = run->job->instance;
    pthread_mutex_lock(&p->lock);
    bool waits = list_linked(&run->link);
    if (waits) {
        list_del(&run->link);
        p->jobs--;
        if (list_empty(&i->jobs)) {
            list_del(&i->in_turn);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return waits;
}
