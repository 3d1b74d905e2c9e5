/* The simulated warehouse's state, without operations. */
#pragma once
#include "common/base/list.h"
#include "common/warehouse/wh_sim.h"

struct sim_table {
    struct list link;
    char *schema, *table;
    uint64_t rows, oid;
    bool locked;
    char *dependent;
};
struct sim_fence {
    struct list link;
    char *schema, *target;
    struct uuid owner;
    uint64_t claim, published, relid;
    char *generation, *build_id;
    int64_t rows, data_as_of_us;
};
enum sim_op_kind {
    SIM_TEST,
    SIM_CATALOG_TABLES,
    SIM_CATALOG_TARGETS,
    SIM_DESCRIBE,
    SIM_PROBE,
    SIM_BUILD,
    SIM_RESOLVE,
    SIM_SWAP,
    SIM_DROP,
    SIM_DISCARD,
    SIM_SWEEP,
    SIM_QUERY,
    SIM_N_OPS
};
struct wh_sim {
    struct loop *loop;
    struct list tables, fences;
    char **schemas;
    size_t n_schemas;
    uint64_t last_oid;
    struct wh_sim_fault faults[SIM_N_OPS];
    struct ms delays[SIM_N_OPS];
    uint64_t counts[SIM_N_OPS];
};
struct sim_table *sim_table_find(const struct wh_sim *s, const char *schema, const char *table);
struct sim_table *sim_table_put(struct wh_sim *s, const char *schema, const char *table,
                                uint64_t rows);
void sim_table_free(struct sim_table *t);
void sim_staging_name(uint64_t token, char out[40]);
struct sim_fence *sim_fence_find(const struct wh_sim *s, const char *schema, const char *target);
struct sim_fence *sim_fence_put(struct wh_sim *s, const char *schema, const char *target);
bool sim_schema_exists(const struct wh_sim *s, const char *schema);
/* Rows a statement has; ERR_WH_MISSING, ERR_WH_SQL. hangs: it only ends by a cancel. */
int sim_sql_rows(const struct wh_sim *s, const char *sql, uint64_t *rows, bool *hangs,
                 struct err *e) MUST_USE;
