/* The coordinator: pure decisions about runs, jobs, leases, grants, generations and binding sets
 * (protocol.md 1, 4, 5, 6). Holds the active part of the run store in memory; every call takes the
 * time and an output, changes memory, and appends the rows that make the change durable. The shell
 * commits the rows in order and only then lets replies and hints out; when a commit fails it throws
 * the coordinator away and loads a new one from the rows. No I/O, no clock, no randomness but what
 * comes in. */
#pragma once
#include "common/err/err.h"
#include "services/planner/core/rows.h"

struct coord;
struct coord_now {
    struct ms mono;     /* monotonic, of this process */
    int64_t unix_us;    /* for tokens, epochs, ids and records */
    uint8_t random[10]; /* fresh bytes for ULIDs */
};
struct coord_limits {
    struct ms lease;              /* 10 s */
    int attempts;                 /* 3 */
    struct ms bound_wait;         /* 10 s */
    struct ms bound_wait_loading; /* 10 min */
    struct ms gateway_live;       /* heard within 5 s counts for bound */
    struct ms gateway_gone;       /* 60 s */
    struct ms gateway_comes;      /* 5 s: so long after a take-over none may have been heard yet */
    int max_leased;               /* jobs out at once over all builders; 0: no cap */
};
enum coord_note_kind {
    NOTE_JOBS,          /* work is ready: hint builders, answer held PullJobs */
    NOTE_BIND,          /* unit has a new binding set: hint gateways */
    NOTE_RUN,           /* run changed state: hint, wake waiters */
    NOTE_JOB_ENDED,     /* a drop or sweep job ended: job, rc */
    NOTE_CANCEL,        /* nothing to do now; the next renew of this token says cancel */
    NOTE_NOBODY,        /* no live builder has reached the job's connection for 30 s */
    NOTE_UNIT_REPORTED, /* gateways caught up with unit's epoch (or were given up) */
};
struct coord_note {
    enum coord_note_kind kind;
    uint64_t unit, epoch, job;
    char run[24];
    struct uuid trace; /* NOTE_RUN: of the run */
    enum run_state state;
    const char *connection; /* NOTE_NOBODY; in the arena of the output */
    int rc;                 /* NOTE_JOB_ENDED: 0, or the error the job ended with */
};
/* What one call produced. The caller makes it empty with an arena, and frees the arena when done.
 */
struct coord_out {
    struct rows rows;
    struct coord_note *notes;
    size_t n_notes, cap_notes;
};
void coord_out_init(struct coord_out *o, struct arena *a);

struct coord *coord_new(const struct uuid *installation, const struct coord_limits *lim) MUST_USE;
void coord_free(struct coord *c);

/* ---- loading from rows, before anything else (store order: units, places+targets, generations,
 * sets, runs, jobs, attempts) ---- */
struct coord_unit_row {
    uint64_t id, load, epoch;
    const char *environment, *name;
    bool reload_emptied;
};
void coord_load_numbers(struct coord *c, uint64_t greatest, uint64_t next_job, uint64_t next_place,
                        uint64_t next_target);
void coord_load_unit(struct coord *c, const struct coord_unit_row *u);
void coord_load_target(struct coord *c, const struct core_target *t); /* place and target ids set */
void coord_load_generation(struct coord *c, const struct row_generation *g);
void coord_load_set(struct coord *c,
                    const struct core_binding_set *s); /* the newest of each unit */
/* Active ones whole (plan, metadata, stop_requested too), and every ready one (id, unit, load,
 * state, plan). An ended one that is to be deleted may be loaded at any later time; one that is
 * known already is left as it is. */
void coord_load_run(struct coord *c, const struct row_run *r);
void coord_load_job(struct coord *c,
                    const struct row_job *j); /* of active runs, and open drop and sweep jobs */
/* Of those jobs, ended ones too; live leases get one full term. And the newest thousand of any
 * other job: by them, late copies of pulls and reports are known for what they are. */
void coord_load_attempt(struct coord *c, const struct row_attempt *a, struct coord_now now);
/* After loading: rebinds sets that a reload emptied (a restart rebinds), moves what can move. */
void coord_started(struct coord *c, struct coord_now now, struct coord_out *o);

