# kiln_embed(NAME HEADER FILES...): makes <build>/embed/NAME.c with a table `const struct embedded_file NAME[]` and `const size_t
# NAME_count`, in the order given. HEADER declares them. Rewritten when a file changes.
# Run as a script (-DOUT -DNAME -DHEADER -DFILES) it writes that file.
if(CMAKE_SCRIPT_MODE_FILE)
    set(data "")
    set(table "")
    set(count 0)
    string(REPLACE "|" ";" FILES "${FILES}")
    foreach(file IN LISTS FILES)
        file(READ ${file} hex HEX)
        string(REGEX REPLACE "(................................................................)" "\\1\n" hex "${hex}")
        string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
        get_filename_component(short ${file} NAME)
        string(APPEND data "static const unsigned char file_${count}[] = {\n${hex}0};\n")
        string(APPEND table "    {\"${short}\", {(const char *)file_${count}, sizeof(file_${count}) - 1}},\n")
        math(EXPR count "${count} + 1")
    endforeach()
    file(WRITE ${OUT} "/* Made by cmake/EmbedFiles.cmake. */\n#include \"${HEADER}\"\n\n${data}\n"
        "const struct embedded_file ${NAME}[] = {\n${table}};\nconst size_t ${NAME}_count = ${count};\n")
    return()
endif()

set(KILN_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(kiln_embed name header)
    set(out ${CMAKE_BINARY_DIR}/embed/${name}.c)
    string(REPLACE ";" "|" joined "${ARGN}")
    add_custom_command(OUTPUT ${out}
        COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DNAME=${name} -DHEADER=${header} -DFILES=${joined} -P ${KILN_EMBED_SCRIPT}
        DEPENDS ${ARGN} ${KILN_EMBED_SCRIPT} VERBATIM)
    set(${name}_SOURCE ${out} PARENT_SCOPE)
endfunction()
