# One warning set for everything we wrote; generated and third-party code gets its own target without it.
add_library(kiln_warnings INTERFACE)
target_compile_options(kiln_warnings INTERFACE
    -Wall -Wextra -Wshadow -Wformat=2 -Wundef -Wvla -Wcast-qual -Wcast-align -Wconversion
    -Wimplicit-fallthrough -fvisibility=hidden -fno-common -Werror
    # Test code looks a thing up and uses it: what is not there fails the test anyway.
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:KILN_TEST>>>:-Wnull-dereference>
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition>)
target_compile_definitions(kiln_warnings INTERFACE _GNU_SOURCE
    $<$<NOT:$<CONFIG:Debug>>:KILN_RELEASE=1>)
