/* What all job flows share: operations, reporting, stopping, ending. */
#include "common/log/log.h"
#include "services/builder/builder.h"
#include "services/builder/core/outcome.h"

struct flow_job *job_of(struct flow *f)
{
    return container_of(f, struct flow_job, flow);
}

int job_call(struct flow_job *j, const struct bus_call *call)
{
    j->call = *call;
    j->call.data = j;
    memcpy(j->call.trace_id, j->trace, sizeof(j->trace));
    return bus_call_start(j->b->bus, &j->call);
}

/* ---- operations ---- */
void job_on_op(struct wh_op *op)
{
    struct flow_job *j = op->data;
    j->op_running = false;
    flow_resume(&j->flow, op->rc, &op->err);
}

void job_cancel_op(struct flow *f)
{
    struct flow_job *j = job_of(f);
    j->op.wh->ops->cancel(&j->op);
}

struct wh_op *job_op(struct flow_job *j)
{
    j->op = (struct wh_op){.wh = j->wh, .arena = &j->flow.arena, .data = j, .done = job_on_op};
    j->op_running = true;
    return &j->op;
}

enum flow_next job_failed(struct flow *f, unsigned report, Kiln__Outcome outcome)
{
    struct flow_job *j = job_of(f);
    j->error = f->err;
    j->error.code = f->rc ? f->rc : ERR_INTERNAL;
    j->outcome = outcome;
    for (size_t i = 0; j->conn && j->conn->secrets && j->conn->secrets[i]; i++) {
        err_scrub(&j->error, j->conn->secrets[i]);
    }
    for (size_t i = 0; j->secrets && j->secrets[i]; i++) {
        err_scrub(&j->error, j->secrets[i]);
    }
    return flow_goto(f, report);
}

/* ---- reporting ---- */
void job_columns(struct flow_job *j, const struct wh_columns *in, Kiln__Column ***out, size_t *n)
{
    Kiln__Column **list = arena_zalloc(&j->flow.arena, (in->n + 1) * sizeof(*list));
    for (size_t i = 0; i < in->n; i++) {
        list[i] = arena_alloc(&j->flow.arena, sizeof(**list));
        kiln__column__init(list[i]);
        list[i]->name = bus_str(in->items[i].name);
        list[i]->type = bus_str(in->items[i].data_type);
        list[i]->element_type = bus_str(in->items[i].element_type);
        list[i]->nullable = in->items[i].nullable;
    }
    *out = list;
    *n = in->n;
}

static void fill_report(struct flow_job *j)
{
    Kiln__FinishJobReq *q = &j->finish_req;
    q->token = j->job->token;
    q->outcome = j->outcome;
    q->rows = j->facts.rows;
    q->bytes = j->facts.bytes;
    q->data_as_of_us = j->facts.data_as_of_us;
    q->took_ms = (uint32_t)ms_sub(loop_now(j->b->loop), j->started).v;
    job_columns(j, &j->facts.columns, &q->columns, &q->n_columns);
    if (j->box) {
        q->root_id = j->b->root_id;
    }
    if (j->error.code) {
        kiln__job_error__init(&j->finish_error);
        j->finish_error.code = j->error.code;
        j->finish_error.sqlstate = j->error.sqlstate;
        j->finish_error.class_ = bus_str(err_class_name(err_code_class(j->error.code)));
        j->finish_error.text = bus_str(err_text(&j->error));
        q->error = &j->finish_error;
    }
    if (j->facts.fence.exists) {
        kiln__fence_state__init(&j->finish_fence);
        j->finish_fence.claim = j->facts.fence.claim;
        j->finish_fence.published = j->facts.fence.published;
        j->finish_fence.generation = bus_str(j->facts.fence.generation);
        j->finish_fence.build_id = bus_str(j->facts.fence.build_id);
        j->finish_fence.row_count = (uint64_t)j->facts.fence.rows;
        j->finish_fence.data_as_of_us = j->facts.fence.data_as_of_us;
        j->finish_fence.still_there = j->facts.fence.still_there;
        q->fence = &j->finish_fence;
    }
}

static void on_reported(struct bus_call *c)
{
    struct flow_job *j = c->data;
    flow_resume(&j->flow, c->rc, &c->err);
}

/* Repeated without end while the planner is away: by now the data is durable, only the record is
 * missing (protocol.md 5, step 5). */
enum flow_next job_report(struct flow *f, unsigned end)
{
    struct flow_job *j = job_of(f);
    if (!f->entered) {
        bool final = f->rc == 0 || f->rc == ERR_LEASE_LOST ||
                     err_code_class(f->rc) == ERR_CLASS_PERMANENT || f->rc == ERR_SHUTDOWN ||
                     j->b->draining; /* one try: its lease ends, or who published is resolved */
        if (final) {
            return flow_goto(f, end);
        }
        f->entered = true;
    }
    if (j->finish_req.token == 0) {
        fill_report(j);
        random_bytes(j->finish_id, sizeof(j->finish_id));
    }
    j->stage = "report";
    struct bus_call call = {.kind = BUS_FINISH_JOB,
                            .request = &j->finish_req.base,
                            .timeout = MS(j->b->draining ? 3000 : 10000),
                            .done = on_reported};
    memcpy(call.request_id, j->finish_id, sizeof(j->finish_id));
    int rc = job_call(j, &call);
    return rc ? flow_goto(f, end) : FLOW_WAIT;
}

