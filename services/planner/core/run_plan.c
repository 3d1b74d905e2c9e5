#include "services/planner/core/plan_internal.h"

/* As enum Fallback of types.proto, which pure code does not include. */
enum { FALLBACK_LIVE, FALLBACK_STALE_OK, FALLBACK_FAIL };

/* ---- what a run covers ---- */

static bool is_named(bool has_names, const char *const *names, size_t n, const char *name)
{
    bool found = !has_names;
    for (size_t i = 0; i < n && !found; i++) {
        found = strcmp(names[i], name) == 0;
    }
    return found;
}

static bool is_known(const struct package_plan *p, const char *name)
{
    bool known = false;
    for (size_t i = 0; i < p->n_sources && !known; i++) {
        known = strcmp(p->sources[i].name, name) == 0;
    }
    for (size_t i = 0; i < p->n_dropped && !known; i++) {
        known = strcmp(p->dropped[i].name, name) == 0;
    }
    return known;
}

static void add_name(struct buf *list, const char *name)
{
    buf_addf(list, "%s%s", list->len ? ", " : "", name);
}

static int unknown_name(const struct package_plan *p, const char *name, struct err *e)
{
    auto_buf struct buf known = {0};
    for (size_t i = 0; i < p->n_sources; i++) {
        add_name(&known, p->sources[i].name);
    }
    for (size_t i = 0; i < p->n_dropped; i++) {
        add_name(&known, p->dropped[i].name);
    }
    return err_set(e, ERR_INVALID,
                   "sourceNames: the package has no persist source named '%s'; it has: %s", name,
                   known.len ? buf_str(&known) : "none");
}

int run_plan_scope(struct arena *a, const struct package_plan *p, bool has_names,
                   const char *const *names, size_t n_names, bool *covered, struct err *e)
{
    (void)a;
    for (size_t i = 0; has_names && i < n_names; i++) {
        if (!is_known(p, names[i])) {
            return unknown_name(p, names[i], e);
        }
    }
    for (size_t i = 0; i < p->n_targets; i++) {
        const struct planned_target *t = &p->targets[i];
        covered[i] = false;
        for (size_t k = 0; k < t->n_sources && !t->refused_reason; k++) {
            covered[i] |= is_named(has_names, names, n_names, p->sources[t->sources[k]].name);
        }
    }
    return 0;
}

static bool in_scope(const struct run_making *m, const char *name)
{
    return is_named(m->in->has_names, m->in->names, m->in->n_names, name);
}

/* ---- what a target carries along ---- */

static void fill_target(struct run_making *m, size_t i, struct plan_target *t)
{
    const struct planned_target *pt = &m->p->targets[i];
    const struct target_state *s = &m->in->states[i];
    const struct plan_connection *c =
        plan_connection_of(m->in->connections, m->in->n_connections, pt->connection);
    const char *schema = s->schema ? s->schema : pt->schema;
    const char *table = s->table ? s->table : pt->table;
    t->target = (struct core_target){
        .warehouse = arena_strdup(m->a, c && c->digest ? c->digest : pt->connection),
        .connection = pt->connection,
        .in_place = !c || strcmp(c->type, "duckdb") != 0,
        .schema = arena_strdup(m->a, schema),
        .table = arena_strdup(m->a, table),
        .physical = plan_name_quoted(m->a, schema, table),
        .target_key = arena_strdup(m->a, table),
        .build_id = pt->build_id,
        .entity_id = pt->entity_id,
    };
}

static void fill_sources(struct run_making *m, const struct planned_target *pt,
                         struct plan_target *t)
{
    const struct planned_source *owner = &m->p->sources[pt->owner];
    size_t size = (pt->n_sources + 1) * sizeof(char *);
    const char **ids = arena_alloc(m->a, size);
    const char **names = arena_alloc(m->a, size);
    const char **models = arena_alloc(m->a, size);
    for (size_t i = 0; i < pt->n_sources; i++) {
        const struct planned_source *s = &m->p->sources[pt->sources[i]];
        ids[i] = s->source_id;
        names[i] = s->name;
        models[i] = s->model;
    }
    t->source_id = owner->source_id;
    t->source_name = owner->name;
    t->model = owner->model;
    t->source_ids = ids;
    t->source_names = names;
    t->source_models = models;
    t->n_sources = pt->n_sources;
    t->sql = owner->sql;
    t->tag = m->in->query_metadata_off ? "" : pt->tag;
    t->tag = plan_meta_tag_add(m->a, t->tag, "trigger", m->in->trigger);
    t->tag = plan_meta_tag_add(m->a, t->tag, "run_id", m->in->run_id);
}

/* Sources of one table share one policy: the tightest window, and stale_ok only where all who say
 * something say it (R5). */
static void fold_freshness(struct run_making *m, const struct planned_target *pt,
                           struct plan_target *t)
{
    bool bound = false, stale_ok = false, only_fail = true;
    for (size_t i = 0; i < pt->n_sources; i++) {
        const struct planned_source *s = &m->p->sources[pt->sources[i]];
        int64_t window = s->freshness_window ? duration_seconds(s->freshness_window) : -1;
        if (window > 0 && (t->window_s == 0 || window < t->window_s)) {
            t->window_s = (uint32_t)window;
        }
        if (s->freshness_fallback && strcmp(s->freshness_fallback, "stale_ok") == 0) {
            stale_ok = true;
        } else if (s->freshness_fallback || s->freshness_window) {
            bound = true;
            only_fail &= s->freshness_fallback && strcmp(s->freshness_fallback, "fail") == 0;
        }
    }
    if (bound) {
        t->fallback = only_fail ? FALLBACK_FAIL : FALLBACK_LIVE;
    } else {
        t->fallback = stale_ok ? FALLBACK_STALE_OK : FALLBACK_LIVE;
    }
}

