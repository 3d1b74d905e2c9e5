/* A build: one COPY into the generation's directory, then its manifest. */
#include "common/duck/duck_type.h"
#include "common/warehouse/wh_duckdb_internal.h"

/* ---- how columns are kept ---- */

struct shape {
    const char *from; /* that it is of */
    struct generation_column *columns;
    size_t n;
    bool is_wide; /* some column holds a HUGEINT */
};

static const char *type_text(struct duck_op *o, const struct duck_type *t)
{
    auto_buf struct buf text = {0};
    duck_type_sql(t, &text);
    return duck_op_text(o, buf_str(&text));
}

static int stored_text(struct duck_op *o, const struct duck_query *q, size_t i, enum duck_wide wide,
                       const char **out, struct err *e)
{
    auto_buf struct buf text = {0};
    int rc = duck_type_stored(duck_query_column_type(q, i), wide, &text, e);
    if (rc < 0) {
        (void)err_wrap(e, "connection '%s': column \"%s\"", o->package->name,
                       duck_query_column_name(q, i));
        return rc;
    }
    *out = duck_op_text(o, buf_str(&text));
    return 0;
}

static int read_shape(struct duck_op *o, struct duck_conn *conn, const char *from,
                      enum duck_wide wide, struct shape *out, struct err *e)
{
    auto_free char *sql = xasprintf("SELECT * FROM %s", from);
    struct duck_query *q;
    const struct duck_query_ask ask = {.sql = sql, .select_only = true, .columns_only = true};
    int rc = duck_query_open(conn, &ask, &q, e);
    if (rc < 0) {
        return rc;
    }
    *out = (struct shape){.from = from, .n = duck_query_n_columns(q)};
    out->columns = arena_zalloc(&o->scratch, (out->n + 1) * sizeof(*out->columns));
    for (size_t i = 0; i < out->n && rc == 0; i++) {
        struct generation_column *c = &out->columns[i];
        c->name = duck_op_text(o, duck_query_column_name(q, i));
        c->type = type_text(o, duck_query_column_type(q, i));
        rc = stored_text(o, q, i, wide, &c->stored, e);
        out->is_wide = out->is_wide || duck_type_is_wide(duck_query_column_type(q, i));
    }
    duck_query_close(q);
    return rc;
}

static void tell_columns(struct duck_op *o, const struct shape *s)
{
    struct wh_columns *out = &o->facts.columns;
    out->n = s->n;
    out->items = arena_zalloc(&o->scratch, (s->n + 1) * sizeof(*out->items));
    for (size_t i = 0; i < s->n; i++) {
        out->items[i] = (struct wh_column){
            .name = s->columns[i].name, .data_type = s->columns[i].type, .nullable = true};
    }
}

/* A column as it is written. What is kept as text is read back on the way: what DuckDB could not
 * read later (an INTERVAL of 2562047788 hours) fails the build, not every query. */
static void add_column(struct buf *sql, const struct generation_column *c)
{
    if (strcmp(c->type, c->stored) == 0) {
        duck_quote_name(sql, c->name);
        return;
    }
    bool is_text = strstr(c->stored, "VARCHAR") != NULL;
    buf_add_str(sql, is_text ? "CAST(CAST(CAST(" : "CAST(");
    duck_quote_name(sql, c->name);
    if (is_text) {
        buf_addf(sql, " AS %s) AS %s)", c->stored, c->type);
    }
    buf_addf(sql, " AS %s) AS ", c->stored);
    duck_quote_name(sql, c->name);
}

static char *copy_text(struct duck_op *o, const struct shape *s, const char *dir)
{
    auto_buf struct buf sql = {0};
    auto_free char *file = xasprintf("%s/data-0.parquet", dir);
    buf_add_str(&sql, "COPY (SELECT ");
    for (size_t i = 0; i < s->n; i++) {
        buf_add_str(&sql, i > 0 ? ", " : "");
        add_column(&sql, &s->columns[i]);
    }
    buf_addf(&sql, " FROM %s) TO ", s->from);
    duck_quote_text(&sql, file);
    buf_add_str(&sql, " (FORMAT parquet, COMPRESSION zstd)");
    return arena_strdup(&o->scratch, buf_str(&sql));
}

static bool is_conversion(const struct err *e)
{
    return e->code == ERR_WH_SQL &&
           (strstr(e->text, "Conversion Error") || strstr(e->text, "Out of Range Error"));
}