/* ---- life of a job ---- */
static bool is_question(Kiln__JobKind kind)
{
    return kind == KILN__JOB_KIND__JOB_DESCRIBE || kind == KILN__JOB_KIND__JOB_PROBE;
}

/* Under Publisher's names (spec/malloy-persistence.md 7.7). */
static void count_job(const struct flow_job *j, bool ok)
{
    if (j->job->kind == KILN__JOB_KIND__JOB_BUILD && ok) {
        metric_observe(metric_histogram("publisher_materialization_source_build_duration_ms", "",
                                        "from taking a build to its report"),
                       (double)ms_sub(loop_now(j->b->loop), j->started).v);
    }
    if (j->job->kind == KILN__JOB_KIND__JOB_DROP) {
        char labels[96];
        snprintf(labels, sizeof(labels), "outcome=\"%s\",engine=\"%s\"", ok ? "dropped" : "failed",
                 j->wh ? j->wh->ops->name : "");
        metric_add(metric_counter("publisher_materialization_drop_tables_total", labels,
                                  "attempts to drop a table"),
                   1);
    }
}

static void on_end(struct flow *f)
{
    struct flow_job *j = job_of(f);
    struct builder *b = j->b;
    bool ok = j->outcome == KILN__OUTCOME__OUTCOME_SUCCEEDED;
    metric_add(ok ? b->m_jobs_ok : b->m_jobs_failed, 1);
    if (ok) {
        metric_add(b->m_rows, (double)j->facts.rows);
    }
    count_job(j, ok);
    log_info("job.end",
             "job=%llu token=%llu kind=%d outcome=%d rows=%llu took_ms=%lld error=%s trace=%s",
             (unsigned long long)j->job->job, (unsigned long long)j->job->token, (int)j->job->kind,
             (int)j->outcome, (unsigned long long)j->facts.rows,
             (long long)ms_sub(loop_now(b->loop), j->started).v,
             log_q(j->error.code ? err_text(&j->error) : ""), log_id(j->trace));
    list_del(&j->link);
    builder_conn_put(b, j->conn);
    sandbox_put(j->box);
    builder_job_ended(b, is_question(j->job->kind));
    free(j);
}

static const struct flow_type *type_of(Kiln__JobKind kind)
{
    switch (kind) {
    case KILN__JOB_KIND__JOB_BUILD:
        return &flow_build_type;
    case KILN__JOB_KIND__JOB_RESOLVE:
        return &flow_resolve_type;
    case KILN__JOB_KIND__JOB_DROP:
        return &flow_drop_type;
    case KILN__JOB_KIND__JOB_SWEEP:
        return &flow_sweep_type;
    case KILN__JOB_KIND__JOB_DESCRIBE:
        return &flow_describe_type;
    case KILN__JOB_KIND__JOB_PROBE:
        return &flow_probe_type;
    default:
        return NULL;
    }
}

struct flow_job *flow_job_start(struct builder *b, const Kiln__Job *job)
{
    const struct flow_type *type = type_of(job->kind);
    if (!type || !job->target) {
        log_error("job.unknown", "job=%llu kind=%d: left to its lease's end",
                  (unsigned long long)job->job, (int)job->kind);
        return NULL;
    }
    struct flow_job *j = xcalloc(1, sizeof(*j));
    j->b = b;
    j->started = loop_now(b->loop);
    j->stage = "connect";
    list_add_tail(&b->jobs, &j->link);
    *(is_question(job->kind) ? &b->asking : &b->running) += 1;
    kiln__finish_job_req__init(&j->finish_req);
    snprintf(j->flow.id, sizeof(j->flow.id), "%llu/%llu", (unsigned long long)job->job,
             (unsigned long long)job->token);
    j->flow.on_end = on_end;
    flow_start(&j->flow, type, loop_flows(b->loop), NULL);
    size_t len = kiln__job__get_packed_size(job);
    uint8_t *packed = arena_alloc(&j->flow.arena, len);
    kiln__job__pack(job, packed);
    j->job = bus_unpack(&kiln__job__descriptor, &j->flow.arena, slice_make(packed, len), NULL);
    must(j->job != NULL);
    j->table = (struct wh_table){.name = {j->job->target->schema, j->job->target->table},
                                 .target_key = j->job->target->target_key,
                                 .owner = *bus_installation(b->bus),
                                 .generation = j->job->generation,
                                 .build_id = j->job->target->build_id};
    if (j->job->trace_id.len == sizeof(j->trace)) { /* an older planner sends none */
        memcpy(j->trace, j->job->trace_id.data, sizeof(j->trace));
    }
    log_info("job.start", "job=%llu token=%llu kind=%d source=%s target=%s trace=%s",
             (unsigned long long)job->job, (unsigned long long)job->token, (int)job->kind,
             log_q(job->source_name), log_q(job->target->physical), log_id(j->trace));
    return j;
}

void flow_job_stop(struct flow_job *j, bool lost)
{
    bool first = !j->stop && !j->lost;
    j->lost = j->lost || lost;
    j->stop = j->stop || !lost;
    if (first) {
        log_info("job.stop", "token=%llu reason=%s trace=%s", (unsigned long long)j->job->token,
                 log_q(lost ? "lease lost" : "stop asked"), log_id(j->trace));
        flow_cancel(&j->flow);
    }
}
