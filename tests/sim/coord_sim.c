/* A seeded random simulation of the coordinator among builders, gateways and a warehouse that fail
 * in every way the protocol allows. coord_sim [--seed N] [--rounds N] [--steps N] [--trace] [-v] */
#include "tests/sim/sim_world.h"

#include <getopt.h>
#include <stdio.h>

struct options {
    uint64_t seed, rounds, steps;
    bool verbose, trace;
};

static void step(struct sim *s)
{
    s->steps++;
    s->now_ms += sim_random(s, 12);
    if (sim_chance(s, 4 + s->faults.pause)) {
        s->now_ms += sim_random(s, s->faults.drop ? 14000 : 2000); /* a pause of the whole world */
    }
    uint64_t what = sim_random(s, 100);
    if (what < 40) {
        sim_deliver(s);
    } else if (what < 70) {
        sim_builder_step(s, (int)sim_random(s, SIM_BUILDERS));
    } else if (what < 78) {
        sim_gateway_step(s, (int)sim_random(s, SIM_GATEWAYS));
    } else if (what < 88) {
        (void)sim_stmt_run(s);
    } else {
        sim_planner_step(s);
    }
    if (sim_chance(s, s->faults.client)) {
        sim_client_step(s);
    }
    if (s->changed) {
        s->changed = false;
        sim_check(s);
    }
    if (s->commits >= s->reload_checked + 5) {
        s->reload_checked = s->commits;
        sim_check_reload(s);
    }
}

static void rest(struct sim *s, const char *what)
{
    for (size_t i = 0; i < 60000; i++) {
        if (i % 64 == 0 && sim_at_rest(s)) {
            return;
        }
        step(s);
    }
    sim_fail(s, "%s never came to an end", what);
}

/* Without faults every package gets what it asks for. */
static void last_runs(struct sim *s)
{
    for (size_t k = 0; k < s->n_units; k++) {
        struct sim_unit *u = &s->units[k];
        if (u->deleted || !sim_run_create(s, u, false, false)) {
            continue;
        }
        rest(s, "the last run");
        const struct row_run *r = NULL;
        struct map_iter it = {0};
        for (const struct row_run *x; memory_run_next(&it, s->store, &x);) {
            r = x->unit == u->id ? x : r;
        }
        if (!r || r->state != RUN_READY) {
            sim_fail(s, "a run without faults ends %s: %s",
                     r ? run_state_name(r->state) : "nowhere", r && r->error ? r->error : "");
        }
    }
}

static void last_sweep(struct sim *s)
{
    struct arena a;
    struct coord_out o;
    arena_init(&a);
    coord_out_init(&o, &a);
    s->now_ms += 2 * 3600 * 1000;
    uint64_t unit = 0;
    for (size_t k = 0; k < s->n_units && !unit; k++) {
        unit = s->units[k].deleted ? 0 : s->units[k].id;
    }
    (void)coord_sweep(s->planner.c, sim_now(s), unit, "{\"schemas\":[\"s\"]}", &o);
    (void)sim_commit(s, &o);
    arena_fini(&a);
    rest(s, "the sweep");
}

/* Which moves of states.def any seed has made. */
static bool made[128];

static void note_moves(const struct sim *s)
{
    size_t n;
    const struct move_row *moves = states_moves(&n);
    must(n <= ARRAY_LEN(made));
    for (size_t i = 0; i < n; i++) {
        made[i] =
            made[i] || memory_moves_seen(s->store, moves[i].machine, moves[i].from, moves[i].to);
    }
}

static void print_moves_never_made(void)
{
    size_t n;
    const struct move_row *moves = states_moves(&n);
    for (size_t i = 0; i < n; i++) {
        if (!made[i]) {
            printf("never made: %s %s -> %s (%s)\n", moves[i].machine, moves[i].from, moves[i].to,
                   moves[i].on);
        }
    }
}

static void simulate(uint64_t seed, const struct options *opt)
{
    struct sim *s = sim_new(seed, opt->trace);
    for (uint64_t i = 0; i < opt->steps; i++) {
        step(s);
    }
    s->faults = (struct sim_faults){0};
    rest(s, "the work");
    last_runs(s);
    last_sweep(s);
    sim_check_end(s);
    note_moves(s);
    if (opt->verbose) {
        printf("seed %llu: %llu steps, %llu runs (%llu ready, %llu failed, %llu cancelled), %llu "
               "resolves, %llu drops, %llu planner starts\n",
               (unsigned long long)seed, (unsigned long long)s->steps,
               (unsigned long long)s->n_runs, (unsigned long long)s->n_ready,
               (unsigned long long)s->n_failed, (unsigned long long)s->n_cancelled,
               (unsigned long long)s->n_resolves, (unsigned long long)s->n_drops,
               (unsigned long long)s->n_reloads);
    }
    sim_free(s);
}

static struct options options_read(int argc, char **argv)
{
    static const struct option names[] = {
        {"seed", required_argument, NULL, 's'},
        {"rounds", required_argument, NULL, 'r'},
        {"steps", required_argument, NULL, 'n'},
        {"trace", no_argument, NULL, 't'},
        {NULL, 0, NULL, 0},
    };
    struct options o = {.seed = 1, .rounds = 300, .steps = 1500};
    bool one = false, rounds = false;
    int c;
    while ((c = getopt_long(argc, argv, "v", names, NULL)) != -1) {
        switch (c) {
        case 's':
            o.seed = strtoull(optarg, NULL, 10);
            one = true;
            break;
        case 'r':
            o.rounds = strtoull(optarg, NULL, 10);
            rounds = true;
            break;
        case 'n':
            o.steps = strtoull(optarg, NULL, 10);
            break;
        case 't':
            o.trace = true;
            break;
        case 'v':
            o.verbose = true;
            break;
        default:
            exit(2);
        }
    }
    if (one && !rounds) {
        o.rounds = 1;
        o.verbose = true;
    }
    return o;
}

int main(int argc, char **argv)
{
    struct options o = options_read(argc, argv);
    printf("coord_sim: seeds %llu to %llu, %llu steps each\n", (unsigned long long)o.seed,
           (unsigned long long)(o.seed + o.rounds - 1), (unsigned long long)o.steps);
    fflush(stdout);
    for (uint64_t i = 0; i < o.rounds; i++) {
        simulate(o.seed + i, &o);
    }
    if (o.verbose) {
        print_moves_never_made();
    }
    printf("coord_sim: %llu seeds held\n", (unsigned long long)o.rounds);
    return 0;
}
