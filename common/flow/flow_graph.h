/* Prints a flow's table as a Mermaid state diagram, for ARCHITECTURE.md. */
#pragma once
#include "common/base/buf.h"
#include "common/flow/flow.h"

void flow_graph(const struct flow_type *t, struct buf *out);
