/* What a connection object of Publisher's configuration means to the drivers. */
#pragma once
#include "common/base/arena.h"
#include "common/err/err.h"

/* libpq connection string of {"postgresConnection": {..}}; ERR_INVALID names what is missing. Lives
 * in the arena. */
int wh_config_conninfo(struct arena *a, const char *name, const char *config_json, const char **out,
                       struct err *e) MUST_USE;
