kiln_test(NAME flow_test SOURCES tests/unit/flow_test.c LINKS kiln_flow)
