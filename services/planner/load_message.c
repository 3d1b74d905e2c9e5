/* The compiler's Load message from stored files and schemas, and its needs turned into questions.
 */
#include "services/planner/load.h"

static bool ends_with(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcmp(path + n - m, suffix) == 0;
}

bool is_model_path(const char *path)
{
    return ends_with(path, ".malloy") || ends_with(path, ".malloynb");
}

static Kiln__Mc__Col **columns(struct arena *a, const struct core_columns *in)
{
    Kiln__Mc__Col **list = arena_zalloc(a, (in->n + 1) * sizeof(*list));
    for (size_t i = 0; i < in->n; i++) {
        list[i] = arena_alloc(a, sizeof(*list[i]));
        kiln__mc__col__init(list[i]);
        list[i]->name = bus_str(in->items[i].name);
        list[i]->data_type = bus_str(in->items[i].data_type);
        list[i]->element_type = bus_str(in->items[i].element_type);
    }
    return list;
}

static void add_schema(struct arena *a, Kiln__Mc__Load *m, const struct store_schema *s)
{
    if (s->is_sql) {
        Kiln__Mc__Sql *q = arena_alloc(a, sizeof(*q));
        kiln__mc__sql__init(q);
        q->connection = bus_str(s->connection);
        q->sql = bus_str(s->key);
        q->error = bus_str(s->error);
        q->columns = columns(a, &s->columns);
        q->n_columns = s->columns.n;
        m->sqls[m->n_sqls++] = q;
        return;
    }
    Kiln__Mc__Table *t = arena_alloc(a, sizeof(*t));
    kiln__mc__table__init(t);
    t->connection = bus_str(s->connection);
    t->path = bus_str(s->key);
    t->error = bus_str(s->error);
    t->columns = columns(a, &s->columns);
    t->n_columns = s->columns.n;
    m->tables[m->n_tables++] = t;
}

void load_message_pack(struct arena *a, const char *load_id, const char *package,
                       const struct store_file *files, size_t n_files,
                       const struct plan_connection *connections, size_t n_connections,
                       const struct store_schema *schemas, size_t n_schemas, bool plan,
                       struct buf *out)
{
    Kiln__Mc__Load m = KILN__MC__LOAD__INIT;
    m.load_id = bus_str(load_id);
    m.package = bus_str(package);
    m.plan = plan;
    m.default_connection = "duckdb";
    m.files = arena_zalloc(a, (n_files + 1) * sizeof(*m.files));
    for (size_t i = 0; i < n_files; i++) {
        if (!is_model_path(files[i].path) || !files[i].content.p) {
            continue;
        }
        Kiln__Mc__File *f = arena_alloc(a, sizeof(*f));
        kiln__mc__file__init(f);
        f->path = bus_str(files[i].path);
        f->contents = arena_slice(a, files[i].content);
        m.files[m.n_files++] = f;
    }
    m.connections = arena_zalloc(a, (n_connections + 1) * sizeof(*m.connections));
    for (size_t i = 0; i < n_connections; i++) {
        Kiln__Mc__Conn *c = arena_alloc(a, sizeof(*c));
        kiln__mc__conn__init(c);
        c->name = bus_str(connections[i].name);
        c->dialect = bus_str(connections[i].dialect);
        c->digest = bus_str(connections[i].digest);
        m.connections[m.n_connections++] = c;
    }
    m.tables = arena_zalloc(a, (n_schemas + 1) * sizeof(*m.tables));
    m.sqls = arena_zalloc(a, (n_schemas + 1) * sizeof(*m.sqls));
    for (size_t i = 0; i < n_schemas; i++) {
        add_schema(a, &m, &schemas[i]);
    }
    size_t len = kiln__mc__load__get_packed_size(&m);
    buf_reserve(out, len);
    kiln__mc__load__pack(&m, (uint8_t *)out->p + out->len);
    out->len += len;
}

struct store_schema *load_schema_add(struct flow_load *f, const char *connection, const char *key,
                                     bool is_sql)
{
    if (f->n_schemas == f->cap_schemas) {
        size_t cap = f->cap_schemas ? f->cap_schemas * 2 : 32;
        struct store_schema *more = arena_zalloc(&f->own, cap * sizeof(*more));
        if (f->n_schemas) {
            memcpy(more, f->schemas, f->n_schemas * sizeof(*more));
        }
        f->schemas = more;
        f->cap_schemas = cap;
    }
    struct store_schema *s = &f->schemas[f->n_schemas++];
    *s = (struct store_schema){.connection = arena_strdup(&f->own, connection),
                               .key = arena_strdup(&f->own, key),
                               .is_sql = is_sql};
    return s;
}

static const struct plan_connection *find_connection(const struct flow_load *f, const char *name)
{
    for (size_t i = 0; i < f->n_connections; i++) {
        if (strcmp(f->connections[i].name, name) == 0) {
            return &f->connections[i];
        }
    }
    return NULL;
}

/* True when the connection can be asked; else the schema gets a sentence instead. */
static bool can_ask(struct flow_load *f, const char *connection, const char *key, bool is_sql)
{
    const struct plan_connection *c = find_connection(f, connection);
    if (c && c->has_driver) {
        return true;
    }
    struct store_schema *s = load_schema_add(f, connection, key, is_sql);
    if (!c) {
        s->error = arena_printf(&f->own,
                                "connection '%s' does not exist in environment '%s'; add it to the "
                                "environment's connections",
                                connection, f->environment_name);
    } else {
        f->driverless = true;
        s->error = arena_printf(&f->own,
                                "connection '%s' is of type %s, which this version of Kiln plans "
                                "but cannot run; move the source to a postgres connection",
                                connection, c->type);
    }
    return false;
}

static struct load_ask *table_ask(struct flow_load *f, const char *connection, size_t cap)
{
    for (size_t i = 0; i < f->n_asks; i++) {
        if (!f->asks[i].is_sql && strcmp(f->asks[i].connection, connection) == 0) {
            return &f->asks[i];
        }
    }
    struct load_ask *ask = &f->asks[f->n_asks++];
    *ask = (struct load_ask){.connection = arena_strdup(&f->own, connection),
                             .keys = arena_zalloc(&f->own, (cap + 1) * sizeof(char *))};
    return ask;
}

void load_needs(struct flow_load *f, const Kiln__Mc__Needs *needs)
{
    f->asks = arena_zalloc(&f->own, (needs->n_tables + needs->n_sqls + 1) * sizeof(*f->asks));
    f->n_asks = 0;
    f->at_ask = 0;
    for (size_t i = 0; i < needs->n_tables; i++) {
        const Kiln__Mc__Table *t = needs->tables[i];
        if (can_ask(f, t->connection, t->path, false)) {
            struct load_ask *ask = table_ask(f, t->connection, needs->n_tables);
            ask->keys[ask->n++] = arena_strdup(&f->own, t->path);
        }
    }
    for (size_t i = 0; i < needs->n_sqls; i++) {
        const Kiln__Mc__Sql *q = needs->sqls[i];
        if (can_ask(f, q->connection, q->sql, true)) {
            struct load_ask *ask = &f->asks[f->n_asks++];
            *ask = (struct load_ask){.connection = arena_strdup(&f->own, q->connection),
                                     .is_sql = true,
                                     .keys = arena_zalloc(&f->own, 2 * sizeof(char *)),
                                     .n = 1};
            ask->keys[0] = arena_strdup(&f->own, q->sql);
        }
    }
}
