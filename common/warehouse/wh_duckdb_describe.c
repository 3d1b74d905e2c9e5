/* What a statement or a table would give, and what stands at a name. */
#include "common/warehouse/wh_duckdb_internal.h"

#include <stdio.h>

/* ---- describe ---- */

struct describer {
    struct duck_op *o;
    struct wh_columns *out;
    size_t cap;
};

static void add_column(struct describer *d, const struct slice *cells)
{
    struct arena *a = &d->o->scratch;
    if (d->out->n == d->cap) {
        size_t cap = d->cap ? d->cap * 2 : 32;
        struct wh_column *bigger = arena_zalloc(a, cap * sizeof(*bigger));
        if (d->cap > 0) {
            memcpy(bigger, d->out->items, d->cap * sizeof(*bigger));
        }
        d->out->items = bigger;
        d->cap = cap;
    }
    d->out->items[d->out->n++] = (struct wh_column){
        .name = arena_slice(a, cells[0]),
        .data_type = arena_slice(a, cells[1]),
        .nullable = !slice_is(cells[2], "NO"),
    };
}

static int read_columns(struct describer *d, struct duck_query *q, struct err *e)
{
    struct slice cells[16];
    must(duck_query_n_columns(q) <= ARRAY_LEN(cells));
    int rc = duck_query_begin(q, e);
    while (rc == 0) {
        struct duck_page *p;
        rc = duck_query_next(q, DUCK_FORM_TEXT, &p, e);
        if (rc < 0 || !p) {
            break;
        }
        for (size_t i = 0; i < duck_page_rows(p); i++) {
            duck_page_cells(p, i, cells);
            add_column(d, cells);
        }
        duck_page_free(p);
    }
    return rc;
}

/* Columns of SELECT * FROM it, as DESCRIBE spells them. */
static int describe(struct duck_op *o, struct duck_conn *c, const char *from,
                    struct wh_columns *out, struct err *e)
{
    auto_free char *sql = xasprintf("DESCRIBE SELECT * FROM %s", from);
    struct describer d = {.o = o, .out = out};
    struct duck_query *q;
    *out = (struct wh_columns){0};
    int rc = duck_query_open(c, &(struct duck_query_ask){.sql = sql, .select_only = true}, &q, e);
    if (rc < 0) {
        return rc;
    }
    rc = read_columns(&d, q, e);
    duck_query_close(q);
    return rc;
}

static int work_describe(struct duck_job *job, struct duck_conn *conn, struct err *e)
{
    struct duck_op *o = duck_op_of(job);
    int rc = duck_check_select(conn, o->sql, e);
    if (rc < 0) {
        return rc;
    }
    /* On a line of its own: the statement may end in a comment. */
    auto_free char *from = xasprintf("(%s\n)", o->sql);
    return describe(o, conn, from, &o->facts.columns, e);
}

void duck_wh_describe(struct wh_op *op, const char *sql)
{
    struct duck_op *o = duck_op_new(op, "describing", work_describe);
    o->sql = duck_op_text(o, sql);
    duck_op_go(o, true, MS(15000));
}

/* ---- tables by the author's path ---- */

static bool is_file_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("._~:/?#@!$&*+,=%-", c));
}

static bool is_quoted_literal(const char *path)
{
    size_t len = strlen(path);
    if (len < 2 || path[0] != '\'' || path[len - 1] != '\'' || strchr(path, ';') ||
        strstr(path, "--")) {
        return false;
    }
    for (size_t i = 1; i < len - 1; i++) {
        if (path[i] == '\'' && (i + 1 == len - 1 || path[++i] != '\'')) {
            return false;
        }
    }
    return true;
}

/* a.b.c, each a plain identifier or "quoted". */
static bool is_identifier_path(const char *p)
{
    for (;;) {
        if (*p == '"') {
            for (p++; *p && !(*p == '"' && p[1] != '"'); p++) {
                p += *p == '"';
            }
            if (*p++ != '"') {
                return false;
            }
        } else {
            size_t len =
                strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
            if (len == 0 || (*p >= '0' && *p <= '9')) {
                return false;
            }
            p += len;
        }
        if (*p != '.') {
            return !*p;
        }
        p++;
    }
}

char *wh_duckdb_table(struct arena *a, const char *path)
{
    if (path[0] == '\'') {
        return is_quoted_literal(path) ? arena_strdup(a, path) : NULL;
    }
    if (is_identifier_path(path)) {
        return arena_strdup(a, path);
    }
    for (const char *p = path; *p; p++) {
        if (!is_file_char(*p)) {
            return NULL;
        }
    }
    return path[0] ? arena_printf(a, "'%s'", path) : NULL;
}

