# With a real DuckDB behind them, they take the time of the conformance ring.
kiln_test(NAME duck_test RING conformance TIMEOUT 180
    SOURCES duck_test.c duck_fixture.c duck_job_test.c duck_error_test.c duck_reach_test.c duck_open_test.c
    LINKS kiln_duck)
kiln_test(NAME duck_types_test RING conformance TIMEOUT 120 SOURCES duck_types_test.c duck_fixture.c LINKS kiln_duck)
kiln_test(NAME duck_guard_test RING conformance TIMEOUT 120 SOURCES duck_guard_test.c duck_fixture.c LINKS kiln_duck)
kiln_test(NAME duck_budget_test RING conformance TIMEOUT 120 SOURCES duck_budget_test.c duck_fixture.c LINKS kiln_duck)
