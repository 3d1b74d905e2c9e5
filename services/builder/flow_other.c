/* The short flows: resolve (who published?), drop (fenced) and sweep (leftover staging). CONNECT,
 * WORK, REPORT, END (protocol.md 3, 4, 10). */
#include "services/builder/builder.h"

enum { CONNECT, WORK, REPORT, END };

static enum flow_next step_connect(struct flow *f)
{
    return job_connect(f, CONNECT, WORK, REPORT);
}

static enum flow_next finish_work(struct flow *f)
{
    struct flow_job *j = job_of(f);
    if (f->rc) {
        return job_failed(f, REPORT,
                          f->rc == ERR_FENCED ? KILN__OUTCOME__OUTCOME_FENCED
                                              : KILN__OUTCOME__OUTCOME_FAILED);
    }
    j->facts = j->op.facts;
    builder_see_token(j->b, j->facts.fence.claim);
    j->outcome = KILN__OUTCOME__OUTCOME_SUCCEEDED;
    return flow_goto(f, REPORT);
}

static enum flow_next step_resolve(struct flow *f)
{
    struct flow_job *j = job_of(f);
    if (!f->entered) {
        return finish_work(f);
    }
    j->stage = "resolve";
    j->wh->ops->resolve(job_op(j), &j->table, j->job->token);
    return FLOW_WAIT;
}

static enum flow_next step_drop(struct flow *f)
{
    struct flow_job *j = job_of(f);
    if (!f->entered) {
        return finish_work(f);
    }
    j->stage = "drop";
    j->wh->ops->drop(job_op(j), &j->table, j->job->token);
    return FLOW_WAIT;
}

static enum flow_next step_sweep(struct flow *f)
{
    struct flow_job *j = job_of(f);
    if (!f->entered) {
        return finish_work(f);
    }
    static const char *const none[] = {NULL};
    bool keeps = j->job->n_keep_generations > 0;
    j->stage = "sweep";
    bool by_binding = j->wh->ops->cls == WH_CLASS_BY_BINDING; /* then the whole root */
    j->sweep = (struct wh_sweep){.schemas = (const char *const *)j->job->schemas,
                                 .n_schemas = by_binding ? 0 : j->job->n_schemas,
                                 .live = j->job->live_tokens,
                                 .n_live = j->job->n_live_tokens,
                                 .older_than_us = (int64_t)j->job->older_than_us,
                                 .generations =
                                     keeps ? (const char *const *)j->job->keep_generations : none,
                                 .n_generations = j->job->n_keep_generations};
    j->wh->ops->sweep(job_op(j), &j->sweep);
    return FLOW_WAIT;
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

static const struct flow_step resolve_steps[] = {
    [CONNECT] = {"CONNECT", step_connect, FLOW_TO(CONNECT) | FLOW_TO(WORK) | FLOW_TO(REPORT), 30000,
                 job_cancel_connect, "the connection's settings", false},
    [WORK] = {"RESOLVE", step_resolve, FLOW_TO(REPORT), 0, job_cancel_op,
              "raise the fence, read what is published", false},
    [REPORT] = {"REPORT", step_report, FLOW_TO(END), 0, NULL, "FinishJob until it is recorded",
                true},
    [END] = {"END", step_end, 0, 0, NULL, "", false},
};
static const struct flow_step drop_steps[] = {
    [CONNECT] = {"CONNECT", step_connect, FLOW_TO(CONNECT) | FLOW_TO(WORK) | FLOW_TO(REPORT), 30000,
                 job_cancel_connect, "the connection's settings", false},
    [WORK] = {"DROP", step_drop, FLOW_TO(REPORT), 0, job_cancel_op,
              "fenced like a swap; gone already is success", false},
    [REPORT] = {"REPORT", step_report, FLOW_TO(END), 0, NULL, "FinishJob until it is recorded",
                true},
    [END] = {"END", step_end, 0, 0, NULL, "", false},
};
static const struct flow_step sweep_steps[] = {
    [CONNECT] = {"CONNECT", step_connect, FLOW_TO(CONNECT) | FLOW_TO(WORK) | FLOW_TO(REPORT), 30000,
                 job_cancel_connect, "the connection's settings", false},
    [WORK] = {"SWEEP", step_sweep, FLOW_TO(REPORT), 0, job_cancel_op,
              "staging tables without a live attempt", false},
    [REPORT] = {"REPORT", step_report, FLOW_TO(END), 0, NULL, "FinishJob until it is recorded",
                true},
    [END] = {"END", step_end, 0, 0, NULL, "", false},
};
const struct flow_type flow_resolve_type = {"resolve", resolve_steps, ARRAY_LEN(resolve_steps)};
const struct flow_type flow_drop_type = {"drop", drop_steps, ARRAY_LEN(drop_steps)};
const struct flow_type flow_sweep_type = {"sweep", sweep_steps, ARRAY_LEN(sweep_steps)};
