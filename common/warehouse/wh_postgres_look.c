/* Looking at targets: what stands at a name, what depends on it, what a swap could not carry over,
 * its fence row. */
#include "common/warehouse/wh_postgres.h"

/* Names as asked, an undotted one in the current schema. */
#define NAMES                                                                                      \
    "WITH n AS MATERIALIZED (SELECT u.ord, coalesce(nullif(u.s, ''), current_schema()::text) AS "  \
    "s, u.t, ns.oid AS ns, c.oid AS oid, c.relkind, c.relowner, c.reltype, c.relreplident,"        \
    " c.relispartition, c.reloftype"                                                               \
    " FROM unnest($1::text[], $2::text[]) WITH ORDINALITY u(s, t, ord)"                            \
    " LEFT JOIN pg_namespace ns ON ns.nspname = coalesce(nullif(u.s, ''), "                        \
    "current_schema()::text)"                                                                      \
    " LEFT JOIN pg_class c ON c.relnamespace = ns.oid AND c.relname = u.t) "

static const char base_sql[] =
    NAMES "SELECT n.ord, n.s, n.ns IS NOT NULL, n.ns IS NOT NULL AND "
          "has_schema_privilege(n.ns, 'CREATE') AND has_schema_privilege(n.ns, 'USAGE'),"
          " n.oid::bigint, n.relkind, EXISTS (SELECT FROM pg_class f WHERE f.relnamespace = n.ns"
          " AND f.relname = 'kiln_fence' AND f.relkind = 'r'),"
          " n.oid IS NOT NULL AND has_table_privilege(n.oid, 'SELECT')"
          " FROM n ORDER BY n.ord";

/* protocol.md 3 "refused in the plan". pg_depend holds all of them but own triggers, rules and
 * publications; OFFSET 0 keeps it on its index. */
static const char dependents_sql[] =
    NAMES ", rel AS (SELECT n.ord, n.oid, n.reltype, n.relkind FROM n WHERE n.oid IS NOT NULL)"
          ", refs AS (SELECT ord, oid, 'pg_class'::regclass::oid AS rc, oid AS ro FROM rel"
          " UNION ALL SELECT ord, oid, 'pg_type'::regclass::oid, reltype FROM rel"
          " UNION ALL SELECT ord, rel.oid, 'pg_type'::regclass::oid, ty.typarray FROM rel JOIN "
          "pg_type ty ON ty.oid = rel.reltype WHERE ty.typarray <> 0)"
          ", dep AS MATERIALIZED (SELECT refs.ord, refs.oid, d.classid, d.objid, d.objsubid, "
          "d.deptype FROM refs, LATERAL (SELECT * FROM pg_depend x WHERE x.refclassid = refs.rc "
          "AND x.refobjid = refs.ro OFFSET 0) d)"
          " SELECT DISTINCT ord, what FROM ("
          " SELECT dep.ord, CASE v.relkind WHEN 'm' THEN 'materialized view ' WHEN 'v' THEN "
          "'view ' ELSE 'rule on ' END || vn.nspname || '.' || v.relname AS what"
          " FROM dep JOIN pg_rewrite r ON r.oid = dep.objid JOIN pg_class v ON v.oid = r.ev_class"
          " JOIN pg_namespace vn ON vn.oid = v.relnamespace"
          " WHERE dep.classid = 'pg_rewrite'::regclass AND v.oid <> dep.oid"
          " UNION ALL SELECT dep.ord, 'foreign key on ' || cn.nspname || '.' || c.relname"
          " FROM dep JOIN pg_constraint k ON k.oid = dep.objid JOIN pg_class c ON c.oid = "
          "k.conrelid JOIN pg_namespace cn ON cn.oid = c.relnamespace"
          " WHERE dep.classid = 'pg_constraint'::regclass AND k.contype = 'f' AND k.conrelid <> "
          "dep.oid"
          " UNION ALL SELECT rel.ord, 'rule ' || r.rulename FROM rel JOIN pg_rewrite r"
          " ON r.ev_class = rel.oid WHERE rel.relkind IN ('r', 'p')"
          " UNION ALL SELECT rel.ord, 'trigger ' || t.tgname FROM rel JOIN pg_trigger t"
          " ON t.tgrelid = rel.oid AND NOT t.tgisinternal"
          " UNION ALL SELECT rel.ord, 'publication ' || p.pubname FROM rel"
          " JOIN pg_publication_rel pr ON pr.prrelid = rel.oid JOIN pg_publication p"
          " ON p.oid = pr.prpubid"
          /* functions on the row type or with SQL bodies, children, other tables' policies, columns
             of the row type */
          " UNION ALL SELECT dep.ord, pg_describe_object(dep.classid, dep.objid, dep.objsubid)"
          " FROM dep WHERE dep.deptype = 'n' AND dep.classid NOT IN ('pg_rewrite'::regclass, "
          "'pg_trigger'::regclass)"
          " AND NOT (dep.classid = 'pg_constraint'::regclass AND EXISTS (SELECT FROM "
          "pg_constraint k WHERE k.oid = dep.objid AND (k.conrelid = dep.oid OR k.contype = 'f')))"
          " AND NOT (dep.classid = 'pg_policy'::regclass AND EXISTS (SELECT FROM pg_policy p WHERE "
          "p.oid = dep.objid AND p.polrelid = dep.oid))"
          " AND NOT (dep.classid = 'pg_attrdef'::regclass AND EXISTS (SELECT FROM pg_attrdef ad "
          "WHERE ad.oid = dep.objid AND ad.adrelid = dep.oid))"
          " AND NOT (dep.classid = 'pg_class'::regclass AND EXISTS (SELECT FROM pg_index i WHERE "
          "i.indexrelid = dep.objid AND i.indrelid = dep.oid))"
          ") x ORDER BY ord, what";

