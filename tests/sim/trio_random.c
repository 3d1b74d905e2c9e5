/* One random world: a time in which everything may go wrong, then one in which nothing does and
 * everything must come to its end. */
#include "tests/sim/trio_sim.h"

enum { BAD_LEAST_MS = 15000, BAD_MOST_MS = 90000, REST_MOST_MS = 1200000, SWEEP_AFTER_MS = 60000 };

void trio_count(const struct world *w, struct trio_total *total)
{
    total->worlds++;
    total->events += w->time.steps;
    total->publishes += w->n_publishes;
    total->fenced += w->n_fenced;
    total->resolves += w->n_resolves;
    total->crashes += w->n_crashes;
    total->drains += w->n_drains;
    total->reads += w->n_reads;
    total->baked += w->n_baked;
    total->broken += w->n_broken;
    total->asked += w->n_asked;
    total->answered += w->n_answered;
}

void trio_rest(struct world *w, struct trio_total *total, struct ms most, const char *what)
{
    struct ms since = w->time.now;
    while (!trio_at_rest(w)) {
        must(world_step(w));
        trio_check(w);
        if (ms_before(most, ms_sub(w->time.now, since))) {
            trio_fail("%s did not come to an end in %lld s", what, (long long)most.v / 1000);
        }
    }
    total->slowest = ms_max(total->slowest, ms_sub(w->time.now, since));
}

static void pass(struct world *w, struct ms span)
{
    struct ms until = ms_add(w->time.now, span);
    while (ms_before(w->time.now, until)) {
        must(world_step(w));
        trio_check(w);
    }
}

/* Without faults every package gets what it asks for. */
static void last_run(struct world *w, struct trio_unit *u, struct trio_total *total)
{
    must(people_run(w, u, false, NULL));
    trio_rest(w, total, MS(REST_MOST_MS), "the last run");
    const struct row_run *r = people_newest(w, u->id);
    if (!r || r->state != RUN_READY) {
        trio_fail("a run of %s without faults ends %s: %s", u->name,
                  r ? run_state_name(r->state) : "nowhere", r && r->error ? r->error : "");
    }
    const struct core_binding_set *set = memory_set(w->rows, u->id);
    if (!set || set->n != u->n) {
        trio_fail("after a run without faults %s has %zu bindings of %zu", u->name,
                  set ? set->n : 0, u->n);
    }
}

void trio_random(uint64_t seed, struct trio_total *total)
{
    struct world *w = world_new(seed, NULL);
    struct chaos *c = chaos_new(w);
    chaos_choose(c);
    struct ms bad = sim_time_between(&w->time, MS(BAD_LEAST_MS), MS(BAD_MOST_MS));
    while (ms_before(w->time.now, bad)) {
        must(world_step(w));
        trio_check(w);
        chaos_event(c);
    }
    trio_say("all is well from here on");
    chaos_free(c);
    trio_rest(w, total, MS(REST_MOST_MS), "the work");
    for (size_t i = 0; i < w->n_units; i++) {
        if (memory_unit(w->rows, w->units[i].id)) {
            last_run(w, &w->units[i], total);
        }
    }
    pass(w, MS(SWEEP_AFTER_MS));
    planner_sweep_now(world_proc(w, PROC_PLANNER, 0));
    pass(w, MS(100));
    trio_rest(w, total, MS(REST_MOST_MS), "the sweep");
    trio_check_end(w);
    trio_count(w, total);
    world_free(w);
}
