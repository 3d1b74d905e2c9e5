/* Inside of flow_load*.c: one package on its way from files to a load. */
#pragma once
#include "services/planner/package/package.h"
#include "services/planner/planner.h"

enum {
    LOAD_READ,
    LOAD_COMPILE,
    LOAD_ASK,
    LOAD_PLAN,
    LOAD_STORE_UNIT,
    LOAD_STORE_LOAD,
    LOAD_DECIDE,
    LOAD_REPORTS,
    LOAD_END
};
struct load_ask { /* one question to one warehouse: several tables, or one SQL block */
    const char *connection;
    bool is_sql;
    const char **keys;
    size_t n;
};
struct flow_load {
    struct flow flow;
    struct planner_work work;
    struct load_request *req;
    struct planner *p;
    struct planner_unit *unit; /* existing one, or NULL before STORE */
    struct arena own;          /* lives as long as the flow, outlives its arena's rounds */
    char *environment_name, *package, *location, *description, *patch;
    struct slice archive;
    struct package_files files;
    struct store_file *stored; /* the same as rows */
    json_t *manifest;
    struct plan_connection *connections;
    size_t n_connections;
    struct store_schema *schemas;
    size_t n_schemas, cap_schemas;
    struct load_ask *asks;
    size_t n_asks, at_ask;
    unsigned rounds;
    struct ms compiling_since;
    bool driverless; /* something lies on a connection that this build cannot run */
    char text_id[32];
    struct compiler_call call;
    struct offload_job read_job;
    int read_rc;
    struct err read_err;
    struct wh_op wh;
    struct wh *duckdb; /* the package's own, and behind it those of its environment; NULL until one
                          is asked */
    struct store_op store;
    struct store_load row;
    struct store_load old; /* stored files of an existing unit */
    uint64_t unit_id, load_id;
    struct slice loaded_packed;
    struct planner_load *load;
    struct planner_wait wait;
    uint64_t epoch;
    bool location_is_new;  /* goes into the unit's row */
    bool policy_untouched; /* a PATCH that leaves the policy alone: its violations only warn */
    bool needs;            /* the compiler asked for schemas */
};
/* load_message.c */
void load_message_pack(struct arena *a, const char *load_id, const char *package,
                       const struct store_file *files, size_t n_files,
                       const struct plan_connection *connections, size_t n_connections,
                       const struct store_schema *schemas, size_t n_schemas, bool plan,
                       struct buf *out);
/* Turns the compiler's needs into asks and schema errors for connections without a driver. */
void load_needs(struct flow_load *f, const Kiln__Mc__Needs *needs);
struct store_schema *load_schema_add(struct flow_load *f, const char *connection, const char *key,
                                     bool is_sql);
bool is_model_path(const char *path);
/* flow_load_store.c: the second half of the flow */
struct store_op *load_store_op(struct flow_load *f);
enum flow_next load_step_store_unit(struct flow *flow);
enum flow_next load_step_store_load(struct flow *flow);
enum flow_next load_step_decide(struct flow *flow);
enum flow_next load_step_reports(struct flow *flow);
