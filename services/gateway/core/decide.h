/* What of a package a query may read from tables, and what is said about its answer. Pure. */
#pragma once
#include "common/base/arena.h"
#include "common/base/buf.h"
#include "services/gateway/core/reasons.h"

enum decide_fallback { DECIDE_LIVE_WHEN_STALE, DECIDE_STALE_OK, DECIDE_FAIL }; /* as types.proto */

/* ---- a package in force, as far as decisions need it; borrowed texts ---- */
struct decide_binding {
    const char *source_id, *build_id;
    const char *table; /* as the SQL names it: every segment in double quotes */
    const char *generation;
    int64_t data_as_of_us; /* 0: unknown */
    uint32_t window_s;     /* 0: no freshness window */
    enum decide_fallback fallback;
    bool is_by_binding; /* what it reads is the set's word, no fence's */
};
struct decide_unbaked {
    const char *source_id, *code, *text;
};
struct decide_planned { /* a persist source of the package's plan */
    const char *source_id, *name, *build_id;
    const char *refused; /* its refusal's reason, NULL: plannable */
    bool is_stored;      /* storage=: not built yet (decisions 1.7) */
};
struct decide_package {
    const struct decide_binding *bindings;
    size_t n_bindings;
    const struct decide_unbaked *unbaked;
    size_t n_unbaked;
    const struct decide_planned *planned;
    size_t n_planned;
    bool has_windows;    /* some binding has a freshness window */
    bool has_by_binding; /* some binding is one */
    bool has_flagless; /* some file annotates a source but lacks the flag, and nothing reaches it */
};

/* ---- which tables are offered to the compiler ---- */
struct decide_left_out {
    size_t binding; /* place in the package's bindings */
    enum reason why;
};
/* True when a binding's window is over and it does not say stale_ok (spec 4.4). */
bool decide_is_stale(const struct decide_binding *b, int64_t now_us);
struct decide_now {
    int64_t us;
    bool sets_unread; /* this gateway was out of touch and has not read its sets again */
};
/* The bindings that are not offered: the `n_broken` that this query found broken, those that rest
 * on sets that may be old, then stale ones; in the arena, *n of them. Costs nothing worth naming
 * while no binding has a window. */
struct decide_left_out *decide_leave_out(const struct decide_package *p, struct decide_now now,
                                         const struct decide_left_out *broken, size_t n_broken,
                                         struct arena *a, size_t *n);
/* False also when another binding of the same build is left out. */
bool decide_is_offered(const struct decide_package *p, size_t binding,
                       const struct decide_left_out *left, size_t n);

/* ---- the receipt ---- */
enum decide_served { DECIDE_LIVE, DECIDE_BAKED, DECIDE_MIXED };
struct decide_used {                  /* a persisted source that the compiler asked for */
    const char *build_id, *source_id; /* source_id "" when the compiler does not know it */
    bool is_hit;                      /* its table is in the SQL */
    /* of hits, read in the query's own transaction; NULL or 0: as bound */
    const char *generation;
    int64_t data_as_of_us;
};
struct decide_query {
    const struct decide_used *used;
    size_t n_used;
    const struct decide_left_out *left_out;
    size_t n_left_out;
    bool is_live_mode;  /* the request asked for the live answer */
    bool is_flagged;    /* the model has the persistence flag */
    bool given_refused; /* a persisted query reads a given without a value (decisions 1.5) */
};
struct decide_source {
    const char *source_id, *name, *build_id;
    bool is_baked;
    const char *generation, *table; /* when baked */
    int64_t data_as_of_us;          /* when baked; 0 unknown */
    const char *reason, *text;      /* when not: a code, and words or NULL */
};
struct decide_receipt {
    enum decide_served served;
    uint64_t epoch;
    struct decide_source *sources;
    size_t n_sources;
    const char *reason;     /* the first one; NULL when baked */
    const char *generation; /* when exactly one is read; else NULL */
};
/* In the arena. */
void decide_receipt_make(const struct decide_package *p, const struct decide_query *q,
                         uint64_t epoch, struct arena *a, struct decide_receipt *out);
const char *decide_served_name(enum decide_served s);
/* Appends {"served":"baked","epoch":17..,"sources":[..]}. */
void decide_json(const struct decide_receipt *r, struct buf *out);
