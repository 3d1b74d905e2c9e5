/* Flow: one table. CONNECT, BUILD into staging (count, describe, ANALYZE), ask for the GRANT, SWAP
 * under the fence, REPORT, END. What fails before the swap DISCARDs its staging. The swap is the
 * point of no return: from there only the warehouse knows (protocol.md 3, 5). */
#include "services/builder/builder.h"
#include "services/builder/core/outcome.h"

enum { CONNECT, BUILD, GRANT, SWAP, DISCARD, REPORT, END };

static enum flow_next step_connect(struct flow *f)
{
    return job_connect(f, CONNECT, BUILD, REPORT);
}

static Kiln__Outcome outcome_of(enum build_end end)
{
    switch (end) {
    case END_CANCELLED:
        return KILN__OUTCOME__OUTCOME_CANCELLED;
    case END_FENCED:
        return KILN__OUTCOME__OUTCOME_FENCED;
    case END_UNKNOWN:
        return KILN__OUTCOME__OUTCOME_UNKNOWN;
    default:
        return KILN__OUTCOME__OUTCOME_FAILED;
    }
}

static enum flow_next ended(struct flow *f, enum build_stage stage)
{
    struct flow_job *j = job_of(f);
    enum build_end end = build_end_of(stage, f->rc, j->stop, j->lost);
    if (end == END_UNKNOWN) {
        return job_failed(f, REPORT,
                          outcome_of(end)); /* the staging table may be the published one by now */
    }
    return job_failed(f, DISCARD, outcome_of(end));
}

static enum flow_next step_build(struct flow *f)
{
    struct flow_job *j = job_of(f);
    if (f->entered) {
        j->stage = "build";
        j->build = (struct wh_build){.table = j->table,
                                     .token = j->job->token,
                                     .sql = j->job->sql,
                                     .earlier = j->job->earlier_tokens,
                                     .n_earlier = j->job->n_earlier_tokens,
                                     .tag = j->job->query_tag};
        j->wh->ops->build(job_op(j), &j->build);
        return FLOW_WAIT;
    }
    if (f->rc) {
        return ended(f, STAGE_BUILD);
    }
    j->facts = j->op.facts;
    if (j->wh->ops->cls == WH_CLASS_BY_BINDING) { /* its record is its publication */
        j->outcome = KILN__OUTCOME__OUTCOME_SUCCEEDED;
        return flow_goto(f, REPORT);
    }
    return flow_goto(f, GRANT);
}

static void on_granted(struct bus_call *c)
{
    struct flow_job *j = c->data;
    flow_resume(&j->flow, c->rc, &c->err);
}

static void cancel_call(struct flow *f)
{
    bus_call_cancel(&job_of(f)->call);
}

static enum flow_next step_grant(struct flow *f)
{
    struct flow_job *j = job_of(f);
    if (f->entered) {
        j->stage = "grant";
        kiln__request_grant_req__init(&j->grant_req);
        j->grant_req.token = j->job->token;
        j->grant_req.rows = j->facts.rows;
        j->grant_req.bytes = j->facts.bytes;
        j->grant_req.data_as_of_us = j->facts.data_as_of_us;
        job_columns(j, &j->facts.columns, &j->grant_req.columns, &j->grant_req.n_columns);
        int rc = job_call(j, &(struct bus_call){.kind = BUS_REQUEST_GRANT,
                                                .request = &j->grant_req.base,
                                                .timeout = MS(60000),
                                                .done = on_granted});
        if (rc == 0) {
            return FLOW_WAIT;
        }
        f->rc = rc;
    }
    return f->rc ? ended(f, STAGE_GRANT) : flow_goto(f, SWAP);
}

static enum flow_next step_swap(struct flow *f)
{
    struct flow_job *j = job_of(f);
    if (f->entered) {
        j->stage = "swap";
        j->publish = (struct wh_publish){.table = j->table,
                                         .token = j->job->token,
                                         .rows = (int64_t)j->facts.rows,
                                         .data_as_of_us = j->facts.data_as_of_us,
                                         .take_over = j->job->allow_take_over};
        j->wh->ops->swap(job_op(j), &j->publish);
        return FLOW_WAIT;
    }
    builder_see_token(j->b, j->op.facts.fence.claim);
    if (f->rc) {
        return ended(f, STAGE_SWAP);
    }
    j->outcome = KILN__OUTCOME__OUTCOME_SUCCEEDED;
    return flow_goto(f, REPORT);
}

static enum flow_next step_discard(struct flow *f)
{
    struct flow_job *j = job_of(f);
    if (f->entered && j->wh) {
        j->stage = "discard";
        j->wh->ops->discard(job_op(j), &j->table, &j->job->token, 1);
        return FLOW_WAIT;
    }
    return flow_goto(
        f,
        j->lost ? END : REPORT); /* what could not be dropped is an orphan that the sweep takes */
}

static enum flow_next step_report(struct flow *f)
{
    return job_report(f, END);
}

static enum flow_next step_end(struct flow *f)
{
    (void)f;
    return FLOW_END;
}

static const struct flow_step steps[] = {
    [CONNECT] = {"CONNECT", step_connect, FLOW_TO(CONNECT) | FLOW_TO(BUILD) | FLOW_TO(REPORT),
                 30000, job_cancel_connect, "the connection's settings", false},
    [BUILD] = {"BUILD", step_build, FLOW_TO(GRANT) | FLOW_TO(DISCARD) | FLOW_TO(REPORT), 0,
               job_cancel_op, "CTAS into staging, count, describe, ANALYZE", false},
    [GRANT] = {"GRANT", step_grant, FLOW_TO(SWAP) | FLOW_TO(DISCARD) | FLOW_TO(REPORT), 0,
               cancel_call, "the planner allows the swap", false},
    [SWAP] = {"SWAP", step_swap, FLOW_TO(REPORT) | FLOW_TO(DISCARD), 0, NULL,
              "fenced, one transaction; no way back", true},
    [DISCARD] = {"DISCARD", step_discard, FLOW_TO(REPORT) | FLOW_TO(END), 20000, job_cancel_op,
                 "the staging table goes", true},
    [REPORT] = {"REPORT", step_report, FLOW_TO(END), 0, NULL, "FinishJob until it is recorded",
                true},
    [END] = {"END", step_end, 0, 0, NULL, "", false},
};
const struct flow_type flow_build_type = {"build", steps, ARRAY_LEN(steps)};