/* ---- units ---- */
/* A unit exists (new id from the store) or has a new load. keep_builds: build ids planned in the
 * new load; bindings of others are dropped from the set; NULL with n 0: all are dropped (reload).
 * Always makes a new set, empty for a new unit: gateways learn of loads through sets. A run in
 * progress goes on; what it builds that is not among keep_builds stays out of the set (all is kept
 * on a reload). */
void coord_unit_load(struct coord *c, struct coord_now now, const struct coord_unit_row *u,
                     const char *cause, const char *const *keep_builds, size_t n_keep,
                     struct coord_out *o);
/* Empty set at a new epoch (PATCH manifestLocation null, reload). */
int coord_unbind(struct coord *c, struct coord_now now, uint64_t unit, const char *cause,
                 bool reload, struct coord_out *o) MUST_USE;
/* ERR_RUN_ACTIVE while a run is active. Unbinds and forgets; runs and jobs of it go too. */
int coord_unit_delete(struct coord *c, struct coord_now now, uint64_t unit, struct coord_out *o,
                      struct err *e) MUST_USE;
bool coord_unit_get(const struct coord *c, uint64_t unit, struct coord_unit_row *out);
const struct core_binding_set *
coord_unit_set(const struct coord *c,
               uint64_t unit); /* newest; NULL: none. Borrowed until the next call */
/* Have all live gateways applied (or failed) epoch? */
bool coord_unit_reported(const struct coord *c, struct coord_now now, uint64_t unit,
                         uint64_t epoch);

/* ---- runs ---- */
struct coord_run_new {
    uint64_t unit, event;
    const char *trigger;
    bool force_refresh, reseed, take_over, has_names;
    const char *const *names;
    size_t n_names;
    const char *run_context;
    const uint8_t *request_id;
    struct uuid trace; /* of who asks; the run, its jobs and their log lines have it */
};
/* id is written to out_id. ERR_RUN_ACTIVE names the active run's id; ERR_NOT_FOUND. */
int coord_run_create(struct coord *c, struct coord_now now, const struct coord_run_new *n,
                     char out_id[24], struct coord_out *o, struct err *e) MUST_USE;
/* The recorded result of a target (warehouse, physical and entity_id say which) that a plan may
 * carry once a probe has proven it; NULL: none, build. Borrowed until the next call. */
const struct core_generation *coord_current_generation(const struct coord *c,
                                                       const struct core_target *t);
/* The next run that waits for planning (requested, or planning after a restart); NULL: none. The
 * flow that takes it calls coord_run_planning. */
const char *coord_run_to_plan(const struct coord *c);
/* The next one after `after` (NULL: the first), so that several can be planned at once. */
const char *coord_run_next_to_plan(const struct coord *c, const char *after);
/* What an active run was asked for; pointers borrowed until the next call. False: not active. */
bool coord_run_request(const struct coord *c, const char *run, struct coord_run_new *out);
int coord_run_planning(struct coord *c, struct coord_now now, const char *run,
                       struct coord_out *o) MUST_USE;

enum plan_action { PLAN_BUILD, PLAN_CARRY, PLAN_FAIL };
struct plan_target {
    enum plan_action action;
    struct core_target target;
    const char *source_id, *source_name, *model; /* the one named in the manifest entry */
    const char *const *source_ids; /* every source of the unit that shares it, the first included */
    const char *const *source_names;
    const char *const *source_models;
    size_t n_sources;
    const char *sql;       /* PLAN_BUILD: with the parents' tables in it */
    const size_t *parents; /* indexes into targets, smaller than the own one */
    size_t n_parents;
    struct core_generation generation; /* PLAN_CARRY: the proven one */
    const char *fail_text;             /* PLAN_FAIL: "target has dependents: view public.v .." */
    int fail_code;
    const char *upstream_reuse,
        *upstream_recompute_reason; /* NULL: source reads no persisted upstream */
    const char *tag;                /* leading comment for statements, "" none */
    uint32_t window_s;
    int fallback;
    const char *why; /* one clause for people: "nothing is recorded for it yet"; not stored */
};
struct plan_refusal {
    const char *source_id, *name, *model, *tier, *reason, *message;
    bool authored; /* false: a rollup */
};
struct run_plan {
    uint64_t load;
    const char *compiler_version;
    struct plan_target *targets; /* parents first */
    size_t n;
    struct plan_refusal *refusals;
    size_t n_refusals;
    size_t n_authored;  /* authored sources the run targeted, refused ones included */
    bool named_refused; /* sourceNames named a refused source */
    const char *fail;   /* the whole run fails with this (dropped shapes); NULL: goes on */
    const char *const
        *warnings; /* "target_taken_over: ..", for the log and kiln plan; not stored */
    size_t n_warnings;
};
/* planning -> building, binding, ready or failed. Copies the plan. Refusal rules: decisions 5.1. A
 * build job's place may be held by another run's job: it waits. Also the answer of a stop that came
 * meanwhile. ERR_STORE_MOVED: the plan is out of date (another load, a carried generation that is
 * no longer current); the run goes back to coord_run_to_plan. ERR_NOT_FOUND, ERR_RUN_STATE. A plan
 * that is broken in itself (two targets at one place, a parent after its child) fails the run. */
