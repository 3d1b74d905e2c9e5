/* The scenarios of trio_sim: a random one, and a fixed one in which something goes wrong at every
 * point. */
#pragma once
#include "tests/sim/trio_world.h"

struct trio_total { /* over all worlds of a program */
    uint64_t worlds, events, publishes, fenced, resolves, crashes, drains, reads, baked, broken,
        asked, answered;
    struct ms slowest; /* the longest rest, in scripted time */
};
/* Runs until everything has come to rest; fails when that takes longer than `most`. */
void trio_rest(struct world *w, struct trio_total *total, struct ms most, const char *what);
void trio_count(const struct world *w, struct trio_total *total);
/* trio_cases.c */
void trio_cases(struct trio_total *total);
/* trio_random.c */
void trio_random(uint64_t seed, struct trio_total *total);
/* trio_sweep.c: every `step`-th event or statement */
void trio_crash_sweep(uint64_t step, struct trio_total *total);
void trio_fault_sweep(uint64_t step, struct trio_total *total);
void trio_story(const char *text, struct trio_total *total); /* one of them, as its failure says */
/* trio_chaos.c: what goes wrong by itself */
struct chaos;
struct chaos *chaos_new(struct world *w) MUST_USE;
void chaos_choose(struct chaos *c); /* faults by the seed */
void chaos_event(struct chaos *c);  /* after every event */
void chaos_free(struct chaos *c);   /* all is well from here on */
