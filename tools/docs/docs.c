#include "tools/docs/docs.h"
#include <string.h>

static int print_flows(const struct docs_program *p, FILE *out)
{
    for (size_t i = 0; i < p->n_flows; i++) {
        const struct docs_flow *f = &p->flows[i];
        const char *wrong = flow_type_check(f->type);
        if (wrong) {
            fprintf(stderr, "flow %s: %s\n", f->type->name, wrong);
            return 1;
        }
        auto_buf struct buf graph = {0};
        flow_graph(f->type, &graph);
        fprintf(out, "#### `%s` (%s)\n\nThe %s %s.\n\n```mermaid\n%s```\n\n", f->type->name,
                p->service, p->service, f->says, buf_str(&graph));
    }
    return 0;
}

static int print_section(const struct docs_program *p, const char *name)
{
    if (strcmp(name, "flows") == 0) {
        return print_flows(p, stdout);
    }
    if (strcmp(name, "configuration") == 0) {
        conf_doc(p->conf, stdout);
        return 0;
    }
    for (size_t i = 0; i < p->n_sections; i++) {
        if (strcmp(name, p->sections[i].name) == 0) {
            p->sections[i].print(stdout);
            return 0;
        }
    }
    fprintf(stderr, "there is no section '%s'\n", name);
    return 2;
}

int docs_main(const struct docs_program *p, int argc, char **argv)
{
    if (argc != 2) {
        fputs("say which section: flows, configuration, ..\n", stderr);
        return 2;
    }
    int rc = print_section(p, argv[1]);
    return fflush(stdout) == 0 ? rc : 1;
}
