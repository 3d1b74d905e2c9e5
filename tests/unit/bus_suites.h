/* The test cases of bus_test, one function for each file of them. */
#pragma once
#include <check.h>

TCase *bus_call_tests(void);
TCase *bus_serve_tests(void);
TCase *bus_limit_tests(void);
