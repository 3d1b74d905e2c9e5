/* The package plan: from what the compiler reported to targets, refusals, warnings and advisories.
 * Pure. Rules: decisions 1, 4, 5, 7; spec/malloy-reference.md 1-3 and 9;
 * spec/malloy-persistence.md 1.2, 1.3, 2, 3.1, 5.6, 6.3. */
#pragma once
#include "common/err/err.h"
#include "common/json/json.h"
#include "proto/compiler.pb-c.h"
#include "services/planner/core/coord.h"

struct plan_connection { /* of the environment */
    const char *name, *type, *dialect, *digest;
    bool has_driver;   /* this build can run it */
    bool planned_only; /* accepted for planning, refused to run (DuckDB until its issue, other
                          dialects) */
};
struct plan_input {
    const char *environment, *package;
    const char *location; /* where it was published from, for the package object; NULL: null */
    json_t *manifest;     /* publisher.json */
    const Kiln__Mc__Loaded *loaded;
    const char *const
        *paths; /* model files and their texts, for the raw scan of `#@ persist` lines */
    const char *const *texts;
    size_t n_files;
    const struct plan_connection *connections;
    size_t n_connections;
    const char
        *current_schema;      /* unused while connections differ; see planned_source.table_schema */
    bool collision_enforce;   /* PERSIST_COLLISION_ENFORCE */
    const char *storage_mode; /* off | write-only | on */
    bool publishing;       /* strict gates: policy violations and collisions become load errors with
                              status 400 */
    bool policy_untouched; /* a PATCH without scope and materialization: policy violations only warn
                              even while publishing (P10) */
};
struct planned_source {
    const char *source_id, *name, *model,
        *declared_in; /* model: the walked file that reached it first */
    const char *connection, *dialect, *build_id, *entity_id, *sql;
    const char *const *depends_on; /* entity ids of persisted upstreams */
    size_t n_depends_on;
    struct wh_like_name {
        const char *schema, *table;
    } name_parts;      /* schema "" when undotted: resolved when a run is planned */
    bool is_extension; /* shares its identity with the source it extends */
    const char *freshness_window, *freshness_fallback; /* effective, verbatim; NULL undeclared */
    struct core_columns columns;
    int target; /* index into targets (which may be refused as a whole); -1: refused or skipped */
    const char *skipped; /* why it is left out without being refused ("storage"); NULL: it is not */
};
struct planned_read {                        /* a base table that some model of the package reads */
    const char *connection, *schema, *table; /* schema "" undotted */
};
struct planned_target {
    const char *entity_id, *build_id, *connection;
    const char *schema, *table; /* schema "" undotted */
    size_t owner;               /* index of the source that names it */
    const size_t *sources;      /* all sources that share it, owner first */
    size_t n_sources;
    const size_t *parents; /* indexes of targets it depends on, smaller ones only */
    size_t n_parents;
    const char *tag; /* query metadata as a leading SQL comment's inside, without trigger and run
                        id; "" none */
    const char *refused_reason,
        *refused_message; /* a whole target that cannot be built: target_collision,
                     target_is_a_source, no_driver; NULL: fine. Its sources are in refusals too */
};
struct plan_dropped {
    const char *name, *source_id, *path;
};
struct package_plan {
    const char *load_error;         /* NULL: the package loads */
    int load_status;                /* HTTP status that goes with it: 424, 400 */
    struct planned_source *sources; /* dependency order, each source id once */
    size_t n_sources;
    struct planned_target *targets; /* dependency order */
    size_t n_targets;
    struct plan_refusal *refusals;
    size_t n_refusals;
    struct plan_dropped *dropped;
    size_t n_dropped;
    const struct planned_read *reads; /* checked again when a run has resolved undotted names */
    size_t n_reads;
    const char *const
        *retired_options; /* sentences about sharing= and schedule= on sources (policy rule 1) */
    size_t n_retired_options;
    const char *freshness_declarers; /* names of sources that declare freshness themselves or
                                        through their file; NULL none (rule 3) */
    json_t *build_plan;              /* spec 3.1; json null when there is no persist source */
    json_t *warnings, *advisories;   /* arrays of {model?, subject?, message} */
    json_t *package; /* package object of GET packages/{p} (spec 7.5) without binding fields,
                        buildPlan and warnings included */
    const char *description;
};
/* Everything lives in the arena, json_t members are owned by the plan: package_plan_fini. Never
 * fails for bad packages: they get load_error. */
