#include "tests/unit/plan_fixture.h"

struct plan_world pw;

void plan_up(void)
{
    pw = (struct plan_world){0};
    arena_init(&pw.a);
    kiln__mc__loaded__init(&pw.loaded);
    pw.loaded.models = pw.models;
    pw.connections[0] = (struct plan_connection){"pg", "postgres", "postgres", "D1", true, false};
    pw.connections[1] =
        (struct plan_connection){"again", "postgres", "postgres", "D1", true, false};
    pw.connections[2] = (struct plan_connection){"duck", "duckdb", "duckdb", "D2", false, true};
    pw.connections[3] =
        (struct plan_connection){"lab", "snowflake", "snowflake", "D3", false, false};
    pw.in = (struct plan_input){.environment = "prod",
                                .package = "sales",
                                .location = "/srv/sales",
                                .loaded = &pw.loaded,
                                .paths = pw.paths,
                                .texts = pw.texts,
                                .connections = pw.connections,
                                .n_connections = ARRAY_LEN(pw.connections),
                                .storage_mode = "off"};
    pw_manifest("{}");
}

void plan_again(void)
{
    package_plan_fini(&pw.plan);
}

void plan_down(void)
{
    plan_again();
    json_decref(pw.in.manifest);
    arena_fini(&pw.a);
}

void pw_manifest(const char *json)
{
    struct err e = {0};
    json_decref(pw.in.manifest);
    pw.in.manifest = package_manifest_parse(slice_of(json), &e);
    ck_assert_msg(pw.in.manifest != NULL, "%s", err_text(&e));
}

static void *grown(void *list, size_t n)
{
    void **more = arena_alloc(&pw.a, (n + 1) * sizeof(void *));
    if (n > 0) {
        memcpy((void *)more, list, n * sizeof(void *));
    }
    return (void *)more;
}

char **pw_list(char **list, size_t *n, const char *text)
{
    char **more = grown((void *)list, *n);
    more[(*n)++] = arena_strdup(&pw.a, text);
    return more;
}

Kiln__Mc__Model *pw_model(const char *path, const char *text)
{
    Kiln__Mc__Model *m = arena_alloc(&pw.a, sizeof(*m));
    kiln__mc__model__init(m);
    m->path = arena_strdup(&pw.a, path);
    m->flagged = m->flagged_own = true;
    pw.models[pw.loaded.n_models++] = m;
    pw.paths[pw.in.n_files] = path;
    pw.texts[pw.in.n_files++] = text ? text : "";
    return m;
}

Kiln__Mc__Source *pw_source(Kiln__Mc__Model *model, const char *source, const char *name)
{
    Kiln__Mc__Source *s = arena_alloc(&pw.a, sizeof(*s));
    kiln__mc__source__init(s);
    s->name = arena_strdup(&pw.a, source);
    s->source_id = arena_printf(&pw.a, "%s@mpkg://sales/%s", source, model->path);
    s->declared_in = model->path;
    s->connection = arena_strdup(&pw.a, "pg");
    s->dialect = arena_strdup(&pw.a, "postgres");
    s->build_id = arena_printf(&pw.a, "build-%s", source);
    s->sql = arena_printf(&pw.a, "SELECT '%s'", source);
    s->ordinal = (uint32_t)model->n_sources;
    model->sources = grown((void *)model->sources, model->n_sources);
    model->sources[model->n_sources++] = s;
    pw_tag(s, "persist", "");
    if (name) {
        s->has_name = true;
        s->name_property = arena_strdup(&pw.a, name);
        pw_tag(s, "name", name);
    }
    return s;
}

Kiln__Mc__Source *pw_extend(Kiln__Mc__Model *model, const char *source,
                            const Kiln__Mc__Source *base)
{
    Kiln__Mc__Source *s = pw_source(model, source, base->has_name ? base->name_property : NULL);
    s->extends = base->source_id;
    s->build_id = base->build_id;
    s->sql = base->sql;
    return s;
}

static Kiln__Mc__FreeText *free_text(const char *key, const char *value)
{
    Kiln__Mc__FreeText *t = arena_alloc(&pw.a, sizeof(*t));
    kiln__mc__free_text__init(t);
    t->key = arena_strdup(&pw.a, key);
    t->value = arena_strdup(&pw.a, value);
    return t;
}

