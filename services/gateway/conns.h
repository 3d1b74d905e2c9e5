/* Inside of conns.c: a worker's warehouse connections of environments, by name and config epoch. */
#pragma once
#include "common/warehouse/wh_attached.h"
#include "services/gateway/port.h"

struct gw_conn {
    char *key;     /* "<environment>/<name>" */
    struct wh *wh; /* NULL: of type duckdb, whose handles are a package's (boxes.h) */
    struct wh_attached *attached; /* of type duckdb; in the arena */
    size_t n_attached;
    const char *digest;
    struct arena arena;
    uint64_t config_epoch;
    unsigned users;
    bool stale;       /* closed when the last user is gone */
    struct list link; /* stale ones */
};
struct gw_conns {
    struct map by_key;
    struct map by_wh;                    /* struct wh pointer as u64 -> gw_conn */
    struct map asking;                   /* key -> struct gw_conn_ask */
    unsigned n_closing;                  /* warehouses whose sessions are still ending */
    void (*closed)(struct gw_worker *w); /* is due when the last one has ended; NULL: not yet */
};
struct gw_conn_ask { /* one question to the planner, shared by all who wait for it */
    struct gw_worker *w;
    char *key, *environment, *name;
    struct gw_call call;
    Kiln__GetConnectionReq req;
    struct list waiting;
};
void gw_conns_open(struct gw_worker *w); /* before the worker's loop runs */
void gw_conns_close(struct gw_worker *w, void (*closed)(struct gw_worker *w));
/* A connection that an earlier process of this gateway had, from its disk: in use until the planner
 * tells of a newer one. Before the worker's loop runs. */
void gw_conns_seed(struct gw_worker *w, const char *key, struct slice packed);
