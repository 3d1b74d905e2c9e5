/* The end of every Check program. */
#pragma once
#include <check.h>

/* Runs the suite and frees it; 0 when all held, else 1: what main returns. */
static inline int suite_run(Suite *s)
{
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
