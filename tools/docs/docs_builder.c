/* The builder's part of the documentation. */
#include "common/service/service.h"
#include "services/builder/builder_parts.h"
#include "tools/docs/docs.h"

static const struct docs_flow flows[] = {
    {"builds one target and publishes it", &flow_build_type},
    {"finds out what a lost swap left behind", &flow_resolve_type},
    {"drops a table that nobody reads", &flow_drop_type},
    {"drops leftover staging tables", &flow_sweep_type},
};

int main(int argc, char **argv)
{
    const struct docs_program p = {.service = "builder",
                                   .flows = flows,
                                   .n_flows = ARRAY_LEN(flows),
                                   .conf = builder_desc()->conf};
    return docs_main(&p, argc, argv);
}
