/* A gateway as a simulated process: connections and binder as they are, readers in the place of its
 * query half; it keeps its state directory over its deaths. */
#include "services/gateway/binder/binder.h"
#include "tests/sim/trio_world.h"

static struct gateway *self(struct service *s)
{
    return service_state(s);
}

static void on_compiler(void *data, bool ready, const char *why)
{
    struct gateway *g = data;
    must(g->compiler && (ready || why));
}

static int base_start(struct service *s, struct err *e)
{
    struct gateway *g = self(s);
    g->service = s;
    g->loop = service_loop(s);
    map_init(&g->compiling);
    g->set = service_settings(s);
    g->boot = uuid_random();
    g->has_secret_key = hex_decode(slice_of(g->set->secret_key), g->secret_key, 32) == 0;
    const struct compiler_settings c = {.children = 1};
    g->compiler = compiler_pool_new(g->loop, &c, on_compiler, g);
    const struct bus_identity me = {.boot = g->boot, .instance = g->set->instance};
    g->bus = bus_new(g->loop, &me);
    return bus_dial(g->bus, &g->set->planner_call, 1, e);
}

static void on_compiler_closed(void *data)
{
    struct gateway *g = self(data);
    compiler_pool_free(g->compiler);
    g->compiler = NULL;
    service_part_closed(data);
}

static void on_bus_closed(void *data)
{
    struct gateway *g = self(data);
    bus_free(g->bus);
    g->bus = NULL;
    compiler_pool_close(g->compiler, on_compiler_closed, data);
}

static void base_close(struct service *s)
{
    bus_close(self(s)->bus, on_bus_closed, s);
}

/* One worker: the main loop. */
static int workers_start(struct service *s, struct err *e)
{
    static const struct gw_worker_kind readers = {.open = reader_open, .close = reader_close};
    (void)e;
    gw_workers_start(self(s), 1, &readers);
    return 0;
}

static const struct service_part parts[] = {
    {"base", base_start, base_close},
    {"binder", gw_binder_start, gw_binder_close},
    {"workers", workers_start, gw_workers_part_close},
};

void gateway_make(struct proc *p)
{
    struct gw_settings *set = xcalloc(1, sizeof(*set));
    *set = (struct gw_settings){.instance = p->name,
                                .planner_call = TRIO_CALL,
                                .planner_event = TRIO_EVENT,
                                .redis = "",
                                .state_dir = p->state_dir,
                                .secret_key = TRIO_KEY,
                                .bus_key = "",
                                .warehouse_sessions = 2,
                                .query_timeout_ms = 30000};
    const struct service_state is = {.parts = parts,
                                     .n_parts = ARRAY_LEN(parts),
                                     .settings = set,
                                     .state = xcalloc(1, sizeof(struct gateway))};
    (void)service_sim_new(p, &is);
}

uint64_t gateway_epoch(const struct proc *p, uint64_t unit)
{
    const struct gateway *g = p->service ? self(p->service) : NULL;
    const struct gw_unit *u = g && g->binder ? map_get_u64(&g->binder->units, unit) : NULL;
    return u ? u->applied : 0;
}
