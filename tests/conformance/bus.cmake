kiln_test(NAME bus_conformance_test RING conformance TIMEOUT 120
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/bus_conformance_test.c ${CMAKE_CURRENT_LIST_DIR}/bus_conformance_fixture.c
        ${CMAKE_CURRENT_LIST_DIR}/bus_conformance_call_test.c ${CMAKE_CURRENT_LIST_DIR}/bus_conformance_end_test.c
        ${CMAKE_CURRENT_LIST_DIR}/bus_conformance_load_test.c ${CMAKE_CURRENT_LIST_DIR}/bus_conformance_address_test.c
    LINKS kiln_bus)
