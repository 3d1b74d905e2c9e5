/* Verbs against a gateway that answers from a script: what they ask, print and exit with. */
#include "common/http/http.h"
#include "services/kiln/kiln.h"
#include "tests/support/suite.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

struct canned {
    const char *method, *path; /* with its query */
    int status;
    const char *body;
};
#define P "/api/v0/environments/demo/packages/shop"
#define ONE_ENV                                                                                    \
    {                                                                                              \
        "GET", "/api/v0/environments", 200, "[{\"name\":\"demo\"}]"                                \
    }

static const struct canned
    *script;               /* ends with a NULL method; a request takes the first that fits */
static size_t script_from; /* repeated requests move on to their next line */
static char last_body[1024], last_mode[32];
static struct loop *server_loop;
static struct http_server *server;
static pthread_t server_thread;
static char url[64];

static bool fits(const struct canned *c, struct http_req *r)
{
    struct slice query = http_query(r), path = http_path(r);
    auto_free char *whole = query.len ? xasprintf("%.*s?%.*s", SLICE_FMT(path), SLICE_FMT(query))
                                      : xasprintf("%.*s", SLICE_FMT(path));
    return slice_is(http_method(r), c->method) && strcmp(whole, c->path) == 0;
}

static void on_request(void *data, struct http_req *r)
{
    (void)data;
    (void)snprintf(last_body, sizeof(last_body), "%.*s", SLICE_FMT(http_body(r)));
    (void)snprintf(last_mode, sizeof(last_mode), "%.*s",
                   SLICE_FMT(http_header_get(r, "kiln-mode")));
    for (size_t i = script_from; script[i].method; i++) {
        if (fits(&script[i], r)) {
            bool repeats = script[i + 1].method && fits(&script[i + 1], r);
            script_from = repeats ? i + 1 : script_from;
            http_reply_json(r, script[i].status, slice_of(script[i].body));
            return;
        }
    }
    http_reply_json(r, 418, SLICE("{\"message\":\"not in the script\"}"));
}

static void *serve(void *data)
{
    loop_run(server_loop);
    (void)data;
    return NULL;
}

static void start_server(void)
{
    static const struct http_handler h = {.on_request = on_request};
    struct http_limits lim = {0};
    struct err e = {0};
    server_loop = loop_new();
    server = http_server_new(server_loop, &lim, &h);
    ck_assert_msg(http_server_listen(server, "127.0.0.1:0", &e) == 0, "%s", e.text);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%d", http_server_port(server));
    script_from = 0;
    ck_assert_int_eq(pthread_create(&server_thread, NULL, serve, NULL), 0);
}

static void on_server_closed(void *data)
{
    (void)data;
    loop_stop(server_loop);
}

static void on_stop(struct inbox_item *item)
{
    (void)item;
    http_server_close(server, MS(0), on_server_closed, NULL);
}

static void stop_server(void)
{
    struct inbox_item item = {.fn = on_stop};
    loop_post(server_loop, &item);
    ck_assert_int_eq(pthread_join(server_thread, NULL), 0);
    http_server_free(server);
    loop_free(server_loop);
}

/* Runs a verb with its standard output and error in texts. */
static char out[8192], err[8192];

static int redirect(int fd, const char *path)
{
    int kept = dup(fd);
    int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(dup2(file, fd), fd);
    (void)close(file);
    return kept;
}

static void restore(int fd, int kept, const char *path, char *text, size_t cap)
{
    ck_assert_int_eq(dup2(kept, fd), fd);
    (void)close(kept);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(file, text, cap - 1);
    text[n > 0 ? n : 0] = '\0';
    (void)close(file);
    (void)unlink(path);
}

static int run_verb(int (*verb)(int argc, char **argv), const struct canned *lines,
                    const char *const *words)
{
    char *argv[16];
    int argc = 0;
    char out_path[64], err_path[64];
    (void)snprintf(out_path, sizeof(out_path), "/tmp/kiln-verbs-%d.out", (int)getpid());
    (void)snprintf(err_path, sizeof(err_path), "/tmp/kiln-verbs-%d.err", (int)getpid());
    script = lines;
    script_from = 0;
    for (; words[argc]; argc++) {
        argv[argc] = xstrdup(words[argc]);
    }
    argv[argc] = xasprintf("--url=%s", url);
    (void)fflush(stdout);
    int kept_out = redirect(STDOUT_FILENO, out_path), kept_err = redirect(STDERR_FILENO, err_path);
    int code = verb(argc + 1, argv);
    (void)fflush(stdout);
    restore(STDERR_FILENO, kept_err, err_path, err, sizeof(err));
    restore(STDOUT_FILENO, kept_out, out_path, out, sizeof(out));
    for (int i = 0; i <= argc; i++) {
        free(argv[i]);
    }
    return code;
}
#define RUN(verb, lines, ...) run_verb(verb, lines, (const char *const[]){#verb, __VA_ARGS__, NULL})
#define RUN_ALONE(verb, lines) run_verb(verb, lines, (const char *const[]){#verb, NULL})

