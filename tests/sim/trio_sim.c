/* The whole trio in one process on scripted time, from seeds.
 * trio_sim [--seed N] [--rounds N] [--sweeps EVERY] [--faults EVERY] [--all] [--story TEXT] [-v] */
#include "tests/sim/trio_sim.h"

#include <getopt.h>
#include <stdio.h>

struct options {
    uint64_t seed, rounds, sweeps,
        faults; /* sweeps, faults: every so many events or statements; 0 none */
    const char *story;
    bool one; /* a single seed was asked for */
};

static struct options options_read(int argc, char **argv)
{
    static const struct option names[] = {
        {"seed", required_argument, NULL, 's'},
        {"rounds", required_argument, NULL, 'r'},
        {"sweeps", required_argument, NULL, 'w'},
        {"faults", required_argument, NULL, 'f'},
        {"story", required_argument, NULL, 't'},
        {"all", no_argument, NULL, 'a'},
        {NULL, 0, NULL, 0},
    };
    struct options o = {.seed = 1, .rounds = 60, .sweeps = 13, .faults = 2};
    bool rounds = false;
    for (int c; (c = getopt_long(argc, argv, "v", names, NULL)) != -1;) {
        switch (c) {
        case 's':
            o.seed = strtoull(optarg, NULL, 10);
            o.one = true;
            break;
        case 'r':
            o.rounds = strtoull(optarg, NULL, 10);
            rounds = true;
            break;
        case 'w':
            o.sweeps = strtoull(optarg, NULL, 10);
            break;
        case 'f':
            o.faults = strtoull(optarg, NULL, 10);
            break;
        case 't':
            o.story = optarg;
            break;
        case 'a':
            o.sweeps = o.faults = 1;
            break;
        case 'v':
            trio_verbose = true;
            break;
        default:
            exit(2);
        }
    }
    if (o.one && !rounds) {
        o.rounds = 1;
        o.sweeps = o.faults = 0;
    }
    return o;
}

#define U(n) ((unsigned long long)(n))

static void say_total(const char *what, const struct trio_total *t)
{
    printf("trio_sim: %s: %llu worlds held: %llu events; %llu requests, %llu answered; %llu tables "
           "published, %llu late ones refused by the fence, %llu resolved; %llu kills, %llu "
           "drains; "
           "%llu reads, %llu baked, %llu found broken; longest way to rest %llu s\n",
           what, U(t->worlds), U(t->events), U(t->asked), U(t->answered), U(t->publishes),
           U(t->fenced), U(t->resolves), U(t->crashes), U(t->drains), U(t->reads), U(t->baked),
           U(t->broken), U(t->slowest.v / 1000));
    fflush(stdout);
}

static void tell(const struct options *o)
{
    struct trio_total total = {0};
    if (o->story) {
        trio_story(o->story, &total);
        say_total("the story", &total);
        return;
    }
    if (!o->one) {
        trio_cases(&total);
        say_total("what was found before", &total);
        total = (struct trio_total){0};
    }
    printf("trio_sim: seeds %llu to %llu\n", U(o->seed), U(o->seed + o->rounds - 1));
    fflush(stdout);
    for (uint64_t i = 0; i < o->rounds; i++) {
        trio_random(o->seed + i, &total);
    }
    say_total("random", &total);
    if (o->sweeps) {
        total = (struct trio_total){0};
        trio_crash_sweep(o->sweeps, &total);
        say_total("a process dies or ends at every point", &total);
    }
    if (o->faults) {
        total = (struct trio_total){0};
        trio_fault_sweep(o->faults, &total);
        say_total("every statement fails", &total);
    }
}

int main(int argc, char **argv)
{
    struct options o = options_read(argc, argv);
    tell(&o);
    return 0;
}
