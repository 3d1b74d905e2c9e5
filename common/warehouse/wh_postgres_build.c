/* Building into staging: CREATE TABLE AS in one transaction that takes default privileges away
 * before it commits, then ANALYZE. Nothing a reader could see has changed when it is done. */
#include "common/warehouse/wh_postgres.h"

#include <inttypes.h>

enum { BUILD_PREPARE, BUILD_RUN, BUILD_TYPES, BUILD_END };

struct op_build {
    struct wh_pg_op o;
    struct wh_build b;
    const char *schema, *staging, *grantees;
    size_t create_at, after_at; /* statements of the RUN batch */
    struct pgc_result *columns;
};

static struct op_build *build_of(struct flow *f)
{
    return container_of(wh_pg_op_of(f), struct op_build, o);
}

/* Who would get rights on a new table by ALTER DEFAULT PRIVILEGES, as a list for REVOKE. */
static const char prepare_sql[] =
    "SELECT n.s, ns.oid IS NOT NULL, (SELECT string_agg(DISTINCT CASE WHEN x.grantee = 0 THEN "
    "'PUBLIC' ELSE quote_ident(pg_get_userbyid(x.grantee)) END, ', ')"
    " FROM pg_default_acl d, LATERAL aclexplode(d.defaclacl) x"
    " WHERE d.defaclobjtype = 'r' AND d.defaclrole = (SELECT r.oid FROM pg_roles r WHERE r.rolname "
    "= current_user) AND d.defaclnamespace IN (0, ns.oid) AND x.grantee <> d.defaclrole)"
    " FROM (SELECT coalesce(nullif($1::text, ''), current_schema()::text) AS s) n"
    " LEFT JOIN pg_namespace ns ON ns.nspname = n.s";

static void add_drops(struct op_build *b, const char *schema)
{
    wh_pg_add(&b->o, "DROP TABLE IF EXISTS %s", wh_pg_staging(&b->o, schema, b->b.token));
    for (size_t i = 0; i < b->b.n_earlier; i++) {
        wh_pg_add(&b->o, "DROP TABLE IF EXISTS %s", wh_pg_staging(&b->o, schema, b->b.earlier[i]));
    }
}

static enum flow_next prepared(struct op_build *b)
{
    const struct pgc_result *r = wh_pg_result(&b->o, 0);
    struct flow *f = &b->o.flow;
    if (!pgc_bool(r, 0, 1)) {
        return wh_pg_fail(&b->o, BUILD_END, ERR_WH_MISSING,
                          "schema \"%s\" does not exist; create it, or name another in name=",
                          b->schema[0] ? b->schema : "(current)");
    }
    b->schema = arena_strdup(&f->arena, pgc_text(r, 0, 0));
    b->staging = wh_pg_staging(&b->o, b->schema, b->b.token);
    b->grantees = arena_strdup(&f->arena, pgc_text(r, 0, 2));
    return flow_goto(f, BUILD_RUN);
}

static enum flow_next step_prepare(struct flow *f)
{
    struct op_build *b = build_of(f);
    if (f->entered) {
        const char **params = arena_alloc(&f->arena, sizeof *params);
        params[0] = b->schema;
        wh_pg_add_prepared(&b->o, "kiln prepare", prepare_sql, 1, params);
        if (b->schema[0]) {
            add_drops(b, b->schema);
        }
        return wh_pg_run(&b->o);
    }
    return wh_pg_failed(&b->o, BUILD_END) ? FLOW_AGAIN : prepared(b);
}

/* A comment cannot be ended from inside; the server nests them. */
const char *wh_pg_tag(struct arena *a, const char *tag)
{
    auto_buf struct buf out = {0};
    if (!tag || !tag[0]) {
        return "";
    }
    buf_add_str(&out, "/* ");
    for (const char *p = tag; *p; p++) {
        bool is_mark = (p[0] == '*' && p[1] == '/') || (p[0] == '/' && p[1] == '*');
        p += is_mark;
        buf_add_char(&out, is_mark || *p == '\n' ? ' ' : *p);
    }
    buf_add_str(&out, " */ ");
    return arena_slice(a, buf_slice(&out));
}

static const char *create_sql(struct op_build *b)
{
    auto_buf struct buf sql = {0};
    buf_add_str(&sql, wh_pg_tag(&b->o.flow.arena, b->b.tag));
    struct slice query = slice_trim(slice_of(b->b.sql));
    while (query.len > 0 && query.p[query.len - 1] == ';') {
        query.len--;
        query = slice_trim(query);
    }
    /* A line of its own: the query may end in a comment. */
    buf_addf(&sql, "CREATE TABLE %s AS\n%.*s\n", b->staging, SLICE_FMT(query));
    return arena_strdup(&b->o.flow.arena, buf_str(&sql));
}

