/* The whole trio in one process on scripted time, from seeds.
 * trio_sim [--seed N] [--rounds N] [--sweeps N] [--all] [-v] */
#include "tests/sim/trio_sim.h"

#include <getopt.h>
#include <stdio.h>

struct options {
    uint64_t seed, rounds, sweeps;
};

static struct options options_read(int argc, char **argv)
{
    static const struct option names[] = {
        {"seed", required_argument, NULL, 's'},
        {"rounds", required_argument, NULL, 'r'},
        {"sweeps", required_argument, NULL, 'w'},
        {"all", no_argument, NULL, 'a'},
        {NULL, 0, NULL, 0},
    };
    struct options o = {.seed = 1, .rounds = 60, .sweeps = 3};
    bool one = false, rounds = false;
    for (int c; (c = getopt_long(argc, argv, "v", names, NULL)) != -1;) {
        switch (c) {
        case 's':
            o.seed = strtoull(optarg, NULL, 10);
            one = true;
            break;
        case 'r':
            o.rounds = strtoull(optarg, NULL, 10);
            rounds = true;
            break;
        case 'w':
            o.sweeps = strtoull(optarg, NULL, 10);
            break;
        case 'a':
            o.sweeps = 1;
            break;
        case 'v':
            trio_verbose = true;
            break;
        default:
            exit(2);
        }
    }
    if (one && !rounds) {
        o.rounds = 1;
        o.sweeps = 0;
    }
    return o;
}

static void say_total(const struct trio_total *t)
{
    printf(
        "trio_sim: %llu worlds held: %llu events, %llu requests (%llu answered), %llu tables "
        "published, %llu kills, %llu drains, %llu reads (%llu baked, %llu found broken); longest "
        "way to rest %lld s\n",
        (unsigned long long)t->worlds, (unsigned long long)t->events, (unsigned long long)t->asked,
        (unsigned long long)t->answered, (unsigned long long)t->publishes,
        (unsigned long long)t->crashes, (unsigned long long)t->drains, (unsigned long long)t->reads,
        (unsigned long long)t->baked, (unsigned long long)t->broken,
        (long long)t->slowest.v / 1000);
}

int main(int argc, char **argv)
{
    struct options o = options_read(argc, argv);
    struct trio_total total = {0};
    printf("trio_sim: seeds %llu to %llu\n", (unsigned long long)o.seed,
           (unsigned long long)(o.seed + o.rounds - 1));
    fflush(stdout);
    for (uint64_t i = 0; i < o.rounds; i++) {
        trio_random(o.seed + i, &total);
    }
    say_total(&total);
    return 0;
}
