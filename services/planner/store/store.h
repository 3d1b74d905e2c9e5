/* The run store: the only SQL over the schema `kiln`. Opens and migrates it, holds leadership,
 * loads the coordinator, commits rows in order, and keeps environments, connections, package
 * versions, loads, files and events. Loop thread; every call completes later, once. */
#pragma once
#include "common/base/crypto.h"
#include "common/json/json.h"
#include "common/loop/loop.h"
#include "services/planner/core/coord.h"

struct store;
struct store_settings {
    const char *url;      /* libpq conninfo of the run store */
    const char *instance; /* configured name of this planner */
    struct uuid boot;
    struct ms renew, takeover; /* 1 s, 5 s */
};
struct store_events {
    void *data;
    /* We are the active planner (term given): everything may start. Called again after each
     * take-over. */
    void (*on_leader)(void *data, uint64_t term);
    /* Leadership is lost, or a commit failed for good: throw the coordinator away; on_leader comes
     * again if it is won back. */
    void (*on_lost)(void *data, int code, const char *why);
    /* For health: reachable or not. */
    void (*on_state)(void *data, bool ok, const char *why);
};
/* Connects by itself for ever, migrates under an advisory lock, then competes for leadership
 * (protocol.md 1). */
struct store *store_open(struct loop *l, const struct store_settings *s,
                         const struct store_events *ev) MUST_USE;
void store_close(struct store *s, void (*done)(void *data), void *data); /* gives leadership up */
void store_free(struct store *s);
extern const struct flow_type store_compete_type;             /* for the diagrams */
const struct uuid *store_installation(const struct store *s); /* valid once leader */
uint64_t store_config_epoch(const struct store *s);

/* What a repeat of a control call gets (protocol.md 9). */
struct store_answer {
    uint8_t request_id[16];
    int kind;
    struct slice reply;
};
/* One request: caller-allocated, embedded in a flow. */
struct store_op {
    struct arena *arena; /* results live here */
    /* Stored in the same transaction as what this op changes; NULL: none. */
    const struct store_answer *answer;
    void (*done)(struct store_op *op);
    void *data;
    int rc; /* ERR_STORE (try again), ERR_STORE_LEADER, ERR_STORE_MOVED, ERR_NOT_FOUND, ERR_CONFLICT
             */
    struct err err;
    void *impl;
};

/* ---- coordinator ---- */
/* Runs behind the commits given before, under the same guard. Reads units, places, targets,
 * generations, sets, active and ready runs, jobs, attempts into c (coord_load_*), before
 * coord_started. */
void store_load_coord(struct store *s, struct store_op *op, struct coord *c, struct coord_now now);
/* Commits rows in one transaction, strictly in the order of the calls (FIFO on one session,
 * pipelined; several waiting ones may share a transaction). The rows and what they point to must
 * live until done. Every failure loses the leadership: the ops in flight and those behind them end
 * first, in order, then on_lost is called, and on_leader comes again with a new term that shuts out
 * whatever of the failed transaction may still be on its way. pack turns a binding set into its
 * packed message (planner_codec). */
typedef void (*store_pack_fn)(const struct core_binding_set *set, struct buf *out, void *data);
void store_set_pack(struct store *s, store_pack_fn pack, void *data);
void store_commit(struct store *s, struct store_op *op, const struct rows *rows);

/* ---- reading runs ---- */
struct store_run_filter {
    uint64_t unit, environment; /* one of them; 0: not by it */
    const char *id;             /* NULL: list, newest first */
    uint32_t limit, offset;     /* limit 0: all */
};
struct store_run_rec { /* one row of kiln.run with the names needed for its JSON */
    struct row_run r;  /* state, manifest, metadata, error, times */
    const char *environment, *package;
    uint64_t environment_id;
    int64_t updated_us;
};
void store_runs(struct store *s, struct store_op *op, const struct store_run_filter *f,
                struct store_run_rec **out, size_t *n);

/* ---- environments, connections ---- */
struct store_environment {
    uint64_t id;
    const char *name, *readme;
    bool frozen;
};
struct store_connection {
    uint64_t id, environment, epoch;
    const char *name, *type, *public_json, *digest;
    struct slice sealed; /* AES-256-GCM under KILN_SECRET_KEY */
    uint8_t nonce[12];
};
void store_environments(struct store *s, struct store_op *op, struct store_environment **out,
                        size_t *n);
