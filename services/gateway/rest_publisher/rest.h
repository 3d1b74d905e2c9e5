/* Inside of the REST API: one request, its answer, and its talk with the planner. All of it is on
 * the worker that has the connection. */
#pragma once
#include "common/json/json.h"
#include "services/gateway/port.h"
#include "services/gateway/rest_publisher/rest_body.h"
#include "services/gateway/rest_publisher/rest_routes.h"

enum {
    REST_AWAY_MS = 3000,   /* no planner is connected: 503 after that; a restart takes less */
    REST_READ_MS = 1500,   /* reads that this gateway can answer without the planner */
    REST_AGAIN_MS = 2000,  /* Retry-After then */
    REST_CHANGE_MS = 5000, /* how long a publish or PATCH waits until its set is in force here */
    REST_RELOAD_MS = 1000, /* the same for a reload, and for Kiln-Min-Epoch */
    REST_PACKAGES_MAX = 4096,
};

/* One request. Lives in its http arena, so it is gone once the answer is given. */
struct rest_call {
    struct gw_worker *w;
    struct http_req *r;
    struct arena *a;
    const struct rest_route *route;
    const char *environment, *package, *connection, *id, *path; /* of the path; NULL: not in it */
    json_t *body;                                               /* dropped by the answer */
    uint8_t trace[16];                                          /* all zero until rest_trace */
    unsigned n_calls; /* to the planner so far: tells their request ids apart */
};

/* ---- rest_answer.c: each of them answers the request; nothing may be touched afterwards ---- */
void rest_reply(struct rest_call *c, int status, struct slice json);
void rest_reply_json(struct rest_call *c, int status, json_t *v); /* takes v */
void rest_reply_empty(struct rest_call *c, int status);
void rest_fail(struct rest_call *c, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
void rest_fail_err(struct rest_call *c, const struct err *e);
/* Parses the body into c->body; false when it answered 400. */
bool rest_take_body(struct rest_call *c, bool may_be_empty);
/* A query parameter, decoded; NULL when absent. */
char *rest_query(struct rest_call *c, const char *key);
bool rest_query_is(struct rest_call *c, const char *key, const char *value);
/* The request's trace id, made when first asked for. */
const uint8_t *rest_trace(struct rest_call *c);
/* Headers that go out with whatever answer this request gets. */
void rest_epoch_header(struct rest_call *c);

/* ---- rest_chain.c: calls to the planner in a row ---- */
enum rest_force { FORCE_NONE, FORCE_EPOCH, FORCE_GONE };
struct rest_item { /* one call, and what is waited for after it */
    enum bus_kind kind;
    const ProtobufCMessage *request; /* in the call's arena */
    struct ms timeout;               /* 0: the kind's own */
    enum rest_force
        force; /* .. until the answer's epoch is in force here, or the package is gone here */
    const char *package;
    uint64_t min_epoch; /* FORCE_EPOCH: at least this one */
    struct ms wait;
    bool may_fail;    /* the chain goes on */
    const char *part; /* of the request's Idempotency-Key; NULL: by its place in the chain */
    /* after it */
    int rc;
    const char *text; /* of an error */
    uint32_t retry_after_ms;
    const char *json; /* of the answer */
    uint64_t epoch;
    char **list; /* ListRuns */
    size_t n_list;
    bool in_force; /* what was waited for has come */
    struct list link;
};
struct rest_chain {
    struct flow flow;
    struct rest_call *c;
    struct list items, over;
    struct rest_item *item; /* under way; in done and failed: the last one */
    struct gw_call bus;
    struct gw_wait wait;
    struct ms wait_until;
    struct loop_timer watch;                                    /* runs once the client is gone */
    void (*after)(struct rest_chain *ch, struct rest_item *it); /* may add items; NULL: none */
    void (*done)(struct rest_chain *ch);                        /* answers the request */
    void (*failed)(struct rest_chain *ch,
                   struct rest_item *it); /* answers; NULL: with the planner's error */
    void *data;
};
struct rest_chain *rest_chain_new(struct rest_call *c,
                                  void (*done)(struct rest_chain *ch)) MUST_USE;
struct rest_item *rest_chain_add(struct rest_chain *ch, enum bus_kind kind,
                                 const ProtobufCMessage *request);
void rest_chain_start(struct rest_chain *ch);
void rest_fail_item(struct rest_call *c, const struct rest_item *it);
/* Asks for the environment's (package: its own) objects; both NULL: for everything. */
struct rest_item *rest_chain_add_status(struct rest_chain *ch, const char *environment,
                                        const char *package);

/* ---- rest_packages.c: what environments need of packages ---- */
struct rest_item *rest_chain_add_delete(struct rest_chain *ch, const char *package);
Kiln__PublishReq *rest_publish_message(struct arena *a, const char *environment,
                                       const struct rest_package *p) MUST_USE;

/* ---- rest_runs.c ---- */
char **rest_texts(struct arena *a, const char *const *texts, size_t n) MUST_USE;

/* ---- rest_json.c: objects as this gateway sees them ---- */
/* The package in force here, binding fields included. The caller decrefs. */
json_t *rest_package_json(const struct gw_worker *w, const struct gw_package *p) MUST_USE;
/* Sets the binding fields of a planner's package object by what is in force here. */
void rest_add_binding(struct gw_worker *w, const char *environment, json_t *package);
void rest_add_bindings(struct gw_worker *w, json_t *environment);
/* What can be told about environments while the planner is away: packages in force. */
json_t *rest_local_environment(struct gw_worker *w, const char *name) MUST_USE;
json_t *rest_local_environments(struct gw_worker *w) MUST_USE;

/* ---- rest_models.c ---- */
/* Runs `then` with the package in force (Kiln-Min-Epoch heeded), or answers 404, 424 or 503. */
void rest_with_package(struct rest_call *c,
                       void (*then)(struct rest_call *c, struct gw_package *p));

/* ---- handlers, one per name in rest_routes.def ---- */
#define ROUTE(method, path, handler, doc) void rest_##handler(struct rest_call *c);
#define LATER(method, path, doc)
#include "services/gateway/rest_publisher/rest_routes.def"
#undef ROUTE
#undef LATER
