#include "services/gateway/core/decide.h"

#include "common/json/json.h"
#include "services/gateway/core/js_text.h"

const char *decide_served_name(enum decide_served s)
{
    static const char *const names[] = {"live", "baked", "mixed"};
    return names[s];
}

static void add_member(struct buf *out, const char *name, const char *value)
{
    buf_addf(out, ",\"%s\":", name);
    jsonw_str(out, slice_of(value));
}

static void add_source(struct buf *out, const struct decide_source *s)
{
    buf_add_slice(out, SLICE("{\"sourceID\":"));
    jsonw_str(out, slice_of(s->source_id));
    add_member(out, "name", s->name);
    buf_addf(out, ",\"served\":\"%s\"", s->is_baked ? "baked" : "live");
    add_member(out, "buildId", s->build_id);
    if (s->is_baked) {
        add_member(out, "generation", s->generation);
        add_member(out, "table", s->table);
        buf_add_slice(out, SLICE(",\"dataAsOf\":"));
        if (s->data_as_of_us) {
            buf_add_char(out, '"');
            js_iso_of_us(out, s->data_as_of_us);
            buf_add_char(out, '"');
        } else {
            buf_add_slice(out, SLICE("null"));
        }
    } else {
        enum reason known = reason_find(s->reason);
        add_member(out, "reason", s->reason);
        if (s->text) {
            add_member(out, "message", s->text);
        }
        if (known != REASON_NONE) {
            add_member(out, "remedy", reason_remedy(known));
        }
    }
    buf_add_char(out, '}');
}

void decide_json(const struct decide_receipt *r, struct buf *out)
{
    buf_addf(out, "{\"served\":\"%s\"", decide_served_name(r->served));
    if (r->reason) {
        add_member(out, "reason", r->reason);
    }
    buf_addf(out, ",\"epoch\":%llu,\"sources\":[", (unsigned long long)r->epoch);
    for (size_t i = 0; i < r->n_sources; i++) {
        if (i > 0) {
            buf_add_char(out, ',');
        }
        add_source(out, &r->sources[i]);
    }
    buf_add_slice(out, SLICE("]}"));
}
