/* The gateway's descriptor: settings table and parts in start order. */
#pragma once
#include "services/gateway/gateway.h"

const struct service_desc *gateway_desc(void);
extern const struct conf_spec gateway_conf;
