kiln_test(NAME loop_test SOURCES loop_test.c LINKS kiln_loop)
