/* A builder as a simulated process. */
#include "services/builder/builder_parts.h"
#include "tests/sim/trio_world.h"

void builder_make(struct proc *p)
{
    const struct service_desc *d = builder_desc();
    struct builder_settings *set = xcalloc(1, d->settings_size);
    *set = (struct builder_settings){.log_level = "info",
                                     .log_format = "text",
                                     .instance = p->name,
                                     .planner_call = TRIO_CALL,
                                     .planner_event = TRIO_EVENT,
                                     .secret_key = TRIO_KEY,
                                     .bus_key = "",
                                     .health_listen = "",
                                     .slots = p->slots,
                                     .connections = "",
                                     .package_store = "",
                                     .generation_root = "",
                                     .state_dir = ""};
    const struct service_state is = {.parts = d->parts,
                                     .n_parts = d->n_parts,
                                     .settings = set,
                                     .state = xcalloc(1, d->state_size)};
    (void)service_sim_new(p, &is);
}

bool builder_is_idle(const struct proc *p)
{
    const struct builder *b = p->service ? service_state(p->service) : NULL;
    return b && b->running + b->asking == 0;
}
