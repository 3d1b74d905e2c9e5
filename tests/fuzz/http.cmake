kiln_fuzz(NAME http LINKS kiln_http)
