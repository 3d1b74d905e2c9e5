/* The planner as a simulated process: its own parts, its settings as a small installation has them.
 */
#include "services/planner/planner_parts.h"
#include "tests/sim/trio_world.h"

enum { SWEEP_EVERY_MS = 60000, SWEEP_AGE_MS = 45000 };

static void set_up(struct proc *p, struct planner_settings *set)
{
    *set = (struct planner_settings){.log_level = "info",
                                     .log_format = "text",
                                     .instance = p->name,
                                     .store_url = "",
                                     .call_listen = TRIO_CALL,
                                     .event_listen = TRIO_EVENT,
                                     .webhook_listen = "",
                                     .webhook_secret = "",
                                     .config = "",
                                     .package_store = "",
                                     .watch_env = "",
                                     .node = "",
                                     .compiler_bundle = "",
                                     .compiler_children = 1,
                                     .query_metadata = "on",
                                     .compile_timeout_ms = 30000,
                                     .secret_key = TRIO_KEY,
                                     .bus_key = "",
                                     .storage_mode = "off",
                                     .warehouse_sessions = 2,
                                     .lease_ms = 10000,
                                     .sweep_every_ms = SWEEP_EVERY_MS,
                                     .sweep_age_ms = SWEEP_AGE_MS};
}

void planner_make(struct proc *p)
{
    const struct service_desc *d = planner_desc();
    struct planner_settings *set = xcalloc(1, d->settings_size);
    set_up(p, set);
    const struct service_state is = {.parts = d->parts,
                                     .n_parts = d->n_parts,
                                     .settings = set,
                                     .state = xcalloc(1, d->state_size)};
    (void)service_sim_new(p, &is);
}

struct coord *planner_coord(const struct proc *p)
{
    const struct planner *planner = p->service ? service_state(p->service) : NULL;
    return planner && planner->open ? planner->coord : NULL;
}

void planner_sweep_now(struct proc *p)
{
    struct proc *before = proc_enter(p);
    planner_sweep_due(service_state(p->service));
    proc_leave(before);
}
