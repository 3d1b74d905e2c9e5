/* Generations on disk: published whole or not at all, found again, swept by record only. */
#include "tests/support/suite.h"
#include "tests/unit/generation_suites.h"

int main(void)
{
    Suite *s = suite_create("generation");
    suite_add_tcase(s, generation_publish_tests());
    suite_add_tcase(s, generation_manifest_tests());
    suite_add_tcase(s, generation_sweep_tests());
    suite_add_tcase(s, generation_crash_tests());
    suite_add_tcase(s, generation_owner_tests());
    return suite_run(s);
}