void pw_tag(Kiln__Mc__Source *s, const char *key, const char *value)
{
    s->tag = grown((void *)s->tag, s->n_tag);
    s->tag[s->n_tag++] = free_text(key, value);
}

void pw_metadata(Kiln__Mc__Source *s, const char *key, const char *value)
{
    s->query_metadata = grown((void *)s->query_metadata, s->n_query_metadata);
    s->query_metadata[s->n_query_metadata++] = free_text(key, value);
}

void pw_note(Kiln__Mc__Model *m, const char *key, const char *value)
{
    m->notes = grown((void *)m->notes, m->n_notes);
    m->notes[m->n_notes++] = free_text(key, value);
}

void pw_reads(Kiln__Mc__Model *m, const char *connection, const char *path)
{
    m->reads_tables = pw_list(m->reads_tables, &m->n_reads_tables,
                              arena_printf(&pw.a, "%s\x1f%s", connection, path));
}

void pw_problem(Kiln__Mc__Model *m, const char *severity, const char *code, const char *message,
                uint32_t line)
{
    Kiln__Mc__Problem *p = arena_alloc(&pw.a, sizeof(*p));
    kiln__mc__problem__init(p);
    p->severity = arena_strdup(&pw.a, severity);
    p->code = arena_strdup(&pw.a, code);
    p->message = arena_strdup(&pw.a, message);
    p->line = line;
    m->tag_problems = grown((void *)m->tag_problems, m->n_tag_problems);
    m->tag_problems[m->n_tag_problems++] = p;
}

void pw_depends(Kiln__Mc__Source *s, const Kiln__Mc__Source *upstream)
{
    s->depends_on = pw_list(s->depends_on, &s->n_depends_on, upstream->build_id);
    s->depends_on_sources =
        pw_list(s->depends_on_sources, &s->n_depends_on_sources, upstream->source_id);
}

void pw_dropped(Kiln__Mc__Model *m, const char *name)
{
    Kiln__Mc__Dropped *d = arena_alloc(&pw.a, sizeof(*d));
    kiln__mc__dropped__init(d);
    d->name = arena_strdup(&pw.a, name);
    d->path = m->path;
    d->source_id = arena_printf(&pw.a, "%s@mpkg://sales/%s", name, m->path);
    m->dropped = grown((void *)m->dropped, m->n_dropped);
    m->dropped[m->n_dropped++] = d;
}

const struct package_plan *pw_plan(void)
{
    plan_again();
    package_plan_make(&pw.a, &pw.in, &pw.plan);
    return &pw.plan;
}

const struct planned_source *pw_row(const char *name)
{
    for (size_t i = 0; i < pw.plan.n_sources; i++) {
        if (strcmp(pw.plan.sources[i].name, name) == 0) {
            return &pw.plan.sources[i];
        }
    }
    ck_abort_msg("no source %s", name);
    return NULL;
}

const struct planned_target *pw_target(const char *source)
{
    int at = pw_row(source)->target;
    return at < 0 ? NULL : &pw.plan.targets[at];
}

static const struct plan_refusal *refusal(const char *name)
{
    for (size_t i = 0; i < pw.plan.n_refusals; i++) {
        if (strcmp(pw.plan.refusals[i].name, name) == 0) {
            return &pw.plan.refusals[i];
        }
    }
    return NULL;
}

const char *pw_refused(const char *name)
{
    return refusal(name) ? refusal(name)->reason : NULL;
}

const char *pw_refused_text(const char *name)
{
    return refusal(name) ? refusal(name)->message : "";
}

bool has_text(const char *text, const char *fragment)
{
    return text && strstr(text, fragment) != NULL;
}

bool has_note(const json_t *list, const char *subject, const char *fragment)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *note = json_array_get(list, i);
        const char *about = json_str(note, "subject", NULL);
        bool same = subject ? about && strcmp(about, subject) == 0 : !about;
        if (same && has_text(json_str(note, "message", ""), fragment)) {
            return true;
        }
    }
    return false;
}
