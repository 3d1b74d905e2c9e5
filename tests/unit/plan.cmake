kiln_test(NAME plan_test SOURCES plan_test.c plan_refusal_test.c plan_fixture.c
    LINKS kiln_planner_plan)
kiln_test(NAME policy_test SOURCES policy_test.c plan_fixture.c LINKS kiln_planner_plan)
kiln_test(NAME manifest_test SOURCES manifest_test.c plan_fixture.c LINKS kiln_planner_plan)
kiln_test(NAME run_plan_test
    SOURCES run_plan_test.c run_plan_scope_test.c run_plan_fixture.c plan_fixture.c
    LINKS kiln_planner_plan)
