kiln_test(NAME bus_conformance_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/bus_conformance_test.c LINKS kiln_bus
    RING conformance TIMEOUT 120)
