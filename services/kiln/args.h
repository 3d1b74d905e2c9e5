/* The command line of one verb: options by table, then words. */
#pragma once
#include "common/base/arena.h"
#include <stdio.h>

enum arg_kind { ARG_FLAG, ARG_TEXT, ARG_LIST, ARG_SECONDS };
struct arg_list { /* in the arena; strings are argv's */
    const char **items;
    size_t n;
};
struct arg_option {
    const char *name;   /* "--source" */
    enum arg_kind kind; /* its member: bool, const char *, struct arg_list, int64_t (ms) */
    size_t offset;
    const char *value; /* "NAME", for help; NULL with ARG_FLAG */
    const char *doc;
};
struct arg_spec {
    const char *verb;    /* "materialize" */
    const char *words;   /* "[ENV] PACKAGE" */
    const char *summary; /* one sentence */
    const char *more;    /* printed behind the options; NULL: nothing */
    size_t min_words, max_words;
    const struct arg_option *options;
    size_t n;
};
enum arg_action { ARG_RUN, ARG_EXIT_OK, ARG_EXIT_USAGE };
/* Fills options and words; an option's member keeps its value when the option is not given. Handles
 * --help itself. "--name=value" and "--name value" are both read; "--" ends the options. */
enum arg_action args_read(const struct arg_spec *spec, struct arena *a, void *options, int argc,
                          char **argv, struct arg_list *words, FILE *out, FILE *errors) MUST_USE;
