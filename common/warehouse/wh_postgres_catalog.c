/* Schemas of base tables by the author's path, and of statements without running them. */
#include "common/warehouse/wh_postgres.h"

/* ---- tables ---- */

enum { TABLES_ALL, TABLES_ONE, TABLES_TYPES, TABLES_END };

struct op_tables {
    struct wh_pg_op o;
    const char **paths;
    size_t n;
    size_t at;                   /* one by one: the path asked for now */
    struct pgc_result **answers; /* rows of columns, taken out of their batches */
    size_t n_answers;
};

static struct op_tables *tables_of(struct flow *f)
{
    return container_of(wh_pg_op_of(f), struct op_tables, o);
}

/* to_regclass and pg_attribute, because information_schema leaves materialized views out. A NULL
 * attname: no columns. */
static const char tables_sql[] =
    "SELECT p.ord, c.relkind, has_any_column_privilege(c.oid, 'SELECT') OR "
    "has_table_privilege(c.oid, 'SELECT'), a.attname, a.atttypid, a.attnotnull"
    " FROM unnest($1::text[]) WITH ORDINALITY p(path, ord)"
    " LEFT JOIN pg_class c ON c.oid = to_regclass(p.path)"
    " LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
    " ORDER BY p.ord, a.attnum";

static void add_tables(struct op_tables *t, size_t from, size_t n)
{
    struct arena *a = &t->o.flow.arena;
    const char **params = arena_alloc(a, sizeof *params);
    params[0] = wh_pg_array(a, t->paths + from, n);
    wh_pg_add_prepared(&t->o, "kiln tables", tables_sql, 1, params);
}

/* Takes the answer of a batch over, before the next one frees it. */
static void keep_answer(struct op_tables *t)
{
    t->answers[t->n_answers++] = t->o.batch.results[0];
    t->o.batch.results[0] = NULL;
    const struct pgc_result *r = t->answers[t->n_answers - 1];
    for (size_t i = 0; i < pgc_rows(r); i++) {
        if (pgc_text(r, i, 4)) {
            wh_pg_types_note(&t->o, (uint32_t)pgc_i64(r, i, 4));
        }
    }
}

/* Not when the session was refused (class 28) or the database is not there. */
static bool is_about_a_path(const struct flow *f)
{
    const char *state = f->err.sqlstate;
    return f->rc != 0 && state[0] && !f->cancel_asked &&
           err_code_class(f->rc) == ERR_CLASS_PERMANENT && strncmp(state, "28", 2) != 0 &&
           strncmp(state, "3D", 2) != 0;
}

static enum flow_next step_all(struct flow *f)
{
    struct op_tables *t = tables_of(f);
    if (f->entered) {
        t->o.stage = "reading the catalog";
        add_tables(t, 0, t->n);
        return wh_pg_run(&t->o);
    }
    if (is_about_a_path(f)) {
        return flow_goto(f, TABLES_ONE);
    }
    if (wh_pg_failed(&t->o, TABLES_END)) {
        return FLOW_AGAIN;
    }
    keep_answer(t);
    return flow_goto(f, TABLES_TYPES);
}

static const char *table_error(struct op_tables *t, const char *path, const char *why)
{
    return arena_printf(t->o.arena, "connection '%s': table '%s' %s", t->o.pg->name, path, why);
}

static enum flow_next step_one(struct flow *f)
{
    struct op_tables *t = tables_of(f);
    if (!f->entered) {
        if (is_about_a_path(f)) {
            t->o.op->facts.schema_errors[t->at] = arena_strdup(t->o.arena, err_text(&f->err));
        } else if (wh_pg_failed(&t->o, TABLES_END)) {
            return FLOW_AGAIN;
        } else {
            keep_answer(t);
        }
        t->at++;
    }
    if (t->at == t->n) {
        return flow_goto(f, TABLES_TYPES);
    }
    add_tables(t, t->at, 1);
    return wh_pg_run(&t->o);
}

