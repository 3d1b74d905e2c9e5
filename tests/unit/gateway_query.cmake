kiln_test(NAME result_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/result_test.c LINKS kiln_gateway_core)
kiln_test(NAME js_text_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/js_text_test.c LINKS kiln_gateway_core)
kiln_test(NAME sets_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/sets_test.c LINKS kiln_gateway_core)
kiln_test(NAME decide_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/decide_test.c LINKS kiln_gateway_core)
kiln_test(NAME query_cache_test
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/query_cache_test.c ${CMAKE_SOURCE_DIR}/services/gateway/query/cache.c
    LINKS kiln_gateway_core)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME reasons_md_is_current
    COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tools/make_reasons_md.py --check)
set_tests_properties(reasons_md_is_current PROPERTIES LABELS unit)
kiln_test(NAME gateway_query_test
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/gateway_query_test.c ${CMAKE_CURRENT_LIST_DIR}/gateway_query_fixture.c
    LINKS kiln_gateway_query)
kiln_test(NAME gateway_query_end_test
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/gateway_query_end_test.c ${CMAKE_CURRENT_LIST_DIR}/gateway_query_fixture.c
    LINKS kiln_gateway_query)
kiln_test(NAME gateway_worker_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/gateway_worker_test.c LINKS kiln_gateway_binder)
