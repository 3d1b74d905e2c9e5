/* The gateway: what it owns. Front door for people and programs; its binder keeps bindings, its
 * query half answers from them. */
#pragma once
#include "common/base/map.h"
#include "common/bus/bus.h"
#include "common/cache/cache.h"
#include "common/compiler/compiler.h"
#include "common/http/http.h"
#include "common/service/metrics.h"
#include "common/service/service.h"
#include "common/warehouse/warehouse.h"
#include "proto/builder.pb-c.h"
#include "proto/compiler.pb-c.h"
#include "proto/gateway.pb-c.h"
#include "proto/planner.pb-c.h"
#include "proto/types.pb-c.h"

struct gw_settings { /* conf.c has the table */
    const char *log_level, *log_format;
    const char *instance; /* "gateway-1" */
    const char *listen;   /* HTTP address: "127.0.0.1:4000" or "unix:/path" */
    bool trusted_network; /* off loopback is allowed without TLS and a key (decisions 3.7) */
    const char *planner_call, *planner_event; /* bus URLs */
    const char *redis;                        /* "unix:/path" or "host:port" */
    const char *state_dir;                    /* packages and last sets on disk */
    const char *node, *compiler_bundle;
    int64_t compiler_children;
    const char *secret_key,
        *bus_key;               /* hex or base64 of 32 bytes; from KILN_SECRET_KEY, KILN_BUS_KEY */
    int64_t warehouse_sessions; /* per connection; 8 */
    int64_t max_query_rows, default_row_limit, max_response_bytes, query_timeout_ms,
        max_concurrent_queries;  /* spec 1.5 variables */
    int64_t query_cache_entries; /* compile cache; 4,096 */
    bool
        scheduler_accepted; /* PUBLISHER_LOCAL_MATERIALIZATION_SCHEDULER: accepted, not built yet */
};

/* ---- one package as it is served: immutable, counted (owners: the registry, and every query that
 * uses it) ---- */
struct gw_binding { /* one baked table in force */
    const char *source_id, *source_name, *model, *build_id, *entity_id, *connection;
    const char *physical; /* "schema"."table" */
    struct wh_name name;
    const char *target_key, *generation;
    uint64_t token;
    int64_t rows, data_as_of_us;
    uint32_t window_s;
    int fallback;
};
struct gw_unbaked {
    const char *source_id, *code, *text;
};
struct gw_source { /* every persist source of the package, from its plan: for reasons in receipts */
    const char *source_id, *name, *model, *build_id, *connection;
    const char *refused_reason; /* NULL: plannable */
};
struct gw_load; /* what a package's files compile to; shared by its packages over epochs */
struct gw_package {
    unsigned refs;
    struct gw_load *load;
    uint64_t unit, epoch;
    char load_id[64]; /* also the compiler's load id */
    const char *environment, *name, *version, *cause, *run;
    const char *package_json; /* GET packages/{p} without binding fields */
    struct gw_binding *bindings;
    size_t n_bindings;
    struct gw_unbaked *unbaked;
    size_t n_unbaked;
    struct gw_source *sources;
    size_t n_sources;
    const char *const *models; /* paths of .malloy files */
    size_t n_models;
    const char *const *notebooks;
    size_t n_notebooks;
    struct map by_build;        /* build id -> struct gw_binding * */
    struct arena arena;         /* holds all of it */
    uint64_t running;           /* queries that hold it now (for oldest_in_use) */
    const struct gw_view *view; /* query half: made on first use, in the arena; NULL until then */
};
struct gw_package *gw_package_ref(struct gw_package *p);
void gw_package_unref(struct gw_package *p);
const struct gw_binding *gw_package_binding(const struct gw_package *p, const char *build_id);