static bool is_table_kind(char kind)
{
    return kind && strchr("rpvmf", kind) != NULL;
}

/* What is wrong with the path of this row; NULL: nothing. */
static const char *path_problem(struct op_tables *t, const struct pgc_result *r, size_t row,
                                const char *path)
{
    const char *kind = pgc_text(r, row, 1);
    if (!kind) {
        return table_error(t, path,
                           "does not exist; write it as schema.table, as PostgreSQL stores it");
    }
    if (!is_table_kind(kind[0])) {
        return table_error(t, path, "is neither a table nor a view");
    }
    if (!pgc_bool(r, row, 2)) {
        return table_error(t, path, "may not be read: grant SELECT to the connection's user");
    }
    return NULL;
}

static void read_row(struct op_tables *t, const struct pgc_result *r, size_t row, size_t path)
{
    struct wh_facts *facts = &t->o.op->facts;
    facts->schema_errors[path] = path_problem(t, r, row, t->paths[path]);
    if (facts->schema_errors[path] || !pgc_text(r, row, 3)) {
        return;
    }
    struct wh_columns *cols = &facts->schemas[path];
    if ((cols->n & (cols->n - 1)) == 0) { /* grows at every power of two */
        size_t cap = cols->n ? cols->n * 2 : 1;
        struct wh_column *bigger = arena_alloc(t->o.arena, cap * sizeof *bigger);
        if (cols->n > 0) {
            memcpy(bigger, cols->items, cols->n * sizeof *bigger);
        }
        cols->items = bigger;
    }
    cols->items[cols->n++] = wh_pg_column(t->o.arena, t->o.pg, pgc_text(r, row, 3),
                                          (uint32_t)pgc_i64(r, row, 4), !pgc_bool(r, row, 5));
}

static void read_answers(struct op_tables *t)
{
    bool one_by_one = t->at > 0;
    size_t next_path = 0;
    for (size_t k = 0; k < t->n_answers; k++) {
        const struct pgc_result *r = t->answers[k];
        while (one_by_one && t->o.op->facts.schema_errors[next_path]) {
            next_path++; /* had no answer */
        }
        for (size_t i = 0; i < pgc_rows(r); i++) {
            read_row(t, r, i, one_by_one ? next_path : (size_t)pgc_i64(r, i, 0) - 1);
        }
        next_path++;
    }
}

static enum flow_next step_tables_types(struct flow *f)
{
    struct op_tables *t = tables_of(f);
    if (f->entered && wh_pg_types_ask(&t->o)) {
        return wh_pg_run(&t->o);
    }
    if (!f->entered) {
        if (wh_pg_failed(&t->o, TABLES_END)) {
            return FLOW_AGAIN;
        }
        wh_pg_types_learn(&t->o, wh_pg_result(&t->o, 0));
    }
    read_answers(t);
    return flow_goto(f, TABLES_END);
}

static enum flow_next step_tables_end(struct flow *f)
{
    struct op_tables *t = tables_of(f);
    for (size_t i = 0; i < t->n_answers; i++) {
        pgc_result_free(t->answers[i]);
    }
    return wh_pg_step_end(f);
}

static const struct flow_step tables_steps[] = {
    {.name = "ALL",
     .run = step_all,
     .to = FLOW_TO(TABLES_ONE) | FLOW_TO(TABLES_TYPES) | FLOW_TO(TABLES_END),
     .cancel = wh_pg_cancel_wait,
     .says = "ask for all paths at once"},
    {.name = "ONE",
     .run = step_one,
     .to = FLOW_TO(TABLES_TYPES) | FLOW_TO(TABLES_END),
     .cancel = wh_pg_cancel_wait,
     .says = "one path was refused: ask one by one"},
    {.name = "TYPES",
     .run = step_tables_types,
     .to = FLOW_TO(TABLES_END),
     .cancel = wh_pg_cancel_wait,
     .says = "spell types not met before"},
    {.name = "END", .run = step_tables_end, .says = "report"},
};
static const struct flow_type tables_flow = {"wh_tables", tables_steps, ARRAY_LEN(tables_steps)};

