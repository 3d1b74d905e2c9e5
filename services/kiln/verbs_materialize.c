/* kiln materialize: asks for a run and, on a terminal or with --wait, sees it through. */
#include "services/kiln/kiln.h"
#include "services/kiln/progress.h"
#include "services/kiln/run_print.h"
#include <stdio.h>
#include <unistd.h>

struct materialize_options {
    struct verb_options common;
    struct arg_list sources;
    bool force_refresh, reseed, take_over, wait, no_wait;
    int64_t timeout_ms;
};
static const struct arg_option options[] = {
    {"--source", ARG_LIST, offsetof(struct materialize_options, sources), "NAME",
     "only this source; may be given more than once"},
    {"--force-refresh", ARG_FLAG, offsetof(struct materialize_options, force_refresh), NULL,
     "build even what could be reused"},
    {"--reseed", ARG_FLAG, offsetof(struct materialize_options, reseed), NULL,
     "build incremental sources from scratch"},
    {"--take-over", ARG_FLAG, offsetof(struct materialize_options, take_over), NULL,
     "replace tables that somebody else made under a target's name"},
    {"--wait", ARG_FLAG, offsetof(struct materialize_options, wait), NULL,
     "wait for the end of the run (default on a terminal)"},
    {"--no-wait", ARG_FLAG, offsetof(struct materialize_options, no_wait), NULL,
     "print the run and go"},
    {"--timeout", ARG_SECONDS, offsetof(struct materialize_options, timeout_ms), "S",
     "how long to wait: seconds, or 5min, 1h (default 120)"},
    VERB_OPTIONS(struct materialize_options),
};
static const struct arg_spec spec = {
    .verb = "materialize",
    .words = "[ENV] PACKAGE",
    .summary = "Builds what the package persists, reuses what is current, binds the result.",
    .more = "Exit codes: 0 the run is ready (with --no-wait: it was accepted), 1 it failed or was "
            "cancelled, 2 usage,\n3 services not reached, 4 refused or another run is active, 5 "
            "not found, 6 timed out while the run goes on.",
    .min_words = 1,
    .max_words = 2,
    .options = options,
    .n = ARRAY_LEN(options),
};

static json_t *body_of(const struct materialize_options *o)
{
    json_t *body = json_object();
    json_set_flag(body, "forceRefresh", o->force_refresh);
    json_set_flag(body, "reseed", o->reseed);
    if (o->take_over) {
        json_set_flag(body, "takeOver", true);
    }
    if (o->sources.n) {
        json_t *names = json_array();
        for (size_t i = 0; i < o->sources.n; i++) {
            must(json_array_append_new(names, json_string(o->sources.items[i])) == 0);
        }
        must(json_object_set_new(body, "sourceNames", names) == 0);
    }
    return body;
}

/* Quick at first, so that a no-op run costs no second; slower the longer it takes. */
static struct ms poll_interval(int64_t elapsed)
{
    return MS(elapsed < 1000 ? 50 : elapsed < 10000 ? 250 : 1000);
}

/* Polls until the run has ended or the time is up. *a is the last answer. The services may restart
 * meanwhile: an unreachable gateway is waited for. */
static int wait_for_end(struct verb_run *v, const struct materialize_options *o, const char *path,
                        struct client_answer *a)
{
    struct client_request q = {.method = "GET", .path = path, .timeout = MS(10000)};
    struct progress p;
    struct ms begun = client_now(v->client);
    int rc = 0;
    progress_begin(&p, begun);
    while (rc == 0 || rc == ERR_HTTP_UNREACHABLE) {
        int64_t elapsed = ms_sub(client_now(v->client), begun).v;
        if (rc == 0 && run_has_ended(a->json)) {
            break;
        }
        if (rc == 0) {
            progress_show(&p, a->json, client_now(v->client));
        }
        if (elapsed >= o->timeout_ms) {
            rc = rc ? rc : ERR_TIMEOUT;
            break;
        }
        client_sleep(v->client, ms_min(poll_interval(elapsed), MS(o->timeout_ms - elapsed + 1)));
        client_answer_fini(a);
        rc = client_call(v->client, &q, a, &v->err);
    }
    progress_end(&p);
    return rc;
}

static int print_end(struct verb_run *v, const struct client_answer *a, int rc)
{
    bool ready = run_is_ready(a->json);
    if (v->common->json) {
        verb_print_json(buf_slice(&a->body));
    } else {
        run_print_end(a->json);
    }
    if (rc == ERR_TIMEOUT) {
        (void)fprintf(stderr,
                      "kiln: stopped waiting, the run goes on: kiln run %s tells how far it is\n",
                      json_str(a->json, "id", "?"));
        return KILN_TIMED_OUT;
    }
    if (!ready) {
        (void)fprintf(stderr, "kiln: run %s %s: %s\n", json_str(a->json, "id", "?"),
                      run_is_cancelled(a->json) ? "was cancelled" : "failed",
                      json_str(a->json, "error", "the run does not say why"));
    }
    return ready ? KILN_DONE : KILN_FAILED;
}

static int refused(struct verb_run *v)
{
    if (v->err.code == ERR_CONFLICT && strstr(v->err.text, "active")) {
        (void)err_set(&v->err, ERR_CONFLICT,
                      "%s; wait for it (kiln runs shows it), or end it with kiln stop ID",
                      arena_strdup(&v->arena, v->err.text));
    }
    return verb_fail(v);
}

static int materialize(struct verb_run *v, const struct materialize_options *o)
{
    if (o->wait && o->no_wait) {
        (void)err_set(&v->err, ERR_ARG, "--wait and --no-wait contradict each other; give one");
        return verb_fail(v);
    }
    const char *environment = verb_environment(v, 2);
    if (!environment) {
        return verb_fail(v);
    }
    const char *package = verb_package_path(v, environment, v->words.items[0]);
    const char *path = arena_printf(&v->arena, "%s/materializations", package);
    json_t *body = body_of(o);
    struct client_request q = {.method = "POST", .path = path, .body = body};
    struct client_answer a;
    int rc = client_call(v->client, &q, &a, &v->err);
    json_decref(body);
    if (rc) {
        client_answer_fini(&a);
        return refused(v);
    }
    bool waits = o->wait || (!o->no_wait && isatty(STDOUT_FILENO));
    int code = KILN_DONE;
    if (waits) {
        path = arena_printf(&v->arena, "%s/%s", path, json_str(a.json, "id", ""));
        rc = wait_for_end(v, o, path, &a);
        code = rc == 0 || rc == ERR_TIMEOUT ? print_end(v, &a, rc) : verb_fail(v);
    } else if (o->common.json) {
        verb_print_json(buf_slice(&a.body));
    } else {
        (void)printf("%s\n", json_str(a.json, "id", ""));
    }
    client_answer_fini(&a);
    return code;
}

int kiln_materialize(int argc, char **argv)
{
    struct materialize_options o = {.timeout_ms = 120000};
    struct verb_run v;
    int code = 0;
    if (verb_begin(&v, &spec, &o, argc, argv, &code) == 0) {
        code = materialize(&v, &o);
    }
    verb_end(&v);
    return code;
}
