/* What the coordinator holds, shared by the coord_*.c files only. Long-lived short strings are
 * interned in the coordinator; rows, leases and notes are copied into the arena of the call,
 * because they may outlive it. */
#pragma once
#include "common/base/list.h"
#include "common/base/map.h"
#include "common/json/json.h"
#include "services/planner/core/coord.h"

enum { RUN_ID = 24, RECENT_TOKENS = 1024, RECENT_PULLS = 256, OLD_BOOTS = 8, ENDED_RUNS_MAX = 256 };

struct facts {
    int64_t rows, bytes, data_as_of_us;
    int64_t took_ms;             /* -1 unknown */
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
    int attempts; /* work attempts, resolves not counted */
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
    bool taken;  /* a planning flow of this process has it */
    bool loaded; /* came from rows while binding: gateways may not have been heard yet */
    const char *const *names;
    size_t n_names;
    uint8_t request_id[16];
    bool has_request_id;
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
    uint64_t rows_done;
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
    struct uuid old[OLD_BOOTS]; /* former boots: their late messages are refused */
    size_t n_old;
};
struct coord {
    struct uuid installation;
    struct coord_limits lim;
    uint64_t last; /* greatest token or epoch known */
    uint64_t next_job, next_place, next_target;
    int64_t last_run_ms;
    struct ms started; /* coord_started; MS_NONE before */
    struct map strings, units, places, place_names, targets, generations, runs, jobs, attempts;
    struct list live; /* attempts that hold a lease */
    struct list ready, resolving, delayed, loose, to_plan, binding, ending, ended, awaiting,
        gateways, builders;
    size_t n_leased, n_ended;
    struct {
        uint64_t token;
        bool recorded;
    } recent[RECENT_TOKENS];
    size_t at_recent;
    uint8_t pulls[RECENT_PULLS][16];
    size_t at_pull;
};
/* One call: what every decision needs. */
struct turn {
    struct coord *c;
    struct coord_now now;
    struct coord_out *o;
};

/* coord.c */
const char *coord_intern(struct coord *c, const char *text); /* NULL gives NULL */
struct coord_note *coord_note(struct turn *t, enum coord_note_kind kind);
struct unit *coord_find_unit(const struct coord *c, uint64_t id);
struct run *coord_find_run(const struct coord *c, const char *id);
struct attempt *coord_find_attempt(const struct coord *c, uint64_t token);
void coord_turn_end(
    struct turn *t); /* ends runs whose jobs have ended, frees ended drop and sweep jobs */

/* coord_copy.c: deep copies into an arena, and into the coordinator */
struct core_target target_copy(struct arena *a, const struct core_target *t);
struct core_columns columns_copy(struct arena *a, const struct core_columns *in);
struct core_generation generation_copy(struct arena *a, const struct core_generation *g);
struct core_binding binding_copy(struct arena *a, const struct core_binding *b);
void set_copy(struct arena *a, const struct core_binding_set *in, struct core_binding_set *out);
const char *const *strings_copy(struct arena *a, const char *const *list, size_t n);
struct core_target target_keep(struct coord *c, const struct core_target *t);
struct core_columns columns_keep(struct coord *c,
                                 const struct core_columns *in); /* items: free() */

/* coord_json.c: what the core writes into JSON columns and reads back */
json_t *target_to_json(const struct core_target *t);
struct core_target target_from_json(struct coord *c, const json_t *v);
json_t *columns_to_json(const struct core_columns *in);
char *facts_text(struct arena *a, const struct attempt *at);
void facts_from_text(struct coord *c, const char *text, struct attempt *at);
char *plan_text(struct arena *a, const struct run *r);
void plan_from_text(struct coord *c, struct run *r, const char *text);
char *held_text(struct arena *a, const struct run *r);
void held_from_text(struct coord *c, struct run *r, const char *text);
char *json_keep(struct arena *a, json_t *v); /* text in the arena; takes v */

/* coord_rows.c: every change of a state: memory and row together */
void move_run(struct turn *t, struct run *r, enum run_state to, struct row_run *more);
void move_job(struct turn *t, struct job *j, enum job_state to);
void update_job(struct turn *t, struct job *j);
void insert_job(struct turn *t, struct job *j);
void move_attempt(struct turn *t, struct attempt *a, enum attempt_state to, int code,
                  const char *text);
void move_generation(struct turn *t, struct generation *g, enum generation_state to);
void row_unit(struct turn *t, const struct unit *u);
void job_queue(struct coord *c, struct job *j,
               struct ms mono); /* on the list that fits its state and due time */

/* coord_place.c: places, targets, generations */
struct target *target_obtain(struct turn *t,
                             const struct core_target *in); /* finds or makes, with rows */
struct target *target_find(const struct coord *c, const struct core_target *in);
struct target *target_by_id(const struct coord *c, uint64_t id);
struct generation *
target_current(const struct target *t); /* recorded, bound or retired; NULL none */
struct generation *generation_find(const struct coord *c, const char *id);
struct generation *generation_add(struct coord *c, struct target *t,
                                  const struct core_generation *g, enum generation_state s);
