kiln_test(NAME generation_test
    SOURCES generation_test.c generation_fixture.c generation_publish_test.c generation_manifest_test.c generation_sweep_test.c
        generation_crash_test.c generation_owner_test.c
    LINKS kiln_generation)
