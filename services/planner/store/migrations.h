/* The numbered SQL files of services/planner/store/migrations, compiled in. */
#pragma once
#include "common/base/slice.h"

struct embedded_file {
    const char *name; /* "001_run_store.sql" */
    struct slice text;
};
extern const struct embedded_file store_migrations[]; /* by number, from 1, without gaps */
extern const size_t store_migrations_count;
