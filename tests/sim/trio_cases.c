/* What the simulation has found before, each as a short story of its own. */
#include "tests/sim/trio_sim.h"

enum { SEED = 3, MOST_MS = 120000 };

struct tale {
    struct world *w;
    struct trio_total *total;
};

static struct tale begin(const char *name, struct trio_total *total, const struct trio_shape *shape,
                         const struct trio_faults *f)
{
    struct world *w = world_new(SEED, shape);
    snprintf(w->replay, sizeof(w->replay), "trio_sim --rounds 0 (%s)", name);
    world_set_faults(w, f);
    trio_rest(w, total, MS(MOST_MS), "the start");
    return (struct tale){w, total};
}

static void end(const struct tale *t)
{
    trio_rest(t->w, t->total, MS(MOST_MS), "the rest of it");
    trio_check_end(t->w);
    trio_count(t->w, t->total);
    world_free(t->w);
}

static void step(const struct tale *t)
{
    must(world_step(t->w));
    trio_check(t->w);
}

static void drain(struct proc *p)
{
    struct proc *before = proc_enter(p);
    proc_drain(p);
    proc_leave(before);
}

/* With a free slot its pull is held at the planner; the job that ends must not wait for that. */
static void builder_with_a_held_pull_drains_when_its_job_ends(struct trio_total *total)
{
    static const struct trio_shape shape = {.builders = 1, .slots = 2, .gateways = 1, .units = 1};
    static const struct trio_faults slow = {.store_most = {3}, .wh_most = {400}};
    struct tale t = begin(__func__, total, &shape, &slow);
    struct proc *builder = world_proc(t.w, PROC_BUILDER, 0);
    must(people_run(t.w, &t.w->units[0], false, NULL));
    while (builder_is_idle(builder)) {
        step(&t);
    }
    struct ms asked = t.w->time.now;
    unsigned starts = builder->n_starts;
    drain(builder);
    while (builder->n_starts == starts) {
        step(&t);
        if (ms_sub(t.w->time.now, asked).v > 5000) {
            trio_fail("a builder does not end within 5 s");
        }
    }
    end(&t);
}

/* The run store is slow and gateways poll: what they apply must be in the rows (trio_check). */
static void set_is_told_only_when_it_is_durable(struct trio_total *total)
{
    static const struct trio_shape shape = {.builders = 1, .slots = 1, .gateways = 2, .units = 2};
    static const struct trio_faults slow = {.store_most = {600}, .wh_most = {20}};
    struct tale t = begin(__func__, total, &shape, &slow);
    for (int i = 0; i < 6; i++) {
        must(people_unbind(t.w, &t.w->units[i % 2]));
        must(people_run(t.w, &t.w->units[i % 2], true, NULL));
        trio_rest(t.w, total, MS(MOST_MS), "a run");
    }
    end(&t);
}

/* Reads of the run store, planning and warehouse statements are under way when it is asked to end.
 */
static void planner_that_ends_answers_what_it_was_asked(struct trio_total *total)
{
    static const struct trio_shape shape = {.builders = 1, .slots = 1, .gateways = 1, .units = 2};
    static const struct trio_faults slow = {.store_most = {200}, .wh_most = {800}};
    struct tale t = begin(__func__, total, &shape, &slow);
    for (int64_t after = 0; after < 2000; after += 100) {
        must(people_run(t.w, &t.w->units[after / 100 % 2], true, NULL));
        must(people_reload(t.w, &t.w->units[(after / 100 + 1) % 2], false));
        struct ms until = ms_add(t.w->time.now, MS(after));
        while (ms_before(t.w->time.now, until)) {
            step(&t);
        }
        drain(world_proc(t.w, PROC_PLANNER, 0));
        trio_rest(t.w, total, MS(MOST_MS), "a planner's end and start");
    }
    end(&t);
}

/* Its calls, its cache and its loads end before what they use does. */
static void gateway_ends_in_the_middle_of_anything(struct trio_total *total)
{
    static const struct trio_shape shape = {.builders = 1, .slots = 1, .gateways = 2, .units = 2};
    static const struct trio_faults slow = {
        .bus = {.delay_most = {80}}, .store_most = {20}, .wh_most = {300}};
    struct tale t = begin(__func__, total, &shape, &slow);
    for (int64_t after = 0; after < 1000; after += 50) {
        must(people_reload(t.w, &t.w->units[after / 50 % 2], false));
        struct ms until = ms_add(t.w->time.now, MS(after));
        while (ms_before(t.w->time.now, until)) {
            step(&t);
        }
        drain(world_proc(t.w, PROC_GATEWAY, (size_t)after / 50 % 2));
        trio_rest(t.w, total, MS(MOST_MS), "a gateway's end and start");
    }
    end(&t);
}

