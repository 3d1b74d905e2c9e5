/* The bus over a transport that only writes down what it was asked. */
#include "common/log/log.h"
#include "tests/support/suite.h"
#include "tests/unit/bus_suites.h"

int main(void)
{
    log_setup("test", LOG_ERROR, LOG_FORM_TEXT);
    Suite *s = suite_create("bus");
    suite_add_tcase(s, bus_call_tests());
    suite_add_tcase(s, bus_serve_tests());
    suite_add_tcase(s, bus_limit_tests());
    return suite_run(s);
}
