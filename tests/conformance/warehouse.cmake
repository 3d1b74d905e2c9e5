kiln_test(NAME warehouse_conformance_test RING conformance TIMEOUT 300 FORKS
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/warehouse_conformance_test.c ${CMAKE_CURRENT_LIST_DIR}/warehouse_fixture.c
        ${CMAKE_CURRENT_LIST_DIR}/warehouse_build_test.c ${CMAKE_CURRENT_LIST_DIR}/warehouse_query_test.c
        ${CMAKE_CURRENT_LIST_DIR}/warehouse_in_place_test.c ${CMAKE_CURRENT_LIST_DIR}/warehouse_carry_test.c
        ${CMAKE_CURRENT_LIST_DIR}/warehouse_postgres_test.c ${CMAKE_CURRENT_LIST_DIR}/warehouse_duckdb_fixture.c
        ${CMAKE_CURRENT_LIST_DIR}/warehouse_duckdb_build_test.c ${CMAKE_CURRENT_LIST_DIR}/warehouse_duckdb_bind_test.c
        ${CMAKE_CURRENT_LIST_DIR}/warehouse_duckdb_look_test.c ${CMAKE_CURRENT_LIST_DIR}/warehouse_duckdb_types_test.c
        ${CMAKE_SOURCE_DIR}/tests/support/pg_server.c
    LINKS kiln_warehouse kiln_warehouse_duckdb)
