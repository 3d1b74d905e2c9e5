#include "common/base/crypto.h"
#include "services/planner/core/plan_internal.h"

#define POSTGRES_NAME_MAX 63 /* bytes: longer names are cut by the engine without an error */

static void refuse(struct plan_making *m, struct plan_src *s, const char *reason, const char *text)
{
    s->refused_reason = reason;
    s->refused_message =
        arena_printf(m->a, "source '%s' in %s %s", s->msg->name, s->msg->declared_in, text);
}

static const char *refusal_of_shape(struct plan_making *m, const Kiln__Mc__Source *s,
                                    const char **reason)
{
    if (s->n_free_parameters > 0) {
        auto_buf struct buf names = {0};
        for (size_t i = 0; i < s->n_free_parameters; i++) {
            buf_addf(&names, "%s%s", i ? ", " : "", s->free_parameters[i]);
        }
        *reason = "free_parameter";
        return arena_printf(m->a,
                            "has unbound parameters (%s): bind them, or move the '#@ persist' to "
                            "the source that binds them",
                            buf_str(&names));
    }
    if (s->given_in_query) {
        *reason = "given_in_persisted_query";
        return "references a given inside the persisted query, so a build would freeze one "
               "caller's value: move the filter into the source's own extend block";
    }
    return NULL;
}

static const char *refusal_of_plan(struct plan_making *m, const Kiln__Mc__Source *s,
                                   const char **reason)
{
    const struct plan_input *in = m->in;
    if (!plan_connection_of(in->connections, in->n_connections, s->connection)) {
        *reason = "unknown_connection";
        return arena_printf(m->a,
                            "reads connection '%s', which environment '%s' does not have: add "
                            "the connection or correct its name",
                            s->connection, in->environment);
    }
    if (*s->failed_text || *s->failed_code || !*s->build_id) {
        *reason = "plan_failed";
        return arena_printf(m->a, "cannot be planned: %s",
                            *s->failed_text ? s->failed_text : "the compiler gave no reason");
    }
    if (plan_option(m->a, s, "partition")) {
        *reason = "partition_without_storage";
        return "has partition=, which has a meaning only together with storage=: remove it";
    }
    return NULL;
}

static const char *refusal_of_name(struct plan_making *m, const struct plan_src *s,
                                   const char **reason)
{
    const char *table = s->row.name_parts.table;
    bool is_main = s->name.n == 1 || strcmp(s->row.name_parts.schema, "main") == 0;
    if (strcmp(s->msg->dialect, "duckdb") == 0 && (s->name.n > 2 || !is_main)) {
        *reason = "name_other_database";
        return arena_printf(m->a,
                            "has the name %s: on DuckDB nothing is built in an attached database "
                            "or another schema, write name=\"%s\"",
                            s->msg->name_property, table);
    }
    if (s->name.n > 2) {
        *reason = "name_other_database";
        return arena_printf(m->a,
                            "has the three-part name %s: a table is built in the connection's "
                            "own database, write name=\"%s\"",
                            s->msg->name_property,
                            plan_name_shown(m->a, s->row.name_parts.schema, table));
    }
    for (size_t i = 0; i < s->name.n && strcmp(s->msg->dialect, "postgres") == 0; i++) {
        if (strlen(s->name.parts[i]) > POSTGRES_NAME_MAX) {
            *reason = "name_too_long";
            return arena_printf(m->a,
                                "has the name '%s' of %zu bytes, PostgreSQL takes at most %d: "
                                "choose a shorter name=",
                                s->name.parts[i], strlen(s->name.parts[i]), POSTGRES_NAME_MAX);
        }
    }
    if (strcmp(table, "kiln_fence") == 0 || strncmp(table, "_kiln_", 6) == 0) {
        *reason = "name_reserved";
        return arena_printf(m->a, "has the name '%s', which Kiln keeps for itself: choose another",
                            table);
    }
    return NULL;
}

static void judge_name(struct plan_making *m, struct plan_src *s)
{
    const Kiln__Mc__Source *msg = s->msg;
    if (!msg->has_name) {
        /* A source's own name is one identifier, whatever it holds. */
        s->name = (struct plan_name){.parts = {arena_strdup(m->a, msg->name)}, .n = 1};
    } else {
        plan_name_parse(m->a, msg->name_property, &s->name);
    }
    if (s->name.problem) {
        plan_fail_load(m, 424,
                       "the name= of source '%s' in %s has %s: a table name is made of letters, "
                       "digits, '_' and '-', with a dot between its parts",
                       msg->name, msg->declared_in, s->name.problem);
        s->name.n = 1;
        s->name.parts[0] = arena_strdup(m->a, msg->name);
    }
    s->row.name_parts.table = s->name.parts[s->name.n - 1];
    s->row.name_parts.schema = s->name.n > 1 ? s->name.parts[s->name.n - 2] : "";
}

static void judge_refresh(struct plan_making *m, struct plan_src *s)
{
    const Kiln__Mc__Source *msg = s->msg;
    s->refresh = plan_option(m->a, msg, "refresh");
    bool incremental = s->refresh && strcmp(s->refresh, "incremental") == 0;
    if (s->refresh && !incremental && strcmp(s->refresh, "full") != 0) {
        plan_fail_load(m, 424,
                       "refresh=\"%s\" of source '%s' in %s is neither \"full\" nor "
                       "\"incremental\"",
                       s->refresh, msg->name, msg->declared_in);
        return;
    }
    if (plan_option(m->a, msg, "watermark") && !incremental) {
        plan_fail_load(m, 424,
                       "watermark= of source '%s' in %s needs refresh=\"incremental\" beside it",
                       msg->name, msg->declared_in);
    }
    if (plan_option(m->a, msg, "merge_key") && !plan_option(m->a, msg, "watermark")) {
        plan_fail_load(m, 424, "merge_key= of source '%s' in %s needs watermark= beside it",
                       msg->name, msg->declared_in);
    }
}