int coord_run_planned(struct coord *c, struct coord_now now, const char *run,
                      const struct run_plan *p, struct coord_out *o) MUST_USE;
int coord_run_plan_failed(struct coord *c, struct coord_now now, const char *run, const char *text,
                          struct coord_out *o) MUST_USE;
/* ERR_NOT_FOUND, ERR_RUN_STATE. Cancels waiting and ready jobs at once, leased ones through renew;
 * publishing ones are resolved first. */
int coord_run_stop(struct coord *c, struct coord_now now, const char *run, struct coord_out *o,
                   struct err *e) MUST_USE;
/* Terminal runs only (ERR_RUN_STATE). drop: drop jobs for the tables no other ready run names,
 * which nothing binds and no active run made; they are leased once the gateways reported the new
 * set, or after 5 s. New set: from the newest remaining ready run's manifest, restricted to what is
 * still recorded. Jobs' ids go to out_jobs (in the arena of o). */
int coord_run_delete(struct coord *c, struct coord_now now, const char *run, bool drop,
                     const uint64_t **out_jobs, size_t *n_jobs, struct coord_out *o,
                     struct err *e) MUST_USE;
/* State of an active run, or of one that ended in this process; false: not in memory. */
/* The package's unit that a run belongs to; 0: no such run. */
uint64_t coord_run_unit(const struct coord *c, const char *run);
bool coord_run_state(const struct coord *c, const char *run, enum run_state *out);
/* Progress of an active run as a JSON object: targets, done, rows so far, stage. NULL: not active.
 */
char *coord_run_progress(const struct coord *c, const char *run, struct arena *a);

/* ---- builders ---- */
/* What a builder reaches: "connection" in any environment or "environment/connection"; n 0: all. */
struct coord_reach {
    const char *const *connections;
    size_t n;
    bool has_root; /* a generation root and the package store, which DuckDB needs */
};
bool coord_reaches(const struct coord_reach *r, const char *environment, const char *connection);
struct coord_builder {
    const char *instance;
    struct uuid boot;
    uint8_t request_id[16];
    struct coord_reach reach; /* pulls only */
};
struct coord_lease {
    uint64_t job, token, unit;
    enum job_kind kind; /* KIND_BUILD, KIND_RESOLVE, KIND_DROP, KIND_SWEEP */
    const char *run;
    struct uuid trace;      /* of its run; all zero: none */
    const char *spec;       /* JSON. Of a build: target, sql, tag, sourceName; of a drop: target,
                               generation; of a sweep: as given */
    const char *generation; /* ULID for a build; for resolve and drop the one in question or NULL */
    const struct core_target *target;
    const uint64_t *earlier; /* tokens of earlier attempts */
    size_t n_earlier;
    bool take_over;
    uint64_t load; /* of its run; 0: none */
    /* By-binding results of the run so far, which its SQL may read under their names. */
    struct coord_input {
        const char *table, *generation, *build_id;
    } * inputs;
    size_t n_inputs;
};
/* At most `slots` leases of jobs whose connection the builder reaches; the same request id again
 * gives the same leases. Another boot of the instance ends its old leases first. */
