/* A coordinator over the run store in memory, driven call by call: what the coordinator's unit
 * tests share. */
#pragma once
#include "common/json/json.h"
#include "tests/sim/coord_dump.h"
#include "tests/sim/memory_store.h"

#include <check.h>

enum { FX_TARGETS = 8 };
struct fx {
    struct memory_store *store;
    struct coord *c;
    struct arena mem;   /* lives as long as the fixture: notes, leases and texts of all calls */
    struct coord_out o; /* of the calls since the last commit; rows are gone after it, notes stay
                           until the next call */
    struct coord_now now;
    bool reloads; /* a planner that dies after every commit */
    unsigned pulls;
};
/* loop index of a tcase_add_loop_test: 0 one planner, 1 a new one after every commit */
void fx_init(struct fx *f, int reloads);
void fx_fini(struct fx *f);
void fx_commit(struct fx *f); /* applies the rows, checks the invariants, compares with what a
                                 reload makes of them */
void fx_reload(struct fx *f); /* throws the coordinator away and starts another one from the rows */
void fx_wait(struct fx *f, int64_t ms); /* lets time pass and ticks */
bool fx_noted(const struct fx *f, enum coord_note_kind kind);

uint64_t fx_unit(struct fx *f, const char *name); /* added and published, load 1 */
void fx_publish(struct fx *f, uint64_t unit, uint64_t load, const char *cause,
                const char *const *keep, size_t n);
const char *fx_create(struct fx *f,
                      uint64_t unit); /* asks for a run and lets a flow take it: planning */
const char *fx_create_with(struct fx *f, const struct coord_run_new *n);

struct fx_plan {
    struct plan_target t[FX_TARGETS];
    const char *ids[FX_TARGETS][3], *names[FX_TARGETS][3], *models[FX_TARGETS][3];
    size_t parents[FX_TARGETS][FX_TARGETS];
    char text[FX_TARGETS][3][80];
    struct plan_refusal refusals[2];
    struct run_plan p;
};
void fx_plan_init(struct fx_plan *p);
/* A source `name` of build `build` at table `table`. */
struct plan_target *fx_plan_add(struct fx_plan *p, enum plan_action action, const char *name,
                                const char *table, const char *build);
void fx_plan_parent(struct fx_plan *p, size_t child, size_t parent);
void fx_plan_carry(struct fx *f, struct fx_plan *p, const char *name, const char *table,
                   const char *build); /* what is current */
void fx_planned(struct fx *f, const char *run, struct fx_plan *p);
void fx_plan_one(struct fx *f, const char *run, const char *build); /* of source a at table a */

size_t fx_pull(struct fx *f, const char *builder, size_t slots, struct coord_lease *out);
struct coord_lease fx_pull_one(struct fx *f, const char *builder);
int fx_grant(struct fx *f, uint64_t token, uint64_t rows);
int fx_finish(struct fx *f, uint64_t token, enum coord_outcome outcome, int code, const char *text);
int fx_resolved(struct fx *f, uint64_t token, uint64_t published, bool still_there);
void fx_build(struct fx *f, const struct coord_lease *l); /* granted and published */
/* Unit with one run that built `name` at `table`; returns the run's id. */
const char *fx_baked(struct fx *f, uint64_t unit, const char *name, const char *table,
                     const char *build);
void fx_report(struct fx *f, const char *gateway, uint64_t unit, uint64_t applied, bool loading);

enum run_state fx_run_state(const struct fx *f, const char *run);
enum job_state fx_job_state(const struct fx *f, uint64_t job);
enum generation_state fx_generation_state(const struct fx *f, const char *id);
const struct core_binding *fx_bound(const struct fx *f, uint64_t unit,
                                    const char *source); /* in the newest set */
const char *fx_unbaked(const struct fx *f, uint64_t unit,
                       const char *source);               /* its code, or NULL */
json_t *fx_manifest(const struct fx *f, const char *run); /* the caller decrefs */
json_t *fx_metadata(const struct fx *f, const char *run);
