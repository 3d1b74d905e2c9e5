#include "services/planner/core/plan_internal.h"

/* A target in the making: its sources by declaration, its rank in plan order. */
struct draft {
    struct planned_target row;
    size_t *sources;
    bool visited;
    size_t index; /* in the finished array */
};
struct drafts {
    struct plan_making *m;
    struct draft *items;
    size_t n;
    struct map by_build; /* build id -> draft * */
    struct planned_target *out;
    size_t n_out;
};

static bool is_target(const struct plan_src *s)
{
    return !s->refused_reason && !s->row.skipped;
}

static void add_source(struct drafts *d, size_t source)
{
    struct plan_making *m = d->m;
    const struct planned_source *row = &m->src[source].row;
    struct draft *at = map_get(&d->by_build, slice_of(row->build_id));
    if (!at) {
        at = &d->items[d->n++];
        map_put(&d->by_build, slice_of(row->build_id), at);
    }
    at->sources = plan_grown(m->a, at->sources, at->row.n_sources, sizeof(*at->sources));
    at->sources[at->row.n_sources++] = source;
}

/* Declared first, and no extension while another source shares the identity (spec 2.6). */
static bool owns_before(const struct plan_src *a, const struct plan_src *b)
{
    if (a->row.is_extension != b->row.is_extension) {
        return b->row.is_extension;
    }
    int order = strcmp(a->row.declared_in, b->row.declared_in);
    return order < 0 || (order == 0 && a->msg->ordinal < b->msg->ordinal);
}

static void choose_owner(struct plan_making *m, struct draft *t)
{
    for (size_t i = 1; i < t->row.n_sources; i++) {
        if (owns_before(&m->src[t->sources[i]], &m->src[t->sources[0]])) {
            size_t first = t->sources[0];
            t->sources[0] = t->sources[i];
            t->sources[i] = first;
        }
    }
    const struct plan_src *owner = &m->src[t->sources[0]];
    t->row.owner = t->sources[0];
    t->row.sources = t->sources;
    t->row.entity_id = owner->row.entity_id;
    t->row.build_id = owner->row.build_id;
    t->row.connection = owner->row.connection;
    t->row.schema = owner->row.name_parts.schema;
    t->row.table = owner->row.name_parts.table;
    t->row.tag = plan_meta_tag(m->a, owner->metadata, m->in->package, owner->row.name);
}

static void visit(struct drafts *d, struct draft *t)
{
    if (t->visited) {
        return;
    }
    t->visited = true;
    const Kiln__Mc__Source *msg = d->m->src[t->sources[0]].msg;
    size_t *parents = NULL;
    for (size_t i = 0; i < msg->n_depends_on; i++) {
        struct draft *parent = map_get(&d->by_build, slice_of(msg->depends_on[i]));
        if (!parent || parent == t) {
            continue;
        }
        visit(d, parent);
        parents = plan_grown(d->m->a, parents, t->row.n_parents, sizeof(*parents));
        parents[t->row.n_parents++] = parent->index;
    }
    t->row.parents = parents;
    t->index = d->n_out;
    for (size_t i = 0; i < t->row.n_sources; i++) {
        d->m->src[t->sources[i]].row.target = (int)t->index;
    }
    d->out[d->n_out++] = t->row;
}

static const char *digest_of(const struct plan_making *m, const char *connection)
{
    const struct plan_connection *c =
        plan_connection_of(m->in->connections, m->in->n_connections, connection);
    return c && c->digest ? c->digest : connection;
}

static bool same_place(const struct plan_making *m, const struct planned_target *t,
                       const char *connection, const char *schema, const char *table)
{
    return strcmp(t->table, table) == 0 &&
           strcmp(digest_of(m, t->connection), digest_of(m, connection)) == 0 &&
           plan_schema_matches(m->src[t->owner].row.dialect, t->schema, schema);
}

static void collect_reads(struct plan_making *m)
{
    struct package_plan *out = m->out;
    struct planned_read *reads = NULL;
    for (size_t i = 0; i < m->in->loaded->n_models; i++) {
        const Kiln__Mc__Model *model = m->in->loaded->models[i];
        for (size_t k = 0; k < model->n_reads_tables; k++) {
            struct slice path = slice_of(model->reads_tables[k]), connection;
            if (!slice_cut(&path, '\x1f', &connection) || path.len == 0) {
                continue;
            }
            struct plan_name name;
            const char *text = arena_slice(m->a, path);
            plan_name_parse(m->a, text, &name);
            if (name.problem) { /* an odd path of another engine: taken as one name */
                name = (struct plan_name){.parts = {text}, .n = 1};
            }
            reads = plan_grown(m->a, reads, out->n_reads, sizeof(*reads));
            reads[out->n_reads++] = (struct planned_read){arena_slice(m->a, connection),
                                                          name.n > 1 ? name.parts[name.n - 2] : "",
                                                          name.parts[name.n - 1]};
        }
    }
    out->reads = reads;
}

