kiln_test(NAME duck_types_test SOURCES duck_types_test.c duck_fixture.c LINKS kiln_duck)
