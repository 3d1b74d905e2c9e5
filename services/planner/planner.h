/* The planner: what it owns. Turns publish events into loads, loads into runs, runs into jobs; the
 * only writer of the run store. */
#pragma once
#include "common/base/list.h"
#include "common/base/map.h"
#include "common/bus/bus.h"
#include "common/compiler/compiler.h"
#include "common/service/metrics.h"
#include "common/service/service.h"
#include "common/warehouse/warehouse.h"
#include "proto/builder.pb-c.h"
#include "proto/compiler.pb-c.h"
#include "proto/gateway.pb-c.h"
#include "proto/planner.pb-c.h"
#include "services/planner/core/coord.h"
#include "services/planner/core/plan.h"
#include "services/planner/store/store.h"

struct planner_settings {
    const char *log_level, *log_format;
    const char *instance;
    const char *store_url;                  /* libpq conninfo of the run store */
    const char *call_listen, *event_listen; /* bus URLs to listen on */
    const char *webhook_listen;             /* HTTP address; "" off */
    const char *webhook_secret;             /* KILN_WEBHOOK_SECRET */
    const char *config;                     /* publisher.config.json; "" none */
    const char *package_store;              /* directory for data files */
    bool init;                              /* wipe before the first load */
    const char *watch_env;                  /* PUBLISHER_WATCH: read in place; accepted */
    const char *node, *compiler_bundle;
    int64_t compiler_children;
    int64_t compile_timeout_ms;
    const char *secret_key, *bus_key;
    bool trusted_network;
    bool collision_enforce;     /* PERSIST_COLLISION_ENFORCE */
    const char *query_metadata; /* PUBLISHER_QUERY_METADATA */
    const char *storage_mode;   /* PERSIST_STORAGE_MODE */
    int64_t warehouse_sessions;
    int64_t lease_ms, sweep_every_ms, sweep_age_ms;
};

/* A load as the planner works with it: compiled, planned, kept in the compiler pool. Counted: unit,
 * flows. */
struct planner_load {
    unsigned refs;
    uint64_t id;
    char text_id[32]; /* the compiler's load id: "l<id>" */
    struct arena arena;
    Kiln__Mc__Loaded *loaded;
    struct package_plan plan;
    bool planned;
    struct plan_connection *connections;
    size_t n_connections;
    const char *compiler_version;
    struct wh
        *duckdb; /* the package's own, and behind it those of its environment; asked of builders */
};
struct planner_unit {
    uint64_t id, environment;
    char *environment_name, *name, *location, *description;
    char *load_error, *stale_error;
    int64_t stale_us;
    struct planner_load *load; /* current; NULL: none yet or it failed */
    struct flow *loading;      /* the load flow in progress; NULL: none */
    bool removing;             /* its deletion is being stored: nothing begins with it any more */
    struct planner *planner;
};
struct planner_environment {
    uint64_t id;
    char *name, *readme;
    bool frozen;
};
struct planner_connection {
    uint64_t environment, epoch;
    char *name, *type, *digest, *public_json;
    uint8_t nonce[12];
    struct buf sealed;
    struct wh *wh; /* made on first use; NULL */
};
struct planner {
    struct service *service;
    struct loop *loop;
    const struct planner_settings *set;
    struct store *store;
    struct coord *coord; /* NULL until leader and loaded */
    struct bus *bus;
    struct compiler_pool *compiler;
    struct http_server *http;
    struct uuid boot;
    uint8_t secret_key[32];
    bool open; /* leader, loaded: calls are served */
    bool wiped;
    bool booted; /* environments of the config are seeded and loads read */
    uint64_t term;
    struct map environments; /* name -> planner_environment */
    struct map connections;  /* "<environment id>/<name>" -> planner_connection */
    struct map units;        /* "<environment name>/<name>" -> planner_unit */
    struct list
        config_errors;    /* struct planner_config_error: packages of the config that do not load */
    struct list deciding; /* struct decision: made, not yet told; in order */
    int decide_rc;        /* a commit failed: nothing that was decided after it holds */
    struct list held;     /* PullJobs waiting for work */
    struct list waiters;  /* struct planner_wait */
    struct loop_timer tick, sweep, renew_hint;
    struct loop_task plan_task, pull_task, event_task;
    struct flow_boot *boot_flow;
    struct list asks;     /* questions to builders (asked.c) */
    char root_fault[600]; /* why the last builder that was refused its root was; "": one has it */
    struct list runs_planning; /* flow_run in progress */
    struct list works;         /* struct planner_work: every flow in progress */
    struct list controls;      /* control calls at work (answered.c) */
    unsigned n_answering;      /* .. of them waiting for the run store */
    struct service *closing;   /* the bus part is to close, once nothing is in work */
    bool events_running;
    struct flow_events *events_flow;
    unsigned n_wh_closing; /* warehouses whose sessions are still ending */
    void (*on_whs_closed)(struct planner *p);
};
/* A flow in progress. A planner that closes cancels them all, and keeps bus, run store and compiler
 * until they have ended: each may still owe an answer. */
