kiln_test(NAME warehouse_conformance_test RING conformance TIMEOUT 300 FORKS
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/warehouse_conformance_test.c
        ${CMAKE_CURRENT_LIST_DIR}/warehouse_carry_test.c
        ${CMAKE_CURRENT_LIST_DIR}/warehouse_postgres_test.c
        ${CMAKE_CURRENT_LIST_DIR}/warehouse_duckdb_test.c
        ${CMAKE_CURRENT_LIST_DIR}/warehouse_fixture.c ${CMAKE_SOURCE_DIR}/tests/support/pg_server.c
    LINKS kiln_warehouse kiln_warehouse_duckdb)
