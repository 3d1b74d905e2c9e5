/* Processes that start, die and come back, and the world around them. */
#include "tests/sim/trio_world.h"

#include <ftw.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { UNIX_START_S = 1766012345, END_MOST_MS = 30000, AT_ONCE_MOST = 20000 };

static struct world *the_world;
static struct proc *the_proc;
bool trio_verbose;

struct world *world_now(void)
{
    return the_world;
}

void trio_fail(const char *fmt, ...)
{
    const struct world *w = the_world;
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "seed %llu, event %llu, %lld ms: ", (unsigned long long)w->seed,
            (unsigned long long)w->time.steps, (long long)w->time.now.v);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\nreplay: %s\n", w->replay);
    va_end(ap);
    abort();
}

/* Never twice the same, as a clock that is read in microseconds. */
int64_t world_unix_us(struct world *w)
{
    int64_t us = UNIX_START_S * INT64_C(1000000) + w->time.now.v * 1000;
    w->last_us = us > w->last_us ? us : w->last_us + 1;
    return w->last_us;
}

/* ---- who runs ---- */
struct proc *proc_now(void)
{
    return the_proc;
}

struct proc *proc_enter(struct proc *p)
{
    struct proc *before = the_proc;
    the_proc = p;
    (void)heap_enter(p ? &p->heap : NULL);
    return before;
}

void proc_leave(struct proc *before)
{
    the_proc = before;
    (void)heap_enter(before ? &before->heap : NULL);
}

struct proc *proc_of_bus(struct world *w, const struct bus *b)
{
    for (size_t i = 0; i < w->n_procs; i++) {
        if (w->procs[i].bus == b) {
            return &w->procs[i];
        }
    }
    return NULL;
}

struct proc *world_proc(struct world *w, enum proc_kind kind, size_t at)
{
    for (size_t i = 0; i < w->n_procs; i++) {
        if (w->procs[i].kind == kind && at-- == 0) {
            return &w->procs[i];
        }
    }
    return NULL;
}

/* ---- life and death ---- */
void proc_start(struct proc *p)
{
    static void (*const make[])(struct proc * p) = {
        [PROC_PLANNER] = planner_make,
        [PROC_BUILDER] = builder_make,
        [PROC_GATEWAY] = gateway_make,
        [PROC_PEOPLE] = people_make,
    };
    must(!p->loop);
    p->n_starts++;
    p->leaving = false;
    memset(p->ever, 0, sizeof(p->ever));
    p->loop = loop_sim_new(&p->w->time, p);
    struct proc *before = proc_enter(p);
    make[p->kind](p);
    proc_leave(before);
}

/* Nothing of it is left but what it has sent and what lies on its disk. */
static void vanish(struct proc *p)
{
    if (!p->loop) {
        return;
    }
    ends_crash(p);
    wires_crash(p);
    store_sim_crash(p);
    loop_sim_drop(p->loop);
    p->loop = NULL;
    p->service = NULL;
    sim_time_unset(&p->ends);
    p->frozen = MS(0);
    heap_drop(&p->heap);
}

void proc_crash(struct proc *p)
{
    if (!p->loop) {
        return;
    }
    trio_say("%s is killed", p->name);
    p->w->n_crashes++;
    vanish(p);
    sim_time_set(&p->w->time, &p->starts, p->restart);
}

static void on_start(struct sim_event *ev)
{
    proc_start(container_of(ev, struct proc, starts));
}

static void on_end(struct sim_event *ev)
{
    struct proc *p = container_of(ev, struct proc, ends);
    const char *left = loop_sim_left(p->loop);
    trio_say("%s has ended, %zu pieces of memory left", p->name, p->heap.n);
    if (left) {
        trio_fail("%s ends and leaves behind: %s", p->name, left);
    }
    ends_crash(p);
    wires_crash(p);
    service_sim_free(p->service);
    if (!heap_clean(&p->heap)) {
        trio_fail("%s ends and leaves %zu pieces of memory", p->name, p->heap.n);
    }
    vanish(p);
    if (!p->stays) {
        sim_time_set(&p->w->time, &p->starts, p->restart);
    }
}

static void add_proc(struct world *w, enum proc_kind kind, const char *name, unsigned number)
{
    struct proc *p = &w->procs[w->n_procs++];
    p->w = w;
    p->kind = kind;
    snprintf(p->name, sizeof(p->name), number ? "%s-%u" : "%s", name, number);
    auto_free char *dir = xasprintf("%s/%s", w->dir, p->name);
    snprintf(p->state_dir, sizeof(p->state_dir), "%s", dir);
    heap_init(&p->heap);
    list_init(&p->wires);
    list_init(&p->puts);
    p->starts.fn = on_start;
    p->ends.fn = on_end;
    p->restart = MS(500);
}

