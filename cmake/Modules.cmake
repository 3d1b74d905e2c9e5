# kiln_module(NAME n SOURCES ... LINKS ...)   one folder of the product as a static library `kiln_<n>`
# kiln_test(NAME n SOURCES ... LINKS ... [RING unit|sim|conformance])   a Check program, run by ctest under the label of its ring
# kiln_program(NAME n SOURCES ... LINKS ...)  an executable in bin/
# Includes are written from the repository's root: #include "common/base/base.h"
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
# Where a program that was moved finds the library that is not the distribution's: bin/ and lib/ side by side. In the tree it is found where CMake found it.
set(CMAKE_BUILD_RPATH "$ORIGIN/../lib")

function(kiln_module)
    cmake_parse_arguments(M "" "NAME" "SOURCES;LINKS" ${ARGN})
    add_library(kiln_${M_NAME} STATIC ${M_SOURCES})
    target_include_directories(kiln_${M_NAME} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
    target_link_libraries(kiln_${M_NAME} PUBLIC ${M_LINKS} PRIVATE kiln_warnings)
    if(CMAKE_CURRENT_SOURCE_DIR MATCHES "/tests(/|$)")
        set_target_properties(kiln_${M_NAME} PROPERTIES KILN_TEST ON)
    endif()
endfunction()

function(kiln_test)
    cmake_parse_arguments(T "FORKS" "NAME;RING;TIMEOUT" "SOURCES;LINKS" ${ARGN})
    if(NOT T_RING)
        set(T_RING unit)
    endif()
    if(NOT T_TIMEOUT)
        set(T_TIMEOUT 60)
    endif()
    # A test case that forks says what failed even where its fixture cannot be taken down after that;
    # nng's sockets do not live through a fork.
    set(fork no)
    if(T_FORKS)
        set(fork yes)
    endif()
    # A timeout only ends what hangs; a busy machine or a sanitizer is given its time.
    math(EXPR T_TIMEOUT "${T_TIMEOUT} * 5")
    # Sources are named from this folder or from the repository's root.
    set(sources "")
    foreach(source IN LISTS T_SOURCES)
        if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${source} AND EXISTS ${CMAKE_SOURCE_DIR}/${source})
            set(source ${CMAKE_SOURCE_DIR}/${source})
        endif()
        list(APPEND sources ${source})
    endforeach()
    add_executable(${T_NAME} ${sources})
    set_target_properties(${T_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests KILN_TEST ON)
    target_include_directories(${T_NAME} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
    target_link_libraries(${T_NAME} PRIVATE ${T_LINKS} PkgConfig::CHECK kiln_warnings)
    add_test(NAME ${T_NAME} COMMAND ${T_NAME} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${T_NAME} PROPERTIES LABELS ${T_RING} TIMEOUT ${T_TIMEOUT}
        ENVIRONMENT "CK_FORK=${fork};KILN_SOURCE_DIR=${CMAKE_SOURCE_DIR};KILN_BINARY_DIR=${CMAKE_BINARY_DIR}")
endfunction()

function(kiln_program)
    cmake_parse_arguments(P "" "NAME" "SOURCES;LINKS" ${ARGN})
    add_executable(${P_NAME} ${P_SOURCES})
    target_include_directories(${P_NAME} PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
    target_link_libraries(${P_NAME} PRIVATE ${P_LINKS} kiln_warnings)
endfunction()
