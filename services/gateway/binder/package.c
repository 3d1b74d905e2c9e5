/* Loads and packages as values: made from messages, counted, immutable once in force. Main loop,
 * but for the counts of packages. */
#include "common/json/json.h"
#include "services/gateway/binder/binder.h"
#include "services/gateway/view.h"

struct gw_load *gw_load_ref(struct gw_load *l)
{
    l->refs++;
    return l;
}

void gw_load_unref(struct gw_load *l)
{
    if (!l || --l->refs > 0) {
        return;
    }
    if (l->g->compiler) {
        compiler_forget(l->g->compiler, l->load_id);
    }
    arena_fini(&l->arena);
    free(l);
}

struct gw_package *gw_package_ref(struct gw_package *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

static void on_release(struct inbox_item *item)
{
    struct gw_package *p = container_of(item, struct gw_package, release);
    struct gw_load *load = p->load;
    struct gw_binder *b = load->g->binder;
    list_del(&p->link);
    map_fini(&p->by_build);
    struct arena a = p->arena; /* p lives in it */
    arena_fini(&a);
    gw_load_unref(load);
    binder_settle(b);
}

void gw_package_unref(struct gw_package *p)
{
    if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) > 1) {
        return;
    }
    p->release.fn = on_release;
    loop_post(p->load->g->loop, &p->release);
}

const struct gw_binding *gw_package_binding(const struct gw_package *p, const char *build_id)
{
    return map_get(&p->by_build, slice_of(build_id));
}

static bool ends_with(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcmp(path + n - m, suffix) == 0;
}

bool gw_is_model(const char *path)
{
    return ends_with(path, ".malloy") || ends_with(path, ".malloynb");
}

struct gw_load *gw_load_make(struct gateway *g, struct slice packed_rep, const char *load_id)
{
    struct gw_load *l = xcalloc(1, sizeof(*l));
    l->refs = 1;
    l->g = g;
    arena_init(&l->arena);
    snprintf(l->load_id, sizeof(l->load_id), "%s", load_id);
    l->rep = bus_unpack(&kiln__get_package_rep__descriptor, &l->arena, packed_rep, NULL);
    if (!l->rep) {
        arena_fini(&l->arena);
        free(l);
        return NULL;
    }
    l->contents = arena_zalloc(&l->arena, (l->rep->n_files + 1) * sizeof(*l->contents));
    return l;
}

static void add_sources(struct gw_load *l, json_t *map, bool refused)
{
    const char *key;
    json_t *v;
    json_object_foreach(map, key, v)
    {
        struct gw_source *s = &l->sources[l->n_sources++];
        s->source_id = arena_strdup(&l->arena, key);
        s->name = arena_strdup(&l->arena, json_str(v, "name", ""));
        s->model = arena_strdup(&l->arena, json_str(v, "modelPath", ""));
        s->build_id =
            arena_strdup(&l->arena, json_str(v, "buildId", json_str(v, "sourceEntityId", "")));
        s->connection = arena_strdup(&l->arena, json_str(v, "connectionName", ""));
        s->refused_reason =
            refused ? arena_strdup(&l->arena, json_str(v, "reason", "refused")) : NULL;
    }
}

void gw_load_finish(struct gw_load *l)
{
    json_t *plan = json_parse(slice_of(l->rep->plan_json), NULL);
    json_t *sources = json_object_get(plan, "sources");
    json_t *refused = json_object_get(plan, "refusedSources");
    l->sources =
        arena_zalloc(&l->arena, (json_object_size(sources) + json_object_size(refused) + 1) *
                                    sizeof(*l->sources));
    add_sources(l, sources, false);
    add_sources(l, refused, true);
    json_decref(plan);
    l->models = arena_zalloc(&l->arena, (l->rep->n_files + 1) * sizeof(*l->models));
    l->notebooks = arena_zalloc(&l->arena, (l->rep->n_files + 1) * sizeof(*l->notebooks));
    for (size_t i = 0; i < l->rep->n_files; i++) {
        const char *path = l->rep->files[i]->path;
        if (ends_with(path, ".malloy")) {
            l->models[l->n_models++] = path;
        } else if (ends_with(path, ".malloynb")) {
            l->notebooks[l->n_notebooks++] = path;
        }
    }
}

static void fill_binding(struct gw_package *p, struct gw_binding *out, const Kiln__Binding *in)
{
    struct arena *a = &p->arena;
    *out = (struct gw_binding){.source_id = arena_strdup(a, in->source_id),
                               .source_name = arena_strdup(a, in->source_name),
                               .model = arena_strdup(a, in->model),
                               .build_id = arena_strdup(a, in->build_id),
                               .entity_id = arena_strdup(a, in->source_entity_id),
                               .connection = arena_strdup(a, in->connection),
                               .physical = arena_strdup(a, in->physical),
                               .target_key = arena_strdup(a, in->target_key),
                               .generation = arena_strdup(a, in->generation),
                               .token = in->token,
                               .rows = (int64_t)in->rows,
                               .data_as_of_us = in->data_as_of_us,
                               .window_s = in->window_s,
                               .fallback = (int)in->fallback,
                               .is_by_binding = in->class_ == KILN__WH_CLASS__WH_BY_BINDING};
    if (in->root_id.len == sizeof(out->root.b)) {
        memcpy(out->root.b, in->root_id.data, sizeof(out->root.b));
    }
    out->name = (struct wh_name){arena_strdup(a, in->schema), arena_strdup(a, in->table)};
}

