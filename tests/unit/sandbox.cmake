kiln_test(NAME sandbox_test SOURCES sandbox_test.c LINKS kiln_sandbox)
