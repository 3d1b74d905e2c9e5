/* kiln: the command line. */
#include "services/kiln/kiln.h"
#include "services/kiln/up_launch.h"
#include <stdio.h>

const struct verb kiln_verbs[] = {
    {"up", "runs everything on this machine, in the foreground", kiln_up},
    {"publish", "publishes a package", kiln_publish},
    {"plan", "shows what a run would build, reuse and refuse, and why", kiln_plan},
    {"materialize", "builds what a package persists, and binds it", kiln_materialize},
    {"runs", "lists runs", kiln_runs},
    {"run", "shows one run", kiln_run},
    {"stop", "stops a run", kiln_stop},
    {"delete", "deletes a run, with its tables if asked to", kiln_delete},
    {"query", "runs a query", kiln_query},
    {"explain", "tells what a query is served from, and why", kiln_explain},
    {"status", "tells how the services and packages are", kiln_status},
    {"version", "prints the version", kiln_version},
};
const size_t kiln_verbs_count = ARRAY_LEN(kiln_verbs);

static void print_help(FILE *out)
{
    (void)fprintf(out, "kiln VERB [words] [options]\nBakes expensive Malloy sources into tables "
                       "and serves queries from them.\n\n");
    for (size_t i = 0; i < kiln_verbs_count; i++) {
        (void)fprintf(out, "  %-12s %s\n", kiln_verbs[i].name, kiln_verbs[i].summary);
    }
    (void)fprintf(out,
                  "\nkiln VERB --help tells the rest. Exit codes: 0 done, 1 failed, 2 usage, 3 "
                  "services not reached,\n4 refused or conflict, 5 not found, 6 timed out while "
                  "the work goes on, 70 bug.\n");
}

int main(int argc, char **argv)
{
    bool was_child = false;
    int rc = up_launch_main(argc, argv, &was_child);
    if (was_child) {
        return rc;
    }
    const char *name = argc > 1 ? argv[1] : "--help";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_help(argc > 1 ? stdout : stderr);
        return argc > 1 ? KILN_DONE : KILN_USAGE;
    }
    name = strcmp(name, "--version") == 0 ? "version" : name;
    for (size_t i = 0; i < kiln_verbs_count; i++) {
        if (strcmp(name, kiln_verbs[i].name) == 0) {
            return kiln_verbs[i].run(argc - 1, argv + 1);
        }
    }
    (void)fprintf(stderr, "kiln: '%s' is no verb; kiln --help lists them\n", name);
    return KILN_USAGE;
}
