/* Inside of conns.c: warehouse connections of environments, by name and config epoch. */
#pragma once
#include "services/gateway/gateway.h"

struct gw_conn {
    char *key; /* "<environment>/<name>" */
    struct wh *wh;
    uint64_t config_epoch;
    unsigned users;
    bool stale;       /* closed when the last user is gone */
    struct list link; /* stale ones */
};
struct gw_conns {
    struct map by_key;
    struct map by_wh;   /* struct wh pointer as u64 -> gw_conn */
    struct map asking;  /* key -> struct gw_conn_ask */
    unsigned n_closing; /* warehouses whose sessions are still ending */
    bool closing;       /* the part closes when the last one has ended */
};
struct gw_conn_ask { /* one question to the planner, shared by all who wait for it */
    struct gateway *g;
    char *key, *environment, *name;
    struct bus_call call;
    Kiln__GetConnectionReq req;
    struct list waiting;
};
/* A connection that an earlier process of this gateway had, from its disk: in use until the planner
 * tells of a newer one. */
void gw_conns_seed(struct gateway *g, const char *key, struct slice packed);
