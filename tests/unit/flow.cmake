kiln_test(NAME flow_test
    SOURCES flow_test.c flow_fixture.c flow_life_test.c flow_wait_test.c flow_child_test.c flow_table_test.c
    LINKS kiln_flow)
