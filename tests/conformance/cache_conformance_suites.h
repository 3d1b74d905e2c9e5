/* The test cases of cache_conformance_test, one function for each file of them. */
#pragma once
#include <check.h>

TCase *cache_conformance_put_tests(void);
TCase *cache_conformance_sync_tests(void);
TCase *cache_conformance_redis_tests(void);