static void add_run(struct op_build *b)
{
    struct wh_pg_op *o = &b->o;
    if (!b->b.table.name.schema || !b->b.table.name.schema[0]) {
        add_drops(b, b->schema);
    }
    wh_pg_add(o, "BEGIN ISOLATION LEVEL READ COMMITTED");
    /* Read before the statement's snapshot: the data is at least so new. */
    wh_pg_add(o, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");
    b->create_at = o->n_stmts;
    wh_pg_add_params(o, create_sql(b), 0, NULL);
    if (b->grantees) {
        wh_pg_add(o, "REVOKE ALL ON TABLE %s FROM %s", b->staging, b->grantees);
    }
    wh_pg_add(o, "COMMIT");
    wh_pg_add(o, "ANALYZE %s", b->staging);
    b->after_at = o->n_stmts;
    wh_pg_add(o, "SELECT pg_total_relation_size(%s::regclass)", wh_pg_literal(o, b->staging));
    wh_pg_add(o,
              "SELECT attname, atttypid, attnotnull FROM pg_attribute WHERE attrelid = "
              "%s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
              wh_pg_literal(o, b->staging));
}

static void take_facts(struct op_build *b)
{
    struct wh_facts *facts = &b->o.op->facts;
    facts->data_as_of_us = pgc_i64(wh_pg_result(&b->o, b->create_at - 1), 0, 0);
    facts->rows = pgc_affected(wh_pg_result(&b->o, b->create_at));
    facts->bytes = (uint64_t)pgc_i64(wh_pg_result(&b->o, b->after_at), 0, 0);
    b->columns = b->o.batch.results[b->after_at + 1];
    b->o.batch.results[b->after_at + 1] = NULL;
    for (size_t i = 0; i < pgc_rows(b->columns); i++) {
        wh_pg_types_note(&b->o, (uint32_t)pgc_i64(b->columns, i, 1));
    }
}

static enum flow_next step_run(struct flow *f)
{
    struct op_build *b = build_of(f);
    if (f->entered) {
        b->o.stage = "building";
        add_run(b);
        return wh_pg_run(&b->o);
    }
    if (wh_pg_failed(&b->o, BUILD_END)) {
        return FLOW_AGAIN;
    }
    take_facts(b);
    return flow_goto(f, BUILD_TYPES);
}

static enum flow_next step_types(struct flow *f)
{
    struct op_build *b = build_of(f);
    if (f->entered && wh_pg_types_ask(&b->o)) {
        return wh_pg_run(&b->o);
    }
    if (!f->entered) {
        if (wh_pg_failed(&b->o, BUILD_END)) {
            return FLOW_AGAIN;
        }
        wh_pg_types_learn(&b->o, wh_pg_result(&b->o, 0));
    }
    struct wh_columns *cols = &b->o.op->facts.columns;
    cols->n = pgc_rows(b->columns);
    cols->items = arena_zalloc(b->o.arena, (cols->n + 1) * sizeof *cols->items);
    for (size_t i = 0; i < cols->n; i++) {
        cols->items[i] =
            wh_pg_column(b->o.arena, b->o.pg, pgc_text(b->columns, i, 0),
                         (uint32_t)pgc_i64(b->columns, i, 1), !pgc_bool(b->columns, i, 2));
    }
    return flow_goto(f, BUILD_END);
}

static enum flow_next step_end(struct flow *f)
{
    struct op_build *b = build_of(f);
    pgc_result_free(b->columns);
    b->columns = NULL;
    return wh_pg_step_end(f);
}

static const struct flow_step steps[] = {
    {.name = "PREPARE",
     .run = step_prepare,
     .to = FLOW_TO(BUILD_RUN) | FLOW_TO(BUILD_END),
     .cancel = wh_pg_cancel_wait,
     .says = "drop staging of earlier attempts; who has default privileges"},
    {.name = "RUN",
     .run = step_run,
     .to = FLOW_TO(BUILD_TYPES) | FLOW_TO(BUILD_END),
     .cancel = wh_pg_cancel_wait,
     .says = "create staging from the query, analyze, describe"},
    {.name = "TYPES",
     .run = step_types,
     .to = FLOW_TO(BUILD_END),
     .cancel = wh_pg_cancel_wait,
     .says = "spell types not met before"},
    {.name = "END", .run = step_end, .says = "report"},
};
static const struct flow_type build_flow = {"wh_build", steps, ARRAY_LEN(steps)};

void wh_pg_build(struct wh_op *op, const struct wh_build *build)
{
    struct op_build *b = wh_pg_op_start(op, sizeof *b, &build_flow, MS_NONE);
    struct arena *a = op->arena;
    b->b = *build;
    b->b.table.name.schema = arena_strdup(a, build->table.name.schema);
    b->b.table.name.table = arena_strdup(a, build->table.name.table);
    b->b.sql = arena_strdup(a, build->sql);
    b->b.tag = arena_strdup(a, build->tag);
    b->b.earlier = arena_dup(a, build->earlier, build->n_earlier * sizeof *build->earlier);
    b->schema = b->b.table.name.schema ? b->b.table.name.schema : "";
}