void package_plan_make(struct arena *a, const struct plan_input *in, struct package_plan *out);
void package_plan_fini(struct package_plan *p);

/* publisher.json: NULL with e when it does not parse or breaks a rule that fails the load
 * (spec 1.2: scope homes). */
json_t *package_manifest_parse(struct slice text, struct err *e) MUST_USE;
/* What a manifest must not hold, for new loads only (stored ones go on): 0, or ERR_PACKAGE with a
 * sentence. */
int package_manifest_check(const json_t *manifest, struct err *e) MUST_USE;
/* A PATCH body applied to a manifest (spec 7.5): a new manifest, or NULL with e (400).
 * *policy_touched: the policy gate must run. */
json_t *package_manifest_patch(const json_t *manifest, const json_t *patch, bool *policy_touched,
                               struct err *e) MUST_USE;
/* Policy violations of a manifest (spec 5.6), one sentence joined by "; "; NULL: none. */
char *package_policy_violations(struct arena *a, const json_t *manifest,
                                const struct package_plan *plan);
/* Entries of `explores` that name no model file of the package, one sentence; NULL: none. paths:
 * all model and notebook files. */
char *package_explores_violations(struct arena *a, const json_t *manifest, const char *const *paths,
                                  size_t n);
/* 5-field UTC cron: NULL fine, else what is wrong. */
const char *cron_check(struct arena *a, const char *text);
/* "24h", "30m", "7d", "90s": seconds; -1 no duration. */
int64_t duration_seconds(const char *text);

/* ---- the plan of one run ---- */
struct target_state {           /* what the warehouse says about a target, in the order of
                                   package_plan.targets */
    bool asked;                 /* false: not in this run */
    const char *schema, *table; /* resolved */
    char relkind;               /* 0: nothing there */
    bool schema_exists, schema_writable, is_empty;
    const char *const *dependents;
    size_t n_dependents;
    const char *const *cannot_carry;
    size_t n_cannot_carry;
    bool has_fence, still_there, ours; /* fence row; relid agrees; owner is this installation */
    const char *fence_generation, *fence_build_id;
    const char *error; /* the warehouse could not be asked; NULL */
    int error_code;
};
struct current_generation { /* newest recorded or bound generation of a target in the run store; id
                               NULL: none */
    struct core_generation g;
};
struct run_plan_input {
    const struct package_plan *package;
    uint64_t load;
    const char *compiler_version;
    const struct target_state *states;            /* n_targets */
    const struct current_generation *generations; /* n_targets */
    const struct plan_connection *connections;
    size_t n_connections;
    bool force_refresh, take_over, has_names, collision_enforce;
    const char *const *names;
    size_t n_names;
    const char *trigger, *run_id; /* for the tag; NULL: left out */
    bool query_metadata_off;      /* PUBLISHER_QUERY_METADATA=off: no tag at all */
};
/* Which targets a run covers, before the warehouse is asked: covered[i] for each target (the named
 * ones' own, or all). ERR_INVALID (400) for an unknown name. */
int run_plan_scope(struct arena *a, const struct package_plan *p, bool has_names,
                   const char *const *names, size_t n_names, bool *covered, struct err *e) MUST_USE;
/* Decides build, carry or fail for each covered target; sql is the source's own SQL until the flow
 * fills in the compiler's text with the parents' names. PLAN_CARRY only when the probe proves that
 * the table is still that generation. States of uncovered parents may be asked too: they tell
 * whether a child can read the bound table. */
void run_plan_make(struct arena *a, const struct run_plan_input *in, struct run_plan *out);
/* kiln plan: what a run would build, reuse and refuse, and why. Owned by the caller. */
json_t *run_plan_preview(const struct run_plan *p, const struct package_plan *package);
