/* What the coordinator holds, for the coord_*.c files only. Long-lived short strings are
 * interned in the coordinator; rows, leases and notes are copied into the arena of the call,
 * because they may outlive it. */
#pragma once
#include "common/base/list.h"
#include "common/base/map.h"
#include "common/json/json.h"
#include "services/planner/core/coord.h"

enum { RUN_ID = 24, RECENT_TOKENS = 1024, RECENT_PULLS = 512, OLD_BOOTS = 8, ENDED_RUNS_MAX = 256 };

struct facts {
    int64_t rows, bytes, data_as_of_us;
    int64_t took_ms;             /* -1 unknown */
    struct uuid root;            /* all zero unknown */
    struct core_columns columns; /* items owned, strings interned */
};
struct target;
struct generation {
    struct core_generation g; /* id points below; columns.items owned */
    char id[ULID_TEXT];
    char run[RUN_ID];
    struct target *target;
    struct list link; /* target->generations, oldest first */
    uint64_t load;
    enum generation_state state;
    /* by binding */
    struct {
        uint64_t unit, epoch;
    } * out; /* sets that were the first without it; array owned */
    size_t n_out;
    struct list retired_link; /* coord->retired */
    struct ms retired_at;
    bool ripe; /* retired long enough */
};
/* A physical name in a warehouse: holds one result and serves one job at a time. */
struct place {
    uint64_t id;
    const char *warehouse, *physical;
    bool in_place;
    struct job *holder;  /* leased, publishing or resolving; NULL: free */
    struct list targets; /* struct target */
    struct list jobs;    /* struct job that has not ended */
};
struct target {
    struct core_target
        t; /* of whoever named it first; connection and build id may differ elsewhere */
    struct place *place;
    struct list link;        /* place->targets */
    struct list generations; /* live ones */
    size_t n_bound;          /* bindings in the newest sets that name it */
};
struct attempt {
    uint64_t token;
    struct job *job;
    struct list link;      /* job->attempts, oldest first */
    struct list live_link; /* coord->live while leased or granted */
    int number, pull_index;
    bool is_resolve;
    bool reported; /* ended by FinishJob, not by the clock: the same report gets the same answer */
    enum attempt_state state;
    char generation[ULID_TEXT]; /* "" none */
    const char *builder;
    struct uuid boot;
    uint8_t pull_request[16];
    struct ms lease_until;
    struct ms row_until; /* what the row says */
    struct ms saved_at;  /* when progress was last written */
    const char *stage;
    uint64_t rows, bytes; /* progress */
    bool has_facts;
    struct facts facts;
};
struct plan_item {
    struct plan_target p; /* in the run's arena; sql and columns NULL once the jobs have them */
    struct target *target;
    struct job *job; /* of PLAN_BUILD; NULL otherwise */
    bool left_out;   /* the unit has a newer load that does not plan this build */
};
struct job {
    uint64_t id, unit;
    struct run *run; /* NULL of drop and sweep */
    struct plan_item *item;
    enum job_kind kind;
    enum job_state state;
    struct place *place;
    struct target *target;
    struct core_target t; /* as its unit names it */
    const char *source_id;
    char generation[ULID_TEXT]; /* build: what stood there when it was planned; drop: what to drop;
                                   "" none */
    uint64_t wait_epoch;        /* drop: waits until the unit's gateways reported this */
    bool stop_requested, granted_ever;
    enum { NOBODY_NO, NOBODY_WAITS, NOBODY_TOLD } nobody; /* no live builder reaches it */
    struct ms nobody_due;                                 /* NOBODY_WAITS: told then */
    int attempts;                                         /* work attempts, resolves not counted */
    int64_t retry_at_us;
    struct ms due;
    char *spec; /* owned */
    int error_code;
    char *error;                      /* owned or NULL */
    struct job **parents, **children; /* arrays owned */
    size_t n_parents, n_children, cap_children;
    size_t n_waiting; /* parents that have not ended well */
    struct list todo; /* coord->ready, resolving or delayed */
    struct list place_link, loose_link;
    struct list attempt_list;
};
struct counts {
    int64_t built, reused, failed, refused;
};
struct run {
    char id[RUN_ID];
    struct unit *unit;
    struct list unit_link; /* unit->runs, oldest first */
    struct list todo_link; /* coord->to_plan or coord->binding */
    struct list ending_link;
    struct list ended_link; /* coord->ended: failed and cancelled ones, oldest first */
    uint64_t load, epoch, event;
    enum run_state state;
    const char *trigger;
    bool force_refresh, reseed, take_over, has_names, stop_requested;
    bool taken; /* a planning flow of this process has it */
    const char *const *names;
    size_t n_names;
    uint8_t request_id[16];
    bool has_request_id;
    struct uuid trace;
    int64_t created_us, started_us, completed_us;
    struct arena mem; /* names, plan, held, metadata */
    struct plan_item *items;
    size_t n_items;
    struct plan_refusal *refusals;
    size_t n_refusals;
    const char *compiler_version;
    struct map by_target; /* target id -> item */
    struct job **jobs;    /* in plan order; array owned */
    size_t n_jobs, cap_jobs, n_open;
    struct core_binding *held; /* what an ended (or binding) run names; generation.id only */
    size_t n_held;
    const char *metadata; /* while binding */
    struct ms bind_until, loading_until, check_due;
};
struct unit {
    struct coord_unit_row row;    /* strings interned */
    struct core_binding_set *set; /* newest; NULL none; in set_mem */
    struct arena set_mem;
    struct run *active;
    struct list runs;
    struct list awaiting; /* coord->awaiting while gateways are behind */
};
struct gateway_unit {
    uint64_t unit, applied, failed_epoch, oldest_in_use;
    bool loading;
};
struct gateway {
    struct list link;
    const char *instance;
    struct uuid boot;
    struct ms heard;
    struct map units; /* unit id -> gateway_unit */
};
struct builder {
    struct list link;
    const char *instance;
    struct uuid boot;
    struct ms heard;
    bool left;                /* it drains: as good as gone */
    bool gone;                /* not heard for long; what it reaches does not count */
    const char **connections; /* as in coord_reach; array owned, strings interned */
    size_t n_connections;
    bool has_root;
    struct {
        struct uuid boot;
        struct ms since;
    } old[OLD_BOOTS]; /* former boots, whose late messages are refused for one lease term */
    size_t n_old;
};
struct coord {
    struct uuid installation;
    struct coord_limits lim;
    uint64_t last; /* greatest token or epoch known */
    uint64_t next_job, next_place, next_target;
    int64_t last_run_ms;
    struct ms unheard_until; /* no gateway was heard yet: they may still come until then */
    struct map strings, units, places, place_names, targets, generations, runs, jobs, attempts;
    struct list live; /* attempts that hold a lease */
    struct list ready, resolving, delayed, loose, to_plan, binding, ending, ended, awaiting,
        gateways, builders, retired;
    size_t n_leased, n_ended;
    struct {
        uint64_t token;
        bool recorded;
    } recent[RECENT_TOKENS];
    size_t at_recent;
    uint8_t pulls[RECENT_PULLS][16];
    size_t at_pull;
};
