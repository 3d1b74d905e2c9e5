/* The second half of the HTTP server's tests: http_close_test.c. */
#pragma once
#include <check.h>

TCase *http_close_tests(void);
