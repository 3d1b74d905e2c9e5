/* The gateway's part of the documentation. */
#include "services/gateway/gateway_parts.h"
#include "tools/docs/docs.h"

extern const struct flow_type flow_bind_type;
extern const struct flow_type flow_query_type;
extern const struct flow_type flow_compile_type;
extern const struct flow_type flow_sql_type;

static const struct docs_flow flows[] = {
    {"loads a package's newer load and puts its binding set in force", &flow_bind_type},
    {"answers a Malloy query", &flow_query_type},
    {"compiles a text, asking the warehouse for what it newly names", &flow_compile_type},
    {"runs one SELECT of a caller", &flow_sql_type},
};

int main(int argc, char **argv)
{
    const struct docs_program p = {
        .service = "gateway", .flows = flows, .n_flows = ARRAY_LEN(flows), .conf = &gateway_conf};
    return docs_main(&p, argc, argv);
}
