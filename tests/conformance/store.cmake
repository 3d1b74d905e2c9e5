kiln_test(NAME store_test RING conformance TIMEOUT 240
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/store_test.c ${CMAKE_CURRENT_LIST_DIR}/store_leader_test.c
        ${CMAKE_CURRENT_LIST_DIR}/store_coord_test.c ${CMAKE_CURRENT_LIST_DIR}/store_records_test.c
        ${CMAKE_CURRENT_LIST_DIR}/store_fixture.c ${CMAKE_SOURCE_DIR}/tests/sim/coord_dump.c ${CMAKE_SOURCE_DIR}/tests/support/pg_server.c
    LINKS kiln_planner_store)