/* DuckDB does not always say which column it was: those that were cast for keeping are. */
static int name_the_cast(const struct shape *s, struct err *e)
{
    if (!is_conversion(e)) {
        return e->code;
    }
    auto_buf struct buf names = {0};
    for (size_t i = 0; i < s->n && names.len < 200; i++) {
        if (strcmp(s->columns[i].type, s->columns[i].stored) != 0) {
            buf_addf(&names, "%s\"%s\"", names.len > 0 ? ", " : "", s->columns[i].name);
        }
    }
    return names.len > 0 ? err_wrap(e, "%s kept as another type in the file", buf_str(&names))
                         : e->code;
}

static int copy_once(struct duck_op *o, struct duck_conn *conn, const char *dir,
                     const struct shape *s, struct err *e)
{
    int rc = duck_exec_count(conn, copy_text(o, s, dir), &o->facts.rows, e);
    if (rc == ERR_QUERY_MEMORY && duck_job_more_memory(&o->job, conn)) {
        rc = duck_exec_count(conn, copy_text(o, s, dir), &o->facts.rows, e);
    }
    return rc;
}

/* Sums of integers nearly always fit BIGINT, which reads fastest; those that do not are built again
 * as DECIMAL. */
static int copy(struct duck_op *o, struct duck_conn *conn, const char *dir, struct shape *s,
                struct err *e)
{
    int rc = copy_once(o, conn, dir, s, e);
    if (rc < 0 && s->is_wide && is_conversion(e)) {
        rc = read_shape(o, conn, s->from, DUCK_WIDE_DECIMAL, s, e);
        if (rc == 0) {
            rc = copy_once(o, conn, dir, s, e);
        }
    }
    return rc < 0 ? name_the_cast(s, e) : 0;
}

/* ---- the build ---- */

static void tell_files(struct duck_op *o, const struct generation_manifest *m)
{
    o->facts.bytes = m->bytes;
    o->facts.n_files = m->n_files;
    o->facts.files = arena_zalloc(&o->scratch, (m->n_files + 1) * sizeof(*o->facts.files));
    for (size_t i = 0; i < m->n_files; i++) {
        o->facts.files[i] = (struct wh_file){m->files[i].name, m->files[i].bytes};
    }
}

static int publish(struct duck_op *o, const struct generation_ref *ref, const struct shape *s,
                   struct err *e)
{
    const struct wh_table *t = &o->tables[0];
    struct generation_manifest m = {
        .installation = o->package->installation,
        .target = t->name.table,
        .build_id = t->build_id ? t->build_id : "",
        .token = o->token,
        .rows = o->facts.rows,
        .data_as_of_us = o->facts.data_as_of_us,
        .columns = s->columns,
        .n_columns = s->n,
    };
    atomic_store(&o->stage, "writing through");
    int rc = generation_publish(&o->scratch, ref, &m, e);
    if (rc == 0) {
        tell_files(o, &m);
    }
    return rc;
}

static int build(struct duck_op *o, struct duck_conn *conn, const struct generation_ref *ref,
                 struct shape *s, struct err *e)
{
    char *dir;
    int rc = generation_path(&o->scratch, ref, &dir, e);
    if (rc == 0) {
        rc = generation_begin(ref, o->token, e);
    }
    if (rc == 0) {
        rc = copy(o, conn, dir, s, e);
    }
    if (rc == 0) {
        rc = duck_job_stopped(&o->job, e);
    }
    return rc == 0 ? publish(o, ref, s, e) : rc;
}

static int work_build(struct duck_job *job, struct duck_conn *conn, struct err *e)
{
    struct duck_op *o = duck_op_of(job);
    struct generation_ref ref;
    int rc = duck_ref_of(o, &o->tables[0], &ref, e);
    if (rc == 0) {
        rc = generation_discard(ref.root, ref.dataset, o->tokens, o->n_tokens, e);
    }
    if (rc >= 0) {
        rc = duck_show_progress(conn, e);
    }
    if (rc == 0) {
        rc = duck_check_select(conn, o->sql, e);
    }
    auto_free char *from = xasprintf("(%s\n)", o->sql);
    struct shape s;
    if (rc == 0) {
        rc = read_shape(o, conn, from, DUCK_WIDE_BIGINT, &s, e);
    }
    if (rc < 0) {
        return rc;
    }
    tell_columns(o, &s);
    o->facts.data_as_of_us = loop_unix_us();
    rc = build(o, conn, &ref, &s, e);
    if (rc < 0) {
        struct err ignored; /* what stays is an orphan, which the sweep takes */
        (void)!generation_drop(&ref, &ignored);
    }
    return rc;
}

void duck_wh_build(struct wh_op *op, const struct wh_build *b)
{
    struct duck_op *o = duck_op_new(op, "building", work_build);
    o->tables = duck_op_tables(o, &b->table, 1);
    o->token = b->token;
    o->sql = duck_op_text(o, b->sql);
    o->tokens = duck_op_tokens(o, b->earlier, b->n_earlier);
    duck_op_go(o, false, MS(0));
}
