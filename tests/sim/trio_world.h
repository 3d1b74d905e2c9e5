/* The trio in one process: planner, builders and gateways as they are, each with its own loop and
 * memory, over a scripted bus, run store, Redis and warehouse. Everything moves by one queue of
 * events and one seed (protocol.md 1 to 7). */
#pragma once
#include "common/bus/bus_sim.h"
#include "common/cache/cache_sim.h"
#include "common/service/service.h"
#include "common/warehouse/wh_sim.h"
#include "tests/sim/memory_store.h"
#include "tests/sim/trio_heap.h"

enum { TRIO_BUILDERS = 3, TRIO_GATEWAYS = 2, TRIO_UNITS = 3, TRIO_SOURCES = 6, TRIO_LOADS = 256 };
enum { TRIO_BACKUPS = 16 };
enum { TRIO_PROCS = 2 + TRIO_BUILDERS + TRIO_GATEWAYS };

/* ---- processes ---- */
enum proc_kind { PROC_PLANNER, PROC_BUILDER, PROC_GATEWAY, PROC_PEOPLE };
struct gw_worker;
struct world;
struct proc {
    struct world *w;
    enum proc_kind kind;
    char name[24];
    struct heap heap;
    struct loop *loop; /* NULL: it is not running */
    struct service *service;
    struct bus *bus;
    struct cache *cache;
    void (*on_cache_closed)(void *data);
    void *cache_closed_data;
    struct cache_ear *ear;
    struct store *store; /* a planner's */
    struct list wires;   /* of struct wire: its warehouse connections */
    struct list puts;    /* of struct put (trio_ends.c): writes to Redis in flight */
    struct sim_event starts, ends;
    struct ms frozen;  /* until then it does nothing (SIGSTOP) */
    struct ms restart; /* how long after its end it starts again */
    unsigned n_starts;
    unsigned slots; /* a builder's */
    bool leaving;   /* a drain has begun */
    bool stays;     /* it does not start again */
    char state_dir[128];
    uint64_t served[TRIO_UNITS + 1]; /* the same over all its lives */
    uint64_t ever[TRIO_UNITS + 1];   /* a gateway: greatest epoch in force in this life, by unit */
};
/* Code of p runs until proc_leave; NULL: the world's. */
struct proc *proc_enter(struct proc *p);
void proc_leave(struct proc *before);
struct proc *proc_now(void);
void proc_start(struct proc *p);
void proc_crash(struct proc *p); /* kill -9; it starts again after p->restart */
void proc_drain(struct proc *p); /* SIGTERM, or a failure of its own */
struct proc *proc_of_bus(struct world *w, const struct bus *b);

/* ---- what goes wrong ---- */
struct trio_faults { /* chances in permille */
    struct bus_faults bus;
    struct cache_faults cache;
    struct ms store_most, wh_most; /* delays of the run store and of the warehouse */
    unsigned store_lose;           /* a commit fails, done or not */
    unsigned wh_fail;              /* an operation is not done */
    unsigned wh_lose;              /* it is done, its answer is lost */
    unsigned wh_late;              /* it arrives 5 to 30 s late */
    unsigned crash[PROC_PEOPLE];   /* of that kind of process, per second */
    unsigned crash_swap;           /* a builder that has just sent its swap */
    unsigned drain;                /* some process is ended and started again, per second */
    unsigned redis;  /* Redis goes away, forgets, or remembers something old, per second */
    unsigned freeze; /* a process is stopped for some time, per second */
    unsigned hand;   /* someone drops a table by hand, per second */
    unsigned cut;    /* a process is unplugged from the bus for some time, per second */
    unsigned lock;   /* a reader holds a table for some time, per second */
    unsigned people; /* they ask for something, per second */
};

/* ---- packages ---- */
struct trio_source {
    int parent;  /* -1: reads no other */
    bool shared; /* wants the name that other packages want too */
};
struct trio_unit {
    uint64_t id;
    char name[16];
    struct trio_source sources[TRIO_SOURCES];
    size_t n;
    unsigned version;    /* of its text; a load is of one */
    bool shares_results; /* its shared source is the same build in every package */
};
struct trio_load { /* row of kiln.load */
    uint64_t id, unit;
    unsigned version;
};

