/* The processes' ends of the bus and of Redis: made in their world, and every call up into a
 * process is made as that process. Also where randomness comes from. */
#include "common/bus/bus_internal.h"
#include "common/bus/bus_sim_internal.h"
#include "tests/sim/trio_world.h"

/* ---- the bus's clock: timers of a call are the process's own ---- */
static struct ms clock_now(void *clock)
{
    struct sim_time *t = clock;
    return t->now;
}

static void on_timer(struct loop_timer *real)
{
    struct bus_timer *t = real->data;
    t->fn(t);
}

static void clock_init(void *clock, struct bus_timer *t)
{
    (void)clock;
    loop_timer_init(&t->u.real, proc_now()->loop, on_timer, t);
}

static void clock_start(void *clock, struct bus_timer *t, struct ms after)
{
    (void)clock;
    loop_timer_start(&t->u.real, after);
}

static void clock_stop(struct bus_timer *t)
{
    loop_timer_stop(&t->u.real);
}

static void clock_random(void *clock, void *out, size_t len)
{
    (void)clock;
    random_bytes(out, len);
}

const struct bus_clock_ops bus_clock_scripted = {.now = clock_now,
                                                 .init = clock_init,
                                                 .start = clock_start,
                                                 .stop = clock_stop,
                                                 .random = clock_random};

struct bus *bus_new(struct loop *l, const struct bus_identity *me)
{
    struct proc *p = proc_now();
    must(p && p->loop == l && !p->bus);
    p->bus = bus_sim_new(p->w->bus, me);
    return p->bus;
}

/* ---- from the world into a process ---- */
void __real_bus_up_connected(struct bus *b, size_t address, bool is_connected);
void __real_bus_up_answer(struct bus *b, struct bus_attempt *a, int rc, struct slice frame);
void __real_bus_up_request(struct bus_server *s, void *seat, struct slice frame);
void __real_bus_up_hint(struct bus_subscriber *s, struct slice frame);
void __real_bus_up_closed(struct bus *b);
void __wrap_bus_up_connected(struct bus *b, size_t address, bool is_connected);
void __wrap_bus_up_answer(struct bus *b, struct bus_attempt *a, int rc, struct slice frame);
void __wrap_bus_up_request(struct bus_server *s, void *seat, struct slice frame);
void __wrap_bus_up_hint(struct bus_subscriber *s, struct slice frame);
void __wrap_bus_up_closed(struct bus *b);
void __real_bus_free(struct bus *b);
void __wrap_bus_free(struct bus *b);
void __wrap_random_bytes(void *out, size_t len);

void __wrap_bus_up_connected(struct bus *b, size_t address, bool is_connected)
{
    struct proc *before = proc_enter(proc_of_bus(world_now(), b));
    __real_bus_up_connected(b, address, is_connected);
    proc_leave(before);
}

void __wrap_bus_up_answer(struct bus *b, struct bus_attempt *a, int rc, struct slice frame)
{
    struct proc *before = proc_enter(proc_of_bus(world_now(), b));
    __real_bus_up_answer(b, a, rc, frame);
    proc_leave(before);
}

void __wrap_bus_up_request(struct bus_server *s, void *seat, struct slice frame)
{
    struct proc *before = proc_enter(proc_of_bus(world_now(), s->bus));
    __real_bus_up_request(s, seat, frame);
    proc_leave(before);
}

void __wrap_bus_up_hint(struct bus_subscriber *s, struct slice frame)
{
    struct proc *before = proc_enter(proc_of_bus(world_now(), s->bus));
    __real_bus_up_hint(s, frame);
    proc_leave(before);
}

void __wrap_bus_up_closed(struct bus *b)
{
    struct proc *before = proc_enter(proc_of_bus(world_now(), b));
    __real_bus_up_closed(b);
    proc_leave(before);
}

void __wrap_bus_free(struct bus *b)
{
    struct proc *p = b ? proc_of_bus(world_now(), b) : NULL;
    if (p) {
        p->bus = NULL;
    }
    __real_bus_free(b);
}

/* ---- messages in flight are nobody's ---- */
struct message *__real_sim_message_new(struct bus_world *w, enum message_kind kind,
                                       struct slice frame);
struct message *__wrap_sim_message_new(struct bus_world *w, enum message_kind kind,
                                       struct slice frame);
void __real_sim_transmit(struct message *m);
void __wrap_sim_transmit(struct message *m);

struct message *__wrap_sim_message_new(struct bus_world *w, enum message_kind kind,
                                       struct slice frame)
{
    struct proc *before = proc_enter(NULL);
    struct message *m = __real_sim_message_new(w, kind, frame);
    proc_leave(before);
    return m;
}

void __wrap_sim_transmit(struct message *m)
{
    struct proc *before = proc_enter(NULL);
    __real_sim_transmit(m);
    proc_leave(before);
}

/* ---- Redis ---- */
struct put {
    struct cache_put inner;
    struct cache_put *outer;
    struct proc *proc;
    struct list link; /* proc->puts */
};
/* A process has one: what it asked to be told. */
struct cache_ear {
    struct cache_events ev;
    struct proc *proc;
};

