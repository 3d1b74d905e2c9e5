kiln_test(NAME warehouse_test SOURCES warehouse_test.c LINKS kiln_warehouse)
kiln_test(NAME warehouse_attached_test SOURCES warehouse_attached_test.c LINKS kiln_warehouse)
