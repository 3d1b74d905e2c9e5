/* kiln runs, run, stop, delete. */
#include "services/kiln/kiln.h"
#include "services/kiln/run_print.h"
#include <stdio.h>

#define PAGE 200

struct run_options {
    struct verb_options common;
    const char *package;
    bool drop_tables;
    const char *limit;
};

/* ---- runs ---- */
static const struct arg_option runs_args[] = {
    {"--limit", ARG_TEXT, offsetof(struct run_options, limit), "N", "at most N, the newest"},
    VERB_OPTIONS(struct run_options),
};
static const struct arg_spec runs_spec = {
    .verb = "runs",
    .words = "[[ENV] PACKAGE]",
    .summary = "Lists runs, newest first: of one package, or of the whole environment.",
    .more = "Exit codes: 0 done, 2 usage, 3 services not reached, 5 not found.",
    .min_words = 0,
    .max_words = 2,
    .options = runs_args,
    .n = ARRAY_LEN(runs_args),
};

static const char *runs_path(struct verb_run *v, const struct run_options *o)
{
    const char *environment = verb_environment(v, 2);
    uint64_t limit = 0;
    if (!environment) {
        return NULL;
    }
    if (o->limit && slice_to_u64(slice_of(o->limit), &limit)) {
        (void)err_set(&v->err, ERR_ARG, "--limit takes a number, not '%s'", o->limit);
        return NULL;
    }
    const char *base =
        v->words.n ? verb_package_path(v, environment, v->words.items[0])
                   : arena_printf(&v->arena, "%s/packages", verb_environment_path(v, environment));
    const char *cap =
        o->limit ? arena_printf(&v->arena, "?limit=%llu", (unsigned long long)limit) : "";
    return arena_printf(&v->arena, "%s/materializations%s", base, cap);
}

static int runs(struct verb_run *v, const struct run_options *o)
{
    struct client_request q = {.method = "GET", .path = runs_path(v, o)};
    if (!q.path) {
        return verb_fail(v);
    }
    struct client_answer a;
    int rc = client_call(v->client, &q, &a, &v->err);
    if (rc == 0 && o->common.json) {
        verb_print_json(buf_slice(&a.body));
    } else if (rc == 0) {
        run_print_list(a.json);
    }
    client_answer_fini(&a);
    return rc ? verb_fail(v) : KILN_DONE;
}

int kiln_runs(int argc, char **argv)
{
    struct run_options o = {0};
    struct verb_run v;
    int code = 0;
    if (verb_begin(&v, &runs_spec, &o, argc, argv, &code) == 0) {
        code = runs(&v, &o);
    }
    verb_end(&v);
    return code;
}

/* ---- one run by its id ---- */
/* Looks for the run in an environment, page by page; its package's name, or NULL with rc. */
static const char *package_in(struct verb_run *v, const char *environment, const char *id, int *rc)
{
    const char *found = NULL;
    size_t got = PAGE;
    for (size_t offset = 0; !found && got == PAGE; offset += PAGE) {
        struct client_request q = {
            .method = "GET",
            .path = arena_printf(&v->arena, "%s/packages/materializations?limit=%d&offset=%zu",
                                 verb_environment_path(v, environment), PAGE, offset)};
        struct client_answer a;
        *rc = client_call(v->client, &q, &a, &v->err);
        got = *rc ? 0 : json_array_size(a.json);
        for (size_t i = 0; i < got && !found; i++) {
            const json_t *run = json_array_get(a.json, i);
            if (strcmp(json_str(run, "id", ""), id) == 0) {
                found = arena_strdup(&v->arena, json_str(run, "packageName", ""));
            }
        }
        client_answer_fini(&a);
    }
    return found;
}

static int not_found(struct verb_run *v, const char *id)
{
    return err_set(&v->err, ERR_NOT_FOUND,
                   "run '%s' does not exist on %s; kiln runs lists the runs there are", id,
                   client_url(v->client));
}

static const char *path_in(struct verb_run *v, const char *environment, const char *package,
                           const char *id)
{
    auto_buf struct buf path = {0};
    buf_addf(&path, "%s/materializations/", verb_package_path(v, environment, package));
    client_encode(&path, id, false);
    return arena_strdup(&v->arena, buf_str(&path));
}

/* The path of a run whose id is the last word. */
static const char *run_path(struct verb_run *v, const struct run_options *o)
{
    const char *id = v->words.items[v->words.n - 1];
    const char *environment = v->words.n == 3 ? v->words.items[0] : o->common.environment;
    const char *package = v->words.n > 1 ? v->words.items[v->words.n - 2] : o->package;
    struct client_request q = {.method = "GET", .path = "/api/v0/environments"};
    struct client_answer a;
    if (environment && package) {
        return path_in(v, environment, package, id);
    }
    int rc = client_call(v->client, &q, &a, &v->err);
    const char *path = NULL;
    for (size_t i = 0; rc == 0 && !path && i < json_array_size(a.json); i++) {
        const char *name = json_str(json_array_get(a.json, i), "name", "");
        if (environment && strcmp(environment, name) != 0) {
            continue;
        }
        const char *in = package_in(v, name, id, &rc);
        path = in ? path_in(v, name, in, id) : NULL;
    }
    client_answer_fini(&a);
    if (rc == 0 && !path) {
        (void)not_found(v, id);
    }
    return path;
}

