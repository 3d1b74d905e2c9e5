/* Calls: waiting in a fair queue, given to a child, tried once more when it dies, ended once. */
#include "common/compiler/compiler_internal.h"
#include "common/log/log.h"

#define MAX_DEATHS 2  /* a request that killed so many children is not tried again */
#define MAX_REPLAYS 3 /* of a load for one call: children that keep losing it are broken */

static char kind_load[] = "load";

static ProtobufCBinaryData binary(const struct buf *b)
{
    return (ProtobufCBinaryData){b->len, (uint8_t *)(void *)b->p};
}

static void job_free(struct compiler_job *job)
{
    free(job->kind);
    free(job->load_id);
    free(job->own_load);
    buf_fini(&job->payload);
    free(job);
}

void compiler_jobs_finish(struct loop_task *t)
{
    struct compiler_pool *p = t->data;
    struct list now; /* calls that fail inside of done belong to the next turn */
    list_init(&now);
    for (struct list *it; (it = list_take_head(&p->finished));) {
        list_add_tail(&now, it);
    }
    for (struct list *it; (it = list_take_head(&now));) {
        struct compiler_job *job = list_entry(it, struct compiler_job, link);
        struct compiler_call *call = job->call;
        job_free(job);
        call->impl = NULL;
        call->done(call);
    }
    compiler_pool_check_closed(p);
}

static void finish_later(struct compiler_job *job)
{
    struct compiler_pool *p = job->pool;
    loop_timer_stop(&job->wait);
    list_del(&job->link);
    if (!job->call) {
        job_free(job);
        return;
    }
    list_add_tail(&p->finished, &job->link);
    loop_defer(p->loop, &p->finish);
}

void compiler_job_fail(struct compiler_job *job, int rc, const char *fmt, ...)
{
    if (job->call) {
        va_list ap;
        va_start(ap, fmt);
        job->call->rc = err_vset(&job->call->err, rc, fmt, ap);
        va_end(ap);
    }
    finish_later(job);
}

static void take_from_queue(struct compiler_job *job)
{
    list_del(&job->link);
    loop_timer_stop(&job->wait);
    job->queued = false;
    job->pool->stats.waiting--;
}

void compiler_jobs_fail_all(struct compiler_pool *p, int rc, const char *text)
{
    while (!list_empty(&p->waiting)) {
        struct compiler_job *job = list_entry(p->waiting.next, struct compiler_job, link);
        take_from_queue(job);
        compiler_job_fail(job, rc, "%s", text);
    }
}

struct compiler_job *compiler_job_detach(struct compiler_child *c)
{
    struct compiler_job *job = c->job;
    if (job) {
        c->job = NULL;
        c->pool->stats.running--;
    }
    return job;
}

static void on_waited(struct loop_timer *t)
{
    struct compiler_job *job = t->data;
    struct compiler_pool *p = job->pool;
    take_from_queue(job);
    struct compiler_stats now;
    compiler_pool_stats(p, &now);
    if (now.ready == 0) {
        compiler_job_fail(job, ERR_COMPILER_DOWN,
                          "no Malloy compiler answered within %lld ms: %s; try again",
                          (long long)job->timeout.v, p->why ? p->why : "it is still starting");
        return;
    }
    compiler_job_fail(job, ERR_COMPILER_BUSY,
                      "'%s' waited %lld ms for one of %u Malloy compilers, all are busy; try again "
                      "later or configure more of them",
                      job->kind, (long long)job->timeout.v, p->n_children);
}

static void queued(struct compiler_job *job)
{
    job->queued = true;
    job->pool->stats.waiting++;
    loop_timer_start(&job->wait, job->timeout);
}

/* First means: tried again. */
static void enqueue_first(struct compiler_job *job)
{
    list_add_head(&job->pool->waiting, &job->link);
    queued(job);
}

static void enqueue_last(struct compiler_job *job)
{
    list_add_tail(&job->pool->waiting, &job->link);
    queued(job);
}

void compiler_job_retry(struct compiler_job *job, const char *why)
{
    if (!job->call) {
        job_free(job);
        return;
    }
    if (++job->deaths >= MAX_DEATHS) {
        compiler_job_fail(job, ERR_COMPILER_DOWN,
                          "%d Malloy compilers ended over this request ('%s'), the last one: %s; "
                          "simplify its text or raise the compiler's heap",
                          MAX_DEATHS, job->kind, why);
        return;
    }
    log_warn("compiler.retry", "kind=%s why=%s", job->kind, log_q(why));
    enqueue_first(job);
}

void compiler_job_answer(struct compiler_job *job, const Kiln__Mc__Frame *f, struct slice packed)
{
    struct compiler_call *call = job->call;
    job_free(job);
    if (!call) {
        return;
    }
    call->impl = NULL;
    call->reply_kind = f->kind;
    call->reply = slice_make(f->payload.data, f->payload.len);
    call->frame = packed;
    if (strcmp(f->kind, "error") == 0) {
        call->rc = err_set(&call->err, ERR_COMPILE, "%s",
                           *f->error_text ? f->error_text : err_code_text(ERR_COMPILE));
    }
    call->done(call);
}

static void replay(struct compiler_child *c, struct compiler_job *job)
{
    struct compiler_kept *k = compiler_kept_get(c->pool, job->load_id);
    if (!k || ++job->replays > MAX_REPLAYS) {
        (void)compiler_job_detach(c);
        compiler_job_fail(job, ERR_COMPILER_NOT_LOADED,
                          k ? "the Malloy compiler loses load '%s' again and again; try again"
                            : "load '%s' is not kept any more: the package was replaced or "
                              "deleted meanwhile; try again",
                          job->load_id);
        compiler_pool_child_rests(c);
        return;
    }
    c->pool->stats.replays++;
    compiler_child_ask(c, CHILD_REPLAYING, kind_load, binary(&k->packed), job->load_id,
                       ms_max(job->timeout, MS(COMPILER_REPLAY_MS)));
}