static void refuse_target(struct planned_target *t, const char *reason, const char *message)
{
    t->refused_reason = reason;
    t->refused_message = message;
}

static void check_engine(struct plan_making *m, struct planned_target *t)
{
    const struct plan_connection *c =
        plan_connection_of(m->in->connections, m->in->n_connections, t->connection);
    if (c->planned_only || !c->has_driver) {
        refuse_target(t, "no_driver",
                      arena_printf(m->a,
                                   "connection '%s' is of type %s, on which this version plans but "
                                   "does not build: source '%s' is served live",
                                   c->name, c->type, m->src[t->owner].row.name));
    }
}

static void check_reads(struct plan_making *m, struct planned_target *t)
{
    for (size_t i = 0; i < m->out->n_reads && !t->refused_reason; i++) {
        const struct planned_read *r = &m->out->reads[i];
        if (same_place(m, t, r->connection, r->schema, r->table)) {
            refuse_target(
                t, "target_is_a_source",
                arena_printf(m->a,
                             "source '%s' would be built into %s on connection '%s', which a "
                             "model of the package reads as a base table: choose another name=",
                             m->src[t->owner].row.name, plan_name_shown(m->a, t->schema, t->table),
                             t->connection));
        }
    }
}

static int by_text(const void *left, const void *right)
{
    const char *const *a = left, *const *b = right;
    return strcmp(*a, *b);
}

/* All targets at the place of `first`, this one included; refuses the later ones. */
static void check_collision(struct plan_making *m, size_t first)
{
    struct package_plan *out = m->out;
    struct planned_target *winner = &out->targets[first];
    const char **names = NULL;
    size_t n = 0;
    for (size_t i = first; i < out->n_targets; i++) {
        struct planned_target *t = &out->targets[i];
        if (t->refused_reason || !same_place(m, winner, t->connection, t->schema, t->table)) {
            continue;
        }
        names = plan_grown(m->a, (void *)names, n, sizeof(*names));
        names[n++] = m->src[t->owner].row.name;
        if (i > first) {
            refuse_target(t, "target_collision",
                          arena_printf(m->a,
                                       "source '%s' has the same target %s on connection '%s' as "
                                       "source '%s', which is built: choose another name=",
                                       m->src[t->owner].row.name,
                                       plan_name_shown(m->a, t->schema, t->table), t->connection,
                                       m->src[winner->owner].row.name));
        }
    }
    if (n < 2) {
        return;
    }
    qsort((void *)names, n, sizeof(*names), by_text);
    auto_buf struct buf list = {0};
    for (size_t i = 0; i < n; i++) {
        buf_addf(&list, "%s'%s'", i == 0 ? "" : i + 1 == n ? " and " : ", ", names[i]);
    }
    char *text = arena_printf(m->a,
                              "sources %s resolve to the same materialized table %s on connection "
                              "'%s': give each a name= of its own",
                              buf_str(&list), plan_name_shown(m->a, winner->schema, winner->table),
                              winner->connection);
    plan_warn(m, m->src[winner->owner].row.model, names[0], text);
    if (m->in->publishing && m->in->collision_enforce) {
        plan_fail_load(m, 400, "%s", text);
    }
}

void plan_targets_make(struct plan_making *m)
{
    struct drafts d = {.m = m};
    map_init(&d.by_build);
    d.items = arena_zalloc(m->a, (m->n_src + 1) * sizeof(*d.items));
    d.out = arena_zalloc(m->a, (m->n_src + 1) * sizeof(*d.out));
    for (size_t i = 0; i < m->n_src; i++) {
        if (is_target(&m->src[i])) {
            add_source(&d, i);
        }
    }
    for (size_t i = 0; i < d.n; i++) {
        choose_owner(m, &d.items[i]);
    }
    for (size_t i = 0; i < d.n; i++) {
        visit(&d, &d.items[i]);
    }
    map_fini(&d.by_build);
    m->out->targets = d.out;
    m->out->n_targets = d.n_out;
    collect_reads(m);
    for (size_t i = 0; i < d.n_out; i++) {
        check_engine(m, &d.out[i]);
        check_reads(m, &d.out[i]);
    }
    for (size_t i = 0; i < d.n_out; i++) {
        if (!d.out[i].refused_reason) {
            check_collision(m, i);
        }
    }
}