START_TEST(environment_may_be_left_out_when_there_is_one)
{
    static const struct canned lines[] = {
        ONE_ENV,
        {"GET", P "/materializations", 200, "[{\"id\":\"1\",\"status\":\"FAILED\"}]"},
        {0}};

    ck_assert_int_eq(RUN(kiln_runs, lines, "shop"), 0);

    ck_assert_ptr_nonnull(strstr(out, "failed"));
}
END_TEST

START_TEST(several_environments_are_listed_and_one_is_asked_for)
{
    static const struct canned lines[] = {
        {"GET", "/api/v0/environments", 200, "[{\"name\":\"a\"},{\"name\":\"b\"}]"}, {0}};

    ck_assert_int_eq(RUN(kiln_runs, lines, "shop"), 2);

    ck_assert_ptr_nonnull(strstr(err, "(a, b)"));
}
END_TEST

START_TEST(materialize_waits_until_the_run_is_ready)
{
    static const struct canned lines[] = {
        {"POST", P "/materializations", 201, "{\"id\":\"7\",\"status\":\"PENDING\"}"},
        {"GET", P "/materializations/7", 200,
         "{\"id\":\"7\",\"status\":\"PENDING\",\"progress\":{\"targets\":2,\"done\":1,\"rows\":5,"
         "\"stage\":\"building\"}}"},
        {"GET", P "/materializations/7", 200,
         "{\"id\":\"7\",\"packageName\":\"shop\",\"status\":\"MANIFEST_FILE_READY\",\"metadata\":{"
         "\"sourcesBuilt\":2},\"manifest\":{\"entries\":{\"x\":{\"sourceName\":\"daily\","
         "\"physicalTableName\":\"t\",\"rowCount\":9}}}}"},
        {0}};

    ck_assert_int_eq(RUN(kiln_materialize, lines, "demo", "shop", "--wait", "--force-refresh",
                         "--source", "daily"),
                     0);

    ck_assert_ptr_nonnull(strstr(out, "run 7 of shop is ready: 2 built"));
    ck_assert_ptr_nonnull(strstr(out, "daily"));
    ck_assert_ptr_nonnull(strstr(err, "building 1/2 targets, 5 rows"));
}
END_TEST

START_TEST(materialize_sends_what_it_was_told)
{
    static const struct canned lines[] = {
        {"POST", P "/materializations", 201, "{\"id\":\"7\",\"status\":\"PENDING\"}"}, {0}};

    ck_assert_int_eq(RUN(kiln_materialize, lines, "demo", "shop", "--no-wait", "--take-over",
                         "--source", "a", "--source", "b"),
                     0);

    ck_assert_str_eq(out, "7\n");
    ck_assert_ptr_nonnull(strstr(last_body, "\"takeOver\":true"));
    ck_assert_ptr_nonnull(strstr(last_body, "\"sourceNames\":[\"a\",\"b\"]"));
    ck_assert_ptr_nonnull(strstr(last_body, "\"forceRefresh\":false"));
}
END_TEST

START_TEST(failed_run_exits_1_with_its_error)
{
    static const struct canned lines[] = {
        {"POST", P "/materializations", 201, "{\"id\":\"7\",\"status\":\"PENDING\"}"},
        {"GET", P "/materializations/7", 200,
         "{\"id\":\"7\",\"status\":\"FAILED\",\"error\":\"daily: no such column\"}"},
        {0}};

    ck_assert_int_eq(RUN(kiln_materialize, lines, "demo", "shop", "--wait"), 1);

    ck_assert_ptr_nonnull(strstr(err, "run 7 failed: daily: no such column"));
}
END_TEST

