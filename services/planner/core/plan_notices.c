#include "services/planner/core/plan_internal.h"

static bool has_text(char *const *list, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i], text) == 0) {
            return true;
        }
    }
    return false;
}

/* An extension has its base's tag: what was said about the base is not said again. */
static void notice_unknown_keys(struct plan_making *m, const struct plan_src *s)
{
    const struct plan_src *base = plan_source(m, s->msg->extends);
    for (size_t i = 0; i < s->msg->n_unknown_tag_keys; i++) {
        const char *key = s->msg->unknown_tag_keys[i];
        if (base && has_text(base->msg->unknown_tag_keys, base->msg->n_unknown_tag_keys, key)) {
            continue;
        }
        plan_warn(m, s->row.model, s->row.name,
                  arena_printf(m->a, "unrecognized option '%s' in the '#@ persist' of source '%s'",
                               key, s->row.name));
    }
}

static void notice_storage(struct plan_making *m, const struct plan_src *s)
{
    const char *mode = m->in->storage_mode ? m->in->storage_mode : "off";
    const char *cause = strcmp(mode, "off") == 0 ? "PERSIST_STORAGE_MODE is off"
                                                 : "this version has no storage tier yet";
    plan_warn(m, s->row.model, s->row.name,
              arena_printf(m->a,
                           "storage=\"%s\" of source '%s' is ignored (%s): it is not built and is "
                           "served live",
                           plan_option(m->a, s->msg, "storage"), s->row.name, cause));
}

static void notice_name(struct plan_making *m, const struct plan_src *s)
{
    if (s->name.is_quoted) {
        plan_advise(m, s->row.model, s->row.name,
                    arena_printf(
                        m->a,
                        "the name of source '%s' is quoted inside its quotes: it is "
                        "built and served as %s; other servers serve such a source live",
                        s->row.name,
                        plan_name_quoted(m->a, s->row.name_parts.schema, s->row.name_parts.table)));
    }
    if (s->row.target < 0 || !s->msg->has_name) {
        return;
    }
    const struct planned_target *t = &m->out->targets[s->row.target];
    if (strcmp(t->table, s->row.name_parts.table) != 0 ||
        strcmp(t->schema, s->row.name_parts.schema) != 0) {
        plan_advise(m, s->row.model, s->row.name,
                    arena_printf(m->a,
                                 "source '%s' has the same SQL as source '%s' and shares its "
                                 "table: its own name= is not used",
                                 s->row.name, m->src[t->owner].row.name));
    }
}

static void notice_refresh(struct plan_making *m, const struct plan_src *s)
{
    if (s->refresh && strcmp(s->refresh, "incremental") == 0) {
        plan_advise(m, s->row.model, s->row.name,
                    arena_printf(m->a,
                                 "refresh=\"incremental\" of source '%s' is built in full: "
                                 "incremental refresh comes in a later version",
                                 s->row.name));
    }
    if (s->row.freshness_window && duration_seconds(s->row.freshness_window) < 0) {
        plan_advise(m, s->row.model, s->row.name,
                    arena_printf(m->a,
                                 "the freshness window '%s' of source '%s' is no duration such as "
                                 "24h or 30m: its table never counts as stale",
                                 s->row.freshness_window, s->row.name));
    }
}

static void add_refusal(struct plan_making *m, const struct plan_src *s, const char *reason,
                        const char *message)
{
    struct package_plan *out = m->out;
    out->refusals = plan_grown(m->a, out->refusals, out->n_refusals, sizeof(*out->refusals));
    out->refusals[out->n_refusals++] = (struct plan_refusal){.source_id = s->row.source_id,
                                                             .name = s->row.name,
                                                             .model = s->row.model,
                                                             .tier = "colocated",
                                                             .reason = reason,
                                                             .message = message,
                                                             .authored = true};
    plan_warn(m, s->row.model, s->row.name, message);
}

static void notice_source(struct plan_making *m, const struct plan_src *s)
{
    notice_unknown_keys(m, s);
    notice_name(m, s);
    notice_refresh(m, s);
    if (s->row.skipped) {
        notice_storage(m, s);
    }
    const struct planned_target *t = s->row.target < 0 ? NULL : &m->out->targets[s->row.target];
    if (s->refused_reason) {
        add_refusal(m, s, s->refused_reason, s->refused_message);
    } else if (t && t->refused_reason) {
        add_refusal(m, s, t->refused_reason, t->refused_message);
    }
}

static bool is_reached(const struct plan_making *m, const char *name, const char *path)
{
    for (size_t i = 0; i < m->n_src; i++) {
        if (strcmp(m->src[i].msg->name, name) == 0 &&
            strcmp(m->src[i].msg->declared_in, path) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < m->out->n_dropped; i++) {
        if (strcmp(m->out->dropped[i].name, name) == 0 &&
            strcmp(m->out->dropped[i].path, path) == 0) {
            return true;
        }
    }
    return false;
}

static void notice_unreached(struct plan_making *m, const Kiln__Mc__Model *model)
{
    for (size_t i = 0; i < model->n_unreached; i++) {
        const char *name = model->unreached[i];
        if (!is_reached(m, name, model->path)) {
            plan_advise(m, model->path, name,
                        arena_printf(m->a,
                                     "source '%s' is annotated '#@ persist' but never built: add "
                                     "'##! experimental.persistence' to %s",
                                     name, model->path));
        }
    }
}

void plan_notices(struct plan_making *m)
{
    for (size_t i = 0; i < m->n_src; i++) {
        notice_source(m, &m->src[i]);
    }
    for (size_t i = 0; i < m->out->n_dropped; i++) {
        const struct plan_dropped *d = &m->out->dropped[i];
        plan_warn(m, d->path, d->name,
                  arena_printf(m->a,
                               "source '%s' in %s is annotated '#@ persist' but was not recognized "
                               "as a materializable source: persist a query source (x is base -> "
                               "{ select: * }) or conn.sql(...); every run that covers it fails",
                               d->name, d->path));
    }
    for (size_t i = 0; i < m->in->loaded->n_models; i++) {
        notice_unreached(m, m->in->loaded->models[i]);
    }
}
