kiln_test(NAME warehouse_test SOURCES warehouse_test.c LINKS kiln_warehouse)
