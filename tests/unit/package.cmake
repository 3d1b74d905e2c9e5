kiln_test(NAME package_test SOURCES package_test.c package_archive_test.c package_fixture.c
    LINKS kiln_planner_package PkgConfig::ARCHIVE)
kiln_test(NAME publisher_config_test SOURCES publisher_config_test.c LINKS kiln_planner_package)
kiln_test(NAME webhook_test SOURCES webhook_test.c LINKS kiln_planner_package)
