kiln_test(NAME cache_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/cache_test.c LINKS kiln_cache)
