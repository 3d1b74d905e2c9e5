/* Worker loops: each has what a query needs, and shares nothing of it but snapshots, atomics and
 * inboxes (protocol.md 14). With one worker it is the main loop itself. */
#pragma once
#include "services/gateway/gateway.h"

struct gw_conns; /* conns.h */
struct gw_boxes; /* boxes.h */
struct gw_cache; /* query/cache.h */
struct gw_part;  /* query/query.h */

struct gw_worker {
    struct gateway *g; /* its constants and atomics; all else of it is the main loop's */
    struct loop *loop;
    unsigned sessions; /* its share of warehouse_sessions */
    bool shelf_closed; /* for good */
    struct map shelf;  /* "<environment>/<package>" -> struct gw_package, counted: in force here */
    struct gw_conns *conns;
    struct gw_boxes *boxes; /* boxes.h */
    struct gw_cache *cache;
    struct gw_part *query_half;
    struct http_server *http;            /* fed with descriptors by the main loop */
    atomic_uint connections;             /* handed to it and not ended */
    struct metric *n_connections;        /* the same */
    struct loop_thread thread;           /* unless it is the main loop */
    void (*closed)(struct gw_worker *w); /* while it closes */
    struct gw_leg *closing;
};

/* ---- worker.c: the main loop's side. What makes a worker is given by the program. ---- */
struct gw_worker_kind {
    void (*open)(struct gw_worker *w); /* main loop, before the worker's loop runs */
    /* The worker's loop: ends what `open` made and all requests, then calls w->closed(w), now or
     * later. */
    void (*close)(struct gw_worker *w);
};
struct gw_workers {
    const struct gw_worker_kind *kind;
    void (*closed)(struct gateway *g);
    unsigned n;
    struct gw_worker *list;
};
void gw_workers_start(struct gateway *g, unsigned n, const struct gw_worker_kind *kind);
/* Every worker ends its requests, then its connections, then its thread; then closed runs. */
void gw_workers_close(struct gateway *g, void (*closed)(struct gateway *g));
void gw_workers_part_close(struct service *s); /* the same as the close of a service part */
/* A new client's descriptor, to the worker that has the fewest. */
void gw_workers_give(struct gateway *g, int fd);

/* Runs `run` once on each worker's loop, between two turns and in the order of starts; when all
 * have said gw_leg_done, `over` on the main loop, later; the struct dies after it. */
struct gw_leg {
    struct inbox_item item;
    struct gw_each *each;
    struct gw_worker *w;
};
struct gw_each {
    struct gateway *g;
    void (*run)(struct gw_leg *leg);
    void (*over)(struct gw_each *each);
    void *data;
    struct inbox_item back;
    atomic_uint left;
    struct gw_leg legs[];
};
void gw_each_start(struct gateway *g, void (*run)(struct gw_leg *leg),
                   void (*over)(struct gw_each *each), void *data);
void gw_leg_done(struct gw_leg *leg); /* the worker's loop */

/* ---- shelf.c: packages in force, as a worker has them. The worker's loop. ---- */
/* The package in force, or NULL. Borrowed: take a reference to keep it over a wait. */
struct gw_package *gw_shelf_find(const struct gw_worker *w, const char *environment,
                                 const char *package);
/* All packages in force of an environment (NULL: all). Borrowed. */
size_t gw_shelf_list(const struct gw_worker *w, const char *environment, struct gw_package **out,
                     size_t max);
/* Puts a newer one in the place of an older one; takes p. */
void gw_shelf_put(struct gw_worker *w, struct gw_package *p);
void gw_shelf_drop(struct gw_worker *w, uint64_t unit);
/* Lets go of all, and of whatever is put there later: the binder still swaps while workers end. */
void gw_shelf_close(struct gw_worker *w);

/* ---- conns.c: warehouse connections of environments, made on first use, remade when the config
 * epoch grows. The worker's loop. ---- */
struct gw_conn_get {
    const char *environment, *name; /* borrowed until done */
    struct gw_package *package;     /* whose own DuckDB "duckdb" is; NULL: nobody's. Borrowed */
    void (*done)(struct gw_conn_get *q);
    void *data;
    int rc; /* ERR_NOT_FOUND, ERR_WH_NO_DRIVER, ERR_WH_CONNECT (planner away and not known yet) */
    struct err err;
    struct wh *wh; /* stays valid until gw_conn_put */
    void *impl;
};
void gw_conn_get_start(struct gw_worker *w, struct gw_conn_get *q);
void gw_conn_put(struct gw_worker *w, struct wh *wh);

/* ---- what a worker serves; each answers r exactly once ---- */
#define GW_NO_VERSIONS "versionId is not implemented: leave it out, the published version answers"
/* rest_publisher/: every HTTP request that health and metrics did not take. */
void rest_publisher_handle(struct gw_worker *w, struct http_req *r);
/* query/: POST models/{path}/query and /compile, GET models, models/{path}, sqlQuery,
 * connections/test. */
void gw_query_handle(struct gw_worker *w, struct http_req *r, struct gw_package *p,
                     const char *model);
void gw_compile_handle(struct gw_worker *w, struct http_req *r, struct gw_package *p,
                       const char *model);
void gw_model_handle(struct gw_worker *w, struct http_req *r, struct gw_package *p,
                     const char *model);
void gw_sql_query_handle(struct gw_worker *w, struct http_req *r, const char *environment,
                         const char *connection);
void gw_connection_test_handle(struct gw_worker *w, struct http_req *r);
/* Makes and ends the query half; open: before the worker's loop runs. */
void gw_query_open(struct gw_worker *w);
void gw_query_close(struct gw_worker *w, void (*closed)(struct gw_worker *w));
