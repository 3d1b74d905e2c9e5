/* The CATALOG step of flow_run: what stands at each target's name, or what became of its result;
 * one question per connection. */
#include "services/planner/asked.h"
#include "services/planner/flow_run.h"

#define PROBE_MS 15000

static void on_catalog(struct wh_op *op)
{
    struct flow_run *f = op->data;
    flow_resume(&f->flow, op->rc, &op->err);
}

void run_cancel_ask(struct flow *flow)
{
    struct flow_run *f = run_of(flow);
    f->wh.wh->ops->cancel(&f->wh);
}

/* The connections of wanted targets, one after the other; false when all were asked. */
static bool next_connection(struct flow_run *f, const char **name)
{
    const struct package_plan *plan = &f->load->plan;
    for (size_t i = 0; i < plan->n_targets; i++) {
        if (f->wanted[i] && !f->states[i].asked && !plan->targets[i].refused_reason) {
            *name = plan->targets[i].connection;
            return true;
        }
    }
    return false;
}

static void ask_failed(struct flow_run *f, const char *connection, int code, const char *text)
{
    const struct package_plan *plan = &f->load->plan;
    for (size_t i = 0; i < plan->n_targets; i++) {
        if (f->wanted[i] && !f->states[i].asked &&
            strcmp(plan->targets[i].connection, connection) == 0) {
            f->states[i].asked = true;
            f->states[i].error = arena_strdup(&f->flow.arena, text); /* names the connection */
            f->states[i].error_code = code;
        }
    }
}

static const char *digest_of(const struct flow_run *f, const char *connection)
{
    for (size_t i = 0; i < f->load->n_connections; i++) {
        if (strcmp(f->load->connections[i].name, connection) == 0) {
            return f->load->connections[i].digest;
        }
    }
    return "";
}

/* The recorded result of a target whose name resolves to this; NULL: none. Borrowed for the turn.
 */
const struct core_generation *run_current(const struct flow_run *f, size_t target,
                                          const struct wh_name *name)
{
    const struct planned_target *t = &f->load->plan.targets[target];
    struct arena a;
    arena_init(&a);
    const struct core_target at = {.warehouse = digest_of(f, t->connection),
                                   .physical = wh_name_quoted(&a, name),
                                   .entity_id = t->entity_id};
    const struct core_generation *g = coord_current_generation(f->p->coord, &at);
    arena_fini(&a);
    return g;
}

static int warehouse_of(struct flow_run *f, const char *connection, struct wh **out, struct err *e)
{
    *out = asked_wh_find(f->load->duckdb, connection);
    if (*out) {
        return 0;
    }
    struct planner_unit *u = catalog_unit_id(f->p, f->unit_id);
    struct planner_connection *c = u ? catalog_connection(f->p, u->environment, connection) : NULL;
    return c ? connection_wh(f->p, c, out, e)
             : err_set(e, ERR_NOT_FOUND, "it does not exist in the environment");
}

static void ask_names(struct flow_run *f)
{
    const struct package_plan *plan = &f->load->plan;
    struct wh_name *names = arena_zalloc(&f->flow.arena, (f->n_asked + 1) * sizeof(*names));
    for (size_t i = 0; i < f->n_asked; i++) {
        const struct planned_target *t = &plan->targets[f->asked[i]];
        names[i] = (struct wh_name){t->schema, t->table};
    }
    f->wh.wh->ops->catalog_targets(&f->wh, names, f->n_asked);
}

/* By binding a name holds nothing: what is recorded is there, or is not. */
static void ask_results(struct flow_run *f)
{
    const struct package_plan *plan = &f->load->plan;
    struct wh_table *tables = arena_zalloc(&f->flow.arena, (f->n_asked + 1) * sizeof(*tables));
    for (size_t i = 0; i < f->n_asked; i++) {
        const struct planned_target *t = &plan->targets[f->asked[i]];
        struct wh_name name = {"main", t->table};
        const struct core_generation *g = run_current(f, f->asked[i], &name);
        tables[i] = (struct wh_table){.name = name,
                                      .generation = g ? arena_strdup(&f->flow.arena, g->id) : "",
                                      .build_id = t->build_id};
    }
    f->wh.wh->ops->probe(&f->wh, tables, f->n_asked);
}

enum flow_next run_step_catalog(struct flow *flow)
{
    struct flow_run *f = run_of(flow);
    const struct package_plan *plan = &f->load->plan;
    if (run_gone(f)) {
        return flow_fail(flow, RUN_END, ERR_NOT_LEADER, "the planner gave its leadership up");
    }
    if (!flow->entered) {
        if (flow->rc) {
            ask_failed(f, plan->targets[f->asked[0]].connection, flow->rc, err_text(&flow->err));
        }
        for (size_t i = 0; flow->rc == 0 && i < f->n_asked; i++) {
            target_state_from(&flow->arena, f->p, &f->wh.facts.relations[i],
                              &f->states[f->asked[i]]);
        }
        return flow_goto(flow, RUN_CATALOG);
    }
    const char *name = NULL;
    if (!next_connection(f, &name)) {
        return flow_goto(flow, RUN_CHOOSE);
    }
    struct err e = {0};
    struct wh *wh = NULL;
    int rc = warehouse_of(f, name, &wh, &e);
    if (rc) {
        ask_failed(f, name, rc, err_text(&e));
        return flow_goto(flow, RUN_CATALOG);
    }
    f->n_asked = 0;
    for (size_t i = 0; i < plan->n_targets; i++) {
        if (f->wanted[i] && !f->states[i].asked && !plan->targets[i].refused_reason &&
            strcmp(plan->targets[i].connection, name) == 0) {
            f->asked[f->n_asked++] = i;
        }
    }
    f->wh = (struct wh_op){
        .wh = wh, .arena = &flow->arena, .timeout = MS(PROBE_MS), .data = f, .done = on_catalog};
    if (wh->ops->cls == WH_CLASS_BY_BINDING) {
        ask_results(f);
    } else {
        ask_names(f);
    }
    return FLOW_WAIT;
}
