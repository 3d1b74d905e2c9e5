#include "services/planner/core/plan_internal.h"

/* A line that costs its source the whole annotation without a word of the compiler. */
struct scan_offence {
    const char *path;
    uint32_t line;          /* 1-based */
    const char *text, *why; /* why: NULL when the text says it all */
};
struct scan {
    struct plan_making *m;
    struct scan_offence *found;
    size_t n;
};
/* `#` lines that stand together belong to one source: one `#@ persist` among them makes every `#@`
 * line count. */
struct scan_group {
    bool is_persist;
    size_t first; /* index in found of the first bare name of this group */
};

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static size_t after_quoted(struct slice line, size_t at)
{
    char quote = line.p[at];
    for (at++; at < line.len && line.p[at] != quote; at++) {
        at += line.p[at] == '\\' ? 1 : 0;
    }
    return at + 1;
}

static size_t after_blanks(struct slice line, size_t at)
{
    while (at < line.len && is_blank(line.p[at])) {
        at++;
    }
    return at;
}

/* A key `name` standing alone at `at`, followed by = and no quote? */
static bool bare_name_at(struct slice line, size_t at)
{
    if (at > 0 && (is_word(line.p[at - 1]) || line.p[at - 1] == '.')) {
        return false;
    }
    if (!slice_starts(slice_make(line.p + at, line.len - at), SLICE("name"))) {
        return false;
    }
    at = after_blanks(line, at + 4);
    if (at >= line.len || line.p[at] != '=') {
        return false;
    }
    at = after_blanks(line, at + 1);
    return at >= line.len || (line.p[at] != '"' && line.p[at] != '\'');
}

bool plan_scan_has_bare_name(struct slice line)
{
    for (size_t at = 0; at < line.len;) {
        if (line.p[at] == '"' || line.p[at] == '\'') {
            at = after_quoted(line, at);
        } else if (bare_name_at(line, at)) {
            return true;
        } else {
            at++;
        }
    }
    return false;
}

/* Is it `#@ <word>`? line has no leading blanks. */
static bool is_annotation_of(struct slice line, const char *word)
{
    size_t at = after_blanks(line, 2);
    size_t len = strlen(word);
    if (at == 2 || line.len - at < len || memcmp(line.p + at, word, len) != 0) {
        return false;
    }
    return at + len == line.len || !is_word(line.p[at + len]);
}

static void add(struct scan *s, const char *path, uint32_t line, const char *text, const char *why)
{
    s->found = plan_grown(s->m->a, s->found, s->n, sizeof(*s->found));
    s->found[s->n++] = (struct scan_offence){path, line, text, why};
}

static void end_group(struct scan *s, struct scan_group *g)
{
    if (!g->is_persist) {
        s->n = g->first;
    }
    *g = (struct scan_group){.first = s->n};
}

static void scan_line(struct scan *s, struct scan_group *g, const char *path, uint32_t number,
                      struct slice line)
{
    if (line.len == 0 || slice_starts(line, SLICE("//")) || slice_starts(line, SLICE("--"))) {
        return;
    }
    if (line.p[0] != '#') {
        end_group(s, g);
        return;
    }
    if (!slice_starts(line, SLICE("#@"))) {
        return;
    }
    g->is_persist = g->is_persist || is_annotation_of(line, "persist");
    if (plan_scan_has_bare_name(line)) {
        add(s, path, number, arena_slice(s->m->a, line), NULL);
    }
    if (is_annotation_of(line, "preaggregate")) {
        plan_advise(s->m, path, NULL,
                    arena_printf(s->m->a,
                                 "the '#@ preaggregate' on line %u is ignored: rollups are not "
                                 "built yet, queries on this measure are served without one",
                                 number));
    }
}

static void scan_file(struct scan *s, const char *path, const char *text)
{
    struct slice rest = slice_of(text), line;
    struct scan_group g = {.first = s->n};
    for (uint32_t number = 1; slice_cut(&rest, '\n', &line); number++) {
        scan_line(s, &g, path, number, slice_trim(line));
    }
    end_group(s, &g);
}

static bool is_model_path(const char *path)
{
    size_t len = strlen(path);
    return len > 7 && strcmp(path + len - 7, ".malloy") == 0;
}

static const char *line_of(struct plan_making *m, const char *path, uint32_t number)
{
    for (size_t i = 0; i < m->in->n_files; i++) {
        struct slice rest = slice_of(m->in->texts[i]), line;
        for (uint32_t at = 1; strcmp(m->in->paths[i], path) == 0 && slice_cut(&rest, '\n', &line);
             at++) {
            if (at == number) {
                return arena_slice(m->a, slice_trim(line));
            }
        }
    }
    return "";
}

static bool is_found(const struct scan *s, const char *path, uint32_t line)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->found[i].line == line && strcmp(s->found[i].path, path) == 0) {
            return true;
        }
    }
    return false;
}

/* The compiler's own findings: a tag-parse error drops the annotation just as silently. */
static void add_problem(struct scan *s, const Kiln__Mc__Model *model, const Kiln__Mc__Problem *p)
{
    const char *path = *p->path ? p->path : model->path;
    if (strcmp(p->severity, "error") != 0 || is_found(s, path, p->line + 1)) {
        return;
    }
    const char *why = strstr(p->message, "well formed: ");
    why = why ? why + strlen("well formed: ") : p->message;
    if (strcmp(p->code, "persist-name-unquoted") == 0) {
        why = NULL;
    }
    add(s, arena_strdup(s->m->a, path), p->line + 1, line_of(s->m, path, p->line + 1), why);
}

void plan_scan(struct plan_making *m)
{
    struct scan s = {.m = m};
    for (size_t i = 0; i < m->in->n_files; i++) {
        if (is_model_path(m->in->paths[i])) {
            scan_file(&s, m->in->paths[i], m->in->texts[i]);
        }
    }
    for (size_t i = 0; i < m->in->loaded->n_models; i++) {
        const Kiln__Mc__Model *model = m->in->loaded->models[i];
        for (size_t k = 0; k < model->n_tag_problems; k++) {
            add_problem(&s, model, model->tag_problems[k]);
        }
    }
    if (s.n == 0) {
        return;
    }
    auto_buf struct buf lines = {0};
    for (size_t i = 0; i < s.n; i++) {
        const struct scan_offence *o = &s.found[i];
        buf_addf(&lines, "%s%s line %u: %s%s%s%s", i ? "; " : "", o->path, o->line, o->text,
                 o->why ? " (" : "", o->why ? o->why : "", o->why ? ")" : "");
    }
    plan_fail_load(m, 424, "persist annotation name must be quoted (write name=\"...\"): %s",
                   buf_str(&lines));
}
