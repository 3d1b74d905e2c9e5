/* Packages' own DuckDB in a gateway: the process's sandboxes. */
#include "services/gateway/boxes.h"

/* Compressed, and of each package: small results are most results. */
#define RESIDENT_BYTES (UINT64_C(16) << 20)

int gw_duck_start(struct service *s, struct err *e)
{
    struct gateway *g = service_state(s);
    const struct gw_settings *set = g->set;
    if (!set->package_store[0]) {
        return 0;
    }
    auto_free char *dir = xasprintf("%s/duckdb", set->state_dir);
    const struct sandbox_conf c = {.package_store = set->package_store,
                                   .dir = dir,
                                   .generation_root = set->generation_root,
                                   .resident_bytes = RESIDENT_BYTES,
                                   .memory_bytes = (uint64_t)set->duckdb_memory,
                                   .idle = MS(set->duckdb_idle_ms),
                                   .server_timeout = MS(set->query_timeout_ms)};
    return sandboxes_new(g->loop, &c, &g->sandboxes, e);
}

static void on_closed(void *data)
{
    struct gateway *g = service_state(data);
    sandboxes_free(g->sandboxes);
    g->sandboxes = NULL;
    service_part_closed(data);
}

void gw_duck_close(struct service *s)
{
    struct gateway *g = service_state(s);
    if (g->sandboxes) {
        sandboxes_close(g->sandboxes, on_closed, s);
    } else {
        service_part_closed(s);
    }
}
