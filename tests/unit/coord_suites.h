/* The test cases of coord_test, one function for each file of them. */
#pragma once
#include <check.h>

TCase *coord_plan_tests(void);
TCase *coord_run_tests(void);
TCase *coord_job_tests(void);
TCase *coord_finish_tests(void);
TCase *coord_unit_tests(void);
TCase *coord_delete_tests(void);
TCase *coord_gateway_tests(void);
TCase *coord_retire_tests(void);
TCase *coord_states_tests(void);
