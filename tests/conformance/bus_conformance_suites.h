/* The test cases of bus_conformance_test, one function for each file of them. */
#pragma once
#include <check.h>

TCase *bus_conformance_call_tests(void);
TCase *bus_conformance_end_tests(void);
TCase *bus_conformance_load_tests(void);
TCase *bus_conformance_address_tests(void);
