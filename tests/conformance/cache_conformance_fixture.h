/* Both caches for one suite: a private redis-server on a unix socket, and Redis in memory; a mirror
 * that remembers, and puts to it. */
#pragma once
#include "common/cache/cache_sim.h"
#include <check.h>
#include <sys/types.h>

enum { REDIS, SIM, RIGS };
enum { PATIENCE_MS = 20000, UNITS = 64 };

/* ---- the server ---- */
struct rig {
    bool is_sim;
    struct loop *loop;
    char dir[32], url[64], socket[48];
    pid_t server;
    struct sim_time time;
    struct cache_world *world;
    struct uuid installation;
};
void rig_init(struct rig *r, int which);
void rig_fini(struct rig *r);
struct ms rig_now(struct rig *r);
void rig_step(struct rig *r);

#define until(r, claim)                                                                            \
    do {                                                                                           \
        struct ms limit = ms_add(rig_now(r), MS(PATIENCE_MS));                                     \
        while (!(claim)) {                                                                         \
            ck_assert_msg(ms_before(rig_now(r), limit), "never: " #claim);                         \
            rig_step(r);                                                                           \
        }                                                                                          \
    } while (0)

void rig_down(struct rig *r);
void rig_up(struct rig *r); /* the server comes back empty, as without persistence */
void rig_flush(struct rig *r);
void rig_poke(struct rig *r, uint64_t unit, struct slice value); /* as another client */
/* One command of another client; the first byte of the answer. */
char redis_say(struct rig *r, size_t n, const struct slice *args);
void end_left_behind(void); /* the server of a test that failed */

/* ---- a mirror that remembers ---- */
struct mirror {
    struct rig *rig;
    struct cache *cache;
    uint64_t epoch[UNITS];
    char packed[UNITS][32];
    int n_sets, n_synced, n_confirmed, n_lost;
    bool is_closed;
};
void mirror_open(struct mirror *m, struct rig *r);
void mirror_ready(struct mirror *m, struct rig *r); /* opened and confirmed */
void mirror_close(struct mirror *m);
/* What mirror_open and mirror_close pass on; of a struct mirror. */
void on_state(void *data, bool is_confirmed, const char *why);
void on_closed(void *data);

struct put {
    struct cache_put put;
    int n_done;
};
void put_start(struct put *p, struct mirror *m, uint64_t unit, uint64_t epoch, struct slice packed);
/* Puts and waits; the epoch in force, or the error. */
int64_t put(struct mirror *m, uint64_t unit, uint64_t epoch, struct slice packed);
