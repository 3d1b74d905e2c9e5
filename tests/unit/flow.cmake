kiln_test(NAME flow_test SOURCES flow_test.c LINKS kiln_flow)
