/* What the new table takes over from the old one (decisions 7.4), as statements made by the server
 * itself: phase 1 runs on the staging table beforehand, phase 2 inside the swap after the rename,
 * phase 0 tells what cannot be expressed. */
#include "common/warehouse/wh_postgres.h"

#include <inttypes.h>

/* $1 schema, $2 table, $3 token text. Columns: phase, sql; in the order they must run. Names: `st`
 * is the staging table as SQL, `me` the target as SQL. */
static const char carry_sql[] =
    "WITH t AS MATERIALIZED (SELECT c.*, format('%I.%I', $1::text, '_kiln_' || $3::text) AS st,"
    " format('%I.%I', $1::text, $2::text) AS me, to_regclass(format('%I.%I', $1::text, '_kiln_' "
    "|| $3::text))::oid AS st_oid"
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND "
    "c.relname = $2 AND c.relkind = 'r'),"
    " col AS (SELECT a.*, t.st FROM t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 "
    "AND NOT a.attisdropped JOIN pg_attribute s ON s.attrelid = t.st_oid AND s.attname = a.attname "
    "AND s.attnum > 0 AND NOT s.attisdropped),"
    " ix AS (SELECT t.st, t.me, i.*, ic.relname AS ixname, row_number() OVER (ORDER BY "
    "i.indexrelid) AS k, pg_get_indexdef(i.indexrelid) AS def,"
    " 'CREATE ' || CASE WHEN i.indisunique THEN 'UNIQUE ' ELSE '' END || 'INDEX ' || "
    "quote_ident(ic.relname) || ' ON ' || t.oid::regclass::text AS head,"
    " con.oid AS con, con.contype, con.condeferrable, con.condeferred"
    " FROM t JOIN pg_index i ON i.indrelid = t.oid AND i.indislive JOIN pg_class ic ON ic.oid = "
    "i.indexrelid LEFT JOIN pg_constraint con ON con.conindid = i.indexrelid AND con.contype IN "
    "('p','u') AND con.conrelid = t.oid)"
    " SELECT phase, sql FROM ("
    /* indexes, then the constraints on them; a name is free only after the old table is gone */
    " SELECT CASE WHEN starts_with(ix.def, ix.head) THEN 1 ELSE 0 END AS phase, 10 AS o, k,"
    " CASE WHEN starts_with(ix.def, ix.head) THEN 'CREATE ' || CASE WHEN ix.indisunique THEN "
    "'UNIQUE ' ELSE '' END || 'INDEX ' || quote_ident('_kiln_' || $3::text || '_' || k) || ' ON ' "
    "|| ix.st || substr(ix.def, length(ix.head) + 1) ELSE 'index ' || ix.ixname END AS sql FROM ix"
    " UNION ALL SELECT 1, 20, col.attnum, format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL', "
    "col.st, col.attname) FROM col WHERE col.attnotnull"
    " UNION ALL SELECT 1, 30, k, format('ALTER TABLE %s ADD CONSTRAINT %I %s USING INDEX %I%s', "
    "ix.st, '_kiln_' || $3::text || '_' || k, CASE ix.contype WHEN 'p' THEN 'PRIMARY KEY' ELSE "
    "'UNIQUE' END, '_kiln_' || $3::text || '_' || k, CASE WHEN ix.condeferrable THEN ' DEFERRABLE' "
    "|| CASE WHEN ix.condeferred THEN ' INITIALLY DEFERRED' ELSE '' END ELSE '' END) FROM ix "
    "WHERE ix.con IS NOT NULL"
    " UNION ALL SELECT 1, 40, 0, format('ALTER TABLE %s SET (%s)', t.st, (SELECT string_agg("
    "format('%I = %L', split_part(x, '=', 1), substr(x, strpos(x, '=') + 1)), ', ') FROM "
    "unnest(t.reloptions) x)) FROM t WHERE t.reloptions IS NOT NULL"
    " UNION ALL SELECT 1, 41, 0, format('ALTER TABLE %s SET (%s)', t.st, (SELECT string_agg("
    "format('toast.%I = %L', split_part(x, '=', 1), substr(x, strpos(x, '=') + 1)), ', ') FROM "
    "unnest(tc.reloptions) x)) FROM t JOIN pg_class tc ON tc.oid = t.reltoastrelid WHERE "
    "tc.reloptions IS NOT NULL"
    /* comments */
    " UNION ALL SELECT 1, 50, d.objsubid, CASE WHEN d.objsubid = 0 THEN format('COMMENT ON TABLE "
    "%s IS %L', t.st, d.description) ELSE (SELECT format('COMMENT ON COLUMN %s.%I IS %L', t.st, "
    "col.attname, d.description) FROM col WHERE col.attnum = d.objsubid) END FROM t JOIN "
    "pg_description d ON d.classoid = 'pg_class'::regclass AND d.objoid = t.oid"
    /* owner before grants: it is the grantor */
    " UNION ALL SELECT 1, 60, 0, format('ALTER TABLE %s OWNER TO %I', t.st, "
    "pg_get_userbyid(t.relowner)) FROM t WHERE pg_get_userbyid(t.relowner) <> current_user"
    " UNION ALL SELECT 1, 70, 0, format('REVOKE ALL ON TABLE %s FROM %I', t.st, "
    "pg_get_userbyid(t.relowner)) FROM t WHERE t.relacl IS NOT NULL"
    " UNION ALL SELECT 1, 71, row_number() OVER (ORDER BY x.grantee, x.privilege_type), "
    "format('GRANT %s ON TABLE %s TO %s%s', x.privilege_type, t.st, CASE WHEN x.grantee = 0 THEN "
    "'PUBLIC' ELSE quote_ident(pg_get_userbyid(x.grantee)) END, CASE WHEN x.is_grantable THEN ' "
    "WITH GRANT OPTION' ELSE '' END) FROM t, LATERAL aclexplode(t.relacl) x"
    " UNION ALL SELECT 1, 80, 0, format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', t.st) FROM t "
    "WHERE t.relrowsecurity"
    " UNION ALL SELECT 1, 81, 0, format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', t.st) FROM t "
    "WHERE t.relforcerowsecurity"
    /* under the final names */
    " UNION ALL SELECT 2, 10, k, format('ALTER INDEX %I.%I RENAME TO %I', $1::text, '_kiln_' || "
    "$3::text || '_' || k, ix.ixname) FROM ix"
    " UNION ALL SELECT 2, 20, row_number() OVER (ORDER BY p.oid), format('CREATE POLICY %I ON %s "
    "AS %s FOR %s TO %s', p.polname, t.me, CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE "
    "'RESTRICTIVE' END, CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN "
    "'UPDATE' WHEN 'd' THEN 'DELETE' ELSE 'ALL' END, (SELECT string_agg(CASE WHEN r = 0 THEN "
    "'PUBLIC' ELSE quote_ident(pg_get_userbyid(r)) END, ', ') FROM unnest(p.polroles) r)) || "
    "coalesce(' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')', '') || coalesce(' WITH "
    "CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')', '') FROM t JOIN pg_policy p ON "
    "p.polrelid = t.oid"
    /* a new target: what ALTER DEFAULT PRIVILEGES promises for a table of its owner in its schema
     */
    " UNION ALL SELECT 1, 90, row_number() OVER (ORDER BY x.grantee, x.privilege_type), "
    "format('GRANT %s ON TABLE %I.%I TO %s%s', x.privilege_type, $1::text, '_kiln_' || $3::text, "
    "CASE WHEN x.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(x.grantee)) END, CASE "
    "WHEN x.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)"
    " FROM pg_default_acl d, LATERAL aclexplode(d.defaclacl) x WHERE NOT EXISTS (SELECT FROM t) "
    "AND d.defaclobjtype = 'r' AND d.defaclrole = (SELECT r.oid FROM pg_roles r WHERE r.rolname = "
    "current_user) AND x.grantee <> d.defaclrole AND (d.defaclnamespace = 0 OR d.defaclnamespace = "
    "(SELECT ns.oid FROM pg_namespace ns WHERE ns.nspname = $1))"
    ") q WHERE sql IS NOT NULL ORDER BY phase, o, k";

void wh_pg_carry_add(struct wh_pg_op *o, const struct wh_name *target, uint64_t token)
{
    struct arena *a = &o->flow.arena;
    const char **params = arena_alloc(a, 3 * sizeof *params);
    params[0] = target->schema;
    params[1] = target->table;
    params[2] = arena_printf(a, "%" PRIu64, token);
    wh_pg_add_prepared(o, "kiln carry", carry_sql, 3, params);
}
