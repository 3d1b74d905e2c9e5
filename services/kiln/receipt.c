#include "services/kiln/receipt.h"

static void add_source(const json_t *s, struct buf *out)
{
    const char *as_of = json_str(s, "dataAsOf", NULL);
    const char *message = json_str(s, "message", NULL);
    const char *name = json_str(s, "name", json_str(s, "sourceID", "?"));
    if (strcmp(json_str(s, "served", "live"), "baked") == 0) {
        buf_addf(out, "%s from %s (generation %s%s%s)", name, json_str(s, "table", "?"),
                 json_str(s, "generation", "?"), as_of ? ", data as of " : "", as_of ? as_of : "");
        return;
    }
    buf_addf(out, "%s live, %s%s%s", name, json_str(s, "reason", "no reason given"),
             message ? ": " : "", message ? message : "");
}

void receipt_line(const json_t *decision, struct buf *out)
{
    const json_t *sources = json_object_get(decision, "sources");
    size_t n = json_array_size(sources);
    if (!json_is_object(decision)) {
        buf_add_str(out, "no receipt came with the answer");
        return;
    }
    buf_add_str(out, json_str(decision, "served", "?"));
    const char *reason = json_str(decision, "reason", NULL);
    if (n == 0 && reason) {
        buf_addf(out, ": %s", reason);
    }
    for (size_t i = 0; i < n; i++) {
        buf_add_str(out, i ? "; " : ": ");
        add_source(json_array_get(sources, i), out);
    }
}
