/* What a statement brings back: copied into the memory of the process that asked. */
#include "tests/sim/trio_wire.h"

static void copy_columns(struct arena *a, struct wh_columns *c)
{
    struct wh_column *items = arena_alloc(a, (c->n + 1) * sizeof(*items));
    for (size_t i = 0; i < c->n; i++) {
        items[i] = c->items[i];
        items[i].name = arena_strdup(a, items[i].name);
        items[i].data_type = arena_strdup(a, items[i].data_type);
        items[i].element_type = arena_strdup(a, items[i].element_type);
    }
    c->items = items;
}

static void copy_fence(struct arena *a, struct wh_fence *f)
{
    f->generation = arena_strdup(a, f->generation);
    f->build_id = arena_strdup(a, f->build_id);
}

static void copy_relations(struct arena *a, struct wh_facts *f)
{
    struct wh_relation *list = arena_alloc(a, (f->n_relations + 1) * sizeof(*list));
    for (size_t i = 0; i < f->n_relations; i++) {
        struct wh_relation *r = &list[i];
        *r = f->relations[i];
        r->name = wire_name(a, r->name);
        copy_fence(a, &r->fence);
        const char **dependents = arena_alloc(a, (r->n_dependents + 1) * sizeof(char *));
        for (size_t k = 0; k < r->n_dependents; k++) {
            dependents[k] = arena_strdup(a, r->dependents[k]);
        }
        r->dependents = dependents;
    }
    f->relations = list;
}

/* As the process that asked. */
static int give_rows(struct statement *s, struct wh_op *op)
{
    struct wh_sink *sink = s->reader;
    int rc = sink->on_columns ? sink->on_columns(sink->data, &op->facts.columns) : 0;
    for (uint64_t i = 0; rc == 0 && i < s->n_rows; i++) {
        struct slice cell = SLICE("1");
        rc = sink->on_row(sink->data, &cell);
    }
    return rc;
}

void wire_answer(struct statement *s)
{
    struct wh_op *op = s->outer;
    struct arena *a = op->arena;
    op->impl = NULL;
    op->rc = s->inner.rc;
    op->err = s->inner.err;
    op->facts = s->inner.facts;
    copy_columns(a, &op->facts.columns);
    copy_fence(a, &op->facts.fence);
    copy_relations(a, &op->facts);
    for (size_t i = 0; s->asked && i < s->asked->n_baked; i++) {
        struct wh_receipt *r = &s->asked->baked[i];
        *r = s->query.baked[i];
        r->generation = arena_strdup(a, r->generation);
        r->build_id = arena_strdup(a, r->build_id);
        r->name = wire_name(a, r->name);
    }
    if (s->reader && op->rc == 0) {
        op->rc = give_rows(s, op);
    }
    op->done(op);
}
