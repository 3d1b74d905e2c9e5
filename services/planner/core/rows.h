/* Row changes of the run store: what a decision of the coordinator writes, in order, in one
 * transaction. Every move names the state it leaves: a store that finds another one refuses the
 * whole transaction (protocol.md 4). */
#pragma once
#include "common/base/arena.h"
#include "common/base/crypto.h"
#include "common/base/ms.h"

enum run_state {
    RUN_REQUESTED,
    RUN_PLANNING,
    RUN_BUILDING,
    RUN_BINDING,
    RUN_READY,
    RUN_FAILED,
    RUN_CANCELLED
};
enum job_state {
    JOB_WAITING,
    JOB_READY,
    JOB_LEASED,
    JOB_PUBLISHING,
    JOB_RESOLVING,
    JOB_DONE,
    JOB_CARRIED,
    JOB_SKIPPED,
    JOB_FAILED,
    JOB_CANCELLED
};
enum attempt_state {
    ATTEMPT_LEASED,
    ATTEMPT_GRANTED,
    ATTEMPT_SUCCEEDED,
    ATTEMPT_FAILED,
    ATTEMPT_LOST,
    ATTEMPT_CANCELLED
};
enum generation_state {
    GENERATION_RECORDED,
    GENERATION_BOUND,
    GENERATION_RETIRED,
    GENERATION_DROPPING,
    GENERATION_DROPPED,
    GENERATION_OVERWRITTEN,
    GENERATION_LOST
};
enum job_kind { KIND_BUILD = 1, KIND_RESOLVE, KIND_DROP, KIND_PROBE, KIND_DESCRIBE, KIND_SWEEP };

struct core_column {
    const char *name, *data_type, *element_type; /* element_type NULL unless an array */
    bool nullable;
};
struct core_columns {
    struct core_column *items;
    size_t n;
};
/* One result recorded for a target. */
struct core_generation {
    const char *id; /* ULID */
    uint64_t token; /* of the attempt that published it */
    int64_t rows, bytes;
    int64_t data_as_of_us; /* 0 unknown */
    struct uuid root;      /* the generation root that it stands in; all zero: unknown, or none */
    struct core_columns columns;
};
/* Where a target lies, and what it is. */
struct core_target {
    uint64_t target_id, place_id; /* given by the coordinator (0 in a plan that comes in) */
    const char *warehouse;        /* connection digest: part of the place's identity */
    const char *connection;       /* connection name in the environment */
    bool in_place;                /* WH_IN_PLACE */
    const char *schema, *table;   /* as the engine stores them */
    const char *physical;         /* "schema"."table" */
    const char *target_key;       /* fence row key */
    const char *build_id;         /* what the compiler's manifest is keyed by */
    const char *entity_id;        /* sourceEntityId; = build_id without a partition layout */
};
/* One source served from a generation. */
struct core_binding {
    const char *source_id, *source_name, *model;
    struct core_target target;
    struct core_generation generation;
    uint32_t window_s;
    int fallback;                 /* enum Fallback of types.proto */
    const char *const *shared_by; /* other source names of the same table */
    size_t n_shared_by;
};
struct core_unbaked {
    const char *source_id, *code, *text;
};
struct core_binding_set {
    uint64_t unit, epoch, load;
    const char *run;   /* NULL: none */
    const char *cause; /* "run", "reload", "publish", "patch", "delete", "restart" */
    struct core_binding *bindings;
    size_t n;
    struct core_unbaked *unbaked;
    size_t n_unbaked;
};

