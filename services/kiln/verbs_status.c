/* kiln status and kiln version. */
#include "services/kiln/kiln.h"
#include "services/kiln/table.h"
#include <stdio.h>
#include <unistd.h>

struct status_options {
    struct verb_options common;
};
static const struct arg_option status_args[] = {VERB_OPTIONS(struct status_options)};
static const struct arg_spec status_spec = {
    .verb = "status",
    .words = "",
    .summary = "Tells how the services are, which packages are bound, and what went wrong.",
    .more = "Exit codes: 0 everything serves, 1 something does not, 2 usage, 3 services not "
            "reached.",
    .options = status_args,
    .n = ARRAY_LEN(status_args),
};

static void print_parts(const json_t *ready)
{
    const char *name;
    json_t *part;
    json_object_foreach(json_object_get(ready, "parts"), name, part)
    {
        if (!json_flag(part, "ok", false)) {
            (void)printf("  not ok: %s: %s\n", name, json_str(part, "reason", "no reason given"));
        }
    }
}

static void add_packages(struct table *t, const json_t *environment)
{
    const json_t *packages = json_object_get(environment, "packages");
    for (size_t i = 0; i < json_array_size(packages); i++) {
        const json_t *p = json_array_get(packages, i);
        table_add(t, json_str(environment, "name", "?"));
        table_add(t, json_str(p, "name", "?"));
        table_add(t, json_str(p, "manifestBindingStatus", ""));
        table_addf(t, "%lld", (long long)json_int(p, "manifestEntryCount", 0));
        table_addf(t, "%zu", json_array_size(json_object_get(p, "warnings")));
        table_add(t, json_str(p, "location", ""));
    }
}

static void print_packages(const json_t *status)
{
    static const char *const heads[] = {"ENVIRONMENT", "PACKAGE",  "BINDING",
                                        "TABLES",      "WARNINGS", "LOCATION"};
    const json_t *environments = json_object_get(status, "environments");
    struct table t;
    table_init(&t, heads, ARRAY_LEN(heads));
    for (size_t i = 0; i < json_array_size(environments); i++) {
        add_packages(&t, json_array_get(environments, i));
    }
    auto_buf struct buf out = {0};
    if (t.n > t.columns) {
        table_print(&t, terminal_width(STDOUT_FILENO), &out);
    } else {
        buf_add_str(&out, "no package is loaded\n");
    }
    (void)fputs(buf_str(&out), stdout);
    table_fini(&t);
}

static void print_messages(const json_t *list, const char *word, const char *prefix)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *m = json_array_get(list, i);
        const char *package = json_str(m, "package", json_str(m, "subject", ""));
        const char *environment = json_str(m, "environment", prefix);
        (void)printf("%s: %s%s%s: %s%s\n", word, environment,
                     package[0] && environment[0] ? "/" : "", package, json_str(m, "message", ""),
                     json_flag(m, "stale", false) ? " (what was loaded before goes on serving)"
                                                  : "");
    }
}

static void print_notices(const json_t *status)
{
    const json_t *environments = json_object_get(status, "environments");
    print_messages(json_object_get(status, "loadErrors"), "error", "");
    for (size_t i = 0; i < json_array_size(environments); i++) {
        const json_t *packages = json_object_get(json_array_get(environments, i), "packages");
        for (size_t k = 0; k < json_array_size(packages); k++) {
            const json_t *p = json_array_get(packages, k);
            const char *name = json_str(p, "name", "");
            print_messages(json_object_get(p, "warnings"), "warning", name);
            print_messages(json_object_get(p, "advisories"), "advice", name);
        }
    }
}

static int status(struct verb_run *v)
{
    struct client_request ask_status = {.method = "GET", .path = "/api/v0/status"};
    struct client_request ask_ready = {.method = "GET", .path = "/readyz"};
    struct client_answer a, ready = {0};
    struct err ignored = {0};
    int rc = client_call(v->client, &ask_status, &a, &v->err);
    int code = KILN_DONE;
    if (rc == 0) {
        bool is_ready = client_call(v->client, &ask_ready, &ready, &ignored) == 0;
        bool has_errors = json_array_size(json_object_get(a.json, "loadErrors")) > 0;
        code = is_ready && !has_errors ? KILN_DONE : KILN_FAILED;
        if (v->common->json) {
            verb_print_json(buf_slice(&a.body));
        } else {
            (void)printf("%s is %s%s\n", client_url(v->client),
                         json_str(a.json, "operationalState", "unknown"),
                         is_ready ? "" : ", not ready");
            print_parts(ready.json);
            print_packages(a.json);
            print_notices(a.json);
        }
        client_answer_fini(&ready);
    }
    client_answer_fini(&a);
    return rc ? verb_fail(v) : code;
}

int kiln_status(int argc, char **argv)
{
    struct status_options o = {0};
    struct verb_run v;
    int code = 0;
    if (verb_begin(&v, &status_spec, &o, argc, argv, &code) == 0) {
        code = status(&v);
    }
    verb_end(&v);
    return code;
}

/* ---- version ---- */
static const struct arg_spec version_spec = {
    .verb = "version",
    .words = "",
    .summary = "Prints the version of this program.",
    .options = status_args,
    .n = ARRAY_LEN(status_args),
};

int kiln_version(int argc, char **argv)
{
    struct status_options o = {0};
    struct arg_list words;
    struct arena a;
    arena_init(&a);
    enum arg_action action = args_read(&version_spec, &a, &o, argc, argv, &words, stdout, stderr);
    if (action == ARG_RUN) {
        (void)printf("%s%s%s\n", o.common.json ? "{\"version\":\"" : "kiln ", KILN_VERSION,
                     o.common.json ? "\"}" : "");
    }
    arena_fini(&a);
    return action == ARG_EXIT_USAGE ? KILN_USAGE : KILN_DONE;
}
