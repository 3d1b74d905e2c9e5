/* Prints the parts of the documentation that are made from a program's tables. One small program
 * per service: names of two services may clash. */
#pragma once
#include "common/conf/conf.h"
#include "common/flow/flow_graph.h"

struct docs_flow {
    const char *says; /* what it does, behind "The planner" */
    const struct flow_type *type;
};
struct docs_section {
    const char *name;
    void (*print)(FILE *out);
};
struct docs_program {
    const char *service;
    const struct docs_flow *flows;
    size_t n_flows;
    const struct conf_spec *conf;
    const struct docs_section *sections; /* beside "flows" and "configuration" */
    size_t n_sections;
};
/* Prints the section that argv names; the exit code. */
int docs_main(const struct docs_program *p, int argc, char **argv);
