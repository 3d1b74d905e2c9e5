/* A DuckDB instance with its threads, driven to the end of each job. */
#pragma once
#include "common/base/buf.h"
#include "common/duck/duck_pool.h"
#include "tests/support/turn.h"
#include <check.h>

#define PATIENCE 120000 /* ms; only ends what hangs: busy machines are given their time */
#define turn_until(claim) turn_until_within(loop, PATIENCE, claim)

extern struct loop *loop;
extern struct duck_pool *pool;
extern struct duck_instance *duck;
extern struct arena arena;

void duck_setup(void); /* an instance in memory, locked, 3 threads of which 1 is reserved */
void duck_teardown(void);
/* The same with a folder for the test, which has pkg/ and work/ in it; the working directory is
 * restored at the end. */
void duck_dir_setup(void);
void duck_dir_teardown(void);
const char *in_dir(const char *name); /* a path in that folder */
/* Another instance for the test, in place of the one there is. */
void duck_reopen(const struct duck_settings *s);

/* One statement and its rows. */
struct told {
    struct duck_job job;
    const char *sql, *prepare_as;
    enum duck_form form;
    size_t n_columns;
    struct buf rows; /* cells behind each other, '|' between, a line each; NULL for SQL NULL */
    size_t n_rows, n_pages, stop_after;
    int dones;
};
void told_init(struct told *t, const char *sql);
void told_start(struct told *t);
int told_end(struct told *t); /* waits; the job's code */
/* Runs it; fails the test when it fails. The rows' text lives until the test ends. */
const char *rows_of(const char *sql, enum duck_form form);
/* Runs it and ends with its code; the sentence in *why. */
int fails(const char *sql, const char **why);