struct planner_work {
    struct list link;
    struct flow *flow;
};
void planner_work_begin(struct planner *p, struct planner_work *w, struct flow *f);
void planner_work_end(struct planner *p, struct planner_work *w);
void planner_settle(struct planner *p); /* something has ended: closes what waits for it */
struct planner_config_error {
    struct list link;
    char *environment, *package, *message;
    char *location; /* where the package lies, so that a publish without one finds it; NULL: none */
};

/* ---- decide.c: decide, commit, then tell ---- */
/* A decision in flight: made, filled by one coord_ call, committed. */
struct decision {
    struct planner *p;
    struct list link;   /* planner->deciding */
    struct arena arena; /* dies after done */
    struct coord_out out;
    struct store_op op;
    void (*done)(
        struct decision *d); /* rc 0: committed, hints are out. Else nobody was told anything */
    void *data;
    int rc;
    struct err err;
    struct loop_task task;
};
struct decision *decision_new(struct planner *p);
struct coord_now planner_now(struct planner *p);
/* Commits what the coordinator produced; done comes later, exactly once; then the decision is
 * freed. One that made no rows may still speak of what others decided: it is told when all that was
 * decided before it is durable. */
void decision_commit(struct decision *d, void (*done)(struct decision *d), void *data);
void decision_drop(struct decision *d); /* nothing came of it */

/* Waiting for something a note tells about: a run's end, a unit's report, a job's end. */
enum wait_kind { WAIT_RUN_ENDED, WAIT_UNIT_REPORTED, WAIT_JOB_ENDED };
struct planner_wait {
    enum wait_kind kind;
    uint64_t unit, epoch, job;
    char run[24];
    struct ms wait;
    void (*done)(struct planner_wait *w);
    void *data;
    int rc; /* 0, or ERR_TIMEOUT */
    struct planner *p;
    struct list link;
    struct loop_timer timer;
};
void planner_wait_start(struct planner *p, struct planner_wait *w);
void planner_wait_cancel(struct planner_wait *w); /* silently */
void planner_waits_fail(struct planner *p);

/* ---- catalog.c: environments, connections, units in memory ---- */
void catalog_clear(struct planner *p);
struct planner_environment *catalog_environment(struct planner *p, const char *name);
struct planner_environment *catalog_environment_id(struct planner *p, uint64_t id);
struct planner_environment *catalog_put_environment(struct planner *p,
                                                    const struct store_environment *e);
void catalog_del_environment(struct planner *p, const char *name);
struct planner_connection *catalog_connection(struct planner *p, uint64_t environment,
                                              const char *name);
struct planner_connection *catalog_put_connection(struct planner *p,
                                                  const struct store_connection *c);
