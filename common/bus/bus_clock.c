/* The two clocks of the bus, and bus_new: the real one over nng. */
#include "common/bus/bus_transport.h"

static struct ms loop_clock_now(void *clock)
{
    return loop_now(clock);
}

static void on_loop_timer(struct loop_timer *real)
{
    struct bus_timer *t = real->data;
    t->fn(t);
}

static void loop_clock_init(void *clock, struct bus_timer *t)
{
    loop_timer_init(&t->u.real, clock, on_loop_timer, t);
}

static void loop_clock_start(void *clock, struct bus_timer *t, struct ms after)
{
    (void)clock;
    loop_timer_start(&t->u.real, after);
}

static void loop_clock_stop(struct bus_timer *t)
{
    loop_timer_stop(&t->u.real);
}

static void loop_clock_random(void *clock, void *out, size_t len)
{
    (void)clock;
    random_bytes(out, len);
}

const struct bus_clock_ops bus_clock_loop = {.now = loop_clock_now,
                                             .init = loop_clock_init,
                                             .start = loop_clock_start,
                                             .stop = loop_clock_stop,
                                             .random = loop_clock_random};

static struct ms scripted_now(void *clock)
{
    struct sim_time *t = clock;
    return t->now;
}

static void on_scripted(struct sim_event *ev)
{
    struct bus_timer *t = container_of(ev, struct bus_timer, u.scripted);
    t->fn(t);
}

static void scripted_init(void *clock, struct bus_timer *t)
{
    (void)clock;
    t->u.scripted = (struct sim_event){.fn = on_scripted};
}

static void scripted_start(void *clock, struct bus_timer *t, struct ms after)
{
    sim_time_set(clock, &t->u.scripted, after);
}

static void scripted_stop(struct bus_timer *t)
{
    sim_time_unset(&t->u.scripted);
}

static void scripted_random(void *clock, void *out, size_t len)
{
    uint8_t *p = out;
    for (size_t i = 0; i < len; i++) {
        p[i] = (uint8_t)(sim_time_random(clock) >> 32);
    }
}

const struct bus_clock_ops bus_clock_scripted = {.now = scripted_now,
                                                 .init = scripted_init,
                                                 .start = scripted_start,
                                                 .stop = scripted_stop,
                                                 .random = scripted_random};

struct bus *bus_new(struct loop *l, const struct bus_identity *me)
{
    struct bus *b = bus_make(&bus_clock_loop, l, me);
    const struct bus_transport_ops *ops = NULL;
    void *tp = bus_nng_new(l, b, &ops);
    bus_set_transport(b, ops, tp);
    return b;
}
