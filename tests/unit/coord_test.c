/* The coordinator: every decision committed to the run store in memory, checked, and compared with
 * a reload. */
#include "tests/support/suite.h"
#include "tests/unit/coord_suites.h"

int main(void)
{
    Suite *s = suite_create("coord");
    suite_add_tcase(s, coord_states_tests());
    suite_add_tcase(s, coord_plan_tests());
    suite_add_tcase(s, coord_run_tests());
    suite_add_tcase(s, coord_job_tests());
    suite_add_tcase(s, coord_finish_tests());
    suite_add_tcase(s, coord_unit_tests());
    suite_add_tcase(s, coord_delete_tests());
    suite_add_tcase(s, coord_gateway_tests());
    suite_add_tcase(s, coord_retire_tests());
    return suite_run(s);
}
