kiln_test(NAME cache_conformance_test RING conformance TIMEOUT 120
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/cache_conformance_test.c ${CMAKE_CURRENT_LIST_DIR}/cache_conformance_fixture.c
        ${CMAKE_CURRENT_LIST_DIR}/cache_conformance_put_test.c ${CMAKE_CURRENT_LIST_DIR}/cache_conformance_sync_test.c
        ${CMAKE_CURRENT_LIST_DIR}/cache_conformance_redis_test.c
    LINKS kiln_cache)
