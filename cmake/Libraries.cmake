# Every third-party library, found once; deploy/setup.sh installs them.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(PostgreSQL REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(nng CONFIG REQUIRED)
pkg_check_modules(UV REQUIRED IMPORTED_TARGET libuv)
pkg_check_modules(PROTOBUFC REQUIRED IMPORTED_TARGET libprotobuf-c)
pkg_check_modules(HIREDIS REQUIRED IMPORTED_TARGET hiredis)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)
pkg_check_modules(ARCHIVE REQUIRED IMPORTED_TARGET libarchive)
pkg_check_modules(CHECK REQUIRED IMPORTED_TARGET check)

# llhttp comes as sources in Debian (package node-llhttp).
set(LLHTTP_DIR /usr/share/llhttp CACHE PATH "llhttp's C sources")
find_path(LLHTTP_INCLUDE llhttp.h PATHS /usr/share/include/llhttp /usr/include REQUIRED)
add_library(llhttp OBJECT ${LLHTTP_DIR}/llhttp.c ${LLHTTP_DIR}/api.c ${LLHTTP_DIR}/http.c)
target_include_directories(llhttp SYSTEM PUBLIC ${LLHTTP_INCLUDE})
target_compile_options(llhttp PRIVATE -w -fvisibility=hidden)
set_target_properties(llhttp PROPERTIES POSITION_INDEPENDENT_CODE ON)

# DuckDB is not in Debian: deploy/setup.sh duckdb puts library, header and extensions into KILN_PREFIX or build/tools. Its extensions are looked for
# beside the library, in duckdb/ext.
find_library(DUCKDB_LIBRARY duckdb PATHS $ENV{KILN_PREFIX}/lib ${CMAKE_SOURCE_DIR}/build/tools/lib NO_DEFAULT_PATH)
find_path(DUCKDB_INCLUDE duckdb.h PATHS $ENV{KILN_PREFIX}/include ${CMAKE_SOURCE_DIR}/build/tools/include NO_DEFAULT_PATH)
if(NOT DUCKDB_LIBRARY OR NOT DUCKDB_INCLUDE)
    message(FATAL_ERROR "DuckDB's library or header is missing: run deploy/setup.sh duckdb (it installs into build/tools, or into KILN_PREFIX if that is set)")
endif()
add_library(duckdb SHARED IMPORTED)
set_target_properties(duckdb PROPERTIES IMPORTED_LOCATION ${DUCKDB_LIBRARY}) # its header is for common/duck alone