static int work_catalog_tables(struct duck_job *job, struct duck_conn *conn, struct err *e)
{
    struct duck_op *o = duck_op_of(job);
    int rc = 0;
    for (size_t i = 0; i < o->n && rc == 0; i++) {
        struct err cause;
        const char *from = wh_duckdb_table(&o->scratch, o->paths[i]);
        if (!from) {
            o->facts.schema_errors[i] = arena_printf(
                &o->scratch, "\"%s\" is neither a table name nor a file name", o->paths[i]);
        } else if (describe(o, conn, from, &o->facts.schemas[i], &cause) < 0) {
            int code = duck_tell_fault(o->package, cause.code, &cause);
            if (code == ERR_WH_CONNECT || code == ERR_WH_LOST) {
                *e = cause; /* says nothing of the table */
                return code;
            }
            o->facts.schemas[i].n = 0;
            o->facts.schema_errors[i] =
                arena_printf(&o->scratch, "table '%s': %s", o->paths[i], cause.text);
        }
        rc = duck_job_stopped(job, e);
    }
    return rc;
}

void duck_wh_catalog_tables(struct wh_op *op, const char *const *paths, size_t n)
{
    struct duck_op *o = duck_op_new(op, "reading the catalog", work_catalog_tables);
    o->n = n;
    o->paths = arena_zalloc(&o->scratch, (n + 1) * sizeof(*o->paths));
    for (size_t i = 0; i < n; i++) {
        o->paths[i] = duck_op_text(o, paths[i]);
    }
    o->facts.n_schemas = n;
    o->facts.schemas = arena_zalloc(&o->scratch, (n + 1) * sizeof(*o->facts.schemas));
    o->facts.schema_errors = arena_zalloc(&o->scratch, (n + 1) * sizeof(*o->facts.schema_errors));
    duck_op_go(o, true, MS(15000));
}

/* ---- target names ---- */

static int read_kind(struct duck_op *o, struct duck_conn *conn, struct wh_relation *rel,
                     struct err *e)
{
    auto_buf struct buf sql = {0};
    const char *type;
    buf_add_str(&sql,
                "SELECT table_type FROM information_schema.tables WHERE table_catalog = "
                "current_database() AND table_schema = 'main' AND lower(table_name) = lower(");
    duck_quote_text(&sql, rel->name.table);
    buf_add_str(&sql, ")");
    int rc = duck_exec_value(conn, buf_str(&sql), &o->scratch, &type, e);
    rel->kind = !type ? 0 : strcmp(type, "VIEW") == 0 ? 'v' : 'r';
    return rc;
}

static void read_binding(struct duck_op *o, const struct duck_bound *bound, struct wh_relation *rel)
{
    const struct duck_bound_item *b = bound ? duck_bound_find(bound, rel->name.table) : NULL;
    if (!b) {
        return;
    }
    rel->fence = (struct wh_fence){.exists = true,
                                   .owner = o->package->installation,
                                   .claim = b->token,
                                   .published = b->token,
                                   .generation = duck_op_text(o, b->generation),
                                   .build_id = duck_op_text(o, b->build_id),
                                   .rows = (int64_t)b->rows,
                                   .data_as_of_us = b->data_as_of_us,
                                   .still_there = rel->kind == 'v'};
}

static int work_catalog_targets(struct duck_job *job, struct duck_conn *conn, struct err *e)
{
    struct duck_op *o = duck_op_of(job);
    struct duck_bound *bound = duck_bound_get(o->package);
    int rc = 0;
    for (size_t i = 0; i < o->n && rc == 0; i++) {
        struct wh_relation *rel = &o->facts.relations[i];
        const char *schema = o->tables[i].name.schema;
        rel->name = o->tables[i].name;
        rel->schema_exists = !schema[0] || strcmp(schema, "main") == 0;
        rel->schema_writable = rel->schema_exists && o->package->root;
        if (!rel->schema_exists) {
            continue;
        }
        rel->name.schema = "main";
        rc = read_kind(o, conn, rel, e);
        read_binding(o, bound, rel);
    }
    duck_bound_unref(bound);
    return rc;
}

void duck_wh_catalog_targets(struct wh_op *op, const struct wh_name *names, size_t n)
{
    struct duck_op *o = duck_op_new(op, "reading the catalog", work_catalog_targets);
    o->n = n;
    o->tables = arena_zalloc(&o->scratch, (n + 1) * sizeof(*o->tables));
    for (size_t i = 0; i < n; i++) {
        o->tables[i].name.schema = duck_op_text(o, names[i].schema);
        o->tables[i].name.table = duck_op_text(o, names[i].table);
    }
    o->facts.n_relations = n;
    o->facts.relations = arena_zalloc(&o->scratch, (n + 1) * sizeof(*o->facts.relations));
    duck_op_go(o, true, MS(15000));
}
