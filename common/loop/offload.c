/* Offload: pure functions on libuv's thread pool. */
#include "common/loop/loop_internal.h"

struct offload {
    uv_work_t work;
    struct loop *loop;
    struct offload_job *job;
};

static void on_work_offload(uv_work_t *work)
{
    struct offload *o = container_of(work, struct offload, work);
    o->job->work_offload(o->job);
}

static void on_work_done(uv_work_t *work, int status)
{
    (void)status; /* never cancelled: nobody else holds the request */
    struct offload *o = container_of(work, struct offload, work);
    struct offload_job *job = o->job;
    o->loop->offloads--;
    free(o);
    job->impl = NULL;
    job->done(job);
}

void loop_offload(struct loop *l, struct offload_job *job)
{
    loop_assert_here(l);
    struct offload *o = xcalloc(1, sizeof(*o));
    o->loop = l;
    o->job = job;
    job->impl = o;
    l->offloads++;
    must(uv_queue_work(&l->uv, &o->work, on_work_offload, on_work_done) == 0);
}