size_t coord_pull(struct coord *c, struct coord_now now, const struct coord_builder *b,
                  size_t slots, struct coord_lease *out, struct coord_out *o);
/* It drains: until it pulls again it does not count as one who could take work. */
void coord_builder_left(struct coord *c, const char *instance);
/* This pull was answered without work: a late copy of it, which nobody waits for any more, must not
 * be given any. */
void coord_pull_over(struct coord *c, const uint8_t request_id[16]);
struct coord_progress {
    uint64_t token, rows, bytes;
    const char *stage;
    double fraction;
};
/* answer arrays: cancel and lost get at most n tokens each. */
void coord_renew(struct coord *c, struct coord_now now, const struct coord_builder *b,
                 const struct coord_progress *p, size_t n, uint64_t *cancel, size_t *n_cancel,
                 uint64_t *lost, size_t *n_lost, struct coord_out *o);
struct coord_facts {
    uint64_t rows, bytes;
    int64_t data_as_of_us;
    struct uuid root; /* generation root; all zero: unknown, or none */
    struct core_columns columns;
};
/* Granted (0) when the token is the job's own and no stop is asked; asked again: same answer.
 * ERR_LEASE_LOST, ERR_STOPPED. */
int coord_grant(struct coord *c, struct coord_now now, uint64_t token, const struct coord_facts *f,
                struct coord_out *o, struct err *e) MUST_USE;
enum coord_outcome {
    OUTCOME_OK = 1,
    OUTCOME_ERROR,
    OUTCOME_UNKNOWN_,
    OUTCOME_STOPPED,
    OUTCOME_FENCED_
};
struct coord_finish {
    uint64_t token;
    enum coord_outcome outcome;
    struct coord_facts facts; /* of a build */
    bool has_fence;           /* of a resolve */
    uint64_t fence_claim, fence_published;
    bool fence_still_there;
    int error_code;
    const char *error_text; /* scrubbed */
    uint32_t took_ms;
};
/* Recorded (0); asked again with the same token: 0. ERR_LEASE_LOST when the token is of no live
 * attempt. Raises the token counter past any fence claim reported. */
int coord_finish(struct coord *c, struct coord_now now, const struct coord_finish *f,
                 struct coord_out *o, struct err *e) MUST_USE;
/* A sweep job for a connection's schemas (hourly): spec as JSON. Returns its id. */
uint64_t coord_sweep(struct coord *c, struct coord_now now, uint64_t unit, const char *spec,
                     struct coord_out *o);
/* Ids of all by-binding results that are recorded and not dropped, and of those in the making; in
 * the arena. */
size_t coord_live_generations(const struct coord *c, struct arena *a, const char *const **out);
size_t coord_live_tokens(const struct coord *c, uint64_t *out, size_t max);

/* ---- gateways ---- */
struct coord_gateway_unit {
    uint64_t unit, applied, failed_epoch, oldest_in_use;
    bool loading;
};
void coord_gateway_report(struct coord *c, struct coord_now now, const char *instance,
                          const struct uuid *boot, const struct coord_gateway_unit *u, size_t n,
                          struct coord_out *o);
/* A gateway saw a bound generation missing: it is marked lost, so that the next run builds it
 * again. */
void coord_broken(struct coord *c, struct coord_now now, uint64_t unit, const char *generation,
                  const char *code, struct coord_out *o);
void coord_instance(struct coord *c, struct coord_now now, const char *instance, const char *role,
                    const struct uuid *boot, const char *version, uint64_t highest_token,
                    struct coord_out *o);
size_t coord_live_gateways(const struct coord *c, struct coord_now now);
size_t coord_live_builders(const struct coord *c, struct coord_now now);

/* ---- time ---- */
void coord_tick(struct coord *c, struct coord_now now, struct coord_out *o);
struct ms coord_next_due(const struct coord *c); /* MS_NONE: nothing waits for time */
uint64_t coord_next_token(struct coord *c,
                          struct coord_now now);  /* also used for probes and epochs */
void coord_raise(struct coord *c, uint64_t seen); /* a greater number was seen outside */
/* Checks every invariant (one active run per unit, one live job per place, tokens grow, sets
 * whole): NULL or what is broken. For tests. */
const char *coord_check(const struct coord *c);
