/* Cancel requests: PQcancel blocks on a connection of its own, so it runs on the thread pool. */
#include "common/pgc/pgc_pq.h"

struct pgc_pq_cancel {
    struct offload_job job;
    PGcancel *handle;
    struct pgc_pq *pq; /* loop thread only; NULL: abandoned */
};

static void cancel_offload(struct offload_job *job)
{
    struct pgc_pq_cancel *k = container_of(job, struct pgc_pq_cancel, job);
    char text[256];
    /* A request that fails is repeated until the statement ends; there is nobody to tell. */
    (void)PQcancel(k->handle, text, (int)sizeof text);
}

static void on_cancel_done(struct offload_job *job)
{
    struct pgc_pq_cancel *k = container_of(job, struct pgc_pq_cancel, job);
    struct pgc_pq *q = k->pq;
    PQfreeCancel(k->handle);
    free(k);
    if (q) {
        q->cancel = NULL;
        pgc_conn_cancel_sent(q->c);
    }
}

void pgc_pq_cancel_start(struct pgc_conn *c)
{
    struct pgc_pq *q = c->drv;
    must(!q->cancel);
    struct pgc_pq_cancel *k = xcalloc(1, sizeof *k);
    k->handle = q->pg ? PQgetCancel(q->pg) : NULL;
    k->job = (struct offload_job){.work_offload = cancel_offload, .done = on_cancel_done};
    k->pq = q;
    q->cancel = k;
    loop_offload(c->pool->loop, &k->job); /* without a handle PQcancel only says so */
}

void pgc_pq_cancel_abandon(struct pgc_pq *q)
{
    if (q->cancel) {
        q->cancel->pq = NULL;
        q->cancel = NULL;
    }
}
