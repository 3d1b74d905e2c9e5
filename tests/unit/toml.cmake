kiln_test(NAME toml_test SOURCES toml_test.c LINKS kiln_toml)