enum row_op {
    ROW_UNIT,        /* u.unit: load, epoch, reload_emptied now are these (epoch never goes back) */
    ROW_UNIT_DELETE, /* u.unit.id: deleted_at = now */
    ROW_RUN_INSERT,  /* u.run, state requested */
    ROW_RUN_MOVE, /* u.run: from -> state, with load, epoch, manifest, metadata, error, plan, times;
                     from == state: only those */
    ROW_RUN_STOP, /* u.run.id: stop_requested = true */
    ROW_RUN_DELETE,    /* u.run.id */
    ROW_PLACE_INSERT,  /* u.target: place_id, warehouse, in_place, schema, table, physical */
    ROW_TARGET_INSERT, /* u.target: target_id, place_id, build_id, entity_id */
    ROW_JOB_INSERT,    /* u.job with parents */
    ROW_JOB_MOVE,   /* u.job: from -> state; attempts, retry_at, error, granted_ever, stop_requested
                       too */
    ROW_JOB_UPDATE, /* u.job: the same columns, state unchanged (from == state) */
    ROW_ATTEMPT_INSERT,    /* u.attempt */
    ROW_ATTEMPT_MOVE,      /* u.attempt: from -> state; error, facts */
    ROW_ATTEMPT_LEASE,     /* u.attempt.token: lease_until = now() + lease_ms; progress */
    ROW_GENERATION_INSERT, /* u.generation, state recorded */
    ROW_GENERATION_MOVE,   /* u.generation: from -> state */
    ROW_MANIFEST_ENTRY,    /* u.entry */
    ROW_BINDING_SET,       /* u.set: insert; its generations too */
    ROW_INSTANCE,          /* u.instance: upsert, heard now */
};
struct row_unit {
    uint64_t id, load, epoch;
    bool reload_emptied;
};
struct row_run {
    const char *id;
    uint64_t unit, load, epoch; /* 0: NULL */
    enum run_state from, state;
    const char *trigger; /* "ON_DEMAND", "SCHEDULER", "PUBLISH" */
    bool force_refresh, reseed, take_over, has_names;
    bool stop_requested; /* set when a row is loaded; written by ROW_RUN_STOP alone */
    const char *const *names;
    size_t n_names;
    const char *run_context;   /* JSON or NULL */
    const uint8_t *request_id; /* 16 bytes or NULL */
    struct uuid trace;         /* of the request or hook that asked for it; all zero: unknown */
    uint64_t event;            /* 0: none */
    const char *plan, *manifest, *metadata;       /* JSON texts; NULL: leave */
    const char *error;                            /* NULL: leave */
    int64_t created_us, started_us, completed_us; /* unix; 0: leave */
};
struct row_job {
    uint64_t id;
    const char *run; /* NULL for drop and sweep */
    enum job_kind kind;
    uint64_t place, target, unit; /* 0: NULL */
    const char *source_id;
    enum job_state from, state;
    bool stop_requested, granted_ever;
    int attempts;
    int64_t retry_at_us; /* unix; 0: NULL */
    const char
        *spec; /* JSON: what the builder needs (sql, names, generation to drop); on insert only */
    int error_code;
    const char *error;
    const uint64_t *parents;
    size_t n_parents;
};
struct row_attempt {
    uint64_t token, job;
    int number;
    bool is_resolve;
    enum attempt_state from, state;
    const char *generation; /* ULID; NULL for a resolve, drop or sweep */
    const char *builder;
    struct uuid boot;
    uint8_t pull_request[16];
    int pull_index;
    int64_t lease_ms;     /* from now, by the store's clock */
    const char *progress; /* JSON or NULL: stage, rows, bytes; after a grant: the facts */
    int error_code;
    const char *error;
};
struct row_generation {
    struct core_generation g;
    uint64_t target, load;
    enum generation_state from, state;
    const char *run;
    const char *physical;
};
struct row_entry {
    const char *run, *entity_id, *generation; /* generation NULL when it failed */
    uint64_t place;
    const char *source_id, *outcome; /* built, carried, failed */
    const char *entry;               /* JSON of the manifest entry */
};
struct row_instance {
    const char *instance, *role, *version;
    struct uuid boot;
};
struct row {
    enum row_op op;
    union {
        struct row_unit unit;
        struct row_run run;
        struct core_target target;
        struct row_job job;
        struct row_attempt attempt;
        struct row_generation generation;
        struct row_entry entry;
        struct core_binding_set set;
        struct row_instance instance;
    } u;
};
/* Rows of one decision, in order. Everything they point to lives in the arena. */
struct rows {
    struct arena *arena;
    struct row *items;
    size_t n, cap;
};
/* Appends an empty row of that kind and returns it. */
struct row *rows_add(struct rows *r, enum row_op op);

const char *run_state_name(enum run_state s);
const char *run_state_rest(enum run_state s); /* PENDING, MANIFEST_ROWS_READY, .. */
const char *job_state_name(enum job_state s);
const char *job_kind_name(enum job_kind k);
const char *attempt_state_name(enum attempt_state s);
const char *generation_state_name(enum generation_state s);
int run_state_parse(const char *name, enum run_state *out) MUST_USE; /* -1: unknown; and so on */
int job_state_parse(const char *name, enum job_state *out) MUST_USE;
int job_kind_parse(const char *name, enum job_kind *out) MUST_USE;
int attempt_state_parse(const char *name, enum attempt_state *out) MUST_USE;
int generation_state_parse(const char *name, enum generation_state *out) MUST_USE;
bool run_state_active(enum run_state s);
bool job_state_ended(enum job_state s);
/* Is this move in states.def? machine: "run", "job", "attempt", "generation". */
bool states_move_allowed(const char *machine, const char *from, const char *to);
/* The CHECK constraints and ARCHITECTURE.md diagrams are made from these. */
struct state_row {
    const char *machine, *name, *rest, *flags;
};
struct move_row {
    const char *machine, *from, *to, *on;
};
const struct state_row *states_rows(size_t *n);
const struct move_row *states_moves(size_t *n);
