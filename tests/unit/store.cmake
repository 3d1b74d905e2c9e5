kiln_test(NAME store_sql_test SOURCES store_sql_test.c LINKS kiln_planner_store)
