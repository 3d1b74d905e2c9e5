/* The warehouse interface over questions to builders. */
#include "services/planner/asked_internal.h"

struct asked_wh *asked_of(const struct wh *wh)
{
    return wh->impl;
}

/* ---- answers ---- */
static void take_columns(struct arena *a, Kiln__Column *const *in, size_t n, struct wh_columns *out)
{
    out->items = arena_zalloc(a, (n + 1) * sizeof(*out->items));
    out->n = n;
    for (size_t i = 0; i < n; i++) {
        out->items[i] = (struct wh_column){
            .name = arena_strdup(a, in[i]->name),
            .data_type = arena_strdup(a, in[i]->type),
            .element_type = in[i]->element_type[0] ? arena_strdup(a, in[i]->element_type) : NULL,
            .nullable = in[i]->nullable,
        };
    }
}

static int take_tables(struct ask *k, const Kiln__FinishJobReq *q)
{
    struct arena *a = k->op->arena;
    struct wh_facts *f = &k->op->facts;
    if (q->n_schemas != k->n) {
        return ERR_INTERNAL;
    }
    f->n_schemas = k->n;
    f->schemas = arena_zalloc(a, (k->n + 1) * sizeof(*f->schemas));
    f->schema_errors = arena_zalloc(a, (k->n + 1) * sizeof(*f->schema_errors));
    for (size_t i = 0; i < k->n; i++) {
        const Kiln__TableSchema *s = q->schemas[i];
        take_columns(a, s->columns, s->n_columns, &f->schemas[i]);
        f->schema_errors[i] = s->error[0] ? arena_strdup(a, s->error) : NULL;
    }
    return 0;
}

static int take_sql(struct ask *k, const Kiln__FinishJobReq *q)
{
    if (q->n_schemas != 1) {
        return ERR_INTERNAL;
    }
    const Kiln__TableSchema *s = q->schemas[0];
    take_columns(k->op->arena, s->columns, s->n_columns, &k->op->facts.columns);
    return 0;
}

/* What every name of a package's DuckDB has in common: it holds nothing by itself. */
static void make_relations(struct ask *k, const struct wh_table *tables)
{
    struct arena *a = k->op->arena;
    struct wh_facts *f = &k->op->facts;
    f->n_relations = k->n;
    f->relations = arena_zalloc(a, (k->n + 1) * sizeof(*f->relations));
    for (size_t i = 0; i < k->n; i++) {
        f->relations[i] =
            (struct wh_relation){.name = {"main", arena_strdup(a, tables[i].name.table)},
                                 .schema_exists = true,
                                 .schema_writable = true};
    }
}

static int take_probe(struct ask *k, const Kiln__FinishJobReq *q)
{
    struct arena *a = k->op->arena;
    if (q->n_fences != k->job->n_probes) {
        return ERR_INTERNAL;
    }
    for (size_t i = 0; i < q->n_fences; i++) {
        const Kiln__FenceState *s = q->fences[i];
        k->op->facts.relations[k->asked[i]].fence =
            (struct wh_fence){.exists = s->generation[0] != '\0',
                              .owner = *bus_installation(k->wh->p->bus),
                              .claim = s->claim,
                              .published = s->published,
                              .generation = arena_strdup(a, s->generation),
                              .build_id = arena_strdup(a, s->build_id),
                              .rows = (int64_t)s->row_count,
                              .data_as_of_us = s->data_as_of_us,
                              .still_there = s->still_there};
    }
    return 0;
}

/* ---- questions ---- */
static void ask_tables(struct wh_op *op, const char *const *paths, size_t n)
{
    struct ask *k = ask_new(op, KILN__JOB_KIND__JOB_DESCRIBE);
    k->take = take_tables;
    k->n = n;
    Kiln__Describe *d = arena_alloc(&k->arena, sizeof(*d));
    kiln__describe__init(d);
    d->tables = arena_zalloc(&k->arena, (n + 1) * sizeof(*d->tables));
    for (size_t i = 0; i < n; i++) {
        Kiln__TableName *t = arena_alloc(&k->arena, sizeof(*t));
        kiln__table_name__init(t);
        t->connection = k->wh->connection;
        t->path = arena_strdup(&k->arena, paths[i]);
        d->tables[d->n_tables++] = t;
    }
    k->job->describe = d;
}