void store_put_environment(struct store *s, struct store_op *op, const struct store_environment *e,
                           uint64_t *out_id); /* by name: insert or update */
void store_delete_environment(struct store *s, struct store_op *op, uint64_t id);
void store_connections(struct store *s, struct store_op *op, uint64_t environment /* 0: all */,
                       struct store_connection **out, size_t *n);
/* insert_only: ERR_CONFLICT when it exists. Raises the config epoch. */
void store_put_connection(struct store *s, struct store_op *op, const struct store_connection *c,
                          bool insert_only);
void store_delete_connection(struct store *s, struct store_op *op, uint64_t environment,
                             const char *name);

/* ---- packages ---- */
struct store_file {
    const char *path;
    struct slice content; /* small files; p NULL when it lies in package_store */
    uint64_t bytes;
    struct sha256 sha256;
    bool is_data;
};
struct store_unit {
    uint64_t id, environment, load, epoch;
    const char *environment_name, *name, *location, *description, *stale_error, *load_error;
    int64_t stale_us;
    bool reload_emptied;
};
void store_units(struct store *s, struct store_op *op, struct store_unit **out, size_t *n);
/* By (environment, name): insert or update location and description (NULL: keep). Gives the id. */
void store_put_unit(struct store *s, struct store_op *op, const struct store_unit *u,
                    uint64_t *out_id);
/* stale_error or load_error of a unit (NULL clears). */
void store_unit_error(struct store *s, struct store_op *op, uint64_t unit, const char *load_error,
                      const char *stale_error);
struct store_schema {             /* what the warehouse answered, stored with the load */
    const char *connection, *key; /* path or SQL text */
    bool is_sql;
    struct core_columns columns;
    const char *error;
};
struct store_load { /* package version + stored schemas + compiler version (decisions 1.1) */
    uint64_t id, unit;
    struct sha256 version;
    const char *compiler_version, *manifest_json, *package_json, *plan_json, *warnings_json,
        *advisories_json, *default_connection;
    const char *loaded_packed;
    size_t
        loaded_len; /* the compiler's Loaded message, so that a restart plans without compiling */
    struct store_file *files;
    size_t n_files;
    struct store_schema *schemas;
    size_t n_schemas;
};
/* Stores files by content hash, the version (if new) and the load; gives the load's id. Does not
 * make it the unit's load: that is ROW_UNIT. */
void store_put_load(struct store *s, struct store_op *op, const struct store_load *l,
                    uint64_t *out_id);
/* A load whole, files' contents included when with_content. ERR_NOT_FOUND. */
void store_get_load(struct store *s, struct store_op *op, uint64_t id, bool with_content,
                    struct store_load *out);
/* A file's bytes by hash. */
void store_get_file(struct store *s, struct store_op *op, const struct sha256 *id,
                    struct slice *out);

/* ---- events ---- */
struct store_event {
    uint64_t id;
    const char *public_id, *kind, *delivery_id, *environment, *name, *body_json, *state, *run,
        *error;
    struct slice archive;
    struct uuid trace; /* of the hook that brought it */
    int64_t created_us, updated_us;
};
/* Insert; a known delivery id gives the existing event and ERR_CONFLICT with *e filled. */
void store_event_insert(struct store *s, struct store_op *op, struct store_event *e);
void store_event_move(struct store *s, struct store_op *op, uint64_t id, const char *from,
                      const char *to, const char *run, const char *error);
void store_event_get(struct store *s, struct store_op *op, const char *public_id,
                     struct store_event *out);
void store_events_open(struct store *s, struct store_op *op, struct store_event **out,
                       size_t *n); /* not done or failed, oldest first */

/* ---- idempotency of control calls ---- */
void store_answered_get(struct store *s, struct store_op *op, const uint8_t request_id[16],
                        struct store_answer *out); /* ERR_NOT_FOUND */
void store_answered_put(struct store *s, struct store_op *op,
                        const struct store_answer *a); /* the newest one stays */
/* Empties everything of this installation but meta (kiln --init); ends active runs with it. */
void store_wipe(struct store *s, struct store_op *op);
/* Deletes what protocol.md 10 says is old: deliveries after 7 days, runs, answered. */
void store_prune(struct store *s, struct store_op *op);