/* ---- what the gateway owns ---- */
struct gw_binder; /* binder/binder.h */
struct gw_conns;  /* conns.h */
struct gw_cache;  /* query cache */
struct gateway {
    struct service *service;
    struct loop *loop;
    const struct gw_settings *set;
    struct bus *bus;
    struct cache *redis;
    struct compiler_pool *compiler;
    struct http_server *http;
    struct gw_binder *binder;
    struct gw_conns *conns;
    struct gw_cache *cache;
    struct gw_part *query_half; /* query/query.h */
    struct uuid boot;
    uint8_t secret_key[32];
    bool has_secret_key;
    unsigned queries_running;
    bool draining;
};

/* ---- binder/binder.h's face to the others ---- */
/* The package in force, or NULL. Borrowed: take a reference to keep it over a wait. */
struct gw_package *gw_binder_find(struct gateway *g, const char *environment, const char *package);
/* All packages in force of an environment (NULL: all). Borrowed. */
size_t gw_binder_list(struct gateway *g, const char *environment, struct gw_package **out,
                      size_t max);
/* Waits until the package is in force with an epoch >= min (0: with any), or until `wait` is over;
 * then fn (on the loop, later). */
struct gw_wait {
    char environment[128], package[128];
    uint64_t min_epoch;
    struct ms wait;
    void (*done)(struct gw_wait *w); /* rc 0 or ERR_TIMEOUT */
    void *data;
    int rc;
    struct list link;
    struct loop_timer timer;
};
void gw_binder_wait(struct gateway *g, struct gw_wait *w);
void gw_binder_wait_cancel(struct gw_wait *w); /* silently: done does not come */
/* Why the package's newest set could not be applied here; NULL: it could, or is being loaded.
 * Borrowed. */
const char *gw_binder_error(const struct gateway *g, const char *environment, const char *package);
/* A baked table was missing or superseded at query time: the planner is told with the next report.
 */
void gw_binder_broken(struct gateway *g, const struct gw_package *p, const struct gw_binding *b,
                      const char *code);

/* ---- conns.h: warehouse connections of environments, made on first use, remade when the config
 * epoch grows ---- */
struct gw_conn_get {
    const char *environment, *name; /* borrowed until done */
    void (*done)(struct gw_conn_get *q);
    void *data;
    int rc; /* ERR_NOT_FOUND, ERR_WH_NO_DRIVER, ERR_WH_CONNECT (planner away and not known yet) */
    struct err err;
    struct wh *wh; /* stays valid until gw_conn_put */
    void *impl;
};
void gw_conn_get_start(struct gateway *g, struct gw_conn_get *q);
void gw_conn_put(struct gateway *g, struct wh *wh);
/* Opens a sealed connection object (planner's, or of a request) with KILN_SECRET_KEY; JSON text
 * into out. */
int gw_unseal(const struct gateway *g, struct slice nonce, struct slice sealed, struct buf *out,
              struct err *e) MUST_USE;
void gw_seal(const struct gateway *g, struct slice plain, uint8_t nonce[12], struct buf *out);

/* ---- rest ---- */
/* Every HTTP request that health and metrics did not take. Answers exactly once. */
void rest_publisher_handle(struct gateway *g, struct http_req *r);
/* query/: POST models/{path}/query and /compile, GET models, models/{path}, sqlQuery,
 * connections/test. They answer r. */
void gw_query_handle(struct gateway *g, struct http_req *r, struct gw_package *p,
                     const char *model);
void gw_compile_handle(struct gateway *g, struct http_req *r, struct gw_package *p,
                       const char *model);
void gw_model_handle(struct gateway *g, struct http_req *r, struct gw_package *p,
                     const char *model);
void gw_sql_query_handle(struct gateway *g, struct http_req *r, const char *environment,
                         const char *connection);
void gw_connection_test_handle(struct gateway *g, struct http_req *r);
/* Makes / ends the parts (service_part start and close). */
int gw_binder_start(struct service *s, struct err *e);
void gw_binder_close(struct service *s);
int gw_conns_start(struct service *s, struct err *e);
void gw_conns_close(struct service *s);
int gw_query_start(struct service *s, struct err *e);
void gw_query_close(struct service *s);
