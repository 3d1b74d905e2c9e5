/* Scripted time for the twins: one queue of due events and one seeded PRNG; nothing happens between
 * two events. */
#pragma once
#include "common/base/list.h"
#include "common/base/ms.h"
#include "common/flow/flow.h"

/* Caller-allocated; zero-filled is unarmed. Events of the same instant run in the order in which
 * they were set. */
struct sim_event {
    void (*fn)(struct sim_event *ev);
    struct list link;
    struct ms due;
};
struct sim_time {
    struct ms now;
    struct list events; /* of struct sim_event, by due */
    uint64_t prng[2];
    uint64_t steps;      /* events run so far */
    struct flow_env env; /* flows run on this: sim_time_flows */
};

/* Starts at 0 ms. The same seed and the same calls give the same run. */
void sim_time_init(struct sim_time *t, uint64_t seed);
void sim_time_set(struct sim_time *t, struct sim_event *ev,
                  struct ms after);        /* moves it if it was set */
void sim_time_unset(struct sim_event *ev); /* idempotent */
struct ms
sim_time_due(const struct sim_time *t); /* of the next event; MS_NONE: nothing will ever happen */
/* Advances to the next event and runs it. False: there is none. */
bool sim_time_step(struct sim_time *t);
/* Runs everything up to now + span and leaves the clock there. */
void sim_time_pass(struct sim_time *t, struct ms span);
/* For flow_start. The environment dies with t. */
struct flow_env *sim_time_flows(struct sim_time *t);

uint64_t sim_time_random(struct sim_time *t);
uint64_t sim_time_below(struct sim_time *t, uint64_t n);     /* 0 .. n-1; 0 when n is 0 */
bool sim_time_chance(struct sim_time *t, unsigned permille); /* draws nothing when permille is 0 */
struct ms sim_time_between(struct sim_time *t, struct ms a, struct ms b); /* a .. b */
