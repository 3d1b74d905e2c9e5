/* One suite for both caches: a private redis-server on a unix socket, and Redis in memory. */
#include "common/log/log.h"
#include "tests/conformance/cache_conformance_fixture.h"
#include "tests/conformance/cache_conformance_suites.h"
#include "tests/support/suite.h"

int main(void)
{
    log_setup("test", LOG_ERROR, LOG_FORM_TEXT);
    (void)atexit(end_left_behind);
    Suite *s = suite_create("cache conformance");
    suite_add_tcase(s, cache_conformance_put_tests());
    suite_add_tcase(s, cache_conformance_sync_tests());
    suite_add_tcase(s, cache_conformance_redis_tests());
    return suite_run(s);
}
