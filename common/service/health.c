/* Health: named conditions, each ok or with a reason in words. */
#include "common/json/json.h"
#include "common/log/log.h"
#include "common/service/service_internal.h"

static struct health_condition *find(struct service *s, const char *name)
{
    list_for_each (it, &s->conditions) {
        struct health_condition *c = list_entry(it, struct health_condition, link);
        if (strcmp(c->name, name) == 0) {
            return c;
        }
    }
    return NULL;
}

static void say_change(const struct health_condition *c)
{
    if (c->ok) {
        log_info("health.ok", "condition=%s", c->name);
    } else {
        log_warn("health.not_ok", "condition=%s required=%d reason=%s", c->name, c->required,
                 log_q(c->reason));
    }
}

void health_set(struct service *s, const char *name, bool required, bool ok, const char *reason)
{
    loop_assert_here(s->loop);
    struct health_condition *c = find(s, name);
    const char *why = ok || !reason ? "" : reason;
    if (!c) {
        c = xcalloc(1, sizeof(*c));
        c->name = xstrdup(name);
        list_add_tail(&s->conditions, &c->link);
    } else if (c->ok == ok && c->required == required && strcmp(c->reason, why) == 0) {
        return;
    }
    free(c->reason);
    c->reason = xstrdup(why);
    c->required = required;
    c->ok = ok;
    say_change(c);
}

bool health_ready(const struct service *s)
{
    if (s->draining) {
        return false;
    }
    list_for_each (it, &s->conditions) {
        const struct health_condition *c = list_entry(it, struct health_condition, link);
        if (c->required && !c->ok) {
            return false;
        }
    }
    return true;
}

static void add_condition(const struct health_condition *c, struct buf *out)
{
    jsonw_str(out, slice_of(c->name));
    buf_add_str(out, c->ok ? ":{\"ok\":true" : ":{\"ok\":false");
    if (!c->ok) {
        buf_add_str(out, ",\"reason\":");
        jsonw_str(out, slice_of(c->reason));
    }
    if (!c->required) {
        buf_add_str(out, ",\"required\":false");
    }
    buf_add_char(out, '}');
}

void health_json(const struct service *s, struct buf *out)
{
    buf_addf(out, "{\"ready\":%s,", health_ready(s) ? "true" : "false");
    if (s->draining) {
        buf_add_str(out, "\"draining\":true,");
    }
    buf_add_str(out, "\"parts\":{");
    const char *comma = "";
    list_for_each (it, &s->conditions) {
        buf_add_str(out, comma);
        add_condition(list_entry(it, struct health_condition, link), out);
        comma = ",";
    }
    buf_add_str(out, "}}");
}

void health_fini(struct service *s)
{
    for (struct list *it; (it = list_take_head(&s->conditions));) {
        struct health_condition *c = list_entry(it, struct health_condition, link);
        free(c->name);
        free(c->reason);
        free(c);
    }
}