/* ---- the world ---- */
/* The packages are loaded before anything starts: rows as a publish would have left them. */
static void publish_all(struct world *w)
{
    static const struct coord_limits limits = {.lease = {10000}, .attempts = 3};
    struct arena a;
    struct coord_out o;
    arena_init(&a);
    coord_out_init(&o, &a);
    struct coord *c = coord_new(&w->installation, &limits);
    const struct coord_now now = {.unix_us = world_unix_us(w)};
    memory_store_load(w->rows, c, now);
    for (size_t i = 0; i < w->n_units; i++) {
        struct trio_unit *u = &w->units[i];
        const struct coord_unit_row row = {.id = u->id,
                                           .load = package_load_add(w, u, 0)->id,
                                           .environment = TRIO_ENVIRONMENT,
                                           .name = u->name};
        coord_unit_load(c, now, &row, "publish", NULL, 0, &o);
    }
    const char *wrong = memory_store_apply(w->rows, &o.rows);
    if (wrong) {
        trio_fail("the first rows are refused: %s", wrong);
    }
    coord_free(c);
    arena_fini(&a);
}

static void populate(struct world *w, const struct trio_shape *shape)
{
    struct trio_shape s = {.builders = 1 + (unsigned)sim_time_below(&w->time, TRIO_BUILDERS),
                           .slots = 1 + (unsigned)sim_time_below(&w->time, 2),
                           .gateways = (unsigned)sim_time_below(&w->time, TRIO_GATEWAYS + 1),
                           .units = 1 + (unsigned)sim_time_below(&w->time, TRIO_UNITS)};
    s = shape ? *shape : s;
    w->units[0].shares_results = sim_time_chance(&w->time, 500);
    w->n_units = s.units;
    for (size_t i = 0; i < w->n_units; i++) {
        package_make(w, &w->units[i], shape);
    }
    publish_all(w);
    add_proc(w, PROC_PLANNER, "planner", 0);
    for (unsigned i = 1; i <= s.builders; i++) {
        add_proc(w, PROC_BUILDER, "builder", i);
        w->procs[w->n_procs - 1].slots = s.slots;
    }
    for (unsigned i = 1; i <= s.gateways; i++) {
        add_proc(w, PROC_GATEWAY, "gateway", i);
    }
    add_proc(w, PROC_PEOPLE, "people", 0);
}

struct world *world_new(uint64_t seed, const struct trio_shape *shape)
{
    json_set_alloc_funcs(malloc, free); /* ours, as they are wrapped here */
    struct world *w = xcalloc(1, sizeof(*w));
    the_world = w;
    w->seed = seed;
    snprintf(w->replay, sizeof(w->replay), "trio_sim --seed %llu", (unsigned long long)seed);
    snprintf(w->dir, sizeof(w->dir), "/tmp/trio_sim.XXXXXX");
    must(mkdtemp(w->dir));
    sim_time_init(&w->time, seed);
    w->bus = bus_world_new(&w->time);
    w->cache = cache_world_new(&w->time);
    w->wh_loop = loop_sim_new(&w->time, NULL);
    w->wh = wh_sim_new(w->wh_loop);
    w->log = wire_log_new();
    w->rows = memory_store_new();
    map_init(&w->answered);
    w->installation = uuid_random();
    populate(w, shape);
    for (size_t i = 0; i < w->n_procs; i++) {
        proc_start(&w->procs[i]);
    }
    return w;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    return remove(path);
}

static bool end_all(struct world *w)
{
    bool ended = true;
    for (size_t i = 0; i < w->n_procs; i++) {
        struct proc *p = &w->procs[i];
        p->stays = true;
        ended = ended && !p->loop;
        if (p->loop && !p->leaving) {
            struct proc *before = proc_enter(p);
            proc_drain(p);
            proc_leave(before);
        }
    }
    return ended;
}

void world_free(struct world *w)
{
    struct ms until = ms_add(w->time.now, MS(END_MOST_MS));
    while (!end_all(w)) {
        must(world_step(w));
        if (ms_before(until, w->time.now)) {
            trio_fail("the processes do not end");
        }
    }
    while (wires_busy(w)) { /* of processes that are gone */
        must(sim_time_step(&w->time));
    }
    for (size_t i = 0; i < TRIO_BACKUPS; i++) {
        buf_fini(&w->backups[i].packed);
    }
    wire_log_free(w->log);
    wh_sim_free(w->wh);
    loop_sim_drop(w->wh_loop);
    memory_store_free(w->rows);
    store_sim_forget_answers(w);
    cache_world_free(w->cache);
    bus_world_free(w->bus);
    (void)nftw(w->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(w);
    the_world = NULL;
}

bool world_step(struct world *w)
{
    struct ms before = w->time.now;
    bool more = sim_time_step(&w->time);
    w->at_once = w->time.now.v == before.v ? w->at_once + 1 : 0;
    if (w->at_once > AT_ONCE_MOST) {
        trio_fail("something goes round in circles and takes no time");
    }
    return more;
}

void world_set_faults(struct world *w, const struct trio_faults *f)
{
    w->faults = *f;
    bus_world_set_faults(w->bus, &f->bus);
    cache_world_set_faults(w->cache, &f->cache);
}
