kiln_test(NAME bus_test
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/bus_test.c ${CMAKE_CURRENT_LIST_DIR}/bus_fixture.c ${CMAKE_CURRENT_LIST_DIR}/bus_call_test.c
        ${CMAKE_CURRENT_LIST_DIR}/bus_serve_test.c ${CMAKE_CURRENT_LIST_DIR}/bus_limit_test.c
    LINKS kiln_bus)
kiln_test(NAME bus_sim_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/bus_sim_test.c LINKS kiln_bus)
kiln_test(NAME bus_envelope_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/bus_envelope_test.c LINKS kiln_bus)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME proto_readme_is_current
    COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tools/make_proto_readme.py --check)
set_tests_properties(proto_readme_is_current PROPERTIES LABELS unit)
