/* A small world around the coordinator: warehouse, builders, gateways, a lossy bus, clients, and a
 * planner that may die at any commit. Everything moves by one seeded generator, one action a step
 * (protocol.md 3 to 6). */
#pragma once
#include "services/planner/core/coord.h"
#include "tests/sim/memory_store.h"

enum {
    SIM_TABLES = 24,
    SIM_BUILDERS = 3,
    SIM_GATEWAYS = 2,
    SIM_SLOTS = 2,
    SIM_UNITS = 12,
    SIM_MSGS = 256,
    SIM_STMTS = 64,
    SIM_STAGING = 512,
    SIM_SOURCES = 4,
    SIM_EARLIER = 16,
    SIM_RESULTS = 4096,
    SIM_KEEP = 512
};

/* ---- warehouse ---- */
struct sim_table { /* a name, its fence row, and which swap's table stands there */
    uint64_t claim, published, stands;
    char generation[27], build_id[65];
    uint64_t last_swap;
};
struct sim_result { /* by binding: a generation on the disk, or one that was there */
    char id[27];
    uint64_t token;
    bool there, by_hand, is_asked; /* taken by hand; dropped because somebody deleted its run */
};
struct sim_set { /* by-binding results that a gateway reads of a unit */
    char ids[8][27];
    size_t n;
};
enum stmt_kind { STMT_BUILD, STMT_SWAP, STMT_RESOLVE, STMT_DROP, STMT_SWEEP };
struct sim_stmt { /* sent to the warehouse; runs some time later, whoever is still there to hear of
                     it */
    bool used;
    enum stmt_kind kind;
    int builder, slot, table;
    bool by_binding;
    uint64_t job;
    uint64_t incarnation, token;
    char generation[27], build_id[65];
};
struct sim_answer {
    int error; /* 0, or an ERR_ code */
    uint64_t claim, published;
    bool still_there;
};

/* ---- bus ---- */
enum msg_kind { MSG_PULL, MSG_RENEW, MSG_GRANT, MSG_FINISH, MSG_REPORT, MSG_FETCH };
struct sim_lease {
    uint64_t job, token, earlier[SIM_EARLIER];
    size_t n_earlier;
    enum job_kind kind;
    char generation[27], build_id[65];
    int table;
    bool by_binding;
};
struct sim_msg {
    bool used, is_reply;
    enum msg_kind kind;
    int peer; /* builder or gateway */
    struct uuid boot;
    uint64_t incarnation, call;
    int64_t at; /* not before */
    int rc;
    uint64_t token;
    struct coord_finish finish;
    uint64_t tokens[SIM_SLOTS], cancel[SIM_SLOTS], lost[SIM_SLOTS], live[64];
    size_t n_tokens, n_cancel, n_lost, n_live;
    struct sim_lease leases[SIM_SLOTS];
    size_t n_leases;
    uint64_t epochs[SIM_UNITS + 1]; /* by unit; of a report: applied; of a fetch's reply: newest */
    struct sim_set sets[SIM_UNITS + 1]; /* of a fetch's reply */
    char keep[SIM_KEEP][27];            /* of a sweep: what is recorded */
    size_t n_keep;
    bool loading;
    char broken[27];
};

/* ---- peers ---- */
enum work_stage {
    WORK_NONE,
    WORK_BUILD,
    WORK_GRANT,
    WORK_SWAP,
    WORK_RESOLVE,
    WORK_DROP,
    WORK_SWEEP,
    WORK_FINISH
};
struct sim_work {
    enum work_stage stage;
    bool running; /* its statement is at the warehouse */
    struct sim_lease lease;
    struct coord_finish finish;
    uint64_t call;
    int64_t sent_at;
    bool waiting;
    uint64_t live[64];
    size_t n_live;
    char keep[SIM_KEEP][27];
    size_t n_keep;
};
struct sim_builder {
    struct uuid boot;
    uint64_t incarnation;
    char name[32];
    struct sim_work work[SIM_SLOTS];
    uint64_t pull_call;
    bool pull_waiting;
    size_t pull_slots;
    int64_t pull_sent, renewed;
};
struct sim_gateway {
    struct uuid boot;
    uint64_t incarnation;
    char name[32];
    uint64_t applied[SIM_UNITS + 1], ever[SIM_UNITS + 1];
    struct sim_set sets[SIM_UNITS + 1]; /* of the applied epochs */
    int64_t reported, fetched;
    int64_t heard;        /* when the planner last took a report */
    uint64_t silent_call; /* it had been silent for long then: what it reads may go */
    char broken[27];
};
struct sim_unit {
    uint64_t id, load;
    unsigned version;
    int n_sources;
    bool chained, deleted;
};
struct sim_planner {
    struct coord *c;
    int64_t up_at; /* when c is NULL: not before */
    bool planning;
    char run[24];
    int64_t plan_at;
};
struct sim_faults { /* per mille */
    unsigned drop, duplicate, crash_builder, crash_gateway, crash_commit, statement, client, pause;
};
struct sim {
    uint64_t seed, rng, now_ms, steps, calls, incarnations;
    struct sim_faults faults;
    bool trace; /* print every row that is committed */
    uint64_t commits, reload_checked;
    bool changed; /* something since the last check */
    struct memory_store *store;
    struct sim_planner planner;
    struct sim_table tables[SIM_TABLES];
    uint64_t staging[SIM_STAGING];
    size_t n_staging;
    struct sim_result results[SIM_RESULTS];
    size_t n_results;
    uint64_t deletes[256]; /* drop jobs of runs that were deleted with their tables */
    size_t n_deletes;
    struct sim_stmt stmts[SIM_STMTS];
    struct sim_msg msgs[SIM_MSGS];
    struct sim_builder builders[SIM_BUILDERS];
    struct sim_gateway gateways[SIM_GATEWAYS];
    struct sim_unit units[SIM_UNITS];
    size_t n_units;
    uint64_t n_runs, n_ready, n_failed, n_cancelled, n_resolves, n_drops, n_reloads;
};

