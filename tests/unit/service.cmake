kiln_test(NAME service_test SOURCES service_test.c LINKS kiln_service kiln_httpc)
kiln_test(NAME metrics_test SOURCES metrics_test.c LINKS kiln_service)
