/* What every warehouse promises, run on PostgreSQL, on the twin in memory, and on DuckDB; and what
 * those promise that publish in place, or by binding. */
#include "tests/conformance/warehouse_fixture.h"
#include "tests/conformance/warehouse_suites.h"
#include "tests/support/suite.h"

static void setup_postgres(void)
{
    engine_start(ENGINE_POSTGRES);
}

static void setup_sim(void)
{
    engine_start(ENGINE_SIM);
}

static void setup_duckdb(void)
{
    duck_resident = 0;
    engine_start(ENGINE_DUCKDB);
}

static void setup_duckdb_resident(void)
{
    duck_resident = 1 << 20;
    engine_start(ENGINE_DUCKDB);
}

/* A case of what every engine promises. */
static TCase *engine_tests(const char *name, SFun setup)
{
    TCase *tc = tcase_create(name);
    tcase_add_checked_fixture(tc, setup, engine_stop);
    tcase_set_timeout(tc, 120);
    add_build_tests(tc);
    add_query_tests(tc);
    return tc;
}

static TCase *in_place_tests(const char *name, SFun setup)
{
    TCase *tc = engine_tests(name, setup);
    add_in_place_tests(tc);
    add_in_place_query_tests(tc);
    return tc;
}

static TCase *by_binding_tests(const char *name, SFun setup)
{
    TCase *tc = engine_tests(name, setup);
    add_duckdb_build_tests(tc);
    add_duckdb_bind_tests(tc);
    add_duckdb_look_tests(tc);
    add_duckdb_types_tests(tc);
    return tc;
}

static Suite *suite(void)
{
    Suite *s = suite_create("warehouse");
    suite_add_tcase(s, in_place_tests("sim", setup_sim));
    suite_add_tcase(s, in_place_tests("postgres", setup_postgres));
    suite_add_tcase(s, by_binding_tests("duckdb", setup_duckdb));
    suite_add_tcase(s, by_binding_tests("duckdb, small results in memory", setup_duckdb_resident));
    add_carry_tests(s);
    add_postgres_tests(s);
    return s;
}

static void stop_server(void)
{
    pg_server_stop(&server);
}

int main(void)
{
    pg_server_start(&server);
    if (atexit(stop_server) != 0) {
        return EXIT_FAILURE;
    }
    pg_server_exec(&server, "postgres",
                   "CREATE ROLE kiln LOGIN; CREATE ROLE analyst LOGIN; CREATE ROLE auditor;"
                   "CREATE ROLE steward; GRANT steward TO kiln");
    return suite_run(suite());
}
