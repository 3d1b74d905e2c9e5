kiln_test(NAME kiln_paths_test SOURCES kiln_paths_test.c LINKS kiln_cli)
kiln_test(NAME kiln_text_test SOURCES kiln_text_test.c LINKS kiln_cli)
kiln_test(NAME kiln_verbs_test SOURCES kiln_verbs_test.c LINKS kiln_cli kiln_http)
# `kiln up` with programs that only answer probes, under the names of the real ones.
add_executable(kiln_fake_service ${CMAKE_SOURCE_DIR}/tests/support/kiln_fake_service.c)
target_include_directories(kiln_fake_service PRIVATE ${CMAKE_SOURCE_DIR})
target_link_libraries(kiln_fake_service PRIVATE kiln_http kiln_log kiln_warnings)
set_target_properties(kiln_fake_service PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/kiln_fake)
foreach(program planner builder gateway)
    add_custom_command(TARGET kiln_fake_service POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink
        kiln_fake_service ${CMAKE_BINARY_DIR}/tests/kiln_fake/kiln-${program})
endforeach()
add_custom_command(TARGET kiln_fake_service POST_BUILD COMMAND ${CMAKE_COMMAND} -E touch
    ${CMAKE_BINARY_DIR}/tests/kiln_fake/kiln-compiler.js)
kiln_test(NAME kiln_up_test SOURCES kiln_up_test.c LINKS kiln_cli TIMEOUT 120)
add_dependencies(kiln_up_test kiln kiln_fake_service)
