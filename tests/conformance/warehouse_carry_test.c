/* What a swap on PostgreSQL takes over from the old table, and what it refuses by name
 * (decisions 7.4). */
#include "tests/conformance/warehouse_fixture.h"
#include "tests/conformance/warehouse_suites.h"

#define ROWS(n) "SELECT g AS n, 'x' || g AS t FROM generate_series(1, " #n ") g"

static void setup(void)
{
    engine_start(ENGINE_POSTGRES);
}

static void publish_two_columns(uint64_t token, const char *generation)
{
    struct run r;
    ck_assert_msg(do_build(&r, "sales", token, ROWS(20)) == 0, "%s", err_text(&r.op.err));
    ck_assert_msg(do_swap(&r, "sales", token, generation, false) == 0, "%s", err_text(&r.op.err));
}

START_TEST(grants_owner_comments_and_options_survive)
{
    publish_two_columns(100, "g1");
    sql("GRANT CREATE ON SCHEMA mart TO steward; ALTER TABLE mart.sales OWNER TO steward;"
        "GRANT SELECT ON mart.sales TO analyst; GRANT SELECT, UPDATE ON mart.sales TO auditor WITH "
        "GRANT OPTION; REVOKE TRUNCATE ON mart.sales FROM steward;"
        "COMMENT ON TABLE mart.sales IS 'it''s ours'; COMMENT ON COLUMN mart.sales.t IS 'text';"
        "ALTER TABLE mart.sales SET (fillfactor = 70, autovacuum_enabled = false);"
        "ALTER TABLE mart.sales ALTER COLUMN n SET NOT NULL");
    const char *grants =
        "SELECT string_agg(x::text, ' ' ORDER BY x::text) FROM (SELECT "
        "aclexplode(relacl) AS x FROM pg_class WHERE oid = 'mart.sales'::regclass) y";
    const char *before = value(grants);

    publish_two_columns(200, "g2");

    ck_assert_str_eq(value(grants), before);
    ck_assert_str_eq(value("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = "
                           "'mart.sales'::regclass"),
                     "steward");
    ck_assert_str_eq(value("SELECT obj_description('mart.sales'::regclass, 'pg_class')"),
                     "it's ours");
    ck_assert_str_eq(value("SELECT col_description('mart.sales'::regclass, 2)"), "text");
    ck_assert_str_eq(value("SELECT reloptions::text FROM pg_class WHERE oid = "
                           "'mart.sales'::regclass"),
                     "{fillfactor=70,autovacuum_enabled=false}");
    ck_assert_str_eq(value("SELECT attnotnull FROM pg_attribute WHERE attrelid = "
                           "'mart.sales'::regclass AND attname = 'n'"),
                     "t");
    publish_two_columns(300, "g3");
    ck_assert_str_eq(value(grants), before);
}
END_TEST

START_TEST(indexes_keep_their_names_and_constraints)
{
    publish_two_columns(100, "g1");
    sql("ALTER TABLE mart.sales ADD CONSTRAINT sales_pk PRIMARY KEY (n);"
        "ALTER TABLE mart.sales ADD CONSTRAINT \"odd \"\" name\" UNIQUE (t) DEFERRABLE INITIALLY "
        "DEFERRED; CREATE INDEX \"by USING t\" ON mart.sales USING btree (lower(t), n DESC) WHERE "
        "n "
        "> 3; CREATE UNIQUE INDEX u ON mart.sales (n) INCLUDE (t)");
    const char *indexes = "SELECT string_agg(indexdef, '; ' ORDER BY indexname) FROM pg_indexes "
                          "WHERE schemaname = 'mart' AND tablename = 'sales'";
    const char *constraints = "SELECT string_agg(conname || pg_get_constraintdef(oid), '; ' ORDER "
                              "BY conname) FROM pg_constraint WHERE conrelid = "
                              "'mart.sales'::regclass";
    const char *had_indexes = value(indexes);
    const char *had_constraints = value(constraints);

    publish_two_columns(200, "g2");

    ck_assert_str_eq(value(indexes), had_indexes);
    ck_assert_str_eq(value(constraints), had_constraints);
    ck_assert_str_eq(value("SELECT count(*) FROM pg_class WHERE relname LIKE '\\_kiln%'"), "0");
}
END_TEST

