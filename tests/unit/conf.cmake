kiln_test(NAME conf_test SOURCES conf_test.c LINKS kiln_conf)
