/* kiln query and kiln explain. */
#include "services/kiln/kiln.h"
#include "services/kiln/progress.h"
#include "services/kiln/receipt.h"
#include "services/kiln/rows.h"
#include <stdio.h>
#include <unistd.h>

struct query_options {
    struct verb_options common;
    bool compact, full, live;
    int64_t timeout_ms;
};
static const struct arg_option query_args[] = {
    {"--compact", ARG_FLAG, offsetof(struct query_options, compact), NULL,
     "print the rows as a JSON array of plain objects"},
    {"--full", ARG_FLAG, offsetof(struct query_options, full), NULL,
     "print Malloy's full result object (JSON)"},
    {"--live", ARG_FLAG, offsetof(struct query_options, live), NULL,
     "read no baked table: compute the answer"},
    {"--timeout", ARG_SECONDS, offsetof(struct query_options, timeout_ms), "S",
     "give up after this long (default 5min)"},
    VERB_OPTIONS(struct query_options),
};
#define QUERY_CODES                                                                                \
    "Exit codes: 0 done, 1 it failed, 2 usage, 3 services not reached, 4 the query was refused, "  \
    "5 "                                                                                           \
    "not found."
static const struct arg_spec query_spec = {
    .verb = "query",
    .words = "[ENV] PACKAGE MODEL 'run: ..'",
    .summary = "Runs a Malloy query and prints its rows; the receipt goes to standard error.",
    .more = "MODEL is the model's path in the package: flights.malloy.\n" QUERY_CODES,
    .min_words = 3,
    .max_words = 4,
    .options = query_args,
    .n = ARRAY_LEN(query_args),
};
static const struct arg_spec explain_spec = {
    .verb = "explain",
    .words = "[ENV] PACKAGE MODEL 'run: ..'",
    .summary = "Runs a query and tells what it was served from, why, and the SQL that ran.",
    .more = QUERY_CODES,
    .min_words = 3,
    .max_words = 4,
    .options = query_args + 2, /* without the forms of a result */
    .n = ARRAY_LEN(query_args) - 2,
};

/* Asks; 0 with *a and the milliseconds it took. */
static int ask(struct verb_run *v, const struct query_options *o, bool compact,
               struct client_answer *a, int64_t *took)
{
    *a = (struct client_answer){0};
    const char *environment = verb_environment(v, 4);
    if (!environment) {
        return v->err.code;
    }
    auto_buf struct buf path = {0};
    buf_add_str(&path, verb_package_path(v, environment, v->words.items[0]));
    buf_add_str(&path, "/models/");
    client_encode(&path, v->words.items[1], true);
    buf_add_str(&path, "/query");
    json_t *body = json_object();
    json_set_str(body, "query", v->words.items[2]);
    json_set_flag(body, "compactJson", compact);
    struct client_request q = {.method = "POST",
                               .path = buf_str(&path),
                               .header = o->live ? "Kiln-Mode: live" : NULL,
                               .body = body,
                               .timeout = MS(o->timeout_ms)};
    struct ms begun = client_now(v->client);
    int rc = client_call(v->client, &q, a, &v->err);
    *took = ms_sub(client_now(v->client), begun).v;
    json_decref(body);
    return rc;
}

static void print_receipt(const struct client_answer *a, size_t rows, int64_t took)
{
    auto_buf struct buf line = {0};
    receipt_line(json_object_get(a->json, "decision"), &line);
    buf_addf(&line, " - %zu row%s in ", rows, rows == 1 ? "" : "s");
    progress_span(&line, took);
    (void)fprintf(stderr, "%s\n", buf_str(&line));
}

static int print_rows(struct verb_run *v, const struct client_answer *a, int64_t took)
{
    struct slice result = slice_of(json_str(a->json, "result", ""));
    struct table t;
    size_t n = 0;
    if (rows_table(result, &t, &n)) {
        (void)err_set(&v->err, ERR_INTERNAL,
                      "%s answered with a result that is no array of rows; look at it with --json",
                      client_url(v->client));
        return verb_fail(v);
    }
    auto_buf struct buf out = {0};
    if (n) {
        table_print(&t, terminal_width(STDOUT_FILENO), &out);
    } else {
        buf_add_str(&out, "no rows\n");
    }
    (void)fwrite(out.p, 1, out.len, stdout);
    (void)fflush(stdout);
    table_fini(&t);
    print_receipt(a, n, took);
    return KILN_DONE;
}

