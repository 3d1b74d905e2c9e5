#include "common/flow/flow_graph.h"

/* Mermaid reads ':' as the end of a name and ';' as the end of a statement. */
static void add_says(struct buf *out, const char *says)
{
    for (const char *p = says; *p; p++) {
        buf_add_char(out, *p == ':' || *p == ';' || *p == '\n' ? ',' : *p);
    }
}

static void add_state(const struct flow_step *s, struct buf *out)
{
    bool has_words = s->says && s->says[0];
    bool is_plain = !has_words && !s->wait_ms && !s->shielded;
    if (is_plain) {
        return;
    }
    buf_addf(out, "    %s: %s", s->name, s->name);
    if (has_words) {
        buf_add_str(out, " - ");
        add_says(out, s->says);
    }
    if (s->wait_ms) {
        buf_addf(out, " (at most %u ms)", (unsigned)s->wait_ms);
    }
    if (s->shielded) {
        buf_add_str(out, " [not cancellable]");
    }
    buf_add_char(out, '\n');
}

void flow_graph(const struct flow_type *t, struct buf *out)
{
    buf_add_str(out, "stateDiagram-v2\n");
    for (unsigned i = 0; i < t->n; i++) {
        add_state(&t->steps[i], out);
    }
    buf_addf(out, "    [*] --> %s\n", t->steps[0].name);
    for (unsigned i = 0; i < t->n; i++) {
        for (unsigned to = 0; to < t->n; to++) {
            if (t->steps[i].to & FLOW_TO(to)) {
                buf_addf(out, "    %s --> %s\n", t->steps[i].name, t->steps[to].name);
            }
        }
    }
    buf_addf(out, "    %s --> [*]\n", t->steps[t->n - 1].name);
}
