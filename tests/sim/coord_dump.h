/* Everything of a coordinator that must survive a reload, as text: two that decide alike dump
 * alike. */
#pragma once
#include "services/planner/core/coord.h"

/* Clocks, queues' order and who was heard are left out: they are not kept, and decide nothing for
 * good. */
char *coord_dump(const struct coord *c); /* the caller frees */
