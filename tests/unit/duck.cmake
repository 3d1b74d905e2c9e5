kiln_test(NAME duck_test TIMEOUT 180 SOURCES duck_test.c duck_fixture.c LINKS kiln_duck)
kiln_test(NAME duck_types_test TIMEOUT 120 SOURCES duck_types_test.c duck_fixture.c LINKS kiln_duck)
