/* The builder's part of the documentation. */
#include "common/duck/duck_type.h"
#include "common/service/service.h"
#include "services/builder/builder_parts.h"
#include "tools/docs/docs.h"

static const struct docs_flow flows[] = {
    {"builds one target and publishes it", &flow_build_type},
    {"finds out what a lost swap left behind", &flow_resolve_type},
    {"drops a table that nobody reads", &flow_drop_type},
    {"drops leftover staging tables", &flow_sweep_type},
};

static void print_duckdb_types(FILE *out)
{
    size_t n;
    const struct duck_type_doc *types = duck_type_docs(&n);
    fputs("| DuckDB type | as text | in a result | in a built table |\n|---|---|---|---|\n", out);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, "| `%s` | %s | %s | %s |\n", types[i].name, types[i].text, types[i].json,
                types[i].stored);
    }
    fputs("\n", out);
}

static const struct docs_section sections[] = {{"duckdb_types", print_duckdb_types}};

int main(int argc, char **argv)
{
    const struct docs_program p = {.service = "builder",
                                   .flows = flows,
                                   .n_flows = ARRAY_LEN(flows),
                                   .conf = builder_desc()->conf,
                                   .sections = sections,
                                   .n_sections = ARRAY_LEN(sections)};
    return docs_main(&p, argc, argv);
}
