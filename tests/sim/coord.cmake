# The run store in memory, shared by the coordinator's unit tests and its simulation.
kiln_module(NAME memory_store
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/memory_store.c ${CMAKE_CURRENT_LIST_DIR}/memory_jobs.c
        ${CMAKE_CURRENT_LIST_DIR}/memory_read.c ${CMAKE_CURRENT_LIST_DIR}/coord_dump.c
    LINKS kiln_planner_core)
kiln_test(NAME coord_sim RING sim TIMEOUT 180
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/coord_sim.c ${CMAKE_CURRENT_LIST_DIR}/sim_world.c
        ${CMAKE_CURRENT_LIST_DIR}/sim_warehouse.c ${CMAKE_CURRENT_LIST_DIR}/sim_builder.c
        ${CMAKE_CURRENT_LIST_DIR}/sim_gateway.c ${CMAKE_CURRENT_LIST_DIR}/sim_planner.c
        ${CMAKE_CURRENT_LIST_DIR}/sim_plan.c ${CMAKE_CURRENT_LIST_DIR}/sim_client.c
        ${CMAKE_CURRENT_LIST_DIR}/sim_check.c sim_results.c ${CMAKE_CURRENT_LIST_DIR}/sim_trace.c
    LINKS kiln_memory_store)
