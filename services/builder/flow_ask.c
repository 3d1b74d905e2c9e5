/* Questions of the planner about a package's own DuckDB: describe (columns of tables and SQL
 * blocks) and probe (are results still there?). CONNECT, ASK, REPORT, END (protocol.md 9). */
#include "services/builder/builder.h"

enum { CONNECT, ASK, REPORT, END };

static enum flow_next step_connect(struct flow *f)
{
    return job_connect(f, CONNECT, ASK, REPORT);
}

/* ---- describe: the tables together, then each block ---- */
static Kiln__TableSchema *schema_add(struct flow_job *j)
{
    Kiln__FinishJobReq *q = &j->finish_req;
    const Kiln__Describe *d = j->job->describe;
    if (!q->schemas) {
        size_t n = d->n_tables + d->n_sqls;
        q->schemas = arena_zalloc(&j->flow.arena, (n + 1) * sizeof(*q->schemas));
    }
    Kiln__TableSchema *s = arena_alloc(&j->flow.arena, sizeof(*s));
    kiln__table_schema__init(s);
    q->schemas[q->n_schemas++] = s;
    return s;
}

static void take_schemas(struct flow_job *j)
{
    const struct wh_facts *f = &j->op.facts;
    const Kiln__Describe *d = j->job->describe;
    for (size_t i = 0; i < d->n_tables; i++) {
        Kiln__TableSchema *s = schema_add(j);
        s->path = d->tables[i]->path;
        s->error = bus_str(f->schema_errors[i]);
        job_columns(j, &f->schemas[i], &s->columns, &s->n_columns);
    }
}

static void take_block(struct flow_job *j)
{
    Kiln__TableSchema *s = schema_add(j);
    s->sql = j->job->describe->sqls[j->at - 1]->sql;
    job_columns(j, &j->op.facts.columns, &s->columns, &s->n_columns);
}

static enum flow_next step_describe(struct flow *f)
{
    struct flow_job *j = job_of(f);
    const Kiln__Describe *d = j->job->describe;
    if (f->entered) {
        j->stage = "describe";
        if (j->at == 0 && d->n_tables > 0) {
            const char **paths = arena_zalloc(&f->arena, (d->n_tables + 1) * sizeof(*paths));
            for (size_t i = 0; i < d->n_tables; i++) {
                paths[i] = d->tables[i]->path;
            }
            j->wh->ops->catalog_tables(job_op(j), paths, d->n_tables);
            return FLOW_WAIT;
        }
        j->at = j->at ? j->at : 1;
        if (j->at <= d->n_sqls) {
            j->wh->ops->describe(job_op(j), d->sqls[j->at - 1]->sql);
            return FLOW_WAIT;
        }
        j->outcome = KILN__OUTCOME__OUTCOME_SUCCEEDED;
        return flow_goto(f, REPORT);
    }
    if (f->rc) {
        return job_failed(f, REPORT, KILN__OUTCOME__OUTCOME_FAILED);
    }
    if (j->at == 0) {
        take_schemas(j);
    } else {
        take_block(j);
    }
    j->at++;
    return flow_goto(f, ASK);
}

/* ---- probe ---- */
static void take_fences(struct flow_job *j)
{
    Kiln__FinishJobReq *q = &j->finish_req;
    const struct wh_facts *f = &j->op.facts;
    q->fences = arena_zalloc(&j->flow.arena, (f->n_relations + 1) * sizeof(*q->fences));
    for (size_t i = 0; i < f->n_relations; i++) {
        const struct wh_fence *in = &f->relations[i].fence;
        Kiln__FenceState *s = arena_alloc(&j->flow.arena, sizeof(*s));
        kiln__fence_state__init(s);
        s->claim = in->claim;
        s->published = in->published;
        s->generation = bus_str(in->generation);
        s->build_id = bus_str(in->build_id);
        s->row_count = (uint64_t)in->rows;
        s->data_as_of_us = in->data_as_of_us;
        s->still_there = in->still_there;
        q->fences[q->n_fences++] = s;
    }
}

static enum flow_next step_probe(struct flow *f)
{
    struct flow_job *j = job_of(f);
    if (f->entered) {
        j->stage = "probe";
        size_t n = j->job->n_probes;
        struct wh_table *tables = arena_zalloc(&f->arena, (n + 1) * sizeof(*tables));
        for (size_t i = 0; i < n; i++) {
            const Kiln__Input *in = j->job->probes[i];
            tables[i] = (struct wh_table){.name = {"main", in->name},
                                          .owner = j->table.owner,
                                          .generation = in->generation,
                                          .build_id = in->build_id};
        }
        j->wh->ops->probe(job_op(j), tables, n);
        return FLOW_WAIT;
    }
    if (f->rc) {
        return job_failed(f, REPORT, KILN__OUTCOME__OUTCOME_FAILED);
    }
    take_fences(j);
    j->outcome = KILN__OUTCOME__OUTCOME_SUCCEEDED;
    return flow_goto(f, REPORT);
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

static const struct flow_step describe_steps[] = {
    [CONNECT] = {"CONNECT", step_connect, FLOW_TO(CONNECT) | FLOW_TO(ASK) | FLOW_TO(REPORT), 30000,
                 job_cancel_connect, "the package's own DuckDB", false},
    [ASK] = {"DESCRIBE", step_describe, FLOW_TO(ASK) | FLOW_TO(REPORT), 15000, job_cancel_op,
             "columns of tables and SQL blocks", false},
    [REPORT] = {"REPORT", step_report, FLOW_TO(END), 0, NULL, "FinishJob until it is recorded",
                true},
    [END] = {"END", step_end, 0, 0, NULL, "", false},
};
static const struct flow_step probe_steps[] = {
    [CONNECT] = {"CONNECT", step_connect, FLOW_TO(CONNECT) | FLOW_TO(ASK) | FLOW_TO(REPORT), 30000,
                 job_cancel_connect, "the package's own DuckDB", false},
    [ASK] = {"PROBE", step_probe, FLOW_TO(REPORT), 15000, job_cancel_op,
             "are the results still there?", false},
    [REPORT] = {"REPORT", step_report, FLOW_TO(END), 0, NULL, "FinishJob until it is recorded",
                true},
    [END] = {"END", step_end, 0, 0, NULL, "", false},
};
const struct flow_type flow_describe_type = {"describe", describe_steps, ARRAY_LEN(describe_steps)};
const struct flow_type flow_probe_type = {"probe", probe_steps, ARRAY_LEN(probe_steps)};
