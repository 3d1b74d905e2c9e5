/* Declarative configuration: one table per program gives names, ranges, defaults and prose. */
#pragma once
#include "common/base/arena.h"
#include "common/err/err.h"
#include <stdio.h>

enum conf_type { CONF_STR, CONF_INT, CONF_BOOL, CONF_MS, CONF_BYTES, CONF_ENUM };
enum { CONF_SECRET = 1, CONF_REQUIRED = 2, CONF_RELOAD = 4 };
/* One option. Target struct members: CONF_STR, CONF_ENUM const char *; CONF_INT, CONF_MS,
 * CONF_BYTES int64_t; CONF_BOOL bool. */
struct conf_item {
    const char *key; /* TOML path: "gateway.port" */
    enum conf_type type;
    size_t offset;     /* in the program's settings struct */
    const char *def;   /* default as text, NULL: unset */
    int64_t min, max;  /* numbers; both 0: any */
    const char *words; /* CONF_ENUM: "a|b|c" */
    const char *env;   /* environment variable, NULL: none */
    const char *flag;  /* "--port", NULL: none; a CONF_BOOL flag takes no value */
    unsigned flags;
    const char *doc; /* one sentence */
};
struct conf_spec {
    const char *program;           /* "kiln-planner" */
    const char *summary;           /* one sentence for --help */
    const struct conf_item *items; /* n of them */
    size_t n;
    bool rest_allowed;  /* positional arguments go to *rest */
    const char *others; /* keys in sections of ours that only other programs read: "bus.a|bus.b" */
};
enum conf_action { CONF_RUN, CONF_EXIT_OK, CONF_EXIT_BAD };
/* Order of strength: default < file (--config FILE, or KILN_CONFIG) < environment < flag. Handles
 * --help, --version, --print-config (each value and where it came from; secrets as ***) and --check
 * itself, printing to out. All errors are reported, then CONF_EXIT_BAD. Values like "10s", "250ms",
 * "5min" for CONF_MS and "64MiB" for CONF_BYTES. Strings live in the arena. An empty environment
 * variable counts as absent. Unknown keys are errors, but the sections of other programs in one
 * shared file are not. */
enum conf_action conf_load(const struct conf_spec *spec, struct arena *a, void *settings, int argc,
                           char **argv, char ***rest, FILE *out, FILE *errors);
/* For programs that change their working directory: a path, and the paths in addresses (unix:path,
 * ipc://path, several with commas between), made absolute by the one of now. Anything else is
 * returned as it is. In the arena. */
const char *conf_absolute_path(struct arena *a, const char *path) MUST_USE;
const char *conf_absolute_addresses(struct arena *a, const char *list) MUST_USE;
/* The table as Markdown, for docs/configuration.md. */
void conf_doc(const struct conf_spec *spec, FILE *out);
