kiln_test(NAME cache_conformance_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/cache_conformance_test.c LINKS kiln_cache
    RING conformance TIMEOUT 120)