START_TEST(run_that_outlasts_the_timeout_exits_6_and_goes_on)
{
    static const struct canned lines[] = {
        {"POST", P "/materializations", 201, "{\"id\":\"7\",\"status\":\"PENDING\"}"},
        {"GET", P "/materializations/7", 200, "{\"id\":\"7\",\"status\":\"PENDING\"}"},
        {0}};

    ck_assert_int_eq(RUN(kiln_materialize, lines, "demo", "shop", "--wait", "--timeout", "0.2"), 6);

    ck_assert_ptr_nonnull(strstr(err, "kiln run 7"));
}
END_TEST

START_TEST(active_run_exits_4_with_a_remedy)
{
    static const struct canned lines[] = {
        {"POST", P "/materializations", 409,
         "{\"code\":409,\"message\":\"already has an active materialization 5\"}"},
        {0}};

    ck_assert_int_eq(RUN(kiln_materialize, lines, "demo", "shop", "--wait"), 4);

    ck_assert_ptr_nonnull(strstr(err, "active materialization 5"));
    ck_assert_ptr_nonnull(strstr(err, "kiln stop"));
}
END_TEST

START_TEST(unknown_package_exits_5_and_says_it_in_json_too)
{
    static const struct canned lines[] = {
        {"POST", P "/materializations?action=plan", 404,
         "{\"code\":404,\"message\":\"package 'shop' does not exist\"}"},
        {0}};

    ck_assert_int_eq(RUN(kiln_plan, lines, "demo", "shop", "--json"), 5);

    ck_assert_str_eq(out, "{\"error\":{\"exitCode\":5,\"code\":\"ERR_NOT_FOUND\",\"message\":"
                          "\"package 'shop' does not exist\"}}\n");
    ck_assert_ptr_nonnull(strstr(err, "does not exist"));
}
END_TEST

START_TEST(plan_that_would_fail_exits_4_after_printing_it)
{
    static const struct canned lines[] = {
        {"POST", P "/materializations?action=plan", 200,
         "{\"targets\":[],\"refused\":[{\"sourceName\":\"x\",\"message\":\"no container\"}],"
         "\"skipped\":[],\"warnings\":[\"careful\"],\"fails\":\"x: no container\"}"},
        {0}};

    ck_assert_int_eq(RUN(kiln_plan, lines, "demo", "shop"), 4);

    ck_assert_ptr_nonnull(strstr(out, "refuse"));
    ck_assert_ptr_nonnull(strstr(err, "warning: careful"));
    ck_assert_ptr_nonnull(strstr(err, "a run would fail: x: no container"));
}
END_TEST

START_TEST(query_prints_rows_and_the_receipt_apart)
{
    static const struct canned lines[] = {
        {"POST", P "/models/dir/m.malloy/query", 200,
         "{\"result\":\"[{\\\"n\\\":1.50}]\",\"decision\":{\"served\":\"live\",\"reason\":"
         "\"not_persisted\",\"sources\":[]}}"},
        {0}};

    ck_assert_int_eq(
        RUN(kiln_query, lines, "demo", "shop", "dir/m.malloy", "run: a -> {}", "--live"), 0);

    ck_assert_str_eq(out, "   n\n----\n1.50\n");
    ck_assert_ptr_nonnull(strstr(err, "live: not_persisted - 1 row in "));
    ck_assert_str_eq(last_mode, "live");
    ck_assert_ptr_nonnull(strstr(last_body, "\"compactJson\":true"));
}
END_TEST

START_TEST(explain_prints_decision_and_sql)
{
    static const struct canned lines[] = {
        {"POST", P "/models/m.malloy/query", 200,
         "{\"result\":\"{\\\"sql\\\":\\\"SELECT 1\\\"}\",\"decision\":{\"served\":\"live\","
         "\"reason\":\"never_built\",\"sources\":[{\"name\":\"daily\",\"served\":\"live\","
         "\"reason\":\"never_built\",\"remedy\":\"run kiln materialize\"}]}}"},
        {0}};

    ck_assert_int_eq(RUN(kiln_explain, lines, "demo", "shop", "m.malloy", "run: a"), 0);

    ck_assert_ptr_nonnull(strstr(out, "served: live (never_built)"));
    ck_assert_ptr_nonnull(strstr(out, "run kiln materialize"));
    ck_assert_ptr_nonnull(strstr(out, "SELECT 1"));
}
END_TEST

