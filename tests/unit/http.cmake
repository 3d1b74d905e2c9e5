kiln_test(NAME http_test SOURCES http_test.c http_close_test.c LINKS kiln_http kiln_log)
