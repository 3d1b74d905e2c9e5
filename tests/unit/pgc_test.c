/* The PostgreSQL client against a server of its own. */
#include "tests/support/suite.h"
#include "tests/unit/pgc_fixture.h"
#include "tests/unit/pgc_suites.h"

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
    pg_server_exec(&server, "postgres", "CREATE ROLE locked NOLOGIN");
    Suite *s = suite_create("pgc");
    suite_add_tcase(s, pgc_batch_tests());
    suite_add_tcase(s, pgc_session_tests());
    suite_add_tcase(s, pgc_pool_tests());
    return suite_run(s);
}
