#include "common/flow/sim_time.h"

static uint64_t split_mix(uint64_t *x)
{
    uint64_t z = (*x += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t rotate(uint64_t x, unsigned by)
{
    return (x << by) | (x >> (64 - by));
}

/* xoroshiro128+ */
uint64_t sim_time_random(struct sim_time *t)
{
    uint64_t a = t->prng[0];
    uint64_t b = t->prng[1];
    uint64_t out = a + b;
    b ^= a;
    t->prng[0] = rotate(a, 24) ^ b ^ (b << 16);
    t->prng[1] = rotate(b, 37);
    return out;
}

uint64_t sim_time_below(struct sim_time *t, uint64_t n)
{
    return n ? (sim_time_random(t) >> 11) % n : 0;
}

bool sim_time_chance(struct sim_time *t, unsigned permille)
{
    return permille && sim_time_below(t, 1000) < permille;
}

struct ms sim_time_between(struct sim_time *t, struct ms a, struct ms b)
{
    if (!ms_before(a, b)) {
        return a;
    }
    return MS(a.v + (int64_t)sim_time_below(t, (uint64_t)(b.v - a.v + 1)));
}

void sim_time_set(struct sim_time *t, struct sim_event *ev, struct ms after)
{
    sim_time_unset(ev);
    ev->due = ms_add(t->now, ms_max(after, MS(0)));
    /* From the back: most events are set in the order of their time. */
    struct list *before = t->events.prev;
    while (before != &t->events &&
           ms_before(ev->due, list_entry(before, struct sim_event, link)->due)) {
        before = before->prev;
    }
    list_add_head(before, &ev->link);
}

void sim_time_unset(struct sim_event *ev)
{
    if (list_linked(&ev->link)) {
        list_del(&ev->link);
    }
}

struct ms sim_time_due(const struct sim_time *t)
{
    if (list_empty(&t->events)) {
        return MS_NONE;
    }
    return list_entry(t->events.next, struct sim_event, link)->due;
}

bool sim_time_step(struct sim_time *t)
{
    struct list *first = list_take_head(&t->events);
    if (!first) {
        return false;
    }
    struct sim_event *ev = list_entry(first, struct sim_event, link);
    t->now = ms_max(t->now, ev->due);
    t->steps++;
    ev->fn(ev);
    return true;
}

void sim_time_pass(struct sim_time *t, struct ms span)
{
    struct ms end = ms_add(t->now, span);
    while (!ms_before(end, sim_time_due(t)) && sim_time_step(t)) {
    }
    t->now = end;
}

/* One event each for a flow's deadline and its kick, in the flow's arena: they die with it. */
struct flow_event {
    struct sim_event ev;
    struct flow *flow;
};

static struct sim_time *time_of(struct flow_env *env)
{
    return container_of(env, struct sim_time, env);
}

static struct ms env_now(struct flow_env *env)
{
    return time_of(env)->now;
}

static void on_deadline(struct sim_event *ev)
{
    flow_deadline(container_of(ev, struct flow_event, ev)->flow);
}

static void on_kick(struct sim_event *ev)
{
    flow_kick(container_of(ev, struct flow_event, ev)->flow);
}

static struct flow_event *event_of(struct flow *f, void **place, void (*fn)(struct sim_event *))
{
    if (!*place) {
        struct flow_event *made = arena_zalloc(&f->arena, sizeof(*made));
        made->ev.fn = fn;
        made->flow = f;
        *place = made;
    }
    return *place;
}

static void env_arm(struct flow_env *env, struct flow *f, struct ms at)
{
    if (at.v == INT64_MAX) {
        if (f->timer) {
            sim_time_unset(&((struct flow_event *)f->timer)->ev);
        }
        return;
    }
    struct flow_event *due = event_of(f, &f->timer, on_deadline);
    sim_time_set(time_of(env), &due->ev, ms_sub(at, env_now(env)));
}

static void env_defer(struct flow_env *env, struct flow *f)
{
    struct flow_event *kick = event_of(f, &f->task, on_kick);
    if (!list_linked(&kick->ev.link)) {
        sim_time_set(time_of(env), &kick->ev, MS(0));
    }
}

void sim_time_init(struct sim_time *t, uint64_t seed)
{
    *t = (struct sim_time){.env = {.now = env_now, .arm = env_arm, .defer = env_defer}};
    list_init(&t->events);
    list_init(&t->env.live);
    t->prng[0] = split_mix(&seed);
    t->prng[1] = split_mix(&seed);
}

struct flow_env *sim_time_flows(struct sim_time *t)
{
    return &t->env;
}