struct gw_package *gw_package_make(struct gw_load *l, const Kiln__BindingSet *set)
{
    struct arena a;
    arena_init(&a);
    struct gw_package *p = arena_zalloc(&a, sizeof(*p));
    p->arena = a;
    atomic_init(&p->refs, 1);
    p->load = gw_load_ref(l);
    list_add_tail(&l->g->binder->alive, &p->link);
    p->unit = set->package_id;
    p->epoch = set->epoch;
    snprintf(p->load_id, sizeof(p->load_id), "%s", l->load_id);
    p->environment = arena_strdup(&p->arena, set->environment);
    p->name = arena_strdup(&p->arena, set->package);
    p->version = l->rep->version;
    p->cause = arena_strdup(&p->arena, set->cause);
    p->run = arena_strdup(&p->arena, set->run);
    p->package_json = l->rep->package_json;
    p->sources = l->sources;
    p->n_sources = l->n_sources;
    p->models = l->models;
    p->n_models = l->n_models;
    p->notebooks = l->notebooks;
    p->n_notebooks = l->n_notebooks;
    map_init(&p->by_build);
    p->bindings = arena_zalloc(&p->arena, (set->n_bindings + 1) * sizeof(*p->bindings));
    for (size_t i = 0; i < set->n_bindings; i++) {
        struct gw_binding *b = &p->bindings[p->n_bindings++];
        fill_binding(p, b, set->bindings[i]);
        if (!map_get(&p->by_build, slice_of(b->build_id))) {
            map_put(&p->by_build, slice_of(b->build_id), b);
        }
    }
    p->unbaked = arena_zalloc(&p->arena, (set->n_unbaked + 1) * sizeof(*p->unbaked));
    for (size_t i = 0; i < set->n_unbaked; i++) {
        p->unbaked[p->n_unbaked++] =
            (struct gw_unbaked){arena_strdup(&p->arena, set->unbaked[i]->source_id),
                                arena_strdup(&p->arena, set->unbaked[i]->code),
                                arena_strdup(&p->arena, set->unbaked[i]->text)};
    }
    gw_view_make(p);
    return p;
}

static Kiln__Mc__Col **columns(struct arena *a, Kiln__Column *const *in, size_t n)
{
    Kiln__Mc__Col **list = arena_zalloc(a, (n + 1) * sizeof(*list));
    for (size_t i = 0; i < n; i++) {
        list[i] = arena_alloc(a, sizeof(**list));
        kiln__mc__col__init(list[i]);
        list[i]->name = in[i]->name;
        list[i]->data_type = in[i]->type;
        list[i]->element_type = in[i]->element_type;
    }
    return list;
}

static void add_schemas(struct arena *a, const Kiln__GetPackageRep *rep, Kiln__Mc__Load *m)
{
    m->tables = arena_zalloc(a, (rep->n_schemas + 1) * sizeof(*m->tables));
    m->sqls = arena_zalloc(a, (rep->n_schemas + 1) * sizeof(*m->sqls));
    for (size_t i = 0; i < rep->n_schemas; i++) {
        const Kiln__StoredSchema *s = rep->schemas[i];
        if (s->sql[0]) {
            Kiln__Mc__Sql *q = arena_alloc(a, sizeof(*q));
            kiln__mc__sql__init(q);
            q->connection = s->connection;
            q->sql = s->sql;
            q->error = s->error;
            q->columns = columns(a, s->columns, s->n_columns);
            q->n_columns = s->n_columns;
            m->sqls[m->n_sqls++] = q;
            continue;
        }
        Kiln__Mc__Table *t = arena_alloc(a, sizeof(*t));
        kiln__mc__table__init(t);
        t->connection = s->connection;
        t->path = s->path;
        t->error = s->error;
        t->columns = columns(a, s->columns, s->n_columns);
        t->n_columns = s->n_columns;
        m->tables[m->n_tables++] = t;
    }
}

void gw_load_message(const struct gw_load *l, struct arena *a, struct buf *out)
{
    const Kiln__GetPackageRep *rep = l->rep;
    Kiln__Mc__Load m = KILN__MC__LOAD__INIT;
    m.load_id = bus_str(l->load_id);
    m.package = rep->package;
    m.default_connection = rep->default_connection;
    m.files = arena_zalloc(a, (rep->n_files + 1) * sizeof(*m.files));
    for (size_t i = 0; i < rep->n_files; i++) {
        if (!l->contents[i].p) {
            continue;
        }
        Kiln__Mc__File *f = arena_alloc(a, sizeof(*f));
        kiln__mc__file__init(f);
        f->path = rep->files[i]->path;
        f->contents = arena_slice(a, l->contents[i]);
        m.files[m.n_files++] = f;
    }
    m.connections = arena_zalloc(a, (rep->n_connections + 1) * sizeof(*m.connections));
    for (size_t i = 0; i < rep->n_connections; i++) {
        Kiln__Mc__Conn *c = arena_alloc(a, sizeof(*c));
        kiln__mc__conn__init(c);
        c->name = rep->connections[i]->name;
        c->dialect = rep->connections[i]->dialect;
        c->digest = rep->connections[i]->digest;
        m.connections[m.n_connections++] = c;
    }
    add_schemas(a, rep, &m);
    size_t len = kiln__mc__load__get_packed_size(&m);
    buf_reserve(out, len);
    kiln__mc__load__pack(&m, (uint8_t *)out->p + out->len);
    out->len += len;
}
