/* What verbs share: begin and end, the environment, errors as sentences and exit codes. */
#include "services/kiln/kiln.h"
#include <stdio.h>

#define DEFAULT_URL "http://127.0.0.1:4000"

static const char *chosen_url(const struct verb_options *o)
{
    static const char *const variables[] = {"KILN_URL", "MALLOY_PUBLISHER_URL"};
    if (o->url) {
        return o->url;
    }
    for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
        const char *url = getenv(variables[i]);
        if (url && url[0]) {
            return url;
        }
    }
    return DEFAULT_URL;
}

int verb_begin(struct verb_run *v, const struct arg_spec *spec, void *options, int argc,
               char **argv, int *code)
{
    *v = (struct verb_run){.common = options};
    arena_init(&v->arena);
    enum arg_action action =
        args_read(spec, &v->arena, options, argc, argv, &v->words, stdout, stderr);
    if (action != ARG_RUN) {
        *code = action == ARG_EXIT_OK ? KILN_DONE : KILN_USAGE;
        return -1;
    }
    v->client = client_new(chosen_url(v->common), &v->err);
    if (!v->client) {
        (void)verb_fail(v);
        *code = KILN_USAGE;
        return -1;
    }
    return 0;
}

void verb_end(struct verb_run *v)
{
    client_free(v->client);
    arena_fini(&v->arena);
}

int kiln_exit_of(int rc)
{
    switch (rc) {
    case 0:
        return KILN_DONE;
    case ERR_HTTP_UNREACHABLE:
        return KILN_UNREACHABLE;
    case ERR_NOT_FOUND:
        return KILN_NOT_FOUND;
    case ERR_ARG:
        return KILN_USAGE;
    case ERR_INVALID:
    case ERR_CONFLICT:
    case ERR_FROZEN:
    case ERR_TOKEN:
    case ERR_REFUSED:
    case ERR_PACKAGE:
    case ERR_QUERY_BYTES:
    case ERR_LIMIT:
    case ERR_UNSUPPORTED:
        return KILN_REFUSED;
    default:
        return KILN_FAILED;
    }
}

int verb_fail(struct verb_run *v)
{
    if (v->common->json) {
        json_t *error = json_object();
        json_set_int(error, "exitCode", kiln_exit_of(v->err.code));
        json_set_str(error, "code", err_code_name(v->err.code));
        json_set_str(error, "message", err_text(&v->err));
        json_t *whole = json_object();
        must(json_object_set_new(whole, "error", error) == 0);
        auto_free char *text = json_text(whole);
        json_decref(whole);
        verb_print_json(slice_of(text));
    }
    (void)fprintf(stderr, "kiln: %s\n", err_text(&v->err));
    return kiln_exit_of(v->err.code);
}

void verb_print_json(struct slice text)
{
    struct slice s = slice_trim(text);
    (void)fwrite(s.p, 1, s.len, stdout);
    (void)fputc('\n', stdout);
    (void)fflush(stdout);
}

static const char *only_environment(struct verb_run *v)
{
    struct client_request q = {.method = "GET", .path = "/api/v0/environments"};
    struct client_answer a;
    const char *found = NULL;
    if (client_call(v->client, &q, &a, &v->err) == 0) {
        size_t n = json_array_size(a.json);
        auto_buf struct buf names = {0};
        for (size_t i = 0; i < n; i++) {
            buf_addf(&names, "%s%s", i ? ", " : "",
                     json_str(json_array_get(a.json, i), "name", "?"));
        }
        if (n == 1) {
            found = arena_strdup(&v->arena, json_str(json_array_get(a.json, 0), "name", ""));
        } else if (n == 0) {
            (void)err_set(&v->err, ERR_NOT_FOUND,
                          "%s has no environment; start kiln up with a publisher.config.json that "
                          "names one",
                          client_url(v->client));
        } else {
            (void)err_set(&v->err, ERR_ARG,
                          "there are several environments (%s); say which, as the first word or "
                          "with --environment",
                          buf_str(&names));
        }
    }
    client_answer_fini(&a);
    return found;
}

const char *verb_environment(struct verb_run *v, size_t with_environment)
{
    if (v->common->environment) {
        if (v->words.n >= with_environment) {
            (void)err_set(
                &v->err, ERR_ARG,
                "the environment is named twice: '%s' and --environment %s; leave one out",
                v->words.items[0], v->common->environment);
            return NULL;
        }
        return v->common->environment;
    }
    if (v->words.n >= with_environment) {
        const char *first = v->words.items[0];
        v->words.items++;
        v->words.n--;
        return first;
    }
    return only_environment(v);
}

char *verb_environment_path(struct verb_run *v, const char *environment)
{
    auto_buf struct buf path = {0};
    buf_add_str(&path, "/api/v0/environments/");
    client_encode(&path, environment, false);
    return arena_strdup(&v->arena, buf_str(&path));
}

char *verb_package_path(struct verb_run *v, const char *environment, const char *package)
{
    auto_buf struct buf path = {0};
    buf_add_str(&path, verb_environment_path(v, environment));
    buf_add_str(&path, "/packages/");
    client_encode(&path, package, false);
    return arena_strdup(&v->arena, buf_str(&path));
}