void compiler_job_run(struct compiler_child *c, struct compiler_job *job)
{
    if (c->job != job) {
        c->job = job;
        c->pool->stats.running++;
    }
    if (job->load_id && compiler_copy_rank(c, job->load_id) < 2) {
        replay(c, job);
        return;
    }
    compiler_child_ask(c, CHILD_CALLING, job->kind, binary(&job->payload), job->own_load,
                       job->timeout);
}

/* A child at rest: the one that holds the load, else the one that holds least. */
static struct compiler_child *pick(const struct compiler_pool *p, const struct compiler_job *job)
{
    const char *id = job->load_id ? job->load_id : job->own_load;
    struct compiler_child *best = NULL;
    int best_rank = -1;
    list_for_each (it, &p->children) {
        struct compiler_child *c = list_entry(it, struct compiler_child, link);
        if (c->state != CHILD_IDLE || c->hung_up) {
            continue;
        }
        int rank = id ? compiler_copy_rank(c, id) : 0;
        if (rank > best_rank ||
            (rank == best_rank && map_len(&c->copies) < map_len(&best->copies))) {
            best = c;
            best_rank = rank;
        }
    }
    return best;
}

void compiler_dispatch(struct compiler_pool *p)
{
    if (compiler_pool_is_hopeless(p)) { /* waiting would only delay the bad news */
        auto_free char *text = xasprintf("the Malloy compiler is down: %s", p->why);
        compiler_jobs_fail_all(p, ERR_COMPILER_DOWN, text);
    }
    while (!p->closing && !list_empty(&p->waiting)) {
        struct compiler_job *job = list_entry(p->waiting.next, struct compiler_job, link);
        struct compiler_child *c = NULL;
        if (job->load_id && !compiler_kept_get(p, job->load_id)) {
            take_from_queue(job);
            compiler_job_fail(job, ERR_COMPILER_NOT_LOADED,
                              "load '%s' is not kept: the package was replaced or deleted "
                              "meanwhile; try again",
                              job->load_id);
        } else if ((c = pick(p, job))) {
            take_from_queue(job);
            compiler_job_run(c, job);
        } else {
            return;
        }
    }
}

static struct compiler_job *job_new(struct compiler_pool *p, struct compiler_call *c)
{
    struct compiler_job *job = xcalloc(1, sizeof *job);
    job->pool = p;
    job->call = c;
    job->timeout = c->timeout.v > 0 ? c->timeout : MS(COMPILER_CALL_MS);
    list_init(&job->link);
    loop_timer_init(&job->wait, p->loop, on_waited, job);
    c->impl = job;
    return job;
}

static void pack(struct compiler_job *job, const struct compiler_call *c)
{
    job->kind = xstrdup(c->kind);
    job->load_id = xstrdup(c->load_id);
    if (!c->request) {
        return;
    }
    if (c->request->descriptor == &kiln__mc__load__descriptor) {
        const Kiln__Mc__Load *load = (const Kiln__Mc__Load *)(const void *)c->request;
        job->own_load = xstrdup(load->load_id);
    }
    size_t len = protobuf_c_message_get_packed_size(c->request);
    if (len == 0 || len > COMPILER_FRAME_MAX) {
        job->payload.len = len;
        return;
    }
    buf_reserve(&job->payload, len);
    job->payload.len = protobuf_c_message_pack(c->request, (uint8_t *)(void *)job->payload.p);
}

void compiler_call_start(struct compiler_pool *p, struct compiler_call *c)
{
    loop_assert_here(p->loop);
    must(c->kind && c->done);
    err_clear(&c->err);
    c->rc = 0;
    c->reply_kind = "";
    c->reply = SLICE_NONE;
    c->frame = SLICE_NONE;
    struct compiler_job *job = job_new(p, c);
    pack(job, c);
    p->stats.calls++;
    if (p->closing) {
        compiler_job_fail(job, ERR_SHUTDOWN, "the Malloy compiler is shutting down");
        return;
    }
    if (job->payload.len > COMPILER_FRAME_MAX - 1024) {
        compiler_job_fail(job, ERR_LIMIT,
                          "a '%s' of %zu bytes is over the compiler's limit of %u; make the "
                          "package smaller",
                          job->kind, job->payload.len, COMPILER_FRAME_MAX - 1024);
        return;
    }
    compiler_pool_wake(p);
    enqueue_last(job);
    compiler_dispatch(p);
    if (p->stats.waiting > p->max_waiting && job->queued) {
        take_from_queue(job);
        compiler_job_fail(job, ERR_COMPILER_BUSY,
                          "%u calls wait for the Malloy compiler already; try again later or "
                          "configure more compilers",
                          p->max_waiting);
    }
}

/* The call ends now; the job goes on in its child without it. */
static void orphan(struct compiler_job *job)
{
    struct compiler_call *call = job->call;
    job->call = NULL;
    compiler_job_fail(job_new(job->pool, call), ERR_CANCELLED, "cancelled");
}

void compiler_call_cancel(struct compiler_call *c)
{
    struct compiler_job *job = c->impl;
    if (!job) {
        return;
    }
    loop_assert_here(job->pool->loop);
    if (job->queued) {
        take_from_queue(job);
        compiler_job_fail(job, ERR_CANCELLED, "cancelled");
    } else if (!list_linked(&job->link)) {
        orphan(job);
    }
}
