kiln_test(NAME conf_test SOURCES conf_test.c conf_fixture.c conf_load_test.c conf_report_test.c LINKS kiln_conf)
