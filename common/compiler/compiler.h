/* A pool of Malloy compiler children (services/compiler): started in a sandbox, given a deadline,
 * killed and respawned. */
#pragma once
#include "common/base/arena.h"
#include "common/loop/loop.h"
#include <protobuf-c/protobuf-c.h>

struct compiler_pool;
struct compiler_settings {
    unsigned children;    /* at least 1 */
    const char *node;     /* path or name of Node >= 20 */
    const char *bundle;   /* kiln-compiler.js */
    int64_t heap_mb;      /* --max-old-space-size; 0: 256 */
    int64_t rss_limit_mb; /* replaced between two requests above it; 0: 256 */
    unsigned max_waiting; /* more fail with ERR_COMPILER_BUSY; 0: 64 */
    const char *self;     /* our own executable: children start as `self --compiler-child node ..`
                             (sandbox launcher) */
    struct ms
        start_after; /* children start at the first call, without one after so long; 0: at once */
};
/* Starts one child, the others when it answers, so that they do not slow it down (on a thread that
 * lives as long as the process: they die with it); `on_ready` runs when the first has answered
 * hello (again after a full outage). Beside the bundle x.js may lie x.blob, a snapshot of it made
 * by the very same Node: children start from that, and from the bundle once one was refused. */
struct compiler_pool *compiler_pool_new(struct loop *l, const struct compiler_settings *s,
                                        void (*on_ready)(void *data, bool ready, const char *why),
                                        void *data) MUST_USE;
void compiler_pool_close(struct compiler_pool *p, void (*done)(void *data), void *data);
void compiler_pool_free(struct compiler_pool *p);
const char *
compiler_version(const struct compiler_pool *p); /* Malloy's version; "" before the first hello */

/* Keeps a packed kiln.mc.Load (copied) under its id: any child that needs it gets it replayed by
 * itself. */
void compiler_keep(struct compiler_pool *p, const char *load_id, struct slice packed_load);
void compiler_forget(struct compiler_pool *p,
                     const char *load_id); /* unloads it from the children too */

/* For metrics. */
struct compiler_stats {
    unsigned ready;    /* children that have answered hello and live */
    unsigned running;  /* calls in work */
    unsigned waiting;  /* calls that wait for a child */
    uint64_t started;  /* children, ever */
    uint64_t died;     /* children that ended by themselves or talked rubbish */
    uint64_t timeouts; /* children killed at a deadline */
    uint64_t replaced; /* children replaced for their size */
    uint64_t replays;  /* loads sent again by the pool */
    uint64_t calls;    /* calls started */
};
void compiler_pool_stats(const struct compiler_pool *p, struct compiler_stats *out);

struct compiler_call {
    /* set by the caller */
    const char *kind; /* "load", "query", .. of proto/compiler.proto */
    const char
        *load_id; /* the load it needs, kept before; NULL: none ("load" itself names its own) */
    const ProtobufCMessage *request; /* packed in compiler_call_start */
    struct ms timeout; /* of the work in the child, then SIGKILL and ERR_COMPILER_TIMEOUT; waiting
                          comes on top (same span); 0: 30 s */
    void (*done)(struct compiler_call *c); /* on the loop, exactly once, never inside the start */
    void *data;
    /* set when done; valid inside done only */
    int rc; /* ERR_COMPILE for an "error" answer: err.text is for people */
    struct err err;
    const char *reply_kind;
    struct slice reply; /* packed payload */
    struct slice frame; /* the whole packed Frame (its problems, error_code) */
    void *impl;
};
void compiler_call_start(struct compiler_pool *p, struct compiler_call *c);
void compiler_call_cancel(struct compiler_call *c); /* a call that runs already is let run; done
                                                       comes with ERR_CANCELLED */
/* `self --compiler-child node ..` lands here first thing in main: closes descriptors, seccomp,
 * exec. Returns only when argv is not that. */
int compiler_child_main(int argc, char **argv, bool *was_child);
