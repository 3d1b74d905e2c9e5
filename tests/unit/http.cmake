kiln_test(NAME http_test SOURCES http_test.c http_close_test.c LINKS kiln_http kiln_log)
kiln_test(NAME httpc_test SOURCES httpc_test.c LINKS kiln_httpc kiln_http kiln_log)
