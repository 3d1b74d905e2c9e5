# The whole trio in one process. Its twins of loop.h, store.h, service.h, compiler.h, log.h and of the makers of bus, cache and
# warehouse ends are the program's own objects: they are taken before those of the libraries.
set(trio_wraps malloc calloc realloc free vasprintf random_bytes sim_message_new sim_transmit bus_free bus_up_connected
    bus_up_answer bus_up_request bus_up_hint bus_up_closed cache_put_start cache_close cache_free)
list(TRANSFORM trio_wraps PREPEND -Wl,--wrap=)
set(trio_sources trio_sim.c trio_cases.c trio_random.c trio_sweep.c trio_chaos.c trio_check.c trio_world.c trio_package.c trio_people.c trio_planner.c
    trio_builder.c trio_gateway.c trio_reader.c trio_wire.c trio_wire_answer.c trio_wire_log.c trio_ends.c trio_heap.c trio_log.c loop_sim.c
    service_sim.c store_sim.c store_sim_reads.c store_sim_rest.c store_sim_answered.c compiler_sim.c)
kiln_test(NAME trio_sim RING sim TIMEOUT 300 SOURCES ${trio_sources}
    LINKS kiln_planner_shell kiln_builder_shell kiln_gateway_binder kiln_memory_store kiln_cache)
target_link_options(trio_sim PRIVATE ${trio_wraps})
