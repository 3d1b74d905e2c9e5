#include "services/planner/core/plan_internal.h"

static const char *shown(const struct run_making *m, size_t i)
{
    const struct target_state *s = &m->in->states[i];
    return plan_name_shown(m->a, s->schema ? s->schema : "", s->table ? s->table : "");
}

static void fail(struct plan_target *t, int code, const char *text)
{
    t->action = PLAN_FAIL;
    t->fail_code = code;
    t->fail_text = text;
    t->why = "it cannot be built";
}

static char *joined(struct arena *a, const char *const *items, size_t n)
{
    auto_buf struct buf list = {0};
    for (size_t i = 0; i < n; i++) {
        buf_addf(&list, "%s%s", i ? ", " : "", items[i]);
    }
    return arena_strdup(a, buf_str(&list));
}

bool plan_is_proven(const struct run_making *m, size_t i)
{
    const struct target_state *s = &m->in->states[i];
    const struct core_generation *g = &m->in->generations[i].g;
    return s->asked && !s->error && g->id && s->has_fence && s->still_there &&
           s->fence_generation && strcmp(s->fence_generation, g->id) == 0 && s->fence_build_id &&
           strcmp(s->fence_build_id, m->p->targets[i].build_id) == 0;
}

static bool is_ordinary(char relkind)
{
    return relkind == 'r';
}

static bool fail_of_place(struct run_making *m, size_t i, struct plan_target *t)
{
    const struct target_state *s = &m->in->states[i];
    const char *connection = t->target.connection;
    if (!s->schema_exists) {
        fail(t, ERR_WH_MISSING,
             arena_printf(m->a,
                          "schema '%s' does not exist on connection '%s': create it, a build never "
                          "makes one",
                          s->schema ? s->schema : "", connection));
        return true;
    }
    if (!s->schema_writable) {
        fail(t, ERR_WH_DENIED,
             arena_printf(m->a,
                          "schema '%s' on connection '%s' is not writable: grant CREATE on it to "
                          "the connection's user",
                          s->schema ? s->schema : "", connection));
        return true;
    }
    return false;
}

static bool fail_of_relation(struct run_making *m, size_t i, struct plan_target *t)
{
    const struct target_state *s = &m->in->states[i];
    const char *connection = t->target.connection;
    if (s->relkind == 0) {
        return false;
    }
    if (!is_ordinary(s->relkind)) {
        fail(t, ERR_WH_TARGET,
             arena_printf(m->a,
                          "target_not_a_table: %s on connection '%s' exists and is not an ordinary "
                          "table: drop it or choose another name=",
                          shown(m, i), connection));
        return true;
    }
    if (!(s->has_fence && s->fence_generation) && !s->is_empty && !m->in->take_over) {
        fail(t, ERR_WH_TARGET,
             arena_printf(m->a,
                          "target_exists: %s on connection '%s' is a table with rows that was not "
                          "built here: drop it, choose another name=, or run with take-over",
                          shown(m, i), connection));
        return true;
    }
    if (s->n_dependents > 0) {
        fail(t, ERR_WH_DEPENDENTS,
             arena_printf(m->a,
                          "target_has_dependents: other objects depend on %s on connection '%s' "
                          "(%s): drop them or choose another name=",
                          shown(m, i), connection, joined(m->a, s->dependents, s->n_dependents)));
        return true;
    }
    if (s->n_cannot_carry > 0) {
        fail(t, ERR_WH_TARGET,
             arena_printf(
                 m->a,
                 "target_cannot_be_carried: %s on connection '%s' has what a rebuild would "
                 "lose (%s): remove it or choose another name=",
                 shown(m, i), connection, joined(m->a, s->cannot_carry, s->n_cannot_carry)));
        return true;
    }
    return false;
}

static void warn(struct run_making *m, const char *text)
{
    m->warnings = plan_grown(m->a, (void *)m->warnings, m->out->n_warnings, sizeof(*m->warnings));
    m->warnings[m->out->n_warnings++] = text;
    m->out->warnings = m->warnings;
}

