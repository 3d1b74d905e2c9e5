/* Settings from flags, environment, file and defaults. */
#include "tests/support/suite.h"
#include "tests/unit/conf_suites.h"

int main(void)
{
    Suite *s = suite_create("conf");
    suite_add_tcase(s, conf_load_tests());
    suite_add_tcase(s, conf_report_tests());
    return suite_run(s);
}
