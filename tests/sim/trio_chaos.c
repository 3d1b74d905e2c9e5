/* Once a second of scripted time the dice are thrown for everything that may go wrong. */
#include "common/warehouse/wh_sim_store.h"
#include "tests/sim/trio_sim.h"

enum {
    SOON_EVENTS = 200,
    HEAL_MOST_MS = 20000,
    FREEZE_MOST_MS = 40000,
    REDIS_MOST_MS = 15000,
    LOCK_MOST_MS = 8000
};

struct cable { /* of one process */
    struct sim_event heal;
    struct proc *p;
};
struct chaos {
    struct world *w;
    struct sim_event tick, redis_up, unlock;
    struct cable cables[TRIO_PROCS];
    struct proc *victim; /* dies after that many more events */
    uint64_t dies_in;
};

/* ---- single misfortunes ---- */
static void on_heal(struct sim_event *ev)
{
    struct cable *c = container_of(ev, struct cable, heal);
    if (c->p->bus) {
        bus_sim_heal(c->p->bus);
    }
}

static void cut(struct chaos *c)
{
    struct world *w = c->w;
    struct cable *cable = &c->cables[sim_time_below(&w->time, w->n_procs)];
    if (cable->p->bus && !list_linked(&cable->heal.link)) {
        trio_say("%s is unplugged", cable->p->name);
        bus_sim_cut(cable->p->bus);
        sim_time_set(&w->time, &cable->heal, sim_time_between(&w->time, MS(1), MS(HEAL_MOST_MS)));
    }
}

/* As SIGSTOP would: nothing comes in, nothing goes out, and it does not know. */
static void freeze(struct chaos *c)
{
    struct world *w = c->w;
    struct cable *cable = &c->cables[sim_time_below(&w->time, w->n_procs - 1)];
    if (cable->p->bus && !list_linked(&cable->heal.link)) {
        struct ms span = sim_time_between(&w->time, MS(100), MS(FREEZE_MOST_MS));
        trio_say("%s is stopped for %lld ms", cable->p->name, (long long)span.v);
        cable->p->frozen = ms_add(w->time.now, span);
        bus_sim_cut(cable->p->bus);
        sim_time_set(&w->time, &cable->heal, span);
    }
}

static void on_redis_up(struct sim_event *ev)
{
    struct chaos *c = container_of(ev, struct chaos, redis_up);
    cache_world_up(c->w->cache);
}

static void redis(struct chaos *c)
{
    struct world *w = c->w;
    if (sim_time_chance(&w->time, 300)) {
        trio_say("Redis remembers something old");
        redis_restore(w);
    } else if (sim_time_chance(&w->time, 500)) {
        trio_say("Redis forgets everything");
        cache_world_flush(w->cache);
    } else if (!list_linked(&c->redis_up.link)) {
        trio_say("Redis is gone");
        cache_world_down(w->cache);
        sim_time_set(&w->time, &c->redis_up, sim_time_between(&w->time, MS(1), MS(REDIS_MOST_MS)));
    }
}

static struct sim_table *any_table(struct world *w)
{
    struct sim_table *chosen = NULL;
    size_t n = 0;
    list_for_each (it, &w->wh->tables) {
        struct sim_table *t = list_entry(it, struct sim_table, link);
        bool fits = strncmp(t->table, "_kiln_", 6) != 0;
        chosen = fits && sim_time_below(&w->time, ++n) == 0 ? t : chosen;
    }
    return chosen;
}

static void drop_by_hand(struct chaos *c)
{
    struct world *w = c->w;
    const struct sim_table *t = any_table(w);
    if (!t) {
        return;
    }
    auto_free char *name = xstrdup(t->table);
    if (sim_time_chance(&w->time, 600)) {
        trio_say("someone drops %s", name);
        wh_sim_drop_table(w->wh, "public", name);
    } else {
        trio_say("someone puts another table in the place of %s", name);
        wh_sim_put_table(w->wh, "public", name, 3);
    }
}

static void unlock_all(struct world *w)
{
    list_for_each (it, &w->wh->tables) {
        list_entry(it, struct sim_table, link)->locked = false;
    }
}

static void on_unlock(struct sim_event *ev)
{
    unlock_all(container_of(ev, struct chaos, unlock)->w);
}

static void lock_one(struct chaos *c)
{
    struct sim_table *t = any_table(c->w);
    if (t && !list_linked(&c->unlock.link)) {
        trio_say("someone locks %s", t->table);
        t->locked = true;
        sim_time_set(&c->w->time, &c->unlock,
                     sim_time_between(&c->w->time, MS(1), MS(LOCK_MOST_MS)));
    }
}