void wh_pg_catalog_tables(struct wh_op *op, const char *const *paths, size_t n)
{
    struct op_tables *t = wh_pg_op_start(op, sizeof *t, &tables_flow, MS(15000));
    t->n = n;
    t->paths = arena_alloc(op->arena, (n + 1) * sizeof *t->paths);
    for (size_t i = 0; i < n; i++) {
        t->paths[i] = arena_strdup(op->arena, paths[i]);
    }
    t->answers = arena_zalloc(op->arena, (n + 1) * sizeof(struct pgc_result *));
    op->facts.n_schemas = n;
    op->facts.schemas = arena_zalloc(op->arena, (n + 1) * sizeof *op->facts.schemas);
    op->facts.schema_errors = arena_zalloc(op->arena, (n + 1) * sizeof *op->facts.schema_errors);
}

/* ---- a statement ---- */

enum { DESCRIBE_ASK, DESCRIBE_TYPES, DESCRIBE_END };

struct op_describe {
    struct wh_pg_op o;
    char *sql;
};

static struct op_describe *describe_of(struct flow *f)
{
    return container_of(wh_pg_op_of(f), struct op_describe, o);
}

static enum flow_next step_ask(struct flow *f)
{
    struct op_describe *d = describe_of(f);
    if (f->entered) {
        d->o.stage = "describing";
        return wh_pg_describe_start(&d->o, d->sql);
    }
    if (wh_pg_failed(&d->o, DESCRIBE_END)) {
        return FLOW_AGAIN;
    }
    const struct pgc_result *r = d->o.describe.result;
    if (pgc_cols(r) == 0) {
        return wh_pg_fail(&d->o, DESCRIBE_END, ERR_WH_SQL,
                          "the statement returns no columns; a source must be a query");
    }
    for (size_t i = 0; i < pgc_cols(r); i++) {
        wh_pg_types_note(&d->o, pgc_col_type(r, i));
    }
    return flow_goto(f, DESCRIBE_TYPES);
}

static enum flow_next step_describe_types(struct flow *f)
{
    struct op_describe *d = describe_of(f);
    if (f->entered && wh_pg_types_ask(&d->o)) {
        return wh_pg_run(&d->o);
    }
    if (!f->entered) {
        if (wh_pg_failed(&d->o, DESCRIBE_END)) {
            return FLOW_AGAIN;
        }
        wh_pg_types_learn(&d->o, wh_pg_result(&d->o, 0));
    }
    wh_pg_columns_of(d->o.arena, d->o.pg, d->o.describe.result, &d->o.op->facts.columns);
    return flow_goto(f, DESCRIBE_END);
}

static const struct flow_step describe_steps[] = {
    {.name = "ASK",
     .run = step_ask,
     .to = FLOW_TO(DESCRIBE_TYPES) | FLOW_TO(DESCRIBE_END),
     .cancel = wh_pg_cancel_wait,
     .says = "prepare and describe, run nothing"},
    {.name = "TYPES",
     .run = step_describe_types,
     .to = FLOW_TO(DESCRIBE_END),
     .cancel = wh_pg_cancel_wait,
     .says = "spell types not met before"},
    {.name = "END", .run = wh_pg_step_end, .says = "report"},
};
static const struct flow_type describe_flow = {"wh_describe", describe_steps,
                                               ARRAY_LEN(describe_steps)};

void wh_pg_describe(struct wh_op *op, const char *sql)
{
    struct op_describe *d = wh_pg_op_start(op, sizeof *d, &describe_flow, MS(15000));
    d->sql = arena_strdup(op->arena, sql);
}
