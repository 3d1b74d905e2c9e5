kiln_test(NAME err_test SOURCES err_test.c LINKS kiln_err)