static int query(struct verb_run *v, const struct query_options *o)
{
    if (o->compact && o->full) {
        (void)err_set(&v->err, ERR_ARG,
                      "--compact and --full are two forms of the answer; give one");
        return verb_fail(v);
    }
    struct client_answer a;
    int64_t took = 0;
    if (ask(v, o, !o->full, &a, &took)) {
        client_answer_fini(&a);
        return verb_fail(v);
    }
    int code = KILN_DONE;
    if (o->common.json) {
        verb_print_json(buf_slice(&a.body));
    } else if (o->compact || o->full) {
        verb_print_json(slice_of(json_str(a.json, "result", "null")));
        auto_buf struct buf line = {0};
        receipt_line(json_object_get(a.json, "decision"), &line);
        (void)fprintf(stderr, "%s\n", buf_str(&line));
    } else {
        code = print_rows(v, &a, took);
    }
    client_answer_fini(&a);
    return code;
}

int kiln_query(int argc, char **argv)
{
    struct query_options o = {.timeout_ms = 300000};
    struct verb_run v;
    int code = 0;
    if (verb_begin(&v, &query_spec, &o, argc, argv, &code) == 0) {
        code = query(&v, &o);
    }
    verb_end(&v);
    return code;
}

/* ---- explain ---- */
static void print_source(const json_t *s)
{
    static const char *const members[][2] = {
        {"table", "table"},      {"generation", "generation"}, {"dataAsOf", "data as of"},
        {"buildId", "build id"}, {"reason", "reason"},         {"message", "why"},
        {"remedy", "remedy"}};
    (void)printf("  %s: %s\n", json_str(s, "name", json_str(s, "sourceID", "?")),
                 json_str(s, "served", "?"));
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        const char *value = json_str(s, members[i][0], NULL);
        if (value && value[0]) {
            (void)printf("    %-12s %s\n", members[i][1], value);
        }
    }
}

static void print_explained(const json_t *decision, const char *sql, int64_t took)
{
    const json_t *sources = json_object_get(decision, "sources");
    const char *reason = json_str(decision, "reason", NULL);
    auto_buf struct buf span = {0};
    progress_span(&span, took);
    (void)printf("served: %s%s%s%s, in %s\n", json_str(decision, "served", "unknown"),
                 reason ? " (" : "", reason ? reason : "", reason ? ")" : "", buf_str(&span));
    for (size_t i = 0; i < json_array_size(sources); i++) {
        print_source(json_array_get(sources, i));
    }
    if (sql) {
        (void)printf("sql:\n%s\n", sql);
    }
}

static void print_explained_json(json_t *decision, const char *sql, int64_t took)
{
    json_t *out = json_object();
    must(json_object_set(out, "decision", decision ? decision : json_null()) == 0);
    json_set_str(out, "sql", sql);
    json_set_int(out, "tookMs", took);
    auto_free char *text = json_text(out);
    json_decref(out);
    verb_print_json(slice_of(text));
}

static int explain(struct verb_run *v, const struct query_options *o)
{
    struct client_answer a;
    int64_t took = 0;
    if (ask(v, o, false, &a, &took)) {
        client_answer_fini(&a);
        return verb_fail(v);
    }
    struct err ignored = {0};
    json_t *result = json_parse(slice_of(json_str(a.json, "result", "")), &ignored);
    json_t *decision = json_object_get(a.json, "decision");
    const char *sql = json_str(result, "sql", NULL);
    if (o->common.json) {
        print_explained_json(decision, sql, took);
    } else {
        print_explained(decision, sql, took);
    }
    json_decref(result);
    client_answer_fini(&a);
    return KILN_DONE;
}

int kiln_explain(int argc, char **argv)
{
    struct query_options o = {.timeout_ms = 300000};
    struct verb_run v;
    int code = 0;
    if (verb_begin(&v, &explain_spec, &o, argc, argv, &code) == 0) {
        code = explain(&v, &o);
    }
    verb_end(&v);
    return code;
}