/* decisions 7.4: refused by name until they are carried. */
static const char cannot_sql[] =
    NAMES ", rel AS (SELECT * FROM n WHERE n.oid IS NOT NULL AND n.relkind = 'r')"
          " SELECT ord, what FROM ("
          " SELECT rel.ord, 'column grants' AS what FROM rel WHERE EXISTS (SELECT FROM "
          "pg_attribute a WHERE a.attrelid = rel.oid AND a.attacl IS NOT NULL)"
          " UNION ALL SELECT rel.ord, CASE k.contype WHEN 'c' THEN 'check constraint ' WHEN 'x' "
          "THEN 'exclusion constraint ' ELSE 'foreign key ' END || k.conname"
          " FROM rel JOIN pg_constraint k ON k.conrelid = rel.oid AND k.contype IN ('c','x','f')"
          " UNION ALL SELECT rel.ord, CASE WHEN a.attidentity <> '' THEN 'identity of column ' "
          "WHEN a.attgenerated <> '' THEN 'generated column ' ELSE 'default of column ' END || "
          "a.attname FROM rel JOIN pg_attribute a ON a.attrelid = rel.oid AND a.attnum > 0 AND "
          "NOT a.attisdropped AND (a.atthasdef OR a.attidentity <> '')"
          " UNION ALL SELECT rel.ord, 'extended statistics ' || s.stxname FROM rel"
          " JOIN pg_statistic_ext s ON s.stxrelid = rel.oid"
          " UNION ALL SELECT rel.ord, 'replica identity' FROM rel WHERE rel.relreplident <> 'd'"
          " UNION ALL SELECT rel.ord, 'inheritance from ' || p.relname FROM rel"
          " JOIN pg_inherits i ON i.inhrelid = rel.oid JOIN pg_class p ON p.oid = i.inhparent"
          " UNION ALL SELECT rel.ord, 'composite type' FROM rel WHERE rel.reloftype <> 0"
          " UNION ALL SELECT rel.ord, 'security label' FROM rel WHERE EXISTS (SELECT FROM "
          "pg_seclabel l WHERE l.classoid = 'pg_class'::regclass AND l.objoid = rel.oid)"
          ") x ORDER BY ord, what";

static const char **name_params(struct wh_pg_op *o, const struct wh_name *names, size_t n)
{
    struct arena *a = &o->flow.arena;
    const char **schemas = arena_alloc(a, (n + 1) * sizeof *schemas);
    const char **tables = arena_alloc(a, (n + 1) * sizeof *tables);
    for (size_t i = 0; i < n; i++) {
        schemas[i] = names[i].schema ? names[i].schema : "";
        tables[i] = names[i].table;
    }
    const char **params = arena_alloc(a, 2 * sizeof *params);
    params[0] = wh_pg_array(a, schemas, n);
    params[1] = wh_pg_array(a, tables, n);
    return params;
}

