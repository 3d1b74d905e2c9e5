add_executable(compiler_launcher ${CMAKE_SOURCE_DIR}/tests/support/compiler_launcher.c)
set_target_properties(compiler_launcher PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_link_libraries(compiler_launcher PRIVATE kiln_compiler kiln_warnings)
kiln_test(NAME compiler_test SOURCES compiler_test.c tests/support/compiler_client.c LINKS kiln_compiler)
add_dependencies(compiler_test compiler_launcher)
kiln_test(NAME compiler_start_test SOURCES compiler_start_test.c tests/support/compiler_client.c
    LINKS kiln_compiler)
add_dependencies(compiler_start_test compiler_launcher)
kiln_test(NAME compiler_snapshot_test SOURCES compiler_snapshot_test.c tests/support/compiler_client.c
    LINKS kiln_compiler)
add_dependencies(compiler_snapshot_test compiler_launcher)
kiln_test(NAME compiler_loads_test SOURCES compiler_loads_test.c tests/support/compiler_client.c
    LINKS kiln_compiler)
add_dependencies(compiler_loads_test compiler_launcher)
kiln_test(NAME compiler_real_test SOURCES compiler_real_test.c LINKS kiln_compiler TIMEOUT 120)
add_dependencies(compiler_real_test compiler_launcher kiln_compiler_bundle)
