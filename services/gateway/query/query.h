/* Inside of the query half: requests as they are understood, packages as decisions see them,
 * compiling, and what the answers share. All of it is one worker's. */
#pragma once
#include "common/json/json.h"
#include "services/gateway/port.h"
#include "services/gateway/query/cache.h"
#include "services/gateway/view.h"

enum {
    GW_COMPILE_MS = 5000,      /* one query in the compiler (protocol.md 10) */
    GW_TEXT_MAX = 256 * 1024,  /* bytes of a query or statement text */
    GW_CACHE_BYTES = 64 << 20, /* compiled queries kept by all workers together */
};

/* ---- ask.c: the body of a query request ---- */
struct gw_ask {
    const char *text;           /* Malloy text, or NULL: the next two */
    const char *source, *query; /* source may be NULL */
    const char *givens;         /* compact JSON, NULL: none */
    bool is_compact, is_live, uses_filters;
    struct gw_tag_ask tag;
};
/* From the request's body and headers, into the arena. ERR_INVALID or ERR_UNSUPPORTED. */
int gw_ask_read(struct http_req *r, struct arena *a, struct gw_ask *out, struct err *e) MUST_USE;
/* The body as a JSON object; NULL with e set. The caller decrefs. */
json_t *gw_body_object(struct http_req *r, struct err *e) MUST_USE;
/* 501 for a versionId, in the query or in the body. */
int gw_refuse_version(struct http_req *r, const json_t *body, struct err *e) MUST_USE;
/* A string member that may be absent or null; ERR_INVALID when it is something else. */
int gw_body_str(const json_t *body, const char *key, const char **out, struct err *e) MUST_USE;

/* PUBLISHER_QUERY_METADATA: statements carry what was declared (spec 5.8). */
static inline bool gw_is_tagged(const struct gateway *g)
{
    return !g->set->query_metadata || strcmp(g->set->query_metadata, "off") != 0;
}
/* answer.c: the comment that the statement carries (NULL: none), and with one a new
 * queryCorrelationId, kept in id. */
enum { GW_CORRELATION_CAP = 33 };
void gw_tag_statement(struct wh_query *q, const char *tag, char id[GW_CORRELATION_CAP]);

/* ---- compile.c ---- */
struct gw_compile_ask {
    struct gw_package *package;
    const char *model;
    const struct gw_ask *ask;
    const struct decide_left_out *left_out; /* bindings not offered */
    size_t n_left_out;
};
/* From the cache, or compiled: then `found` is not HIT and wait->done tells. */
enum gw_cache_found gw_compile_get(struct gw_worker *w, const struct gw_compile_ask *ask,
                                   struct gw_cache_wait *wait, struct gw_compiled **value) MUST_USE;
void gw_compiles_cancel(struct gw_worker *w);
/* The manifest offered to the compiler; in the arena. */
Kiln__Mc__ManifestEntry **gw_manifest_make(struct arena *a, const struct gw_view *v, bool is_live,
                                           const struct decide_left_out *left_out,
                                           size_t n_left_out, size_t *n) MUST_USE;
/* An error of the compiler as people read it: "model.malloy:3: text", lines from 1. */
void gw_compile_error(const struct compiler_call *call, struct err *e);

/* ---- part.c: what the query half counts ---- */
struct gw_part {
    struct list compiles;                /* compile.c: in the making */
    struct list works;                   /* struct gw_work: requests in work */
    void (*closed)(struct gw_worker *w); /* while it closes */
    struct metric *served[4];            /* by enum decide_served, then errors */
    struct metric *took_ms, *cache_hits, *cache_misses, *running;
};
/* A request in work; ends before the query half does. */
struct gw_work {
    struct list link;
    struct flow *flow; /* cancelled when it closes; NULL: ends by itself */
};
void gw_work_begin(struct gw_worker *w, struct gw_work *work, struct flow *f);
void gw_work_end(struct gw_worker *w, struct gw_work *work);
void gw_part_settle(struct gw_worker *w); /* the end, when it is due and nothing is in work */
/* One of the process's slots of max_concurrent_queries; ERR_QUERY_BUSY when all are taken. */
int gw_slot_take(struct gw_worker *w, struct err *e) MUST_USE;
void gw_slot_give(struct gw_worker *w);
/* What is left of the time cap of a query that began at `since`; MS_NONE without a cap, never 0. */
struct ms gw_time_left(const struct gw_worker *w, struct ms since);
/* As decisions need it. */
struct decide_now gw_decide_now(const struct gw_worker *w);
/* ERR_QUERY_ROWS or ERR_QUERY_BYTES when a result has outgrown its cap. */
int gw_check_caps(const struct gw_worker *w, uint64_t rows, size_t bytes, struct err *e) MUST_USE;
/* Answers with an error; a client may try again later where the code says so. */
void gw_reply_error(struct http_req *r, int code, const char *text);
/* Makes a timeout of the warehouse the query's own. */
void gw_query_error(const struct gw_worker *w, struct err *e);
