kiln_test(NAME coord_test
    SOURCES coord_test.c coord_fixture.c coord_states_test.c coord_plan_test.c coord_run_test.c coord_job_test.c coord_finish_test.c
        coord_unit_test.c coord_delete_test.c coord_gateway_test.c coord_retire_test.c
    LINKS kiln_memory_store)