START_TEST(row_security_is_never_lost)
{
    publish_two_columns(100, "g1");
    sql("GRANT USAGE ON SCHEMA mart TO analyst; GRANT SELECT ON mart.sales TO analyst;"
        "ALTER TABLE mart.sales ENABLE ROW LEVEL SECURITY; ALTER TABLE mart.sales FORCE ROW LEVEL "
        "SECURITY; CREATE POLICY few ON mart.sales FOR SELECT TO analyst USING (n <= (SELECT "
        "min(s.n)"
        " + 2 FROM mart.sales s WHERE sales.n > 0 OR s.n = 1));"
        "CREATE POLICY all_of_it ON mart.sales AS PERMISSIVE TO kiln, PUBLIC USING (current_user "
        "<> "
        "'analyst') WITH CHECK (n > 0); CREATE POLICY hard ON mart.sales AS RESTRICTIVE USING (n < "
        "10)");
    /* A policy that reads its own table recurses; it is only compared, never used. */
    sql("DROP POLICY few ON mart.sales; CREATE POLICY few ON mart.sales FOR SELECT TO analyst "
        "USING "
        "(n <= 3)");
    const char *policies =
        "SELECT string_agg(p::text, '; ' ORDER BY policyname) FROM pg_policies p";
    const char *had = value(policies);

    publish_two_columns(200, "g2");

    ck_assert_str_eq(value(policies), had);
    ck_assert_str_eq(value("SELECT relrowsecurity::text || relforcerowsecurity FROM pg_class WHERE "
                           "oid = 'mart.sales'::regclass"),
                     "truetrue");
    ck_assert_str_eq(value("SET ROLE analyst; SELECT count(*) FROM mart.sales"), "3");
    publish_two_columns(300, "g3");
    ck_assert_str_eq(value(policies), had);
}
END_TEST

/* The swap of a table that was made so is refused, and says why. */
static void is_refused(const char *made, int code, const char *says)
{
    struct run r;
    sql("DROP SCHEMA mart CASCADE; CREATE SCHEMA mart AUTHORIZATION kiln");
    publish_two_columns(100, "g1");
    sql(made);
    ck_assert_int_eq(do_build(&r, "sales", 200, ROWS(5)), 0);

    ck_assert_msg(do_swap(&r, "sales", 200, "g2", false) == code, "%s: %d %s", made, r.op.rc,
                  err_text(&r.op.err));
    ck_assert_msg(strstr(r.op.err.text, says) != NULL, "%s: %s", made, r.op.err.text);
    ck_assert_int_eq(rows_of("sales"), 20);

    struct wh_name name = {"mart", "sales"};
    run_init(&r, wh);
    wh->ops->catalog_targets(&r.op, &name, 1);
    ck_assert_int_eq(wait_for(&r), 0);
    const struct wh_relation *rel = r.op.facts.relations;
    size_t n = code == ERR_WH_DEPENDENTS ? rel->n_dependents : rel->n_cannot_carry;
    ck_assert_msg(n == 1, "%s: %zu things named", made, n);
    const char *named = code == ERR_WH_DEPENDENTS ? rel->dependents[0] : rel->cannot_carry[0];
    ck_assert_msg(strcmp(named, says) == 0, "%s: %s", made, named);
}

START_TEST(what_cannot_be_carried_is_refused_by_name)
{
    is_refused("GRANT SELECT (n) ON mart.sales TO analyst", ERR_WH_TARGET, "column grants");
    is_refused("ALTER TABLE mart.sales ADD CONSTRAINT positive CHECK (n > 0)", ERR_WH_TARGET,
               "check constraint positive");
    is_refused("ALTER TABLE mart.sales ALTER COLUMN t SET DEFAULT 'x'", ERR_WH_TARGET,
               "default of column t");
    is_refused("ALTER TABLE mart.sales ALTER n SET NOT NULL; ALTER TABLE mart.sales ALTER n ADD "
               "GENERATED ALWAYS AS IDENTITY",
               ERR_WH_TARGET, "identity of column n");
    is_refused("CREATE STATISTICS mart.st ON n, t FROM mart.sales", ERR_WH_TARGET,
               "extended statistics st");
    is_refused("ALTER TABLE mart.sales REPLICA IDENTITY FULL", ERR_WH_TARGET, "replica identity");
    is_refused("CREATE TABLE mart.p (k int PRIMARY KEY); INSERT INTO mart.p SELECT "
               "generate_series(1, 20); ALTER TABLE mart.sales ADD CONSTRAINT fk FOREIGN KEY (n) "
               "REFERENCES mart.p",
               ERR_WH_TARGET, "foreign key fk");
    is_refused(
        "CREATE TABLE mart.parent (n int, t text); ALTER TABLE mart.sales INHERIT mart.parent",
        ERR_WH_TARGET, "inheritance from parent");
}
END_TEST