static int call_and_print(struct verb_run *v, const struct client_request *q,
                          void (*print)(const json_t *run))
{
    struct client_answer a;
    int rc = client_call(v->client, q, &a, &v->err);
    if (rc == 0 && v->common->json) {
        verb_print_json(a.body.len ? buf_slice(&a.body) : SLICE("{}"));
    } else if (rc == 0) {
        print(a.json);
    }
    client_answer_fini(&a);
    return rc ? verb_fail(v) : KILN_DONE;
}

#define ID_WORDS "[[ENV] PACKAGE] ID"
#define ID_CODES                                                                                   \
    "Exit codes: 0 done, 2 usage, 3 services not reached, 4 not possible in the run's "            \
    "state, 5 not found."
#define PACKAGE_OPTION                                                                             \
    {                                                                                              \
        "--package", ARG_TEXT, offsetof(struct run_options, package), "NAME",                      \
            "the package; without it the run is looked for"                                        \
    }

static const struct arg_option run_args[] = {PACKAGE_OPTION, VERB_OPTIONS(struct run_options)};
static const struct arg_spec run_spec = {
    .verb = "run",
    .words = ID_WORDS,
    .summary = "Shows one run: its state, its sources, what failed and why.",
    .more = ID_CODES,
    .min_words = 1,
    .max_words = 3,
    .options = run_args,
    .n = ARRAY_LEN(run_args),
};
static const struct arg_spec stop_spec = {
    .verb = "stop",
    .words = ID_WORDS,
    .summary = "Asks an active run to stop; tables that are already swapped in stay.",
    .more = ID_CODES,
    .min_words = 1,
    .max_words = 3,
    .options = run_args,
    .n = ARRAY_LEN(run_args),
};
static const struct arg_option delete_args[] = {
    {"--drop-tables", ARG_FLAG, offsetof(struct run_options, drop_tables), NULL,
     "drop the run's tables, too, where no other run of the package names them"},
    PACKAGE_OPTION,
    VERB_OPTIONS(struct run_options),
};
static const struct arg_spec delete_spec = {
    .verb = "delete",
    .words = ID_WORDS,
    .summary =
        "Deletes the record of a run that has ended; its package is bound to the run before.",
    .more = ID_CODES,
    .min_words = 1,
    .max_words = 3,
    .options = delete_args,
    .n = ARRAY_LEN(delete_args),
};

static int begin_id(struct verb_run *v, const struct arg_spec *spec, struct run_options *o,
                    int argc, char **argv, const char **path)
{
    int code = 0;
    if (verb_begin(v, spec, o, argc, argv, &code)) {
        return code;
    }
    *path = run_path(v, o);
    return *path ? KILN_DONE : verb_fail(v);
}

int kiln_run(int argc, char **argv)
{
    struct run_options o = {0};
    struct verb_run v;
    const char *path = NULL;
    int code = begin_id(&v, &run_spec, &o, argc, argv, &path);
    if (path) {
        struct client_request q = {.method = "GET", .path = path};
        code = call_and_print(&v, &q, run_print_end);
    }
    verb_end(&v);
    return code;
}

static void print_stopped(const json_t *run)
{
    (void)printf("run %s is being stopped; it is %s now\n", json_str(run, "id", "?"),
                 run_word(run));
}

int kiln_stop(int argc, char **argv)
{
    struct run_options o = {0};
    struct verb_run v;
    const char *path = NULL;
    int code = begin_id(&v, &stop_spec, &o, argc, argv, &path);
    if (path) {
        struct client_request q = {.method = "POST",
                                   .path = arena_printf(&v.arena, "%s?action=stop", path)};
        code = call_and_print(&v, &q, print_stopped);
    }
    verb_end(&v);
    return code;
}

static void print_deleted(const json_t *run)
{
    (void)run;
    (void)printf("deleted\n");
}

int kiln_delete(int argc, char **argv)
{
    struct run_options o = {0};
    struct verb_run v;
    const char *path = NULL;
    int code = begin_id(&v, &delete_spec, &o, argc, argv, &path);
    if (path) {
        const char *drop = o.drop_tables ? "?dropTables=true" : "";
        struct client_request q = {.method = "DELETE",
                                   .path = arena_printf(&v.arena, "%s%s", path, drop),
                                   .timeout = MS(120000)};
        code = call_and_print(&v, &q, print_deleted);
    }
    verb_end(&v);
    return code;
}
