kiln_test(NAME rest_test SOURCES rest_test.c rest_body_test.c LINKS kiln_gateway_rest_table)
