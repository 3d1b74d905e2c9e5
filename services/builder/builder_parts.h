/* The builder's descriptor: settings table and parts in start order. */
#pragma once
#include "services/builder/builder.h"

const struct service_desc *builder_desc(void);
