kiln_fuzz(NAME envelope LINKS kiln_bus)