START_TEST(every_kind_of_dependent_is_named)
{
    is_refused("CREATE VIEW mart.v AS SELECT n FROM mart.sales", ERR_WH_DEPENDENTS, "view mart.v");
    is_refused("CREATE MATERIALIZED VIEW mart.m AS SELECT n FROM mart.sales", ERR_WH_DEPENDENTS,
               "materialized view mart.m");
    is_refused("CREATE FUNCTION mart.f(mart.sales) RETURNS int LANGUAGE sql AS 'SELECT $1.n'",
               ERR_WH_DEPENDENTS, "function mart.f(mart.sales)");
    is_refused("CREATE FUNCTION mart.g() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT count(*) "
               "FROM mart.sales; END",
               ERR_WH_DEPENDENTS, "function mart.g()");
    is_refused("ALTER TABLE mart.sales ADD PRIMARY KEY (n); CREATE TABLE mart.child (n int "
               "REFERENCES mart.sales)",
               ERR_WH_DEPENDENTS, "foreign key on mart.child");
    is_refused("CREATE RULE quiet AS ON DELETE TO mart.sales DO INSTEAD NOTHING", ERR_WH_DEPENDENTS,
               "rule quiet");
    is_refused(
        "CREATE FUNCTION mart.t() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; "
        "END'; CREATE TRIGGER tick BEFORE INSERT ON mart.sales FOR EACH ROW EXECUTE FUNCTION "
        "mart.t()",
        ERR_WH_DEPENDENTS, "trigger tick");
    is_refused("DROP PUBLICATION IF EXISTS pub; CREATE PUBLICATION pub FOR TABLE mart.sales",
               ERR_WH_DEPENDENTS, "publication pub");
    is_refused("CREATE TABLE mart.kid () INHERITS (mart.sales)", ERR_WH_DEPENDENTS,
               "table mart.kid");
    is_refused("CREATE TABLE mart.holds (s mart.sales)", ERR_WH_DEPENDENTS,
               "column s of table mart.holds");
}
END_TEST

START_TEST(an_index_on_a_column_that_is_gone_refuses_the_swap)
{
    struct run r;
    publish_two_columns(100, "g1");
    sql("CREATE INDEX on_t ON mart.sales (t)");
    ck_assert_int_eq(do_build(&r, "sales", 200, "SELECT 1 AS n"), 0);
    ck_assert_int_eq(do_swap(&r, "sales", 200, "g2", false), ERR_WH_TARGET);
    ck_assert_ptr_nonnull(strstr(r.op.err.text, "\"t\" does not exist"));
    ck_assert_int_eq(rows_of("sales"), 20);
}
END_TEST

START_TEST(default_privileges_come_with_the_swap_and_not_before)
{
    struct run r;
    sql("GRANT USAGE ON SCHEMA mart TO analyst; ALTER DEFAULT PRIVILEGES FOR ROLE kiln IN SCHEMA "
        "mart GRANT SELECT ON TABLES TO analyst; ALTER DEFAULT PRIVILEGES FOR ROLE kiln GRANT "
        "SELECT "
        "ON TABLES TO PUBLIC");
    ck_assert_msg(do_build(&r, "sales", 100, ROWS(5)) == 0, "%s", err_text(&r.op.err));
    ck_assert_str_eq(value("SELECT has_table_privilege('analyst', 'mart._kiln_100', 'SELECT')"),
                     "f");

    ck_assert_msg(do_swap(&r, "sales", 100, "g1", false) == 0, "%s", err_text(&r.op.err));
    ck_assert_str_eq(value("SELECT has_table_privilege('analyst', 'mart.sales', 'SELECT')"), "t");

    sql("REVOKE ALL ON mart.sales FROM analyst, PUBLIC");
    publish_two_columns(200, "g2");
    ck_assert_str_eq(value("SELECT has_table_privilege('analyst', 'mart.sales', 'SELECT')"), "f");
}
END_TEST

void add_carry_tests(Suite *s)
{
    TCase *tc = tcase_create("postgres carries");
    tcase_add_checked_fixture(tc, setup, engine_stop);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, grants_owner_comments_and_options_survive);
    tcase_add_test(tc, indexes_keep_their_names_and_constraints);
    tcase_add_test(tc, row_security_is_never_lost);
    tcase_add_test(tc, what_cannot_be_carried_is_refused_by_name);
    tcase_add_test(tc, every_kind_of_dependent_is_named);
    tcase_add_test(tc, an_index_on_a_column_that_is_gone_refuses_the_swap);
    tcase_add_test(tc, default_privileges_come_with_the_swap_and_not_before);
    suite_add_tcase(s, tc);
}
