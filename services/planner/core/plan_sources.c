#include "services/planner/core/plan_internal.h"

struct plan_src *plan_source(const struct plan_making *m, const char *source_id)
{
    return map_get(&m->by_id, slice_of(source_id));
}

static const Kiln__Mc__Model *home_of(const struct plan_making *m, const Kiln__Mc__Source *s,
                                      const Kiln__Mc__Model *walked)
{
    const Kiln__Mc__Model *home = map_get(&m->models, slice_of(s->declared_in));
    return home ? home : walked;
}

/* Seen again through an import: the declaring file's own walk names it best, a planned one beats a
 * failed one. */
static void merge(struct plan_making *m, struct plan_src *known, const Kiln__Mc__Source *s,
                  const Kiln__Mc__Model *model)
{
    bool failed = *known->msg->failed_text != '\0';
    bool better = failed && *s->failed_text == '\0';
    bool own = strcmp(model->path, s->declared_in) == 0 && (failed || *s->failed_text == '\0');
    if (better || own) {
        known->msg = s;
        known->model = model;
        known->home = home_of(m, s, model);
    }
}

static int by_declaration(const void *left, const void *right)
{
    const struct plan_src *a = left, *b = right;
    int order = strcmp(a->msg->declared_in, b->msg->declared_in);
    if (order == 0) {
        order = a->msg->ordinal < b->msg->ordinal ? -1 : a->msg->ordinal > b->msg->ordinal;
    }
    return order ? order : strcmp(a->msg->source_id, b->msg->source_id);
}

static void index_sources(struct plan_making *m)
{
    map_fini(&m->by_id);
    map_init(&m->by_id);
    for (size_t i = 0; i < m->n_src; i++) {
        map_put(&m->by_id, slice_of(m->src[i].msg->source_id), &m->src[i]);
    }
}

static void collect_model(struct plan_making *m, const Kiln__Mc__Model *model)
{
    for (size_t i = 0; i < model->n_sources; i++) {
        const Kiln__Mc__Source *s = model->sources[i];
        struct plan_src *known = plan_source(m, s->source_id);
        if (known) {
            merge(m, known, s, model);
            continue;
        }
        struct plan_src *at = &m->src[m->n_src++];
        *at = (struct plan_src){.msg = s, .model = model, .home = home_of(m, s, model)};
        map_put(&m->by_id, slice_of(s->source_id), at);
    }
}

static void collect_dropped(struct plan_making *m, const Kiln__Mc__Model *model)
{
    struct package_plan *out = m->out;
    for (size_t i = 0; i < model->n_dropped; i++) {
        const Kiln__Mc__Dropped *d = model->dropped[i];
        struct slice id = slice_of(d->source_id);
        if (map_get(&m->by_id, id) || map_put(&m->dropped_ids, id, m)) {
            continue;
        }
        out->dropped = plan_grown(m->a, out->dropped, out->n_dropped, sizeof(*out->dropped));
        out->dropped[out->n_dropped++] =
            (struct plan_dropped){arena_strdup(m->a, d->name), arena_strdup(m->a, d->source_id),
                                  arena_strdup(m->a, d->path)};
    }
}

void plan_sources_collect(struct plan_making *m)
{
    const Kiln__Mc__Loaded *loaded = m->in->loaded;
    size_t most = 0;
    for (size_t i = 0; i < loaded->n_models; i++) {
        most += loaded->models[i]->n_sources;
    }
    m->src = arena_zalloc(m->a, (most + 1) * sizeof(*m->src));
    for (size_t i = 0; i < loaded->n_models; i++) {
        collect_model(m, loaded->models[i]);
    }
    qsort(m->src, m->n_src, sizeof(*m->src), by_declaration);
    index_sources(m);
    for (size_t i = 0; i < loaded->n_models; i++) {
        collect_dropped(m, loaded->models[i]);
    }
}

/* Upstreams first. Depth is the length of a chain of persisted sources in one package. */
static void visit(struct plan_making *m, struct plan_src *s, struct plan_src *out, size_t *n)
{
    if (s->visited) {
        return;
    }
    s->visited = true;
    for (size_t i = 0; i < s->msg->n_depends_on_sources; i++) {
        struct plan_src *upstream = plan_source(m, s->msg->depends_on_sources[i]);
        if (upstream) {
            visit(m, upstream, out, n);
        }
    }
    struct plan_src *base = plan_source(m, s->msg->extends);
    if (base) {
        visit(m, base, out, n);
    }
    out[(*n)++] = *s;
}

void plan_sources_order(struct plan_making *m)
{
    struct plan_src *ordered = arena_alloc(m->a, (m->n_src + 1) * sizeof(*ordered));
    size_t n = 0;
    for (size_t i = 0; i < m->n_src; i++) {
        visit(m, &m->src[i], ordered, &n);
    }
    m->src = ordered;
    index_sources(m);
}
