/* The driver of flows, on a scripted clock. */
#include "common/log/log.h"
#include "tests/support/suite.h"
#include "tests/unit/flow_suites.h"

int main(void)
{
    log_setup("flow_test", LOG_ERROR, LOG_FORM_TEXT);
    Suite *s = suite_create("flow");
    suite_add_tcase(s, flow_life_tests());
    suite_add_tcase(s, flow_wait_tests());
    suite_add_tcase(s, flow_child_tests());
    suite_add_tcase(s, flow_table_tests());
    return suite_run(s);
}
