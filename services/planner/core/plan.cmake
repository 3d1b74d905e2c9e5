# The package plan: pure, no loop and no stores.
set(PLANNER_PLAN_SOURCES
    plan.c plan_scan.c plan_sources.c plan_judge.c plan_meta.c plan_targets.c plan_notices.c
    plan_json.c plan_decide.c plan_preview.c policy.c cron.c manifest.c names.c run_plan.c)
list(TRANSFORM PLANNER_PLAN_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
kiln_module(NAME planner_plan SOURCES ${PLANNER_PLAN_SOURCES}
    LINKS kiln_proto kiln_json kiln_err kiln_base)
