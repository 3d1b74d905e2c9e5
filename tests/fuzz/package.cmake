kiln_fuzz(NAME archive LINKS kiln_planner_package)
kiln_fuzz(NAME webhook LINKS kiln_planner_package)
kiln_fuzz(NAME publisher_config LINKS kiln_planner_package)
