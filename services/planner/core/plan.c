#include "services/planner/core/plan_internal.h"

void *plan_grown(struct arena *a, void *items, size_t n, size_t size)
{
    if (n == 0) {
        return arena_zalloc(a, 8 * size);
    }
    if (n < 8 || (n & (n - 1)) != 0) {
        return items;
    }
    void *more = arena_zalloc(a, 2 * n * size);
    memcpy(more, items, n * size);
    return more;
}

static void note(struct plan_making *m, json_t *list, const char *model, const char *subject,
                 const char *message)
{
    auto_buf struct buf key = {0};
    buf_addf(&key, "%p|%s|%s|%s", (void *)list, model ? model : "", subject ? subject : "",
             message);
    if (map_put(&m->notes_said, buf_slice(&key), list)) {
        return;
    }
    json_t *item = json_object();
    if (model && *model) {
        json_set_str(item, "model", model);
    }
    if (subject && *subject) {
        json_set_str(item, "subject", subject);
    }
    json_set_str(item, "message", message);
    must(json_array_append_new(list, item) == 0);
}

void plan_warn(struct plan_making *m, const char *model, const char *subject, const char *message)
{
    note(m, m->out->warnings, model, subject, message);
}

void plan_advise(struct plan_making *m, const char *model, const char *subject, const char *message)
{
    note(m, m->out->advisories, model, subject, message);
}

void plan_fail_load(struct plan_making *m, int status, const char *fmt, ...)
{
    va_list ap;
    if (m->load_errors.len > 0) {
        buf_add_str(&m->load_errors, "; ");
    }
    va_start(ap, fmt);
    buf_vaddf(&m->load_errors, fmt, ap);
    va_end(ap);
    m->load_status = status > m->load_status ? status : m->load_status;
}

const struct plan_connection *plan_connection_of(const struct plan_connection *c, size_t n,
                                                 const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(c[i].name, name) == 0) {
            return &c[i];
        }
    }
    return NULL;
}

const char *plan_text(Kiln__Mc__FreeText *const *items, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(items[i]->key, key) == 0) {
            return items[i]->value;
        }
    }
    return NULL;
}

const char *plan_option(struct arena *a, const Kiln__Mc__Source *s, const char *key)
{
    struct slice text = slice_trim(slice_of(plan_text(s->tag, s->n_tag, key)));
    return text.len ? arena_slice(a, text) : NULL;
}

static void check_compiled(struct plan_making *m, const Kiln__Mc__Model *model)
{
    if (*model->error && strstr(model->error, model->path)) {
        plan_fail_load(m, 424, "the model does not compile: %s", model->error);
    } else if (*model->error) {
        plan_fail_load(m, 424, "model %s does not compile: %s", model->path, model->error);
    }
}

/* The compiler leaves access rules to its host; until they are applied, rows would go out
 * unfiltered (decisions 1.6). */
static void check_locks(struct plan_making *m)
{
    struct map said;
    map_init(&said);
    auto_buf struct buf places = {0};
    for (size_t i = 0; i < m->in->loaded->n_models; i++) {
        const Kiln__Mc__Model *model = m->in->loaded->models[i];
        for (size_t k = 0; k < model->n_locks; k++) {
            if (!map_put(&said, slice_of(model->locks[k]), m)) {
                buf_addf(&places, "%s%s", places.len ? ", " : "", model->locks[k]);
            }
        }
        for (size_t k = 0; k < model->n_sources; k++) {
            const Kiln__Mc__Source *s = model->sources[k];
            if (s->n_gates > 0 && model->n_locks == 0 &&
                !map_put(&said, slice_of(s->source_id), m)) {
                buf_addf(&places, "%s%s on source '%s' in %s", places.len ? ", " : "", s->gates[0],
                         s->name, s->declared_in);
            }
        }
    }
    map_fini(&said);
    if (places.len > 0) {
        plan_fail_load(m, 424,
                       "access rules are not applied by this version, so a model that has one does "
                       "not load: remove %s",
                       buf_str(&places));
    }
}

