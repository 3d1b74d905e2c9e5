/* A package as decisions see it: made with the package, before any worker has it; lives with it. */
#pragma once
#include "services/gateway/core/decide.h"
#include "services/gateway/gateway.h"
#include "services/gateway/tag.h"

struct gw_view {
    struct decide_package facts;
    const struct gw_binding **bound; /* of facts.bindings, same order */
    struct gw_properties said;       /* of the package */
};
/* Into p->arena, as p->view. Main loop. */
void gw_view_make(struct gw_package *p);
