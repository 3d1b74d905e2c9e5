/* Core types to messages and back. */
#include "services/planner/planner.h"

void columns_from_proto(struct arena *a, Kiln__Column *const *items, size_t n,
                        struct core_columns *out)
{
    out->items = arena_zalloc(a, (n + 1) * sizeof(*out->items));
    out->n = n;
    for (size_t i = 0; i < n; i++) {
        const char *element = items[i]->element_type;
        out->items[i] = (struct core_column){
            arena_strdup(a, items[i]->name), arena_strdup(a, items[i]->type),
            element && element[0] ? arena_strdup(a, element) : NULL, items[i]->nullable};
    }
}

void columns_to_proto(struct arena *a, const struct core_columns *in, Kiln__Column ***out,
                      size_t *n)
{
    Kiln__Column **list = arena_zalloc(a, (in->n + 1) * sizeof(*list));
    for (size_t i = 0; i < in->n; i++) {
        list[i] = arena_alloc(a, sizeof(*list[i]));
        kiln__column__init(list[i]);
        list[i]->name = bus_str(in->items[i].name);
        list[i]->type = bus_str(in->items[i].data_type);
        list[i]->element_type = bus_str(in->items[i].element_type);
        list[i]->nullable = in->items[i].nullable;
    }
    *out = list;
    *n = in->n;
}

static Kiln__Binding *binding_message(struct arena *a, const struct core_binding *b)
{
    Kiln__Binding *m = arena_alloc(a, sizeof(*m));
    kiln__binding__init(m);
    m->source_id = bus_str(b->source_id);
    m->source_name = bus_str(b->source_name);
    m->model = bus_str(b->model);
    m->build_id = bus_str(b->target.build_id);
    m->source_entity_id = bus_str(b->target.entity_id);
    m->class_ = b->target.in_place ? KILN__WH_CLASS__WH_IN_PLACE : KILN__WH_CLASS__WH_BY_BINDING;
    m->connection = bus_str(b->target.connection);
    m->physical = bus_str(b->target.physical);
    m->schema = bus_str(b->target.schema);
    m->table = bus_str(b->target.table);
    m->target_key = bus_str(b->target.target_key);
    m->generation = bus_str(b->generation.id);
    m->token = b->generation.token;
    m->rows = (uint64_t)b->generation.rows;
    m->bytes = (uint64_t)b->generation.bytes;
    m->data_as_of_us = b->generation.data_as_of_us;
    m->window_s = b->window_s;
    m->fallback = (Kiln__Fallback)b->fallback;
    if (!id16_is_zero(b->generation.root.b)) {
        m->root_id = (ProtobufCBinaryData){
            16, arena_dup(a, b->generation.root.b, sizeof(b->generation.root.b))};
    }
    columns_to_proto(a, &b->generation.columns, &m->columns, &m->n_columns);
    m->n_shared_by = b->n_shared_by;
    m->shared_by = (char **)(uintptr_t)b->shared_by;
    return m;
}

void planner_pack_set(const struct core_binding_set *set, struct buf *out, void *data)
{
    struct planner *p = data;
    struct arena a;
    arena_init(&a);
    Kiln__BindingSet m = KILN__BINDING_SET__INIT;
    struct planner_unit *u = catalog_unit_id(p, set->unit);
    const struct uuid *installation = store_installation(p->store);
    m.installation.len = 16;
    m.installation.data = (uint8_t *)(uintptr_t)installation->b;
    m.environment = bus_str(u ? u->environment_name : NULL);
    m.package = bus_str(u ? u->name : NULL);
    m.package_id = set->unit;
    m.epoch = set->epoch;
    m.load_id = set->load ? arena_printf(&a, "l%llu", (unsigned long long)set->load) : "";
    bool same = u && u->load && u->load->id == set->load;
    m.compiler_version = bus_str(same ? u->load->compiler_version : compiler_version(p->compiler));
    m.cause = bus_str(set->cause);
    m.run = bus_str(set->run);
    m.bindings = arena_zalloc(&a, (set->n + 1) * sizeof(*m.bindings));
    m.n_bindings = set->n;
    for (size_t i = 0; i < set->n; i++) {
        m.bindings[i] = binding_message(&a, &set->bindings[i]);
    }
    m.unbaked = arena_zalloc(&a, (set->n_unbaked + 1) * sizeof(*m.unbaked));
    m.n_unbaked = set->n_unbaked;
    for (size_t i = 0; i < set->n_unbaked; i++) {
        m.unbaked[i] = arena_alloc(&a, sizeof(*m.unbaked[i]));
        kiln__unbaked__init(m.unbaked[i]);
        m.unbaked[i]->source_id = bus_str(set->unbaked[i].source_id);
        m.unbaked[i]->code = bus_str(set->unbaked[i].code);
        m.unbaked[i]->text = bus_str(set->unbaked[i].text);
    }
    size_t len = kiln__binding_set__get_packed_size(&m);
    buf_reserve(out, len);
    kiln__binding_set__pack(&m, (uint8_t *)out->p + out->len);
    out->len += len;
    out->p[out->len] = '\0';
    arena_fini(&a);
}

void target_state_from(struct arena *a, struct planner *p, const struct wh_relation *r,
                       struct target_state *s)
{
    s->asked = true;
    s->schema = arena_strdup(a, r->name.schema);
    s->table = arena_strdup(a, r->name.table);
    s->relkind = r->kind;
    s->schema_exists = r->schema_exists;
    s->schema_writable = r->schema_writable;
    s->is_empty = r->is_empty;
    s->dependents = r->dependents;
    s->n_dependents = r->n_dependents;
    s->cannot_carry = r->cannot_carry;
    s->n_cannot_carry = r->n_cannot_carry;
    s->has_fence = r->fence.exists;
    s->still_there = r->fence.still_there;
    s->ours = r->fence.exists && uuid_eq(&r->fence.owner, store_installation(p->store));
    s->fence_generation = r->fence.generation;
    s->fence_build_id = r->fence.build_id;
    coord_raise(p->coord, r->fence.claim);
}
