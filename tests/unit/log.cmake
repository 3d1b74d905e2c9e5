kiln_test(NAME log_test SOURCES log_test.c LINKS kiln_log kiln_json)