void catalog_del_connection(struct planner *p, uint64_t environment, const char *name);
struct planner_unit *catalog_unit(struct planner *p, const char *environment, const char *name);
struct planner_unit *catalog_unit_id(struct planner *p, uint64_t id);
struct planner_unit *catalog_put_unit(struct planner *p, const struct store_unit *u);
void catalog_del_unit(struct planner *p, struct planner_unit *u);
void unit_set_error(struct planner_unit *u, const char *load_error, const char *stale_error);
struct planner_load *load_ref(struct planner_load *l);
void load_unref(struct planner *p, struct planner_load *l);
/* The warehouse of a connection, opened on first use. ERR_WH_NO_DRIVER and so on. */
int connection_wh(struct planner *p, struct planner_connection *c, struct wh **out,
                  struct err *e) MUST_USE;
/* Seals a connection object and makes its row; json's secrets stay out of public_json. Lives in the
 * arena. */
int connection_row(struct planner *p, struct arena *a, uint64_t environment, const char *name,
                   const char *json, struct store_connection *out, struct err *e) MUST_USE;
int planner_unseal(struct planner *p, const uint8_t nonce[12], struct slice sealed, struct buf *out,
                   struct err *e) MUST_USE;
/* Identity of a package's own DuckDB: over (duckdb, environment, package), never a path (decisions
 * 1.2). */
char *duckdb_digest(struct arena *a, const char *environment, const char *package);
/* The environment's connections as the plan sees them, the implicit duckdb of the package included.
 */
void connections_for_plan(struct planner *p, const struct planner_unit *u, struct arena *a,
                          struct plan_connection **out, size_t *n);

/* What the config could not load: found and taken off the list by environment and package. */
struct planner_config_error *catalog_config_error(struct planner *p, const char *environment,
                                                  const char *package);
void catalog_config_error_free(struct planner_config_error *c); /* unlinks it */

/* ---- metrics.c ---- */
void planner_count_runs(const struct rows *rows); /* what a committed decision ended */
void planner_count_load(const struct package_plan *plan, struct ms took);

/* ---- flow_load.c ---- */
enum load_cause { LOAD_BOOT, LOAD_PUBLISH, LOAD_RELOAD, LOAD_PATCH };
struct flow_load;
struct load_request {
    struct planner *p;
    uint64_t environment;
    const char *package;     /* copied */
    const char *location;    /* NULL: the unit's stored one, else its stored files */
    const char *description; /* NULL: keep */
    struct slice archive;    /* instead of a location; copied */
    const char *patch;       /* LOAD_PATCH: JSON body */
    bool unbind;             /* LOAD_PATCH: and the set is emptied, in the same commit */
    enum load_cause cause;
    struct bus_request *call; /* on whose behalf; NULL: nobody's */
    struct uuid trace;
    bool unwaited; /* done as soon as it is decided, before the gateways have it */
    void (*done)(struct load_request *r); /* on the loop, later, once */
    void *data;
    int rc;
    int http; /* status for people when rc != 0 */
    struct err err;
    uint64_t unit, epoch;     /* after success */
    const char *package_json; /* valid inside done */
    struct flow_load *flow;
};
void flow_load_start(struct load_request *r);
/* Reads a stored load back (planner start): no warehouse, no files. */
void flow_restore_start(struct planner *p, struct planner_unit *u, uint64_t load,
                        void (*done)(void *data, int rc, const struct err *e), void *data);
/* Makes the planner_load of a compiled package (shared by both). */
struct load_source { /* what a load is made from; borrowed */
    uint64_t id;     /* 0: not stored yet */
    struct slice loaded_packed;
    json_t *manifest;
    const struct store_file *files;
    size_t n_files;
    const char *compiler_version;
    struct sha256 version;
    bool publishing, policy_untouched;
};
struct planner_load *load_make(struct planner *p, struct planner_unit *u,
                               const struct load_source *from);
void load_keep(struct planner *p, struct planner_load *l, const struct planner_unit *u,
               const struct store_file *files, size_t n_files, const struct store_schema *schemas,
               size_t n_schemas, bool plan);