static void on_set(void *data, uint64_t unit, uint64_t epoch, struct slice packed)
{
    struct cache_ear *ear = data;
    struct proc *before = proc_enter(ear->proc);
    ear->ev.on_set(ear->ev.data, unit, epoch, packed);
    proc_leave(before);
}

static void on_synced(void *data)
{
    struct cache_ear *ear = data;
    struct proc *before = proc_enter(ear->proc);
    ear->ev.on_synced(ear->ev.data);
    proc_leave(before);
}

static void on_state(void *data, bool confirmed, const char *why)
{
    struct cache_ear *ear = data;
    struct proc *before = proc_enter(ear->proc);
    ear->ev.on_state(ear->ev.data, confirmed, why);
    proc_leave(before);
}

struct cache *cache_open(struct loop *l, const char *url, const struct uuid *installation,
                         const struct uuid *boot, const struct cache_events *ev, struct err *e)
{
    struct proc *p = proc_now();
    (void)url;
    (void)boot;
    (void)e;
    must(p && p->loop == l && !p->cache);
    struct cache_ear *ear = xcalloc(1, sizeof(*ear)); /* the process's: it dies with it */
    ear->ev = *ev;
    ear->proc = p;
    p->ear = ear;
    const struct cache_events mine = {
        .data = ear, .on_set = on_set, .on_synced = on_synced, .on_state = on_state};
    struct proc *before = proc_enter(NULL);
    p->cache = cache_sim_open(p->w->cache, installation, &mine);
    proc_leave(before);
    return p->cache;
}

void __real_cache_put_start(struct cache *c, struct cache_put *p);
void __wrap_cache_put_start(struct cache *c, struct cache_put *p);
void __real_cache_free(struct cache *c);
void __wrap_cache_free(struct cache *c);
void __real_cache_close(struct cache *c, void (*done)(void *data), void *data);
void __wrap_cache_close(struct cache *c, void (*done)(void *data), void *data);

static void on_put(struct cache_put *inner)
{
    struct put *mine = container_of(inner, struct put, inner);
    struct cache_put *outer = mine->outer;
    struct proc *p = mine->proc;
    outer->rc = inner->rc;
    outer->err = inner->err;
    outer->in_force = inner->in_force;
    list_del(&mine->link);
    free(mine);
    struct proc *before = proc_enter(p);
    outer->done(outer);
    proc_leave(before);
}

void __wrap_cache_put_start(struct cache *c, struct cache_put *outer)
{
    struct proc *p = proc_now();
    struct proc *before = proc_enter(NULL);
    struct put *mine = xcalloc(1, sizeof(*mine));
    mine->inner = (struct cache_put){
        .unit = outer->unit, .epoch = outer->epoch, .packed = outer->packed, .done = on_put};
    mine->outer = outer;
    mine->proc = p;
    list_add_tail(&p->puts, &mine->link);
    struct trio_backup *old = &p->w->backups[p->w->n_backups++ % TRIO_BACKUPS];
    old->unit = outer->unit;
    old->epoch = outer->epoch;
    buf_clear(&old->packed);
    buf_add_slice(&old->packed, outer->packed);
    __real_cache_put_start(c, &mine->inner);
    proc_leave(before);
}

void __wrap_cache_free(struct cache *c)
{
    struct proc *p = proc_now();
    p->cache = NULL;
    free(p->ear);
    __real_cache_free(c);
}

static void on_cache_closed(void *data)
{
    struct proc *p = data;
    struct proc *before = proc_enter(p);
    p->on_cache_closed(p->cache_closed_data);
    proc_leave(before);
}

void __wrap_cache_close(struct cache *c, void (*done)(void *data), void *data)
{
    struct proc *p = proc_now();
    p->on_cache_closed = done;
    p->cache_closed_data = data;
    __real_cache_close(c, on_cache_closed, p);
}

void redis_restore(struct world *w)
{
    size_t n = w->n_backups < TRIO_BACKUPS ? w->n_backups : TRIO_BACKUPS;
    if (n == 0) {
        return;
    }
    const struct trio_backup *old = &w->backups[sim_time_below(&w->time, n)];
    auto_buf struct buf value = {0};
    buf_addf(&value, "%020llu", (unsigned long long)old->epoch);
    buf_add_slice(&value, buf_slice(&old->packed));
    cache_world_poke(w->cache, &w->installation, old->unit, buf_slice(&value));
}

/* ---- the end of a process ---- */
void ends_crash(struct proc *p)
{
    if (p->bus) {
        bus_sim_crash(p->bus);
        p->bus = NULL;
    }
    if (p->cache) {
        cache_sim_crash(p->cache);
        p->cache = NULL;
    }
    for (struct list *it; (it = list_take_head(&p->puts)) != NULL;) {
        free(list_entry(it, struct put, link));
    }
}

/* ---- randomness ---- */
void __wrap_random_bytes(void *out, size_t len)
{
    uint8_t *at = out;
    for (size_t i = 0; i < len; i++) {
        at[i] = (uint8_t)(sim_time_random(&world_now()->time) >> 32);
    }
}