/* ---- all together ---- */
static void choose_victim(struct chaos *c)
{
    struct world *w = c->w;
    for (size_t i = 0; i < w->n_procs && !c->victim; i++) {
        struct proc *p = &w->procs[i];
        if (p->kind != PROC_PEOPLE && sim_time_chance(&w->time, w->faults.crash[p->kind])) {
            static const int64_t restarts[] = {10, 500, 3000, 20000};
            p->restart = MS(restarts[sim_time_below(&w->time, ARRAY_LEN(restarts))]);
            c->victim = p;
            c->dies_in = 1 + sim_time_below(&w->time, SOON_EVENTS);
        }
    }
}

static void on_tick(struct sim_event *ev)
{
    struct chaos *c = container_of(ev, struct chaos, tick);
    struct world *w = c->w;
    const struct trio_faults *f = &w->faults;
    struct sim_time *t = &w->time;
    if (sim_time_chance(t, f->people)) {
        people_act(w);
    }
    if (sim_time_chance(t, f->hand)) {
        drop_by_hand(c);
    }
    if (sim_time_chance(t, f->lock)) {
        lock_one(c);
    }
    if (sim_time_chance(t, f->redis)) {
        redis(c);
    }
    if (sim_time_chance(t, f->cut)) {
        cut(c);
    }
    if (sim_time_chance(t, f->freeze)) {
        freeze(c);
    }
    if (sim_time_chance(t, f->drain)) {
        struct proc *p = &w->procs[sim_time_below(t, w->n_procs - 1)];
        struct proc *before = proc_enter(p);
        trio_say("%s is asked to end", p->name);
        proc_drain(p);
        proc_leave(before);
    }
    choose_victim(c);
    sim_time_set(t, &c->tick, sim_time_between(t, MS(500), MS(1500)));
}

void chaos_event(struct chaos *c)
{
    struct world *w = c->w;
    struct proc *swapping = w->swapping;
    w->swapping = NULL;
    if (swapping && swapping != c->victim && sim_time_chance(&w->time, w->faults.crash_swap)) {
        swapping->restart = MS(500);
        proc_crash(swapping);
    }
    if (c->victim && --c->dies_in == 0) {
        proc_crash(c->victim);
        c->victim = NULL;
    }
}

struct chaos *chaos_new(struct world *w)
{
    struct chaos *c = xcalloc(1, sizeof(*c));
    c->w = w;
    c->tick.fn = on_tick;
    c->redis_up.fn = on_redis_up;
    c->unlock.fn = on_unlock;
    for (size_t i = 0; i < w->n_procs; i++) {
        c->cables[i].p = &w->procs[i];
        c->cables[i].heal.fn = on_heal;
    }
    sim_time_set(&w->time, &c->tick, MS(0));
    return c;
}

static unsigned some(struct chaos *c, unsigned most)
{
    return (unsigned)sim_time_below(&c->w->time, most + 1);
}

void chaos_choose(struct chaos *c)
{
    struct trio_faults f = {
        .bus = {.delay_most = MS(some(c, 60)),
                .drop = some(c, 120),
                .duplicate = some(c, 120),
                .reorder = some(c, 200),
                .cut = some(c, 15)},
        .cache = {.delay_most = MS(some(c, 20)),
                  .lose_before = some(c, 60),
                  .lose_after = some(c, 60)},
        .store_most = MS(some(c, 30)),
        .wh_most = MS(some(c, 400)),
        .store_lose = some(c, 6),
        .wh_fail = some(c, 120),
        .wh_lose = some(c, 80),
        .wh_late = some(c, 80),
        .crash = {some(c, 40), some(c, 60), some(c, 30)},
        .crash_swap = some(c, 150),
        .drain = some(c, 20),
        .freeze = some(c, 25),
        .redis = some(c, 60),
        .hand = some(c, 40),
        .cut = some(c, 40),
        .lock = some(c, 60),
        .people = 100 + some(c, 500),
    };
    if (sim_time_chance(&c->w->time, 100)) { /* nothing is lost, all is busy */
        f = (struct trio_faults){.people = 700, .store_most = MS(5), .wh_most = MS(100)};
    }
    world_set_faults(c->w, &f);
}

void chaos_free(struct chaos *c)
{
    struct world *w = c->w;
    const struct trio_faults calm = {.store_most = MS(3), .wh_most = MS(20)};
    sim_time_unset(&c->tick);
    sim_time_unset(&c->redis_up);
    sim_time_unset(&c->unlock);
    for (size_t i = 0; i < w->n_procs; i++) {
        sim_time_unset(&c->cables[i].heal);
        w->procs[i].frozen = MS(0);
        on_heal(&c->cables[i].heal);
    }
    cache_world_up(w->cache);
    unlock_all(w);
    world_set_faults(w, &calm);
    free(c);
}
