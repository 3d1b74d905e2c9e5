/* kiln publish and kiln plan. */
#include "services/kiln/kiln.h"
#include "services/kiln/table.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- publish ---- */
struct publish_options {
    struct verb_options common;
    const char *location, *archive, *description;
};
static const struct arg_option publish_args[] = {
    {"--location", ARG_TEXT, offsetof(struct publish_options, location), "PATH",
     "the package's directory or archive, as the planner's host sees it"},
    {"--archive", ARG_TEXT, offsetof(struct publish_options, archive), "FILE",
     "a zip or tar.gz file with the package, on this machine"},
    {"--description", ARG_TEXT, offsetof(struct publish_options, description), "TEXT",
     "what the package is"},
    VERB_OPTIONS(struct publish_options),
};
static const struct arg_spec publish_spec = {
    .verb = "publish",
    .words = "[ENV] PACKAGE",
    .summary = "Publishes a package: its files become a version, and its plan is made.",
    .more = "Without --location and --archive the package is read again from where it was "
            "published last.\nExit codes: 0 done, 2 usage, 3 services not reached, 4 refused, 5 no "
            "such environment.",
    .min_words = 1,
    .max_words = 2,
    .options = publish_args,
    .n = ARRAY_LEN(publish_args),
};

static bool is_archive_name(const char *name)
{
    static const char *const ends[] = {".zip", ".tar.gz", ".tgz"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        size_t n = strlen(name), m = strlen(ends[i]);
        if (n > m && strcmp(name + n - m, ends[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Paths of this machine go out absolute: the planner has another working directory. */
static const char *location_of(struct verb_run *v, const struct publish_options *o)
{
    const char *given = o->archive ? o->archive : o->location;
    char real[PATH_MAX];
    struct stat st;
    if (o->archive && o->location) {
        (void)err_set(&v->err, ERR_ARG, "--location and --archive are two sources; give one");
        return NULL;
    }
    if (o->location && strstr(o->location, "://")) {
        return o->location;
    }
    if (!realpath(given, real) || stat(real, &st)) {
        (void)err_set(&v->err, ERR_INVALID, "cannot read '%s': %s; give the package's %s", given,
                      strerror(errno), o->archive ? "archive" : "directory");
        return NULL;
    }
    if (S_ISREG(st.st_mode) && !is_archive_name(real)) {
        (void)err_set(&v->err, ERR_INVALID,
                      "'%s' is no package: give a directory, or an archive named .zip, .tar.gz or "
                      ".tgz",
                      given);
        return NULL;
    }
    if (o->archive && !S_ISREG(st.st_mode)) {
        (void)err_set(&v->err, ERR_INVALID, "'%s' is no file; give a directory with --location",
                      given);
        return NULL;
    }
    return arena_strdup(&v->arena, real);
}

/* An array of the answer whose elements have a message: one line each on standard error. */
static void print_notices(const json_t *package, const char *key, const char *word)
{
    const json_t *list = json_object_get(package, key);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const char *subject = json_str(item, "subject", json_str(item, "model", NULL));
        const char *text =
            json_is_string(item) ? json_string_value(item) : json_str(item, "message", "");
        (void)fprintf(stderr, "%s: %s%s%s\n", word, subject ? subject : "", subject ? ": " : "",
                      text);
    }
}

static void print_published(const json_t *package, const char *environment)
{
    const json_t *plan = json_object_get(package, "buildPlan");
    (void)printf("published %s/%s", environment, json_str(package, "name", "?"));
    if (json_is_object(plan)) {
        (void)printf(": %zu sources to persist, %zu refused",
                     json_object_size(json_object_get(plan, "sources")),
                     json_object_size(json_object_get(plan, "refusedSources")));
    }
    (void)printf("\n");
    (void)fflush(stdout);
    print_notices(package, "warnings", "warning");
    print_notices(package, "advisories", "advice");
}

static int publish(struct verb_run *v, const struct publish_options *o)
{
    const char *environment = verb_environment(v, 2);
    if (!environment) {
        return verb_fail(v);
    }
    json_t *body = json_object();
    json_set_str(body, "name", v->words.items[0]);
    if (o->location || o->archive) {
        const char *location = location_of(v, o);
        if (!location) {
            json_decref(body);
            return verb_fail(v);
        }
        json_set_str(body, "location", location);
    }
    if (o->description) {
        json_set_str(body, "description", o->description);
    }
    struct client_request q = {
        .method = "POST",
        .path = arena_printf(&v->arena, "%s/packages", verb_environment_path(v, environment)),
        .body = body,
        .timeout = MS(120000)};
    struct client_answer a;
    int rc = client_call(v->client, &q, &a, &v->err);
    if (rc == 0 && o->common.json) {
        verb_print_json(buf_slice(&a.body));
    } else if (rc == 0) {
        print_published(a.json, environment);
    }
    json_decref(body);
    client_answer_fini(&a);
    return rc ? verb_fail(v) : KILN_DONE;
}

int kiln_publish(int argc, char **argv)
{
    struct publish_options o = {0};
    struct verb_run v;
    int code = 0;
    if (verb_begin(&v, &publish_spec, &o, argc, argv, &code) == 0) {
        code = publish(&v, &o);
    }
    verb_end(&v);
    return code;
}

/* ---- plan ---- */
struct plan_options {
    struct verb_options common;
    struct arg_list sources;
    bool force_refresh;
};
static const struct arg_option plan_args[] = {
    {"--source", ARG_LIST, offsetof(struct plan_options, sources), "NAME",
     "only this source; may be given more than once"},
    {"--force-refresh", ARG_FLAG, offsetof(struct plan_options, force_refresh), NULL,
     "as if nothing could be reused"},
    VERB_OPTIONS(struct plan_options),
};
static const struct arg_spec plan_spec = {
    .verb = "plan",
    .words = "[ENV] PACKAGE",
    .summary = "Shows what kiln materialize would build, reuse and refuse, and why. Changes "
               "nothing.",
    .more = "Exit codes: 0 done, 2 usage, 3 services not reached, 4 a run would fail or was "
            "refused, 5 not found.",
    .min_words = 1,
    .max_words = 2,
    .options = plan_args,
    .n = ARRAY_LEN(plan_args),
};

static void add_names(struct buf *out, const char *word, const json_t *names)
{
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        buf_addf(out, "%s%s%s", i ? ", " : "", i ? "" : word, name ? name : "?");
    }
}

static void add_target(struct table *t, const json_t *target)
{
    auto_buf struct buf why = {0};
    buf_add_str(&why, json_str(target, "why", ""));
    const json_t *after = json_object_get(target, "after");
    if (json_array_size(after)) {
        buf_add_str(&why, why.len ? "; " : "");
        add_names(&why, "after ", after);
    }
    table_add(t, json_str(target, "action", "?"));
    table_add(t, json_str(target, "sourceName", "?"));
    table_add(t, json_str(target, "physicalTableName", ""));
    table_add(t, json_str(target, "connectionName", ""));
    table_add(t, buf_str(&why));
}

static void add_other(struct table *t, const char *action, const json_t *item, const char *why)
{
    table_add(t, action);
    table_add(t, json_str(item, "sourceName", "?"));
    table_add(t, "");
    table_add(t, "");
    table_add(t, why);
}

static void print_plan(const json_t *plan)
{
    static const char *const heads[] = {"ACTION", "SOURCE", "TABLE", "CONNECTION", "WHY"};
    const json_t *targets = json_object_get(plan, "targets");
    const json_t *refused = json_object_get(plan, "refused");
    const json_t *skipped = json_object_get(plan, "skipped");
    struct table t;
    table_init(&t, heads, ARRAY_LEN(heads));
    t.wraps = true;
    for (size_t i = 0; i < json_array_size(targets); i++) {
        add_target(&t, json_array_get(targets, i));
    }
    for (size_t i = 0; i < json_array_size(refused); i++) {
        const json_t *r = json_array_get(refused, i);
        add_other(&t, "refuse", r, json_str(r, "message", json_str(r, "reason", "")));
    }
    for (size_t i = 0; i < json_array_size(skipped); i++) {
        const json_t *s = json_array_get(skipped, i);
        add_other(&t, "live", s, json_str(s, "why", ""));
    }
    auto_buf struct buf out = {0};
    if (t.n == t.columns) {
        buf_add_str(&out, "nothing to build: the package has no persisted source\n");
    } else {
        table_print(&t, terminal_width(STDOUT_FILENO), &out);
    }
    (void)fputs(buf_str(&out), stdout);
    (void)fflush(stdout);
    table_fini(&t);
    print_notices(plan, "warnings", "warning");
}

static json_t *plan_body(const struct plan_options *o)
{
    json_t *body = json_object();
    json_set_flag(body, "forceRefresh", o->force_refresh);
    if (o->sources.n) {
        json_t *names = json_array();
        for (size_t i = 0; i < o->sources.n; i++) {
            must(json_array_append_new(names, json_string(o->sources.items[i])) == 0);
        }
        must(json_object_set_new(body, "sourceNames", names) == 0);
    }
    return body;
}

static int plan(struct verb_run *v, const struct plan_options *o)
{
    const char *environment = verb_environment(v, 2);
    if (!environment) {
        return verb_fail(v);
    }
    const char *package = verb_package_path(v, environment, v->words.items[0]);
    json_t *body = plan_body(o);
    struct client_request q = {
        .method = "POST",
        .path = arena_printf(&v->arena, "%s/materializations?action=plan", package),
        .body = body};
    struct client_answer a;
    int rc = client_call(v->client, &q, &a, &v->err);
    int code = KILN_DONE;
    if (rc == 0) {
        const char *fails = json_str(a.json, "fails", NULL);
        if (o->common.json) {
            verb_print_json(buf_slice(&a.body));
        } else {
            print_plan(a.json);
        }
        if (fails) {
            (void)fprintf(stderr, "kiln: a run would fail: %s\n", fails);
            code = KILN_REFUSED;
        }
    }
    json_decref(body);
    client_answer_fini(&a);
    return rc ? verb_fail(v) : code;
}

int kiln_plan(int argc, char **argv)
{
    struct plan_options o = {0};
    struct verb_run v;
    int code = 0;
    if (verb_begin(&v, &plan_spec, &o, argc, argv, &code) == 0) {
        code = plan(&v, &o);
    }
    verb_end(&v);
    return code;
}
