kiln_fuzz(NAME result LINKS kiln_gateway_core)