/* ---- the world ---- */
struct wire_log;
struct trio_backup { /* what a key of Redis was set to once */
    uint64_t unit, epoch;
    struct buf packed;
};
struct world {
    uint64_t seed;
    char replay[96]; /* the command that shows it again */
    struct sim_time time;
    struct bus_world *bus;
    struct cache_world *cache;
    struct trio_backup backups[TRIO_BACKUPS];
    size_t n_backups; /* ever made */
    struct wh_sim *wh;
    struct loop *wh_loop;
    struct wire_log *log;
    struct memory_store *rows;
    struct map answered; /* store_sim_answered.c */
    struct uuid installation;
    uint64_t term;
    struct trio_unit units[TRIO_UNITS];
    size_t n_units;
    struct trio_load loads[TRIO_LOADS];
    size_t n_loads;
    struct proc *swapping; /* has just sent a swap; NULL: nobody */
    struct proc procs[TRIO_PROCS];
    size_t n_procs;
    struct trio_faults faults;
    char dir[64];
    uint64_t at_once;    /* events in a row that took no time */
    int64_t last_us;     /* of the wall clock */
    uint64_t wh_ops;     /* statements sent so far */
    uint64_t wh_fail_at; /* this one fails ... */
    int wh_fail_code;    /* ... with this code ... */
    bool wh_fail_after;  /* ... after it was done */
    uint64_t n_crashes, n_drains, n_reads, n_baked, n_broken, n_publishes, n_fenced, n_resolves,
        n_asked, n_answered;
};
struct trio_shape {
    unsigned builders, slots, gateways, units;
};
/* A world from a seed, everything started. shape NULL: by the seed. */
struct world *world_new(uint64_t seed, const struct trio_shape *shape) MUST_USE;
/* Ends every process in good order, then the world. */
void world_free(struct world *w);
struct world *world_now(void);
/* One event. False: nothing will ever happen. */
bool world_step(struct world *w);
void world_set_faults(struct world *w, const struct trio_faults *f);
struct proc *world_proc(struct world *w, enum proc_kind kind,
                        size_t at); /* NULL: there is no such one */
int64_t world_unix_us(struct world *w);
NORETURN void trio_fail(const char *fmt, ...) PRINTF_LIKE(1, 2);
extern bool trio_verbose; /* print log lines and what is done to the trio */
void trio_say(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* trio_package.c */
void package_make(struct world *w, struct trio_unit *u, const struct trio_shape *shape);
struct trio_unit *package_unit(struct world *w, uint64_t id);
struct trio_unit *package_named(struct world *w, const char *name, size_t len);
char *package_build(struct arena *a, const struct trio_unit *u, size_t source, unsigned version);
char *package_table(struct arena *a, const struct trio_unit *u, size_t source);
struct slice package_loaded(struct arena *a, const struct trio_unit *u, unsigned version);
struct trio_load *package_load(struct world *w, uint64_t id);
struct trio_load *package_load_add(struct world *w, struct trio_unit *u, unsigned version);
uint64_t package_rows(const struct trio_unit *u, size_t source); /* what its table must hold */

/* trio_planner.c, trio_builder.c, trio_gateway.c: a process's parts and settings */
void planner_make(struct proc *p);
void builder_make(struct proc *p);
void gateway_make(struct proc *p);
bool builder_is_idle(const struct proc *p);
uint64_t gateway_epoch(const struct proc *p, uint64_t unit); /* in force; 0 none */
struct coord *planner_coord(const struct proc *p);           /* NULL: not serving */
void planner_sweep_now(struct proc *p);
/* trio_reader.c: queries, as a part of a gateway */
void reader_open(struct gw_worker *w);
void reader_close(struct gw_worker *w);

/* store_sim.c */
void store_sim_crash(struct proc *p);
bool store_sim_idle(const struct proc *p);
void store_sim_forget_answers(struct world *w);

/* service_sim.c */
struct service_state { /* what a process is made of */
    const struct service_part *parts;
    size_t n_parts;
    void *settings, *state;
};
struct service *service_sim_new(struct proc *p, const struct service_state *s);
void service_sim_free(struct service *s); /* after its end */

/* loop_sim.c */
struct loop *loop_sim_new(struct sim_time *t, struct proc *p) MUST_USE;
void loop_sim_drop(struct loop *l);
const char *
loop_sim_left(const struct loop *l); /* what a process that ends must not leave; NULL: nothing */

/* trio_ends.c */
void ends_crash(struct proc *p);
void redis_restore(struct world *w); /* a key holds again what it held before */

/* trio_wire.c */
void wires_crash(struct proc *p);
size_t wires_busy(const struct world *w);    /* statements on their way or at work */
size_t wires_writing(const struct world *w); /* those that are no reader's */
struct wire_log *wire_log_new(void);
void wire_log_free(struct wire_log *l);
/* Which attempt made the table that stands there; 0: none of ours. */
uint64_t wire_log_token(const struct world *w, const char *schema, const char *table);

/* trio_people.c */
void people_make(struct proc *p);
void people_act(struct world *w); /* one thing at random */
/* Asked, not yet answered. source: only that one; NULL: all. */
bool people_run(struct world *w, const struct trio_unit *u, bool force, const char *source);
bool people_stop_run(struct world *w, const struct row_run *r);
bool people_delete(struct world *w, const struct row_run *r, bool drop);
bool people_reload(struct world *w, struct trio_unit *u, bool changed);
bool people_unbind(struct world *w, const struct trio_unit *u);
bool people_remove(struct world *w, const struct trio_unit *u);
size_t people_waiting(const struct world *w); /* calls not answered */
const struct row_run *people_newest(const struct world *w, uint64_t unit);

/* trio_check.c */
void trio_check(struct world *w);     /* after every event */
void trio_check_end(struct world *w); /* when everything has come to rest */
bool trio_at_rest(struct world *w);

/* What every process is told: one environment, one connection. */
#define TRIO_ENVIRONMENT "e"
#define TRIO_CONNECTION "pg"
#define TRIO_KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define TRIO_CALL "ipc:///planner/call"
#define TRIO_EVENT "ipc:///planner/event"
#define TRIO_MODEL "m.malloy"
