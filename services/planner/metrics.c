/* What the planner counts, under Publisher's names (spec/malloy-persistence.md 7.7). */
#include "services/planner/planner.h"

static void add(const char *name, const char *labels, const char *help, int64_t n)
{
    if (n > 0) {
        metric_add(metric_counter(name, labels, help), (double)n);
    }
}

static void count_sources(const json_t *metadata)
{
    static const struct {
        const char *member, *labels;
    } outcomes[] = {{"sourcesBuilt", "outcome=\"built\",mode=\"auto\""},
                    {"sourcesReused", "outcome=\"reused\",mode=\"auto\""},
                    {"sourcesFailed", "outcome=\"failed\",mode=\"auto\""},
                    {"sourcesRefused", "outcome=\"refused\",mode=\"auto\""}};
    for (size_t i = 0; i < ARRAY_LEN(outcomes); i++) {
        add("publisher_materialization_sources_total", outcomes[i].labels, "sources of ended runs",
            json_int(metadata, outcomes[i].member, 0));
    }
}

static void count_refusals(const json_t *metadata)
{
    const char *id;
    json_t *refused;
    json_object_foreach(json_object_get(metadata, "refusedSources"), id, refused)
    {
        auto_buf struct buf labels = {0};
        buf_add_str(&labels, "reason=\"");
        metric_label_escape(&labels, json_str(refused, "reason", ""));
        buf_add_char(&labels, '"');
        add("publisher_materialization_eligibility_refused_total", buf_str(&labels),
            "sources that ended runs refused", 1);
    }
}

static void count_run(const struct row_run *r)
{
    char labels[80];
    snprintf(labels, sizeof(labels), "mode=\"auto\",outcome=\"%s\"", run_state_name(r->state));
    add("publisher_materialization_runs_total", labels, "runs ended", 1);
    json_t *metadata = r->metadata ? json_parse(slice_of(r->metadata), NULL) : NULL;
    if (metadata) {
        metric_observe(metric_histogram("publisher_materialization_run_duration_ms", "",
                                        "from a run's start to its end"),
                       (double)json_int(metadata, "durationMs", 0));
        count_sources(metadata);
        count_refusals(metadata);
    }
    json_decref(metadata);
}

void planner_count_runs(const struct rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        const struct row *r = &rows->items[i];
        if (r->op == ROW_RUN_MOVE && !run_state_active(r->u.run.state) &&
            run_state_active(r->u.run.from)) {
            count_run(&r->u.run);
        }
    }
}

void planner_count_load(const struct package_plan *plan, struct ms took)
{
    metric_observe(metric_histogram("publisher_materialization_build_plan_compute_duration_ms", "",
                                    "compiling and planning a package, schemas included"),
                   (double)took.v);
    for (size_t i = 0; i < plan->n_refusals; i++) {
        if (strcmp(plan->refusals[i].reason, "target_collision") == 0) {
            add("publisher_materialization_table_collision_total", "",
                "sources refused at a load as another one has their table", 1);
        }
    }
}