void wh_pg_glance_add(struct wh_pg_op *o, const struct wh_name *names, size_t n)
{
    wh_pg_add_prepared(o, "kiln look", base_sql, 2, name_params(o, names, n));
}

void wh_pg_look_add(struct wh_pg_op *o, const struct wh_name *names, size_t n)
{
    const char **params = name_params(o, names, n);
    wh_pg_add_prepared(o, "kiln look", base_sql, 2, params);
    wh_pg_add_prepared(o, "kiln dependents", dependents_sql, 2, params);
    wh_pg_add_prepared(o, "kiln cannot", cannot_sql, 2, params);
}

/* The texts of rows (ord, text) that belong to one name. */
static const char *const *texts_of(struct wh_pg_op *o, const struct pgc_result *r, size_t name,
                                   size_t *n)
{
    const char **out = arena_alloc(o->arena, (pgc_rows(r) + 1) * sizeof *out);
    *n = 0;
    for (size_t i = 0; i < pgc_rows(r); i++) {
        if ((size_t)pgc_i64(r, i, 0) == name + 1) {
            out[(*n)++] = wh_pg_copy(o, r, i, 1);
        }
    }
    return out;
}

void wh_pg_glance_read(struct wh_pg_op *o, size_t first, struct wh_relation *out, size_t n,
                       bool *has_fence)
{
    const struct pgc_result *base = wh_pg_result(o, first);
    for (size_t i = 0; i < n && i < pgc_rows(base); i++) {
        struct wh_relation *rel = &out[i];
        const char *kind = pgc_text(base, i, 5);
        const char *schema = wh_pg_copy(o, base, i, 1);
        rel->name.schema = schema ? schema : "";
        rel->schema_exists = pgc_bool(base, i, 2);
        rel->schema_writable = pgc_bool(base, i, 3);
        rel->oid = (uint64_t)pgc_i64(base, i, 4);
        rel->kind = kind ? kind[0] : 0;
        has_fence[i] = pgc_bool(base, i, 6);
        /* Not known yet whether it is empty; readable at all? */
        rel->is_empty = rel->kind == 'r' && pgc_bool(base, i, 7);
    }
}

void wh_pg_look_read(struct wh_pg_op *o, size_t first, struct wh_relation *out, size_t n,
                     bool *has_fence)
{
    wh_pg_glance_read(o, first, out, n, has_fence);
    for (size_t i = 0; i < n; i++) {
        out[i].dependents = texts_of(o, wh_pg_result(o, first + 1), i, &out[i].n_dependents);
        out[i].cannot_carry = texts_of(o, wh_pg_result(o, first + 2), i, &out[i].n_cannot_carry);
    }
}

static const char *join(struct wh_pg_op *o, const char *const *texts, size_t n)
{
    auto_buf struct buf out = {0};
    for (size_t i = 0; i < n; i++) {
        buf_addf(&out, "%s%s", i ? ", " : "", texts[i]);
    }
    return arena_strdup(&o->flow.arena, buf_str(&out));
}

int wh_pg_refuse(struct wh_pg_op *o, unsigned end, const char *target,
                 const struct wh_relation *rel)
{
    if (!rel->schema_exists) {
        (void)wh_pg_fail(o, end, ERR_WH_MISSING, "schema \"%s\" does not exist", rel->name.schema);
    } else if (rel->kind != 0 && rel->kind != 'r') {
        (void)wh_pg_fail(o, end, ERR_WH_TARGET,
                         "%s is not an ordinary table and is not replaced; drop it or choose "
                         "another name=",
                         target);
    } else if (rel->n_dependents > 0) {
        (void)wh_pg_fail(o, end, ERR_WH_DEPENDENTS,
                         "%s is not replaced because other objects depend on it: %s", target,
                         join(o, rel->dependents, rel->n_dependents));
    } else if (rel->n_cannot_carry > 0) {
        (void)wh_pg_fail(o, end, ERR_WH_TARGET,
                         "%s has what a new table cannot take over: %s; drop that or choose "
                         "another name=",
                         target, join(o, rel->cannot_carry, rel->n_cannot_carry));
    } else {
        return 0;
    }
    return -1;
}
