/* What the files of the package plan share: the plan in the making, its sources, notes, names and
 * layers. */
#pragma once
#include "common/base/map.h"
#include "services/planner/core/plan.h"

/* ---- names.c ---- */
struct plan_name { /* a table path as an author wrote it */
    const char *parts[3];
    size_t n;            /* 1 to 3 */
    bool is_quoted;      /* at least one part stood in double quotes of its own */
    const char *problem; /* NULL: fine; else what is wrong: "the character ';'" */
};
void plan_name_parse(struct arena *a, const char *text, struct plan_name *out);
/* Every segment double-quoted; schema "" gives the table alone. */
char *plan_name_quoted(struct arena *a, const char *schema, const char *table);
/* For people: mart.orders. */
char *plan_name_shown(struct arena *a, const char *schema, const char *table);
/* Does an undotted name of this dialect land in that schema unless the session says otherwise? */
bool plan_schema_matches(const char *dialect, const char *a, const char *b);

/* ---- one source in the making ---- */
struct plan_src {
    const Kiln__Mc__Source *msg;
    const Kiln__Mc__Model *model; /* walked: the declaring file where that is flagged, else the
                                     first that reached it */
    const Kiln__Mc__Model *home;  /* declares it; = model when the package does not show it */
    struct planned_source row;
    struct plan_name name;
    const char *refused_reason, *refused_message; /* NULL: none */
    const char *refresh;                          /* verbatim; NULL */
    json_t *metadata;                             /* effective query metadata; NULL none. Owned */
    bool visited;
};
struct plan_making {
    struct arena *a;
    const struct plan_input *in;
    struct package_plan *out;
    struct plan_src *src; /* declared order at first, dependency order after plan_sources_order */
    size_t n_src;
    struct map by_id; /* source id -> plan_src * while collecting; rebuilt after ordering */
    struct map dropped_ids;
    struct map models;     /* path -> Kiln__Mc__Model * */
    struct map notes_said; /* so that two walks of one file do not say a thing twice */
    struct buf load_errors;
    int load_status;
    json_t *package_metadata; /* valid part of the manifest's query metadata, or NULL. Owned */
};

/* An array of the arena with room for one more item, cleared; n: items in use. */
void *plan_grown(struct arena *a, void *items, size_t n, size_t size);
/* Any of these may be NULL or "": then the member is left out. */
void plan_warn(struct plan_making *m, const char *model, const char *subject, const char *message);
void plan_advise(struct plan_making *m, const char *model, const char *subject,
                 const char *message);
/* Adds one sentence to the load error; 424 beats 400. */
void plan_fail_load(struct plan_making *m, int status, const char *fmt, ...) PRINTF_LIKE(3, 4);
const struct plan_connection *plan_connection_of(const struct plan_connection *c, size_t n,
                                                 const char *name);
/* Text of a flat tag or note list; NULL absent, "" present without a value. */
const char *plan_text(Kiln__Mc__FreeText *const *items, size_t n, const char *key);
/* The same for a source's tag: NULL when absent, empty or blank. */
const char *plan_option(struct arena *a, const Kiln__Mc__Source *s, const char *key);

/* ---- plan_scan.c: what only the raw text tells ---- */
/* Unquoted names and broken annotation lines fail the load; preaggregate lines get an advisory. */
void plan_scan(struct plan_making *m);
bool plan_scan_has_bare_name(struct slice line);

/* ---- plan_sources.c ---- */
void plan_sources_collect(struct plan_making *m); /* each source id once, declared order */
void plan_sources_order(struct plan_making *m);   /* dependencies first */
struct plan_src *plan_source(const struct plan_making *m, const char *source_id);

/* ---- plan_judge.c: what is said about one source ---- */
void plan_judge(struct plan_making *m, struct plan_src *s);

/* ---- plan_targets.c ---- */
void plan_targets_make(struct plan_making *m);

/* ---- plan_meta.c: query metadata (spec 5.8) ---- */
void plan_meta_package(struct plan_making *m);
void plan_meta_source(struct plan_making *m, struct plan_src *s);
/* Inside of the SQL comment; "" without metadata. */
char *plan_meta_tag(struct arena *a, const json_t *metadata, const char *package,
                    const char *source);
/* More properties for a tag that is not ""; value NULL: unchanged. */
char *plan_meta_tag_add(struct arena *a, const char *tag, const char *key, const char *value);

/* ---- plan_json.c ---- */
json_t *plan_json_build(const struct plan_making *m);
json_t *plan_json_package(struct plan_making *m);

/* ---- plan_notices.c: warnings and advisories about what was found ---- */
void plan_notices(struct plan_making *m);

/* ---- manifest.c: effective values of publisher.json ---- */
const char *manifest_scope(const json_t *manifest);    /* "package" or "version" */
const char *manifest_schedule(const json_t *manifest); /* NULL none */
const char *manifest_window(const json_t *manifest);   /* NULL none */
const char *manifest_fallback(const json_t *manifest); /* NULL none or invalid */
const json_t *manifest_metadata(const json_t *manifest, const char **home); /* raw; NULL none */
const char *manifest_queryable(const json_t *manifest);
bool manifest_fallback_valid(const char *text);
/* Deprecated homes and what this version does not do, as warnings. */
void manifest_notices(struct plan_making *m);

/* ---- policy.c ---- */
size_t policy_list(struct arena *a, const json_t *manifest, const struct package_plan *plan,
                   const char ***out);
/* One warning per entry of explores that names no model; array of strings. */
json_t *explores_list(const json_t *manifest, const char *const *paths, size_t n);

/* ---- the plan of one run in the making (run_plan.c, plan_decide.c) ---- */
struct run_making {
    struct arena *a;
    const struct run_plan_input *in;
    const struct package_plan *p;
    struct run_plan *out;
    bool *covered; /* per target of the package */
    size_t *at;    /* target of the package -> of the run; only where covered */
    const char **warnings;
};
/* The fence row says that target i's table is still what the store recorded (protocol.md 3). */
bool plan_is_proven(const struct run_making *m, size_t i);
/* Build, carry or fail; t is filled in otherwise, and the last of m->out->targets. */
void plan_decide(struct run_making *m, size_t i, struct plan_target *t);
