/* Inside of common/conf: the state of one conf_load() and its steps. */
#pragma once
#include "common/base/buf.h"
#include "common/conf/conf.h"
#include "common/toml/toml.h"

/* A value on its way into the settings: where it stands and what was written. */
struct conf_found {
    const char *place;  /* "kiln.toml:12: ", "environment variable KILN_PORT: ", "" */
    const char *source; /* for --print-config: "kiln.toml:12", "env KILN_PORT", "default" */
    const char *text;   /* as text; NULL if toml is set and no string */
    const struct toml_item *toml; /* typed value of a file, NULL elsewhere */
};

struct conf_run {
    const struct conf_spec *spec;
    struct arena *arena;
    char *settings;
    FILE *errors;
    int n_errors;
    const char **sources; /* per item, NULL: unset */
    const char *file;     /* NULL: none */
    bool check, print;
};

/* Writes one error line: the program's name, place and sentence. */
void conf_complain(struct conf_run *r, const char *place, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Reads the command line: file, check and print are set; flag values are queued in flags (one per
 * item, NULL: absent). Returns CONF_RUN or what --help and --version end with. */
enum conf_action conf_args_read(struct conf_run *r, int argc, char **argv, char ***rest,
                                const char **flags, FILE *out);
void conf_file_read(struct conf_run *r);

/* Checks one value and stores it; complains otherwise. */
void conf_value_apply(struct conf_run *r, size_t item, const struct conf_found *found);
/* The value as stored, printed as TOML; secrets as ***. */
void conf_value_print(const struct conf_run *r, size_t item, struct buf *out);
/* "a whole number from 1 to 65535": what an option takes. */
void conf_value_allowed(const struct conf_item *item, struct buf *out);
/* min and max of numbers; both are unlimited when the table gives neither. */
void conf_value_range(const struct conf_item *item, int64_t *min, int64_t *max);

/* The candidate nearest to a mistyped word, NULL when none is near. */
const char *conf_near(const char *word, const char *const *candidates, size_t n);

void conf_print_help(const struct conf_spec *spec, FILE *out);
void conf_print_settings(const struct conf_run *r, FILE *out);
