/* Both transports of the bus for one suite: a network of either kind, a server that does what it is
 * told, and calls to it. */
#pragma once
#include "common/bus/bus_sim.h"
#include "proto/planner.pb-c.h"
#include <check.h>

enum { NNG, SIM, RIGS };
enum { PATIENCE_MS = 15000, ENDS_MOST = 6 };

/* ---- the network ---- */
struct rig {
    bool is_sim;
    struct loop *loop;
    struct sim_time time;
    struct bus_world *world;
    char dir[32];
    char url[3][64];
    struct bus *ends[ENDS_MOST];
    size_t n_ends;
};
void rig_init(struct rig *r, int which);
void rig_fini(struct rig *r); /* closes the ends that are still there */
struct ms rig_now(struct rig *r);
void rig_step(struct rig *r);
/* Lets time pass, and whatever is due in it. */
void rig_wait(struct rig *r, int64_t ms);

#define until(r, claim)                                                                            \
    do {                                                                                           \
        struct ms limit = ms_add(rig_now(r), MS(PATIENCE_MS));                                     \
        while (!(claim)) {                                                                         \
            ck_assert_msg(ms_before(rig_now(r), limit), "never: " #claim);                         \
            rig_step(r);                                                                           \
        }                                                                                          \
    } while (0)

/* A new end of the installation whose id is made of `site`; 0: it has none yet. */
struct bus *rig_end(struct rig *r, const char *instance, const char *key, uint8_t site);
void rig_close(struct rig *r, struct bus *b); /* closes an end and frees it */
void on_closed(void *data);                   /* of bus_close: sets the bool it is given */
void dial(struct bus *b, const char *const *urls, size_t n);

/* ---- a server that does what it is told ---- */
struct server {
    int answers_with;  /* an error, or 0 */
    int failures_left; /* answers with the error that often, then well */
    uint32_t retry_after_ms;
    bool holds; /* keeps requests in held */
    struct bus_request *held[32];
    int n_held, n_calls;
    uint8_t last_id[16];
    char last_instance[32];
    struct ms last_budget; /* deadline */
    bool ids_differ;
};
void serve(struct bus *b, const char *url, unsigned held, struct server *s);
void on_request(void *data, struct bus_request *r); /* of a struct server */
void release(struct server *s);                     /* answers what it holds */

/* ---- a call ---- */
struct ask {
    struct bus_call call;
    Kiln__GetRunReq req;
    int n_done;
    char reply[64];
};
void on_done(struct bus_call *c); /* of a struct ask */
void ask_start(struct ask *a, struct bus *b, const char *id, int64_t timeout_ms);
void ask_and_wait(struct rig *r, struct ask *a, struct bus *b, const char *id, int64_t ms);

/* Two ends, one server, one caller. */
struct pair {
    struct rig rig;
    struct server server;
    struct bus *planner, *builder;
};
void pair_init(struct pair *p, int which, const char *server_key, const char *caller_key);
/* Without keys, and with a call that has arrived and is not answered. */
void pair_with_held_call(struct pair *p, struct ask *a, int which, int64_t timeout_ms);
