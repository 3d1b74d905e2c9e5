kiln_test(NAME base_test SOURCES base_test.c LINKS kiln_base)
kiln_test(NAME map_test SOURCES map_test.c LINKS kiln_base)
kiln_test(NAME crypto_test SOURCES crypto_test.c LINKS kiln_base)
