/* Inside of the binder: units, what is known and what is in force, and how they get there
 * (protocol.md 6). */
#pragma once
#include "common/generation/core/names.h"
#include "services/gateway/core/sets.h"
#include "services/gateway/port.h"

/* Files, schemas and facts of one load. Owners: packages in force, the flow that loads it. Workers
 * read what packages point at; counts are the main loop's. */
struct gw_load {
    unsigned refs;
    struct gateway *g;
    struct arena arena;
    char load_id[64]; /* also the compiler pool's id */
    Kiln__GetPackageRep *rep;
    struct slice *contents; /* of rep->files; p NULL: not a model file, not fetched */
    struct gw_source *sources;
    size_t n_sources;
    const char **models, **notebooks;
    size_t n_models, n_notebooks;
    char *error; /* the child could not load it; NULL: fine */
};
struct gw_load *gw_load_ref(struct gw_load *l);
void gw_load_unref(struct gw_load *l);

struct gw_unit {
    uint64_t id;
    struct gateway *g;
    char *environment, *name; /* of the newest set */
    uint64_t known, redis_epoch;
    struct buf packed;           /* the newest set, packed */
    struct gw_package *in_force; /* the newest one that went to the workers; NULL: none yet */
    uint64_t applied;            /* epoch that every worker has applied; 0: none yet */
    char applied_load[64];
    struct flow *loading;
    bool lacks_root; /* what is in force is served without its results by binding */
    uint64_t failed_epoch;
    char failed_code[48], failed_text[512];
};
struct gw_broken {
    uint64_t unit;
    char *source_id, *generation, *code;
};
struct gw_binder {
    struct gateway *g;
    struct map units;  /* id -> gw_unit */
    struct map names;  /* "env/pkg" -> gw_unit */
    struct list waits; /* of struct gw_wait */
    struct list swaps; /* of struct gw_swap: on their way to the workers */
    struct list alive; /* of struct gw_package: not freed, oldest first */
    struct gw_broken broken[64];
    size_t n_broken;
    uint64_t sequence, n_writes;
    struct sets_watch watch;
    struct ms asked_at; /* the planner, for sets */
    bool said_hello, hello_out, reporting, report_again, getting, get_again, answered;
    struct bus_call hello_call, report_call, get_call;
    Kiln__HelloReq hello_req;
    Kiln__ReportGatewayReq report_req;
    Kiln__GetBindingsReq get_req;
    struct arena report_arena, get_arena;
    struct loop_timer report_timer, poll_timer;
    struct offload_job root_job; /* while looking_at_root, its thread's with what it reads */
    struct generation_owner root_owner;
    int root_rc;
    bool looking_at_root;
    struct metric *m_applied, *m_auto_loaded, *m_failed, *m_unconfirmed;
    struct service *closing; /* the part closes when cache, calls and loads have ended */
    bool cache_closed, released;
    struct loop_task settle_task;
};
/* binder.c */
void binder_offer(struct gw_binder *b, uint64_t unit, uint64_t epoch, struct slice packed);
void binder_gone(struct gw_binder *b, uint64_t unit);
void binder_advance(struct gw_unit *u); /* starts loading what is known and not in force */
void binder_apply(struct gw_unit *u, struct gw_package *p); /* takes p */
void binder_failed(struct gw_unit *u, uint64_t epoch, int code, const char *text);
/* The set is in force, but its results by binding are out of reach: they are served live until the
 * root is back. */
void binder_lacks_root(struct gw_unit *u, uint64_t epoch, const char *text);
void binder_put_redis(struct gw_unit *u);
void binder_settle(struct gw_binder *b); /* something has ended that the part's close waits for */
/* binder_serve.c: what workers serve, and what they ask */
void binder_serve(struct gw_unit *u, struct gw_package *p); /* takes p; NULL: the unit goes */
void binder_unserve(struct gw_unit *u);
uint64_t binder_oldest(const struct gw_binder *b, const struct gw_unit *u); /* epoch in use */
void binder_wake(struct gw_binder *b, const struct gw_unit *u, int rc);
void binder_wait(struct gw_binder *b, struct gw_wait *q);
void binder_wait_over(struct gw_binder *b, struct gw_wait *q, int rc);
void binder_broken(struct gw_binder *b, const struct gw_package *p, const struct gw_binding *bind,
                   const char *code);
struct gw_unit *binder_named(const struct gw_binder *b, const char *environment, const char *name);
/* binder_sync.c */
void binder_sync_start(struct gw_binder *b);
void binder_sync_stop(struct gw_binder *b);
/* What is known is what planner or Redis had at that time. */
void binder_sets_read(struct gw_binder *b, struct ms at);
void binder_report_now(struct gw_binder *b);
void binder_get_now(struct gw_binder *b);
/* binder_root.c */
/* A package's results were left out at their first use. */
void binder_misses_root(struct gateway *g, const struct gw_package *p, const char *text);
void binder_look_at_root(struct gw_binder *b); /* if some set in force lacks it; off the loop */
/* binder_disk.c */
void binder_disk_read(struct gw_binder *b);  /* sets: at start, before the loop runs */
void binder_disk_conns(struct gw_binder *b); /* connections, to workers that do not run yet */
/* done: it is written, or cannot be (which the log says). */
void binder_disk_set(struct gw_binder *b, uint64_t unit, uint64_t epoch, struct slice packed,
                     void (*done)(void *data), void *data);
void binder_disk_forget(struct gw_binder *b, uint64_t unit);
/* A connection as the planner sent it (sealed), by "<environment>/<name>"; nothing: forgotten. */
void binder_disk_conn(struct gw_binder *b, const char *key, struct slice packed);
char *binder_load_path(struct arena *a, struct gateway *g, const char *load_id);
void binder_disk_load(struct gw_load *l, void (*done)(void *data), void *data);
/* An absent or damaged file gives NULL. Blocking: for offload jobs and the start. */
struct gw_load *binder_load_read_offload(struct gateway *g, const char *path, const char *load_id);
/* flow_load.c */
struct flow *binder_load_start(struct gw_unit *u);
/* package.c */
struct gw_load *gw_load_make(struct gateway *g, struct slice packed_rep, const char *load_id);
void gw_load_finish(struct gw_load *l); /* sources, models from its plan */
struct gw_package *gw_package_make(struct gw_load *l, const Kiln__BindingSet *set);
void gw_load_message(const struct gw_load *l, struct arena *a, struct buf *out);
bool gw_is_model(const char *path);