/* sim_world.c */
uint64_t sim_random(struct sim *s, uint64_t n); /* 0 .. n-1 */
bool sim_chance(struct sim *s, unsigned per_mille);
struct coord_now sim_now(struct sim *s);
struct uuid sim_uuid(struct sim *s);
NORETURN void sim_fail(const struct sim *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
void sim_send(struct sim *s, const struct sim_msg *m); /* may be lost, doubled, late */
void sim_deliver(struct sim *s);                       /* one message that is due */
struct sim *sim_new(uint64_t seed, bool trace);
void sim_free(struct sim *s);

/* sim_warehouse.c */
void sim_stmt_send(struct sim *s, const struct sim_stmt *st);
bool sim_stmt_run(struct sim *s); /* one statement; false: none waits */
void sim_staging_drop(struct sim *s, const uint64_t *tokens, size_t n);
const char *sim_table_name(int table, char out[32]);
int sim_table_of(const char *physical);

/* sim_results.c */
struct sim_result *sim_result_of(struct sim *s, const char *id); /* NULL: none of that id, ever */
void sim_result_make(struct sim *s, const struct sim_stmt *st);
void sim_results_discard(struct sim *s, const uint64_t *tokens, size_t n);
void sim_result_drop(struct sim *s, const struct sim_stmt *st);
void sim_results_sweep(struct sim *s, uint64_t token, char (*keep)[27], size_t n);
void sim_set_copy(const struct core_binding_set *set, struct sim_set *out);
void sim_check_results(struct sim *s);
void sim_check_reads(struct sim *s);
void sim_check_disk(struct sim *s);

/* sim_builder.c */
void sim_builder_start(struct sim *s, int i);
void sim_builder_step(struct sim *s, int i);
void sim_builder_reply(struct sim *s, int i, const struct sim_msg *m);
void sim_builder_answer(struct sim *s, const struct sim_stmt *st, const struct sim_answer *a);
bool sim_builder_idle(const struct sim_builder *b);

/* sim_gateway.c */
void sim_gateway_start(struct sim *s, int i);
void sim_gateway_step(struct sim *s, int i);
void sim_gateway_reply(struct sim *s, int i, const struct sim_msg *m);

/* sim_planner.c */
void sim_planner_start(struct sim *s);
void sim_planner_stop(struct sim *s);
void sim_planner_step(struct sim *s); /* its timers and its planning flow */
void sim_planner_request(struct sim *s, const struct sim_msg *m);
/* Commits what a call produced; false: the planner died before or right after, nobody is told. */
bool sim_commit(struct sim *s, struct coord_out *o);

/* sim_trace.c */
void sim_trace(const struct sim *s, const struct rows *rows);

/* sim_plan.c */
void sim_plan(struct sim *s, const char *run);
void sim_source_target(const struct sim_unit *u, int source, struct core_target *out,
                       char text[4][80]);
struct sim_unit *sim_unit_of(struct sim *s, uint64_t id);
size_t sim_builds_of(struct sim *s, const struct sim_unit *u, const char **out, struct arena *a);

/* sim_client.c */
void sim_client_step(struct sim *s);
void sim_unit_add(struct sim *s);
bool sim_run_create(struct sim *s, struct sim_unit *u, bool force, bool partial);

/* sim_check.c */
void sim_check(struct sim *s);        /* after every step */
void sim_check_reload(struct sim *s); /* rows alone make the same coordinator */
void sim_check_end(struct sim *s);    /* when everything has come to rest */
bool sim_at_rest(struct sim *s);