/* ---- flow_run.c ---- */
void planner_plan_runs(struct planner *p); /* takes the next run that waits for planning */
struct run_preview {
    struct planner *p;
    uint64_t unit;
    bool force_refresh, has_names;
    const char *const *names;
    size_t n_names;
    void (*done)(struct run_preview *v);
    void *data;
    int rc;
    struct err err;
    json_t *json; /* the receiver decrefs */
    void *impl;
};
void run_preview_start(struct run_preview *v);

/* ---- serving ---- */
void planner_serve(void *data, struct bus_request *r);
void planner_dispatch(struct planner *p, struct bus_request *r); /* to the handler of its kind */
void serve_builder(struct planner *p, struct bus_request *r);
void serve_gateway(struct planner *p, struct bus_request *r);
void serve_runs(struct planner *p, struct bus_request *r);
/* Answers with the run as it is in the store. */
void serve_reply_run(struct planner *p, struct bus_request *r, const char *run, uint64_t unit);
void serve_config(struct planner *p, struct bus_request *r);
void serve_package(struct planner *p, struct bus_request *r);
void held_pulls_wake(struct planner *p);
void held_pulls_fail(struct planner *p);
/* Unpacks a request or answers ERR_BUS_FRAME and returns NULL. */
void *serve_unpack(struct bus_request *r, const ProtobufCMessageDescriptor *d);
void serve_reply_json(struct bus_request *r, json_t *v);
struct uuid serve_trace(const struct bus_request *r);
/* Answers with an error that people decide about, a transient one too: the bus of the caller does
 * not ask again by itself, as each time would be a whole load. */
void serve_reply_final(struct bus_request *r, int code, const char *text);
void serve_not_leader(struct bus_request *r); /* the leadership went while r waited */
/* Environment and unit by name, or answers 404 and returns NULL. */
struct planner_environment *serve_environment(struct planner *p, struct bus_request *r,
                                              const char *name);
struct planner_unit *serve_unit(struct planner *p, struct bus_request *r, const char *environment,
                                const char *package);

/* ---- answered.c ---- */
bool answered_is_for(enum bus_kind kind);
/* Answers a repeat, or dispatches. */
void answered_serve(struct planner *p, struct bus_request *r);
/* What a repeat of r gets once op's change is stored, should the planner end before its answer is
 * out: this reply; or the run, or the package as it is then. Before op starts. */
void answered_note(struct bus_request *r, struct store_op *op, const ProtobufCMessage *reply);
void answered_note_run(struct bus_request *r, struct store_op *op, const char *run, uint64_t unit);
void answered_note_package(struct bus_request *r, struct store_op *op);
void serve_package_again(struct planner *p, struct bus_request *r);

/* ---- run_json.c ---- */
json_t *run_json(const struct store_run_rec *r, struct planner *p);
/* ---- status_json.c ---- */
json_t *package_json(struct planner *p, struct planner_unit *u);
json_t *environment_json(struct planner *p, const struct planner_environment *e,
                         bool with_packages);
json_t *status_json(struct planner *p);
json_t *connection_json(const struct planner_connection *c);

/* ---- events.c, webhook.c ---- */
void planner_events_run(struct planner *p); /* takes open events on */
void webhook_handle(void *data, struct http_req *r);

/* ---- boot.c ---- */
void planner_on_leader(void *data, uint64_t term);
void planner_on_lost(void *data, int code, const char *why);
void planner_sweep_due(struct planner *p); /* hourly */
/* At boot: whatever stands in the generation root by now and is neither recorded nor of a live
 * attempt goes, however young (protocol.md 8). */
void planner_sweep_root(struct planner *p);

/* ---- codec.c ---- */
void planner_pack_set(const struct core_binding_set *set, struct buf *out, void *data);
/* What the warehouse says about a target, as the core takes it; raises the token counter past the
 * fence. */
void target_state_from(struct arena *a, struct planner *p, const struct wh_relation *r,
                       struct target_state *s);
void columns_from_proto(struct arena *a, Kiln__Column *const *items, size_t n,
                        struct core_columns *out);
void columns_to_proto(struct arena *a, const struct core_columns *in, Kiln__Column ***out,
                      size_t *n);
