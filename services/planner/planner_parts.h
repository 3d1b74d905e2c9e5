/* The planner's descriptor: settings table and parts in start order. */
#pragma once
#include "services/planner/planner.h"

const struct service_desc *planner_desc(void);
extern const struct conf_spec planner_conf;