void generation_forget(struct coord *c, struct generation *g);
void generation_record(struct turn *t, struct job *j,
                       struct attempt *a); /* the job's result is published */
void place_settle(
    struct turn *t,
    struct place *p); /* carries and ends jobs that the place's content made needless */

/* coord_unit.c: sets */
struct draft {
    struct arena *a;
    struct core_binding *items;
    size_t n, cap;
    struct core_unbaked *unbaked;
    size_t n_unbaked, cap_unbaked;
};
struct core_binding *draft_add(struct draft *d, const struct core_binding *b);
void draft_unbaked(struct draft *d, const char *source_id, const char *code, const char *text);
bool draft_changes(const struct unit *u, const struct draft *d); /* against the set in force */
void unit_set_make(struct turn *t, struct unit *u, const struct draft *d, const char *cause,
                   const char *run);
void unit_set_load(struct coord *c, struct unit *u, const struct core_binding_set *s);
void units_lose_place(struct turn *t, const struct place *p,
                      const struct target *keep); /* table_taken_over */

/* coord_job.c */
struct job *job_new(struct coord *c, enum job_kind kind, uint64_t id);
void job_link(struct job *j, struct job *const *parents, size_t n);
void job_free(struct coord *c, struct job *j);
void job_ready(struct turn *t, struct job *j,
               struct ms delay); /* waiting, leased or resolving -> ready, or carried at once */
void job_retry(struct turn *t, struct job *j, int code,
               const char *text);              /* ready again, failed or cancelled */
void job_ended(struct turn *t, struct job *j); /* children, place, run */
void job_fail(struct turn *t, struct job *j, int code, const char *text);
bool job_try_carry(struct turn *t, struct job *j);     /* a ready job that needs no work any more */
void job_resolve(struct turn *t, struct job *j);       /* publishing -> resolving */
void job_resolve_again(struct turn *t, struct job *j); /* the resolve failed: another one, later */
void attempt_expire(struct turn *t, struct attempt *a, const char *text);
struct attempt *attempt_add(struct coord *c, struct job *j, uint64_t token);
struct attempt *job_published(const struct job *j); /* the attempt whose result counts; NULL none */
void pull_remember(struct coord *c,
                   const uint8_t id[16]); /* this request was answered with leases */

/* coord_run.c, coord_end.c: a run and its end */
struct run *run_new(struct coord *c, struct unit *u, const char *id);
void run_add_job(struct run *r, struct job *j);
void run_planned_end(struct turn *t,
                     struct run *r); /* from planning or building, when no job is open */
void run_fail(struct turn *t, struct run *r, const char *text, const char *manifest);
void run_cancel(struct turn *t, struct run *r);
void run_check_bound(struct turn *t, struct run *r);
void run_bind_start(struct turn *t, struct run *r);
void run_drop_jobs(struct coord *c, struct run *r);
void run_free(struct coord *c, struct run *r);
void draft_of_run(struct turn *t, const struct run *r, struct draft *d);

/* coord_delete.c */
struct run *unit_newest_ready(const struct unit *u, const struct run *but);
void draft_of_held(const struct coord *c, const struct unit *u, const struct run *r,
                   bool only_bound, struct draft *d);
void unit_restore(struct turn *t, struct unit *u); /* a restart rebinds what a reload emptied */

/* coord_manifest.c */
enum outcome_kind { OUT_BUILT, OUT_CARRIED, OUT_FAILED };
struct outcome {
    enum outcome_kind kind;
    const char *generation; /* NULL when failed, or gone since */
    int64_t rows;           /* -1 unknown */
    int64_t data_as_of_us, took_ms;
    const char *reason;
    int code;
};
struct outcome outcome_of(const struct coord *c, const struct plan_item *it);
void row_entry(struct turn *t, const struct run *r, const struct plan_item *it);
struct counts run_counts(const struct coord *c, const struct run *r);
char *run_manifest(struct turn *t, const struct run *r, const struct draft *d);
char *run_metadata(struct arena *a, const struct run *r, const struct counts *n, int64_t now_us);
char *run_error_text(struct arena *a, const struct coord *c, const struct run *r);
char *refusals_text(struct arena *a, const struct run_plan *p);

/* coord_gateway.c */
/* Have all live gateways reported? lagging: those that have neither applied nor failed; loading:
 * one of them loads. */
bool gateways_reported(const struct coord *c, struct ms mono, uint64_t unit, uint64_t epoch,
                       bool *loading);
json_t *gateways_unbound(const struct coord *c, struct ms mono, uint64_t unit, uint64_t epoch);
bool gateways_heard_ever(const struct coord *c);
void units_check_reported(struct turn *t);
void unit_await(struct turn *t, struct unit *u);
bool builder_seen(struct turn *t, const char *instance,
                  const struct uuid *boot); /* false: a former boot's late message */
struct ms gateways_next_due(const struct coord *c);
