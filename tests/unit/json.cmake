kiln_test(NAME json_test SOURCES json_test.c LINKS kiln_json)