START_TEST(run_is_found_by_its_id_alone)
{
    static const struct canned lines[] = {
        ONE_ENV,
        {"GET", "/api/v0/environments/demo/packages/materializations?limit=200&offset=0", 200,
         "[{\"id\":\"8\",\"packageName\":\"other\"},{\"id\":\"7\",\"packageName\":\"shop\"}]"},
        {"POST", P "/materializations/7?action=stop", 200,
         "{\"id\":\"7\",\"status\":\"PENDING\",\"progress\":{\"stage\":\"building\"}}"},
        {"DELETE", P "/materializations/7?dropTables=true", 204, ""},
        {0}};

    ck_assert_int_eq(RUN(kiln_stop, lines, "7"), 0);
    ck_assert_ptr_nonnull(strstr(out, "run 7 is being stopped; it is building now"));
    ck_assert_int_eq(RUN(kiln_delete, lines, "7", "--drop-tables"), 0);
    ck_assert_str_eq(out, "deleted\n");
    ck_assert_int_eq(RUN(kiln_run, lines, "9"), 5);
}
END_TEST

START_TEST(local_directory_is_published_by_its_absolute_path)
{
    static const struct canned lines[] = {
        {"POST", "/api/v0/environments/demo/packages", 200, "{\"name\":\"shop\"}"}, {0}};
    char cwd[512];

    ck_assert_int_eq(RUN(kiln_publish, lines, "demo", "shop", "--location", "."), 0);

    ck_assert_ptr_nonnull(getcwd(cwd, sizeof(cwd)));
    ck_assert_ptr_nonnull(strstr(last_body, cwd));
    ck_assert_int_eq(RUN(kiln_publish, lines, "demo", "shop", "--archive", "/nope.zip"), 4);
    ck_assert_ptr_nonnull(strstr(err, "/nope.zip"));
}
END_TEST

START_TEST(status_exits_1_when_something_does_not_load)
{
    static const struct canned lines[] = {
        {"GET", "/api/v0/status", 200,
         "{\"operationalState\":\"serving\",\"environments\":[{\"name\":\"demo\",\"packages\":[{"
         "\"name\":\"shop\",\"manifestBindingStatus\":\"bound\",\"manifestEntryCount\":2}]}],"
         "\"loadErrors\":[{\"environment\":\"demo\",\"package\":\"bad\",\"message\":\"broken\"}]}"},
        {"GET", "/readyz", 200, "{\"ready\":true,\"parts\":{}}"},
        {0}};

    ck_assert_int_eq(RUN_ALONE(kiln_status, lines), 1);

    ck_assert_ptr_nonnull(strstr(out, "bound"));
    ck_assert_ptr_nonnull(strstr(out, "error: demo/bad: broken"));
}
END_TEST

START_TEST(gateway_that_is_not_there_exits_3_and_names_the_remedy)
{
    static const struct canned lines[] = {{0}};
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:1");

    ck_assert_int_eq(RUN_ALONE(kiln_status, lines), 3);

    ck_assert_ptr_nonnull(strstr(err, "http://127.0.0.1:1"));
    ck_assert_ptr_nonnull(strstr(err, "kiln up"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("kiln_verbs");
    TCase *t = tcase_create("verbs");
    tcase_set_timeout(t, 30);
    tcase_add_checked_fixture(t, start_server, stop_server);
    tcase_add_test(t, environment_may_be_left_out_when_there_is_one);
    tcase_add_test(t, several_environments_are_listed_and_one_is_asked_for);
    tcase_add_test(t, materialize_waits_until_the_run_is_ready);
    tcase_add_test(t, materialize_sends_what_it_was_told);
    tcase_add_test(t, failed_run_exits_1_with_its_error);
    tcase_add_test(t, run_that_outlasts_the_timeout_exits_6_and_goes_on);
    tcase_add_test(t, active_run_exits_4_with_a_remedy);
    tcase_add_test(t, unknown_package_exits_5_and_says_it_in_json_too);
    tcase_add_test(t, plan_that_would_fail_exits_4_after_printing_it);
    tcase_add_test(t, query_prints_rows_and_the_receipt_apart);
    tcase_add_test(t, explain_prints_decision_and_sql);
    tcase_add_test(t, run_is_found_by_its_id_alone);
    tcase_add_test(t, local_directory_is_published_by_its_absolute_path);
    tcase_add_test(t, status_exits_1_when_something_does_not_load);
    tcase_add_test(t, gateway_that_is_not_there_exits_3_and_names_the_remedy);
    suite_add_tcase(s, t);
    return suite_run(s);
}
