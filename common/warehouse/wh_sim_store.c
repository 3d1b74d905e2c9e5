#include "common/warehouse/wh_sim_store.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const op_names[SIM_N_OPS] = {
    "test", "catalog_tables", "catalog_targets", "describe", "probe", "build", "resolve",
    "swap", "drop",           "discard",         "sweep",    "query"};

static enum sim_op_kind kind_of(const char *op)
{
    for (size_t i = 0; i < SIM_N_OPS; i++) {
        if (strcmp(op_names[i], op) == 0) {
            return (enum sim_op_kind)i;
        }
    }
    must(!"an operation of that name");
    return SIM_N_OPS;
}

struct wh_sim *wh_sim_new(struct loop *l)
{
    struct wh_sim *s = xcalloc(1, sizeof *s);
    s->loop = l;
    list_init(&s->tables);
    list_init(&s->fences);
    s->last_oid = 16384;
    wh_sim_put_schema(s, "public");
    return s;
}

void sim_table_free(struct sim_table *t)
{
    list_del(&t->link);
    free(t->schema);
    free(t->table);
    free(t->dependent);
    free(t);
}

static void fence_free(struct sim_fence *f)
{
    list_del(&f->link);
    free(f->schema);
    free(f->target);
    free(f->generation);
    free(f->build_id);
    free(f);
}

void wh_sim_free(struct wh_sim *s)
{
    while (!list_empty(&s->tables)) {
        sim_table_free(list_entry(s->tables.next, struct sim_table, link));
    }
    while (!list_empty(&s->fences)) {
        fence_free(list_entry(s->fences.next, struct sim_fence, link));
    }
    for (size_t i = 0; i < s->n_schemas; i++) {
        free(s->schemas[i]);
    }
    free(s->schemas);
    free(s);
}

bool sim_schema_exists(const struct wh_sim *s, const char *schema)
{
    for (size_t i = 0; i < s->n_schemas; i++) {
        if (strcmp(s->schemas[i], schema) == 0) {
            return true;
        }
    }
    return false;
}

void wh_sim_put_schema(struct wh_sim *s, const char *schema)
{
    if (sim_schema_exists(s, schema)) {
        return;
    }
    s->schemas = xrealloc(s->schemas, (s->n_schemas + 1) * sizeof *s->schemas);
    s->schemas[s->n_schemas++] = xstrdup(schema);
}

struct sim_table *sim_table_find(const struct wh_sim *s, const char *schema, const char *table)
{
    list_for_each (it, &s->tables) {
        struct sim_table *t = list_entry(it, struct sim_table, link);
        if (strcmp(t->schema, schema) == 0 && strcmp(t->table, table) == 0) {
            return t;
        }
    }
    return NULL;
}

struct sim_table *sim_table_put(struct wh_sim *s, const char *schema, const char *table,
                                uint64_t rows)
{
    struct sim_table *t = xcalloc(1, sizeof *t);
    t->schema = xstrdup(schema);
    t->table = xstrdup(table);
    t->rows = rows;
    t->oid = ++s->last_oid;
    list_add_tail(&s->tables, &t->link);
    return t;
}

void wh_sim_put_table(struct wh_sim *s, const char *schema, const char *table, uint64_t rows)
{
    wh_sim_drop_table(s, schema, table);
    (void)sim_table_put(s, schema, table, rows);
}

void wh_sim_drop_table(struct wh_sim *s, const char *schema, const char *table)
{
    struct sim_table *t = sim_table_find(s, schema, table);
    if (t) {
        sim_table_free(t);
    }
}

int64_t wh_sim_rows(const struct wh_sim *s, const char *schema, const char *table)
{
    const struct sim_table *t = sim_table_find(s, schema, table);
    return t ? (int64_t)t->rows : -1;
}

size_t wh_sim_n_tables(const struct wh_sim *s)
{
    size_t n = 0;
    list_for_each (it, &s->tables) {
        n++;
    }
    return n;
}

void wh_sim_depend(struct wh_sim *s, const char *schema, const char *table, const char *what)
{
    struct sim_table *t = sim_table_find(s, schema, table);
    must(t);
    free(t->dependent);
    t->dependent = xstrdup(what);
}

void wh_sim_lock(struct wh_sim *s, const char *schema, const char *table, bool locked)
{
    struct sim_table *t = sim_table_find(s, schema, table);
    must(t);
    t->locked = locked;
}

void wh_sim_fault(struct wh_sim *s, const char *op, const struct wh_sim_fault *f)
{
    s->faults[kind_of(op)] = *f;
    if (f->times == 0) {
        s->faults[kind_of(op)].times = 1;
    }
}

void wh_sim_delay(struct wh_sim *s, const char *op, struct ms delay)
{
    s->delays[kind_of(op)] = delay;
}

uint64_t wh_sim_count(const struct wh_sim *s, const char *op)
{
    return s->counts[kind_of(op)];
}

void sim_staging_name(uint64_t token, char out[40])
{
    snprintf(out, 40, "_kiln_%" PRIu64, token);
}

struct sim_fence *sim_fence_find(const struct wh_sim *s, const char *schema, const char *target)
{
    list_for_each (it, &s->fences) {
        struct sim_fence *f = list_entry(it, struct sim_fence, link);
        if (strcmp(f->schema, schema) == 0 && strcmp(f->target, target) == 0) {
            return f;
        }
    }
    return NULL;
}

struct sim_fence *sim_fence_put(struct wh_sim *s, const char *schema, const char *target)
{
    struct sim_fence *f = sim_fence_find(s, schema, target);
    if (!f) {
        f = xcalloc(1, sizeof *f);
        f->schema = xstrdup(schema);
        f->target = xstrdup(target);
        list_add_tail(&s->fences, &f->link);
    }
    return f;
}

/* The first quoted name of two parts. */
static int named_table(const struct wh_sim *s, const char *sql, const struct sim_table **out,
                       struct err *e)
{
    char schema[128];
    char table[128];
    const char *at = strchr(sql, '"');
    if (!at || sscanf(at, "\"%127[^\"]\".\"%127[^\"]\"", schema, table) != 2) {
        return 0;
    }
    *out = sim_table_find(s, schema, table);
    if (!*out) {
        memcpy(e->sqlstate, "42P01", 6);
        return err_set(e, ERR_WH_MISSING, "relation \"%s.%s\" does not exist", schema, table);
    }
    return 0;
}

int sim_sql_rows(const struct wh_sim *s, const char *sql, uint64_t *rows, bool *hangs,
                 struct err *e)
{
    *rows = 1;
    *hangs = strstr(sql, "pg_sleep(") != NULL;
    if (strstr(sql, "syntax error")) {
        return err_set(e, ERR_WH_SQL, "syntax error at or near \"error\"");
    }
    const struct sim_table *t = NULL;
    int rc = named_table(s, sql, &t, e);
    if (rc < 0) {
        return rc;
    }
    if (t) {
        *rows = t->rows;
    }
    const char *series = strstr(sql, "generate_series(1, ");
    if (series) {
        *rows = strtoull(series + 19, NULL, 10);
    }
    return 0;
}
