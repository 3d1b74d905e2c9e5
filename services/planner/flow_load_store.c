/* The second half of flow_load: the load as rows, one decision, the gateways' reports. */
#include "common/log/log.h"
#include "services/planner/load.h"

static struct flow_load *of(struct flow *f)
{
    return container_of(f, struct flow_load, flow);
}

/* ---- STORE ---- */
enum flow_next load_step_store_unit(struct flow *flow)
{
    struct flow_load *f = of(flow);
    if (flow->entered) {
        struct store_unit row = {.environment = f->req->environment,
                                 .name = f->package,
                                 .environment_name = f->environment_name,
                                 .location = f->location_is_new ? f->location : NULL,
                                 .description = f->description};
        if (!row.description && f->load->plan.description && (!f->unit || f->patch)) {
            row.description = f->load->plan.description;
        }
        struct store_unit *kept = arena_dup(&f->own, &row, sizeof(row));
        store_put_unit(f->p->store, load_store_op(f), kept, &f->unit_id);
        return FLOW_WAIT;
    }
    if (flow->rc) {
        return flow_fail(flow, LOAD_END, flow->rc, "package '%s': %s", f->package,
                         err_text(&flow->err));
    }
    return flow_goto(flow, LOAD_STORE_LOAD);
}

static char *print_json(struct arena *a, const json_t *v)
{
    auto_buf struct buf text = {0};
    json_print(v, &text);
    return arena_strdup(a, buf_str(&text));
}

enum flow_next load_step_store_load(struct flow *flow)
{
    struct flow_load *f = of(flow);
    if (flow->entered) {
        const struct package_plan *plan = &f->load->plan;
        f->row = (struct store_load){
            .unit = f->unit_id,
            .version = f->files.version,
            .compiler_version = compiler_version(f->p->compiler),
            .manifest_json = f->files.manifest,
            .package_json = print_json(&f->own, plan->package),
            .plan_json = plan->build_plan ? print_json(&f->own, plan->build_plan) : "null",
            .warnings_json = print_json(&f->own, plan->warnings),
            .advisories_json = print_json(&f->own, plan->advisories),
            .default_connection = "duckdb",
            .loaded_packed = f->loaded_packed.p,
            .loaded_len = f->loaded_packed.len,
            .files = f->stored,
            .n_files = f->files.n,
            .schemas = f->schemas,
            .n_schemas = f->n_schemas};
        store_put_load(f->p->store, load_store_op(f), &f->row, &f->load_id);
        return FLOW_WAIT;
    }
    if (flow->rc) {
        return flow_fail(flow, LOAD_END, flow->rc, "package '%s': %s", f->package,
                         err_text(&flow->err));
    }
    f->load->id = f->load_id;
    return flow_goto(flow, LOAD_DECIDE);
}

/* ---- DECIDE ---- */
static void on_decided(struct decision *d)
{
    struct flow_load *f = d->data;
    flow_resume(&f->flow, d->rc, &d->err);
}

static const char *cause_text(enum load_cause c)
{
    static const char *const names[] = {[LOAD_BOOT] = "publish",
                                        [LOAD_PUBLISH] = "publish",
                                        [LOAD_RELOAD] = "reload",
                                        [LOAD_PATCH] = "patch"};
    return names[c];
}

static void decide(struct flow_load *f)
{
    struct decision *d = decision_new(f->p);
    const struct package_plan *plan = &f->load->plan;
    const char **keep = arena_zalloc(&d->arena, (plan->n_targets + 1) * sizeof(*keep));
    size_t n = 0;
    for (size_t i = 0; i < plan->n_targets && f->req->cause != LOAD_RELOAD; i++) {
        keep[n++] = plan->targets[i].build_id;
    }
    struct coord_unit_row row = {.id = f->unit_id,
                                 .load = f->load_id,
                                 .environment = f->environment_name,
                                 .name = f->package,
                                 .reload_emptied = f->req->cause == LOAD_RELOAD};
    coord_unit_load(f->p->coord, planner_now(f->p), &row, cause_text(f->req->cause),
                    f->req->cause == LOAD_RELOAD ? NULL : keep, n, &d->out);
    if (f->req->unbind) {
        int rc = coord_unbind(f->p->coord, planner_now(f->p), f->unit_id, "patch", false, &d->out);
        must(rc == 0); /* it exists by now */
    }
    if (f->req->call) {
        answered_note_package(f->req->call, &d->op);
    }
    decision_commit(d, on_decided, f);
}

static void adopt(struct flow_load *f)
{
    struct store_unit row = {.id = f->unit_id,
                             .environment = f->req->environment,
                             .environment_name = f->environment_name,
                             .name = f->package,
                             .location = f->location_is_new ? f->location : NULL,
                             .description = f->description};
    if (!row.description && f->load->plan.description && (!f->unit || f->patch)) {
        row.description = f->load->plan.description;
    }
    f->unit = catalog_put_unit(f->p, &row);
    struct planner_config_error *before =
        catalog_config_error(f->p, f->environment_name, f->package);
    if (before) { /* it loads now */
        catalog_config_error_free(before);
    }
    load_unref(f->p, f->unit->load);
    f->unit->load = f->load;
    f->load = NULL;
    struct coord_unit_row now;
    f->epoch = coord_unit_get(f->p->coord, f->unit_id, &now) ? now.epoch : 0;
    log_info("package.loaded",
             "environment=%s package=%s load=%llu targets=%zu refused=%zu epoch=%llu trace=%s",
             f->environment_name, f->package, (unsigned long long)f->load_id,
             f->unit->load->plan.n_targets, f->unit->load->plan.n_refusals,
             (unsigned long long)f->epoch, log_id(f->req->trace.b));
}

enum flow_next load_step_decide(struct flow *flow)
{
    struct flow_load *f = of(flow);
    if (flow->entered) {
        if (!f->p->coord) {
            return flow_fail(flow, LOAD_END, ERR_NOT_LEADER, "the planner gave its leadership up");
        }
        decide(f);
        return FLOW_WAIT;
    }
    if (flow->rc) {
        return flow_fail(flow, LOAD_END, flow->rc, "package '%s': %s", f->package,
                         err_text(&flow->err));
    }
    adopt(f);
    bool is_over = f->req->cause == LOAD_BOOT || f->req->unwaited;
    return flow_goto(flow, is_over ? LOAD_END : LOAD_REPORTS);
}

/* ---- REPORTS ---- */
static void on_reported(struct planner_wait *w)
{
    struct flow_load *f = w->data;
    flow_resume(&f->flow, 0, NULL); /* late gateways do not fail a load */
}

enum flow_next load_step_reports(struct flow *flow)
{
    struct flow_load *f = of(flow);
    if (flow->entered) {
        if (coord_unit_reported(f->p->coord, planner_now(f->p), f->unit_id, f->epoch)) {
            return flow_goto(flow, LOAD_END);
        }
        int64_t wait = f->req->cause == LOAD_RELOAD ? 1000 : 5000;
        f->wait = (struct planner_wait){.kind = WAIT_UNIT_REPORTED,
                                        .unit = f->unit_id,
                                        .epoch = f->epoch,
                                        .wait = MS(wait),
                                        .done = on_reported,
                                        .data = f};
        planner_wait_start(f->p, &f->wait);
        return FLOW_WAIT;
    }
    return flow_goto(flow, LOAD_END);
}