static void ask_sql(struct wh_op *op, const char *sql)
{
    struct ask *k = ask_new(op, KILN__JOB_KIND__JOB_DESCRIBE);
    k->take = take_sql;
    Kiln__Describe *d = arena_alloc(&k->arena, sizeof(*d));
    kiln__describe__init(d);
    Kiln__SqlBlock *b = arena_alloc(&k->arena, sizeof(*b));
    kiln__sql_block__init(b);
    b->connection = k->wh->connection;
    b->sql = arena_strdup(&k->arena, sql);
    d->sqls = arena_zalloc(&k->arena, sizeof(*d->sqls));
    d->sqls[d->n_sqls++] = b;
    k->job->describe = d;
}

/* Names without a recorded result are no question. */
static void ask_probe(struct wh_op *op, const struct wh_table *tables, size_t n)
{
    struct ask *k = ask_new(op, KILN__JOB_KIND__JOB_PROBE);
    k->take = take_probe;
    k->n = n;
    make_relations(k, tables);
    k->asked = arena_zalloc(&k->arena, (n + 1) * sizeof(*k->asked));
    k->job->probes = arena_zalloc(&k->arena, (n + 1) * sizeof(*k->job->probes));
    for (size_t i = 0; i < n; i++) {
        if (!tables[i].generation || !tables[i].generation[0]) {
            continue;
        }
        Kiln__Input *m = arena_alloc(&k->arena, sizeof(*m));
        kiln__input__init(m);
        m->name = arena_strdup(&k->arena, tables[i].name.table);
        m->generation = arena_strdup(&k->arena, tables[i].generation);
        m->build_id = arena_strdup(&k->arena, bus_str(tables[i].build_id));
        k->asked[k->job->n_probes] = i;
        k->job->probes[k->job->n_probes++] = m;
    }
    if (k->job->n_probes == 0) {
        ask_answer(k);
    }
}

static const struct wh_ops ops = {
    .name = "asked",
    .cls = WH_CLASS_BY_BINDING,
    .catalog_tables = ask_tables,
    .describe = ask_sql,
    .probe = ask_probe,
    .cancel = ask_cancel,
};

/* ---- the warehouse ---- */
static Kiln__FileRef *file_ref(struct arena *a, const struct store_file *f)
{
    Kiln__FileRef *m = arena_alloc(a, sizeof(*m));
    kiln__file_ref__init(m);
    m->path = arena_strdup(a, f->path);
    m->bytes = f->bytes;
    m->sha256.data = arena_dup(a, f->sha256.b, sizeof(f->sha256.b));
    m->sha256.len = sizeof(f->sha256.b);
    return m;
}

struct wh *asked_wh_new(struct planner *p, const char *environment, const char *package,
                        const struct sha256 *version, const struct store_file *files,
                        size_t n_files)
{
    struct asked_wh *w = xcalloc(1, sizeof(*w));
    w->wh = (struct wh){.ops = &ops, .impl = w};
    w->p = p;
    struct arena *a = &w->arena;
    arena_init(a);
    w->environment = arena_strdup(a, environment);
    w->package = arena_strdup(a, package);
    w->connection = arena_strdup(a, "duckdb");
    w->digest = duckdb_digest(a, environment, package);
    w->version = arena_zalloc(a, 65);
    hex_encode(version->b, sizeof(version->b), w->version);
    w->files = arena_zalloc(a, (n_files + 1) * sizeof(*w->files));
    for (size_t i = 0; i < n_files; i++) {
        if (files[i].is_data) {
            w->files[w->n_files++] = file_ref(a, &files[i]);
        }
    }
    return &w->wh;
}

void asked_wh_add_others(struct wh *own, const struct plan_connection *connections, size_t n)
{
    struct asked_wh *first = asked_of(own);
    for (size_t i = 0; i < n; i++) {
        const struct plan_connection *c = &connections[i];
        if (strcmp(c->type, "duckdb") != 0 || asked_wh_find(own, c->name)) {
            continue;
        }
        struct asked_wh *w = arena_zalloc(&first->arena, sizeof(*w));
        w->wh = (struct wh){.ops = &ops, .impl = w};
        w->p = first->p;
        w->environment = first->environment;
        w->package = first->package;
        w->version = first->version;
        w->connection = arena_strdup(&first->arena, c->name);
        w->digest = arena_strdup(&first->arena, c->digest);
        w->next = first->next;
        first->next = w;
    }
}

struct wh *asked_wh_find(struct wh *own, const char *connection)
{
    for (struct asked_wh *w = asked_of(own); w; w = w->next) {
        if (strcmp(w->connection, connection) == 0) {
            return &w->wh;
        }
    }
    return NULL;
}

void asked_wh_free(struct wh *own)
{
    if (own) {
        struct asked_wh *w = asked_of(own);
        arena_fini(&w->arena);
        free(w);
    }
}
