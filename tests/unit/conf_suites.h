/* The test cases of conf_test, one function for each file of them. */
#pragma once
#include <check.h>

TCase *conf_load_tests(void);
TCase *conf_report_tests(void);
