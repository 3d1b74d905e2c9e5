/* The tables of memory_store, for its own files only. */
#pragma once
#include "common/base/map.h"
#include "services/planner/core/coord_internal.h"
#include "tests/sim/memory_store.h"

struct run_rec {
    struct row_run r;
    bool gone;
};
struct job_rec {
    struct row_job j;
    bool gone;
};
struct unit_rec {
    struct row_unit u;
    const char *environment, *name;
    struct core_binding_set set; /* newest; epoch 0 none */
    bool deleted;
};
struct memory_store {
    struct arena mem;
    struct map units, runs, requests, places, targets, jobs, attempts, pulls, generations, tokens,
        entries, epochs, moves;
    struct map job_numbers, place_names;
    char why[512];
};

const char *broken(struct memory_store *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
char *key_of(struct memory_store *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
bool take_key(struct map *m, const char *key); /* a unique key: false when it stands already */
const char *check_move(struct memory_store *s, const char *machine, const char *id,
                       const char *stands, const char *from, const char *to);
struct unit_rec *unit_rec(const struct memory_store *s, uint64_t id);
struct row_run *run_row(const struct memory_store *s, const char *id);
struct row_job *job_row(const struct memory_store *s, uint64_t id);
const char *apply_place(struct memory_store *s, const struct core_target *t);
const char *apply_target(struct memory_store *s, const struct core_target *t);
const char *apply_job_insert(struct memory_store *s, const struct row_job *in);
const char *apply_job_move(struct memory_store *s, const struct row_job *in);
const char *apply_attempt_insert(struct memory_store *s, const struct row_attempt *in);
const char *apply_attempt_move(struct memory_store *s, const struct row_attempt *in);
const char *apply_attempt_lease(struct memory_store *s, const struct row_attempt *in);
const char *apply_generation_insert(struct memory_store *s, const struct row_generation *in);
const char *apply_generation_move(struct memory_store *s, const struct row_generation *in);
const char *apply_entry(struct memory_store *s, const struct row_entry *in);