static const char *note_of(const struct plan_src *s, const char *key)
{
    const char *text = plan_text(s->home->notes, s->home->n_notes, key);
    return text && *text ? text : NULL;
}

/* Source over file over package, each field for itself; the long spelling in a file beats the short
 * one. */
static const char *layered(struct plan_making *m, const struct plan_src *s, const char *field,
                           bool *declared)
{
    char key[64];
    snprintf(key, sizeof(key), "freshness.%s", field);
    char note[64];
    snprintf(note, sizeof(note), "materialization.freshness.%s", field);
    bool is_fallback = strcmp(field, "fallback") == 0;
    const char *found[] = {plan_option(m->a, s->msg, key), note_of(s, note), note_of(s, key)};
    for (size_t i = 0; i < ARRAY_LEN(found); i++) {
        if (found[i] && (!is_fallback || manifest_fallback_valid(found[i]))) {
            *declared = true;
            return arena_strdup(m->a, found[i]);
        }
    }
    const char *package =
        is_fallback ? manifest_fallback(m->in->manifest) : manifest_window(m->in->manifest);
    return arena_strdup(m->a, package);
}

static void judge_freshness(struct plan_making *m, struct plan_src *s)
{
    bool declared = false;
    s->row.freshness_window = layered(m, s, "window", &declared);
    s->row.freshness_fallback = layered(m, s, "fallback", &declared);
    if (declared) {
        const char *before = m->out->freshness_declarers;
        m->out->freshness_declarers =
            arena_printf(m->a, "%s%s%s", before ? before : "", before ? ", " : "", s->msg->name);
    }
}

static void judge_retired(struct plan_making *m, const struct plan_src *s, const char *key,
                          const char *instead)
{
    struct package_plan *out = m->out;
    const Kiln__Mc__Source *msg = s->msg;
    if (!plan_text(msg->tag, msg->n_tag, key)) {
        return;
    }
    const char **list = plan_grown(m->a, (void *)(uintptr_t)out->retired_options,
                                   out->n_retired_options, sizeof(*list));
    list[out->n_retired_options++] =
        arena_printf(m->a,
                     "%s= on source '%s' in %s is retired: it is package-level now, set %s in "
                     "publisher.json",
                     key, msg->name, msg->declared_in, instead);
    out->retired_options = list;
}

static void copy_columns(struct arena *a, const Kiln__Mc__Source *s, struct core_columns *out)
{
    out->items = arena_alloc(a, (s->n_columns + 1) * sizeof(*out->items));
    out->n = s->n_columns;
    for (size_t i = 0; i < s->n_columns; i++) {
        const Kiln__Mc__Col *c = s->columns[i];
        out->items[i] = (struct core_column){
            .name = arena_strdup(a, c->name),
            .data_type = arena_strdup(a, c->data_type),
            .element_type = *c->element_type ? arena_strdup(a, c->element_type) : NULL,
            .nullable = true};
    }
}

/* The build id, or with a partition layout a second hash over both (decisions 1.2). */
static const char *entity_of(struct arena *a, const Kiln__Mc__Source *s)
{
    const char *partition = plan_option(a, s, "partition");
    if (!partition || !*s->build_id) {
        return arena_strdup(a, s->build_id);
    }
    auto_buf struct buf names = {0};
    struct slice rest = slice_of(partition), item;
    while (slice_cut(&rest, ',', &item)) {
        item = slice_trim(item);
        if (item.len > 0) {
            buf_addf(&names, "%s%.*s", names.len ? "," : "", SLICE_FMT(item));
        }
    }
    auto_buf struct buf text = {0};
    buf_addf(&text, "%zu:%s/%zu:%s", strlen(s->build_id), s->build_id, names.len, buf_str(&names));
    struct sha256 digest = sha256_of(text.p, text.len);
    char *hex = arena_alloc(a, 2 * sizeof(digest.b) + 1);
    hex_encode(digest.b, sizeof(digest.b), hex);
    return hex;
}

static void fill_row(struct plan_making *m, struct plan_src *s)
{
    const Kiln__Mc__Source *msg = s->msg;
    struct planned_source *row = &s->row;
    row->source_id = arena_strdup(m->a, msg->source_id);
    row->name = arena_strdup(m->a, msg->name);
    row->model = arena_strdup(m->a, s->model->path);
    row->declared_in = arena_strdup(m->a, msg->declared_in);
    row->connection = arena_strdup(m->a, msg->connection);
    row->dialect = arena_strdup(m->a, msg->dialect);
    row->build_id = arena_strdup(m->a, msg->build_id);
    row->entity_id = entity_of(m->a, msg);
    row->sql = arena_strdup(m->a, msg->sql);
    row->is_extension = *msg->extends != '\0';
    row->target = -1;
    copy_columns(m->a, msg, &row->columns);
}

void plan_judge(struct plan_making *m, struct plan_src *s)
{
    fill_row(m, s);
    judge_name(m, s);
    judge_refresh(m, s);
    judge_freshness(m, s);
    judge_retired(m, s, "sharing", "materialization.scope");
    judge_retired(m, s, "schedule", "materialization.schedule");
    plan_meta_source(m, s);
    if (plan_option(m->a, s->msg, "storage")) {
        s->row.skipped = "storage";
        return;
    }
    const char *reason = NULL;
    const char *text = refusal_of_shape(m, s->msg, &reason);
    text = text ? text : refusal_of_plan(m, s->msg, &reason);
    text = text ? text : refusal_of_name(m, s, &reason);
    if (text) {
        refuse(m, s, reason, text);
    }
}