static const struct planned_source *source_of_entity(const struct package_plan *p, const char *id)
{
    for (size_t i = 0; i < p->n_sources; i++) {
        if (strcmp(p->sources[i].entity_id, id) == 0) {
            return &p->sources[i];
        }
    }
    return NULL;
}

/* NULL: the child can read this upstream's table; else why it cannot. Never names a table (C10). */
static const char *recompute_reason(struct run_making *m, const char *entity)
{
    const struct planned_source *up = source_of_entity(m->p, entity);
    if (!up) {
        return "a persisted upstream is not part of this plan";
    }
    if (up->skipped) {
        return arena_printf(m->a, "upstream '%s' is not stored: its storage= is ignored", up->name);
    }
    if (up->target < 0 || m->p->targets[up->target].refused_reason) {
        return arena_printf(m->a, "upstream '%s' is refused", up->name);
    }
    size_t i = (size_t)up->target;
    if (m->covered[i]) {
        return NULL;
    }
    if (!m->in->generations[i].g.id) {
        return arena_printf(m->a, "upstream '%s' is not in this run and was not built before",
                            up->name);
    }
    if (m->in->states[i].asked && !plan_is_proven(m, i)) {
        return arena_printf(m->a,
                            "upstream '%s' is not in this run and its table is not the "
                            "recorded one",
                            up->name);
    }
    return NULL;
}

static void fill_reuse(struct run_making *m, const struct planned_target *pt, struct plan_target *t)
{
    const struct planned_source *owner = &m->p->sources[pt->owner];
    auto_buf struct buf reasons = {0};
    for (size_t i = 0; i < owner->n_depends_on; i++) {
        const char *reason = recompute_reason(m, owner->depends_on[i]);
        if (reason) {
            buf_addf(&reasons, "%s%s", reasons.len ? "; " : "", reason);
        }
    }
    if (owner->n_depends_on > 0) {
        t->upstream_reuse = reasons.len ? "recomputed" : "reused";
        t->upstream_recompute_reason = reasons.len ? arena_strdup(m->a, buf_str(&reasons)) : NULL;
    }
}

static void fill_parents(struct run_making *m, const struct planned_target *pt,
                         struct plan_target *t)
{
    size_t *parents = arena_alloc(m->a, (pt->n_parents + 1) * sizeof(*parents));
    for (size_t i = 0; i < pt->n_parents; i++) {
        if (m->covered[pt->parents[i]]) {
            parents[t->n_parents++] = m->at[pt->parents[i]];
        }
    }
    t->parents = parents;
}

static void add_target(struct run_making *m, size_t i)
{
    const struct planned_target *pt = &m->p->targets[i];
    m->at[i] = m->out->n;
    struct plan_target *t = &m->out->targets[m->out->n++];
    fill_target(m, i, t);
    fill_sources(m, pt, t);
    fold_freshness(m, pt, t);
    fill_parents(m, pt, t);
    fill_reuse(m, pt, t);
    plan_decide(m, i, t);
}

/* ---- the whole run ---- */

static void add_refusals(struct run_making *m)
{
    struct run_plan *out = m->out;
    out->refusals = arena_zalloc(m->a, (m->p->n_refusals + 1) * sizeof(*out->refusals));
    for (size_t i = 0; i < m->p->n_refusals; i++) {
        const struct plan_refusal *r = &m->p->refusals[i];
        if (!in_scope(m, r->name)) {
            continue;
        }
        out->refusals[out->n_refusals++] = *r;
        out->named_refused |= m->in->has_names;
    }
    for (size_t i = 0; i < m->p->n_sources; i++) {
        const struct planned_source *s = &m->p->sources[i];
        out->n_authored += !s->skipped && in_scope(m, s->name);
    }
}

static void fail_of_dropped(struct run_making *m)
{
    auto_buf struct buf names = {0};
    for (size_t i = 0; i < m->p->n_dropped; i++) {
        if (in_scope(m, m->p->dropped[i].name)) {
            buf_addf(&names, "%s%s (%s)", names.len ? ", " : "", m->p->dropped[i].name,
                     m->p->dropped[i].path);
        }
    }
    if (names.len > 0) {
        m->out->fail = arena_printf(
            m->a,
            "sources annotated '#@ persist' but were not recognized as a materializable source: "
            "%s; persist a query source instead (x is base -> { select: * })",
            buf_str(&names));
    }
}

void run_plan_make(struct arena *a, const struct run_plan_input *in, struct run_plan *out)
{
    const struct package_plan *p = in->package;
    struct run_making m = {.a = a, .in = in, .p = p, .out = out};
    *out = (struct run_plan){.load = in->load, .compiler_version = in->compiler_version};
    m.covered = arena_zalloc(a, p->n_targets + 1);
    m.at = arena_zalloc(a, (p->n_targets + 1) * sizeof(*m.at));
    out->targets = arena_zalloc(a, (p->n_targets + 1) * sizeof(*out->targets));
    struct err e;
    if (run_plan_scope(a, p, in->has_names, in->names, in->n_names, m.covered, &e) != 0) {
        out->fail = arena_strdup(a, err_text(&e));
        return;
    }
    fail_of_dropped(&m);
    add_refusals(&m);
    for (size_t i = 0; i < p->n_targets; i++) {
        if (m.covered[i]) {
            add_target(&m, i);
        }
    }
}
