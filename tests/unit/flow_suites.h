/* The test cases of flow_test, one function for each file of them. */
#pragma once
#include <check.h>

TCase *flow_life_tests(void);
TCase *flow_wait_tests(void);
TCase *flow_child_tests(void);
TCase *flow_table_tests(void);
