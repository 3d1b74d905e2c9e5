/* The gateway: what it owns. Front door for people and programs; its binder keeps bindings, its
 * workers answer from them. */
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
#include <stdatomic.h>

struct gw_settings { /* conf.c has the table */
    const char *log_level, *log_format;
    const char *instance; /* "gateway-1" */
    const char *listen;   /* HTTP address: "127.0.0.1:4000" or "unix:/path" */
    bool trusted_network; /* off loopback is allowed without TLS and a key (decisions 3.7) */
    const char *planner_call, *planner_event;    /* bus URLs */
    const char *redis;                           /* "unix:/path" or "host:port" */
    const char *state_dir;                       /* packages and last sets on disk */
    const char *package_store, *generation_root; /* "": no DuckDB here */
    int64_t duckdb_memory;                       /* bytes; 0: half of the machine's */
    int64_t duckdb_idle_ms;                      /* a package's DuckDB is closed after it */
    const char *node, *compiler_bundle;
    int64_t compiler_children;
    const char *secret_key,
        *bus_key;               /* hex or base64 of 32 bytes; from KILN_SECRET_KEY, KILN_BUS_KEY */
    int64_t workers;            /* loops that serve; 0: one per core */
    int64_t warehouse_sessions; /* per connection, shared out among the workers; 8 */
    int64_t max_query_rows, default_row_limit, max_response_bytes, query_timeout_ms,
        max_concurrent_queries;  /* spec 1.5 variables */
    const char *query_metadata;  /* PUBLISHER_QUERY_METADATA: "off", or anything else */
    int64_t query_cache_entries; /* compile cache of each worker; 4,096 */
    bool
        scheduler_accepted; /* PUBLISHER_LOCAL_MATERIALIZATION_SCHEDULER: accepted, not built yet */
};

/* ---- one package as it is served, a snapshot: made by the main loop, immutable once a worker has
 * it, counted (owners: the binder, each worker's shelf, and every query that uses it). Whichever
 * thread gives the last count back, the main loop frees it (protocol.md 14). ---- */
struct gw_binding { /* one baked table in force */
    const char *source_id, *source_name, *model, *build_id, *entity_id, *connection;
    const char *physical; /* "schema"."table" */
    struct wh_name name;
    const char *target_key, *generation;
    uint64_t token;
    int64_t rows, data_as_of_us;
    uint32_t window_s;
    int fallback;
    bool is_by_binding;
    struct uuid root; /* by binding: the generation root; all zero: unknown */
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
    atomic_uint refs;
    struct inbox_item release; /* to the main loop, after the last count */
    struct list link;          /* main loop: in the binder's `alive` until it is freed */
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
    const struct gw_view *view; /* as decisions see it; in the arena */
};
struct gw_package *gw_package_ref(struct gw_package *p); /* any thread that has a count */
void gw_package_unref(struct gw_package *p);             /* any thread; NULL is fine */
const struct gw_binding *gw_package_binding(const struct gw_package *p, const char *build_id);

/* ---- what the gateway owns ---- */
struct gw_binder; /* binder/binder.h */
struct gw_worker; /* worker.h */
struct sandboxes; /* common/sandbox */
struct gateway {
    /* the main loop's own */
    struct service *service;
    struct loop *loop;
    struct bus *bus;
    struct cache *redis;
    struct compiler_pool *compiler;
    struct http_server *http; /* listens; the workers serve */
    struct gw_binder *binder;
    struct gw_workers *workers;  /* NULL before they start and after their end */
    struct sandboxes *sandboxes; /* packages' own DuckDB; NULL: none here */
    struct map compiling;        /* port_calls.c: under way, by key */
    struct uuid boot;
    /* constant once the workers run */
    const struct gw_settings *set;
    uint8_t secret_key[32];
    bool has_secret_key;
    /* any thread */
    atomic_uint queries_running;
    atomic_bool draining;
    _Atomic uint64_t config_epoch; /* newest one known of environments and connections */
    _Atomic int64_t
        sets_good_until; /* loop_now in ms: past it the sets may be old (protocol.md 6) */
};

/* Opens a sealed connection object (planner's, or of a request) with KILN_SECRET_KEY; JSON text
 * into out. Any thread. */
int gw_unseal(const struct gateway *g, struct slice nonce, struct slice sealed, struct buf *out,
              struct err *e) MUST_USE;
void gw_seal(const struct gateway *g, struct slice plain, uint8_t nonce[12], struct buf *out);

/* Makes / ends the binder (service_part start and close). */
int gw_binder_start(struct service *s, struct err *e);
void gw_binder_close(struct service *s);
