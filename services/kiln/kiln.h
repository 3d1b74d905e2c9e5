/* The command line: what its verbs share. */
#pragma once
#include "common/err/err.h"
#include "services/kiln/args.h"
#include "services/kiln/client.h"

/* Exit codes (decisions 7.10); docs and every --help name them. */
enum kiln_exit {
    KILN_DONE = 0,
    KILN_FAILED = 1,      /* a run that did not end ready, a service that did not start */
    KILN_USAGE = 2,       /* the command line is wrong */
    KILN_UNREACHABLE = 3, /* no answer from the services */
    KILN_REFUSED = 4,     /* refused or conflict */
    KILN_NOT_FOUND = 5,   /* no such environment, package, model or run */
    KILN_TIMED_OUT = 6,   /* the work goes on without us */
    KILN_BUG = 70
};

struct verb {
    const char *name, *summary;
    int (*run)(int argc, char **argv); /* argv[0] is the verb; returns a kiln_exit */
};
extern const struct verb kiln_verbs[];
extern const size_t kiln_verbs_count;

int kiln_publish(int argc, char **argv);
int kiln_plan(int argc, char **argv);
int kiln_materialize(int argc, char **argv);
int kiln_runs(int argc, char **argv);
int kiln_run(int argc, char **argv);
int kiln_stop(int argc, char **argv);
int kiln_delete(int argc, char **argv);
int kiln_query(int argc, char **argv);
int kiln_explain(int argc, char **argv);
int kiln_status(int argc, char **argv);
int kiln_version(int argc, char **argv);
int kiln_up(int argc, char **argv);

/* The first member of every verb's options. */
struct verb_options {
    const char *url;         /* NULL: KILN_URL, MALLOY_PUBLISHER_URL, or the default */
    const char *environment; /* NULL: among the words, or the only one there is */
    bool json;
};
#define VERB_OPTIONS(type)                                                                         \
    {"--environment", ARG_TEXT, offsetof(type, common.environment), "ENV",                         \
     "the environment; without it the first word, or the only one there is"},                      \
        {"--url", ARG_TEXT, offsetof(type, common.url), "URL",                                     \
         "a gateway (default: KILN_URL, MALLOY_PUBLISHER_URL, http://127.0.0.1:4000)"},            \
    {                                                                                              \
        "--json", ARG_FLAG, offsetof(type, common.json), NULL, "print JSON on standard output"     \
    }

/* One run of a verb: its words, its client, its memory. */
struct verb_run {
    const struct verb_options *common;
    struct arena arena;
    struct arg_list words;
    struct client *client;
    struct err err;
};
/* Reads the command line into options (which begins with a struct verb_options) and makes the
 * client. 0: go on; else *code is what to end with. Always followed by verb_end. */
int verb_begin(struct verb_run *v, const struct arg_spec *spec, void *options, int argc,
               char **argv, int *code) MUST_USE;
void verb_end(struct verb_run *v);
/* Takes the environment off the words (when they are `with_environment` many), from --environment,
 * or asks for the only one there is. NULL: v->err says why. */
const char *verb_environment(struct verb_run *v, size_t with_environment) MUST_USE;
/* ".../environments/E" and ".../environments/E/packages/P", percent-encoded, in the arena. */
char *verb_environment_path(struct verb_run *v, const char *environment);
char *verb_package_path(struct verb_run *v, const char *environment, const char *package);
/* Prints v->err (as JSON on standard output, too, with --json) and gives the exit code of it. */
int verb_fail(struct verb_run *v);
int kiln_exit_of(int rc); /* exit code of an error code */
/* Prints a JSON text as it came, with a line end. */
void verb_print_json(struct slice text);
