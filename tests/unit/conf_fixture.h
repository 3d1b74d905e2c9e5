/* A table of settings and a file for them, loaded as a program does at its start. */
#pragma once
#include "common/conf/conf.h"
#include <check.h>

struct settings {
    const char *host, *password, *mode, *name;
    int64_t port, wait, limit, count;
    bool verbose, tls;
};

extern struct conf_spec spec;
extern struct arena arena;
extern struct settings got;         /* what the last load found */
extern char *out_text, *error_text; /* what it printed */
extern char **rest;                 /* the words it left over */
extern char file_path[64];          /* of load_file */

void conf_setup(void);    /* an environment with nothing but the required T_NAME */
void conf_teardown(void); /* takes variables and file away */

/* Runs conf_load with the blank-separated words of args behind the program's name. */
enum conf_action load(const char *args);
enum conf_action load_file(const char *toml, const char *args); /* with a file of this text */
void says(const char *words);                                   /* among the errors */
