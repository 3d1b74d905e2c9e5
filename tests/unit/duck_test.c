/* Instances, their locks and limits, and the threads over them. */
#include "tests/support/suite.h"
#include "tests/unit/duck_suites.h"

int main(void)
{
    Suite *s = suite_create("duck");
    suite_add_tcase(s, duck_job_tests());
    suite_add_tcase(s, duck_error_tests());
    suite_add_tcase(s, duck_reach_tests());
    suite_add_tcase(s, duck_open_tests());
    return suite_run(s);
}
