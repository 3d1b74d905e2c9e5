# kiln_protobuf(TARGET PROTO...): generates <build>/proto/<name>.pb-c.{h,c} into a library of its own, without our warnings.
find_program(PROTOC_C protoc-c REQUIRED)
function(kiln_protobuf target)
    set(outputs "")
    foreach(proto IN LISTS ARGN)
        get_filename_component(name ${proto} NAME_WE)
        set(base ${CMAKE_BINARY_DIR}/proto/${name}.pb-c)
        add_custom_command(OUTPUT ${base}.c ${base}.h
            COMMAND ${PROTOC_C} --proto_path=${CMAKE_SOURCE_DIR}/proto --c_out=${CMAKE_BINARY_DIR}/proto ${proto}
            DEPENDS ${ARGN} VERBATIM)
        list(APPEND outputs ${base}.c)
    endforeach()
    add_library(${target} STATIC ${outputs})
    target_include_directories(${target} SYSTEM PUBLIC ${CMAKE_BINARY_DIR} ${CMAKE_BINARY_DIR}/proto)
    target_compile_options(${target} PRIVATE -w -fvisibility=hidden)
    target_link_libraries(${target} PUBLIC PkgConfig::PROTOBUFC)
endfunction()
