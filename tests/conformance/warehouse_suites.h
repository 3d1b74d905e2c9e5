/* The test cases of warehouse_conformance_test, one function for each file of them. Those that more
 * than one engine runs are added to the case of each. */
#pragma once
#include <check.h>

void add_build_tests(TCase *tc);          /* every engine */
void add_query_tests(TCase *tc);          /* every engine */
void add_in_place_tests(TCase *tc);       /* those that publish in place */
void add_in_place_query_tests(TCase *tc); /* and what they promise of queries */
void add_duckdb_build_tests(TCase *tc);
void add_duckdb_bind_tests(TCase *tc);
void add_duckdb_look_tests(TCase *tc);
void add_duckdb_types_tests(TCase *tc);
void add_carry_tests(Suite *s);
void add_postgres_tests(Suite *s);
