/* The test cases of pgc_test, one function for each file of them. */
#pragma once
#include <check.h>

TCase *pgc_batch_tests(void);
TCase *pgc_session_tests(void);
TCase *pgc_pool_tests(void);