static bool fail_of_owner(struct run_making *m, size_t i, struct plan_target *t)
{
    const struct target_state *s = &m->in->states[i];
    if (!s->has_fence || s->ours || !s->fence_generation || s->relkind == 0) {
        return false;
    }
    if (m->in->collision_enforce) {
        fail(t, ERR_WH_TARGET,
             arena_printf(m->a,
                          "target_taken_over: %s on connection '%s' belongs to another "
                          "installation: choose another name=",
                          shown(m, i), t->target.connection));
        return true;
    }
    warn(m, arena_printf(m->a,
                         "target_taken_over: %s on connection '%s' belonged to another "
                         "installation and is taken over",
                         shown(m, i), t->target.connection));
    return false;
}

/* Undotted names are resolved by now: two of them, or one of them and a base table, may turn out to
 * be one place. */
static bool fail_of_meeting(struct run_making *m, size_t i, struct plan_target *t)
{
    const struct package_plan *p = m->p;
    for (size_t k = 0; k + 1 < m->out->n; k++) {
        const struct core_target *o = &m->out->targets[k].target;
        if (strcmp(o->warehouse, t->target.warehouse) == 0 &&
            strcmp(o->schema, t->target.schema) == 0 && strcmp(o->table, t->target.table) == 0) {
            fail(t, ERR_REFUSED,
                 arena_printf(m->a,
                              "target_collision: %s on connection '%s' is the target of source "
                              "'%s' too: choose another name=",
                              shown(m, i), t->target.connection, m->out->targets[k].source_name));
            return true;
        }
    }
    for (size_t k = 0; k < p->n_reads; k++) {
        const struct planned_read *r = &p->reads[k];
        const struct plan_connection *c =
            plan_connection_of(m->in->connections, m->in->n_connections, r->connection);
        if (c && c->digest && *r->schema && strcmp(r->schema, t->target.schema) == 0 &&
            strcmp(r->table, t->target.table) == 0 && strcmp(c->digest, t->target.warehouse) == 0) {
            fail(t, ERR_REFUSED,
                 arena_printf(m->a,
                              "target_is_a_source: a model of the package reads %s on connection "
                              "'%s' as a base table: choose another name=",
                              shown(m, i), t->target.connection));
            return true;
        }
    }
    return false;
}

static const char *why_built(const struct run_making *m, size_t i)
{
    const struct target_state *s = &m->in->states[i];
    if (m->in->force_refresh) {
        return "a refresh is forced";
    }
    if (!m->in->generations[i].g.id) {
        return "nothing is recorded for it yet";
    }
    if (s->relkind == 0) {
        return "its table is gone";
    }
    if (s->fence_build_id && strcmp(s->fence_build_id, m->p->targets[i].build_id) != 0) {
        return "its table holds another build";
    }
    return s->still_there ? "its table holds a result that is not the recorded one"
                          : "its table was replaced by someone else";
}

void plan_decide(struct run_making *m, size_t i, struct plan_target *t)
{
    const struct target_state *s = &m->in->states[i];
    t->action = PLAN_BUILD;
    if (s->error) {
        fail(t, s->error_code ? s->error_code : ERR_WH_CONNECT, arena_strdup(m->a, s->error));
        return;
    }
    if (!s->asked) {
        fail(t, ERR_INTERNAL, "the warehouse was not asked about its target");
        return;
    }
    if (fail_of_meeting(m, i, t)) {
        return;
    }
    if (!m->in->force_refresh && plan_is_proven(m, i)) {
        t->action = PLAN_CARRY;
        t->generation = m->in->generations[i].g;
        t->why = "its table is unchanged since it was built";
        return;
    }
    if (fail_of_place(m, i, t) || fail_of_relation(m, i, t) || fail_of_owner(m, i, t)) {
        return;
    }
    t->why = why_built(m, i);
}
