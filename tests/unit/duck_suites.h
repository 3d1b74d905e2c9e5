/* The test cases of duck_test, one function for each file of them. */
#pragma once
#include <check.h>

TCase *duck_job_tests(void);
TCase *duck_error_tests(void);
TCase *duck_reach_tests(void);
TCase *duck_open_tests(void);
