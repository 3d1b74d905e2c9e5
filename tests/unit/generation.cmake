kiln_test(NAME generation_test SOURCES generation_test.c LINKS kiln_generation)