static void check_policy(struct plan_making *m)
{
    const char **list;
    size_t n = policy_list(m->a, m->in->manifest, m->out, &list);
    for (size_t i = 0; i < n; i++) {
        plan_warn(m, NULL, NULL, list[i]);
        if (m->in->publishing && !m->in->policy_untouched) {
            plan_fail_load(m, 400, "%s", list[i]);
        }
    }
    char *explores =
        package_explores_violations(m->a, m->in->manifest, m->in->paths, m->in->n_files);
    if (explores && m->in->publishing) {
        plan_fail_load(m, 400, "%s", explores);
    }
}

static const char *entity_of_upstream(const struct plan_making *m, const Kiln__Mc__Source *s,
                                      size_t i)
{
    const struct plan_src *up =
        i < s->n_depends_on_sources ? plan_source(m, s->depends_on_sources[i]) : NULL;
    return up ? up->row.entity_id : arena_strdup(m->a, s->depends_on[i]);
}

static void give_sources(struct plan_making *m)
{
    struct package_plan *out = m->out;
    out->sources = arena_zalloc(m->a, (m->n_src + 1) * sizeof(*out->sources));
    out->n_sources = m->n_src;
    for (size_t i = 0; i < m->n_src; i++) {
        const Kiln__Mc__Source *msg = m->src[i].msg;
        const char **upstreams = arena_alloc(m->a, (msg->n_depends_on + 1) * sizeof(*upstreams));
        for (size_t k = 0; k < msg->n_depends_on; k++) {
            upstreams[k] = entity_of_upstream(m, msg, k);
        }
        m->src[i].row.depends_on = upstreams;
        m->src[i].row.n_depends_on = msg->n_depends_on;
        out->sources[i] = m->src[i].row;
    }
}

static void making_init(struct plan_making *m, struct arena *a, const struct plan_input *in,
                        struct package_plan *out)
{
    *m = (struct plan_making){.a = a, .in = in, .out = out};
    map_init(&m->by_id);
    map_init(&m->dropped_ids);
    map_init(&m->models);
    map_init(&m->notes_said);
    out->warnings = json_array();
    out->advisories = json_array();
    out->description = arena_strdup(a, json_str(in->manifest, "description", NULL));
    for (size_t i = 0; i < in->loaded->n_models; i++) {
        map_put(&m->models, slice_of(in->loaded->models[i]->path), in->loaded->models[i]);
    }
}

static void making_fini(struct plan_making *m)
{
    for (size_t i = 0; i < m->n_src; i++) {
        json_decref(m->src[i].metadata);
    }
    json_decref(m->package_metadata);
    map_fini(&m->by_id);
    map_fini(&m->dropped_ids);
    map_fini(&m->models);
    map_fini(&m->notes_said);
    buf_fini(&m->load_errors);
}

void package_plan_make(struct arena *a, const struct plan_input *in, struct package_plan *out)
{
    struct plan_making m;
    *out = (struct package_plan){0};
    making_init(&m, a, in, out);
    manifest_notices(&m);
    plan_meta_package(&m);
    plan_scan(&m);
    for (size_t i = 0; i < in->loaded->n_models; i++) {
        check_compiled(&m, in->loaded->models[i]);
    }
    check_locks(&m);
    plan_sources_collect(&m);
    for (size_t i = 0; i < m.n_src; i++) {
        plan_judge(&m, &m.src[i]);
    }
    plan_sources_order(&m);
    plan_targets_make(&m);
    plan_notices(&m);
    give_sources(&m);
    check_policy(&m);
    if (m.load_errors.len > 0) {
        out->load_error = arena_strdup(a, buf_str(&m.load_errors));
        out->load_status = m.load_status;
    }
    out->build_plan = plan_json_build(&m);
    out->package = plan_json_package(&m);
    making_fini(&m);
}

void package_plan_fini(struct package_plan *p)
{
    json_decref(p->build_plan);
    json_decref(p->warnings);
    json_decref(p->advisories);
    json_decref(p->package);
    *p = (struct package_plan){0};
}
