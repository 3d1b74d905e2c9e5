kiln_test(NAME sandbox_test SOURCES sandbox_test.c sandbox_fixture.c LINKS kiln_sandbox)
kiln_test(NAME sandbox_attached_test SOURCES sandbox_attached_test.c sandbox_fixture.c LINKS kiln_sandbox)
