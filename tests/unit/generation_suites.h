/* The test cases of generation_test, one function for each file of them. */
#pragma once
#include <check.h>

TCase *generation_publish_tests(void);
TCase *generation_manifest_tests(void);
TCase *generation_sweep_tests(void);
TCase *generation_crash_tests(void);
TCase *generation_owner_tests(void);
