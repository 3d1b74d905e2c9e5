/* The planner's part of the documentation, and what belongs to all: state machines and error codes.
 */
#include "common/err/err.h"
#include "services/planner/core/rows.h"
#include "services/planner/planner_parts.h"
#include "tools/docs/docs.h"
#include <string.h>

extern const struct flow_type store_compete_type, flow_boot_type, flow_load_type, flow_run_type,
    flow_events_type;

static const struct docs_flow flows[] = {
    {"becomes the active planner, and stays it", &store_compete_type},
    {"takes over: reads everything back before the first message is answered", &flow_boot_type},
    {"makes a load: package files, schemas from the warehouse, the plan", &flow_load_type},
    {"plans a run: what is built, carried and refused", &flow_run_type},
    {"works off publish events", &flow_events_type},
};

static void print_state(FILE *out, const struct state_row *s)
{
    if (s->rest[0]) {
        fprintf(out, "    %s: %s (%s)\n", s->name, s->name, s->rest);
    }
    if (strchr(s->flags, 'S')) {
        fprintf(out, "    [*] --> %s\n", s->name);
    }
    if (strchr(s->flags, 'E')) {
        fprintf(out, "    %s --> [*]\n", s->name);
    }
}

/* Mermaid reads ':' and ';' as signs of its own. */
static void print_move(FILE *out, const struct move_row *m)
{
    fprintf(out, "    %s --> %s: ", m->from, m->to);
    for (const char *p = m->on; *p; p++) {
        fputc(*p == ';' || *p == ':' ? ',' : *p, out);
    }
    fputc('\n', out);
}

static void print_machine(FILE *out, const char *machine)
{
    size_t n_states = 0;
    size_t n_moves = 0;
    const struct state_row *states = states_rows(&n_states);
    const struct move_row *moves = states_moves(&n_moves);
    fprintf(out, "#### A %s\n\n```mermaid\nstateDiagram-v2\n", machine);
    for (size_t i = 0; i < n_states; i++) {
        if (strcmp(states[i].machine, machine) == 0) {
            print_state(out, &states[i]);
        }
    }
    for (size_t i = 0; i < n_moves; i++) {
        if (strcmp(moves[i].machine, machine) == 0) {
            print_move(out, &moves[i]);
        }
    }
    fputs("```\n\n", out);
}

static void print_states(FILE *out)
{
    size_t n = 0;
    const struct state_row *states = states_rows(&n);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(states[i].machine, states[i - 1].machine) != 0) {
            print_machine(out, states[i].machine);
        }
    }
}

static const struct {
    const char *name;
    int code;
    int http;
    const char *text;
} codes[] = {
#define ERR_CODE(name, number, class_, http, text) {#name, number, http, text},
#include "common/err/err_codes.def"
#undef ERR_CODE
};

static void print_errors(FILE *out)
{
    fputs("| code | number | class | HTTP status | meaning |\n|---|---:|---|---:|---|\n", out);
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        fprintf(out, "| `%s` | %d | %s | %d | %s |\n", codes[i].name, codes[i].code,
                err_class_name(err_code_class(codes[i].code)), codes[i].http, codes[i].text);
    }
}

static const struct docs_section sections[] = {
    {"states", print_states},
    {"errors", print_errors},
};

int main(int argc, char **argv)
{
    const struct docs_program p = {.service = "planner",
                                   .flows = flows,
                                   .n_flows = ARRAY_LEN(flows),
                                   .conf = &planner_conf,
                                   .sections = sections,
                                   .n_sections = ARRAY_LEN(sections)};
    return docs_main(&p, argc, argv);
}