/* What it loads comes into force before, between and behind the steps of its end, which takes a
 * while: it has a connection to close. */
static void gateway_ends_at_every_event_of_a_load(struct trio_total *total)
{
    static const struct trio_shape shape = {.builders = 1, .slots = 1, .gateways = 1, .units = 1};
    static const struct trio_faults calm = {.store_most = {3}, .wh_most = {20}};
    struct tale t = begin(__func__, total, &shape, &calm);
    struct trio_unit *unit = &t.w->units[0];
    struct proc *gateway = world_proc(t.w, PROC_GATEWAY, 0);
    bool over = false;
    for (int n = 0; !over; n++) {
        must(people_run(t.w, unit, false, NULL));
        trio_rest(t.w, total, MS(MOST_MS), "a run");
        for (uint64_t reads = t.w->n_reads; t.w->n_reads == reads;) {
            step(&t);
        }
        uint64_t epoch = gateway_epoch(gateway, unit->id);
        must(people_reload(t.w, unit, false));
        for (int i = 0; i < n && !over; i++) {
            step(&t);
            over = gateway_epoch(gateway, unit->id) != epoch;
        }
        drain(gateway);
        trio_rest(t.w, total, MS(MOST_MS), "a gateway's end and start");
    }
    end(&t);
}

/* While a removal is being stored, nothing begins with the package any more. */
static void package_is_not_loaded_while_it_is_removed(struct trio_total *total)
{
    static const struct trio_shape shape = {.builders = 1, .slots = 1, .gateways = 1, .units = 2};
    static const struct trio_faults slow = {.store_most = {300}, .wh_most = {20}};
    struct tale t = begin(__func__, total, &shape, &slow);
    must(people_remove(t.w, &t.w->units[1]));
    for (int i = 0; i < 20; i++) {
        must(people_reload(t.w, &t.w->units[1], false));
        for (int k = 0; k < 5; k++) {
            step(&t);
        }
    }
    end(&t);
}

/* The change is stored, its planner dies before the answer is out: the caller's bus asks again. */
static void call_whose_answer_is_lost_is_answered_and_changes_nothing(struct trio_total *total)
{
    static const struct trio_shape shape = {.builders = 1, .slots = 1, .gateways = 1, .units = 2};
    static const struct trio_faults slow = {.store_most = {300}, .wh_most = {20}};
    struct tale t = begin(__func__, total, &shape, &slow);
    const uint64_t removed = t.w->units[1].id, unbound = t.w->units[0].id;
    must(people_remove(t.w, &t.w->units[1]));
    while (memory_unit(t.w->rows, removed)) {
        step(&t);
    }
    proc_crash(world_proc(t.w, PROC_PLANNER, 0));
    trio_rest(t.w, total, MS(MOST_MS), "a removal");
    if (t.w->n_answered != t.w->n_asked) {
        trio_fail("a removal that is stored is not answered as done");
    }

    must(people_run(t.w, &t.w->units[0], false, NULL));
    trio_rest(t.w, total, MS(MOST_MS), "a run");
    uint64_t bound = memory_unit(t.w->rows, unbound)->epoch;
    must(people_unbind(t.w, &t.w->units[0]));
    while (memory_unit(t.w->rows, unbound)->epoch == bound) {
        step(&t);
    }
    bound = memory_unit(t.w->rows, unbound)->epoch;
    proc_crash(world_proc(t.w, PROC_PLANNER, 0));
    trio_rest(t.w, total, MS(MOST_MS), "an unbinding");
    if (memory_unit(t.w->rows, unbound)->epoch != bound || t.w->n_answered != t.w->n_asked) {
        trio_fail("an unbinding is done twice, or not answered");
    }
    end(&t);
}

void trio_cases(struct trio_total *total)
{
    call_whose_answer_is_lost_is_answered_and_changes_nothing(total);
    package_is_not_loaded_while_it_is_removed(total);
    builder_with_a_held_pull_drains_when_its_job_ends(total);
    set_is_told_only_when_it_is_durable(total);
    planner_that_ends_answers_what_it_was_asked(total);
    gateway_ends_in_the_middle_of_anything(total);
    gateway_ends_at_every_event_of_a_load(total);
}
