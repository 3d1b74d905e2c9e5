/* The functions that the coord_*.c files share, file by file. */
#pragma once
#include "services/planner/core/coord_state.h"

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
char *run_plan_text(struct arena *a, const struct run *r);
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

/* coord_load.c */
void job_spec(struct coord *c, struct job *j); /* fields that its spec tells */

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
uint64_t drop_make(struct turn *t, uint64_t unit, const struct core_target *at,
                   struct generation *g, uint64_t wait_epoch); /* a drop job; its id */
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
struct ms gateways_unheard_until(const struct coord *c); /* MS_NONE: some were heard */
void units_check_reported(struct turn *t);
void unit_await(struct turn *t, struct unit *u);
/* False: a former boot's late message. reach NULL: as it said before. */
bool builder_seen(struct turn *t, const char *instance, const struct uuid *boot,
                  const struct coord_reach *reach);
struct ms gateways_next_due(const struct coord *c);

/* coord_retire.c */
void retire_left_out(struct turn *t, const struct unit *u, const struct core_binding_set *old);
void retire_begin(struct coord *c, struct generation *g, struct ms mono);
void retire_loaded(struct turn *t);
void retire_check(struct turn *t); /* drops what nobody can read any more */
struct ms retire_next_due(const struct coord *c);

/* coord_reach.c */
bool reach_covers(const struct coord *c, const struct coord_reach *r, const struct job *j);
void builder_reaches(struct coord *c, struct builder *b, const struct coord_reach *r);
void reach_check(struct turn *t); /* tells of jobs that no live builder has covered for 30 s */
struct ms reach_next_due(const struct coord *c);
