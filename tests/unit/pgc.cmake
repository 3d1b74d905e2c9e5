kiln_test(NAME pgc_test
    SOURCES pgc_test.c pgc_fixture.c pgc_batch_test.c pgc_session_test.c pgc_pool_test.c ${CMAKE_SOURCE_DIR}/tests/support/pg_server.c
    LINKS kiln_pgc)
kiln_test(NAME pgc_sim_test SOURCES pgc_sim_test.c LINKS kiln_pgc)
