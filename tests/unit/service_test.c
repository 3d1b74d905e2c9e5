#include "common/httpc/httpc.h"
#include "common/service/metrics.h"
#include "common/service/service.h"
#include "tests/support/suite.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* What the parts note while service_run runs; the tests look at it afterwards. */
struct trail {
    char text[256];
    int status[4];
    struct buf body[4];
    bool was_ready_in_drain;
};
static struct trail trail;

struct settings {
    const char *log_level, *log_format;
    int64_t answer;
};
static const struct conf_item items[] = {
    {.key = "log.level",
     .type = CONF_STR,
     .offset = offsetof(struct settings, log_level),
     .def = "error",
     .doc = "Level."},
    {.key = "log.format",
     .type = CONF_STR,
     .offset = offsetof(struct settings, log_format),
     .def = "text",
     .doc = "Format."},
    {.key = "answer",
     .type = CONF_INT,
     .offset = offsetof(struct settings, answer),
     .min = 1,
     .max = 99,
     .def = "42",
     .flag = "--answer",
     .doc = "Number."},
};
static const struct conf_spec spec = {
    .program = "kiln-test", .summary = "Tests the frame.", .items = items, .n = ARRAY_LEN(items)};

struct state {
    struct http_server *server;
    struct httpc *client;
    struct httpc_call call;
    struct loop_timer timer;
    char url[64];
    int at;
    bool never_closes;
};

static void note(const char *text)
{
    strncat(trail.text, text, sizeof(trail.text) - strlen(trail.text) - 1);
}

static struct state *state_of(struct service *s)
{
    return service_state(s);
}

static int start_store(struct service *s, struct err *e)
{
    (void)e;
    ck_assert_int_eq(((struct settings *)service_settings(s))->answer, 42);
    health_set(s, "store", true, false, "the \"store\" is away");
    health_set(s, "cache", false, false, "cold");
    note("+store ");
    return 0;
}

static void close_store(struct service *s)
{
    note("-store ");
    service_part_closed(s);
}

static void on_request(void *data, struct http_req *r)
{
    if (!service_answer_http(data, r)) {
        http_reply_error(r, ERR_NOT_FOUND, "no such page");
    }
}

static int start_http(struct service *s, struct err *e)
{
    struct http_handler h = {s, on_request, NULL};
    state_of(s)->server = http_server_new(service_loop(s), NULL, &h);
    note("+http ");
    return http_server_listen(state_of(s)->server, "127.0.0.1:0", e);
}

static void on_server_closed(void *data)
{
    http_server_free(state_of(data)->server);
    note("-http ");
    service_part_closed(data);
}

static void close_http(struct service *s)
{
    trail.was_ready_in_drain = health_ready(s);
    http_server_close(state_of(s)->server, MS(1000), on_server_closed, s);
}

/* The probe asks the service itself, page after page, then ends it with a signal. */
static const char *const pages[] = {"/healthz", "/readyz", "/health/readiness", "/metrics"};
static void ask_next(struct service *s);

static void on_answer(struct httpc_call *c)
{
    struct service *s = c->data;
    struct state *t = state_of(s);
    trail.status[t->at] = c->status;
    trail.body[t->at] = c->answer;
    buf_fini(&c->answer_head);
    t->at++;
    if (t->at == 2) {
        health_set(s, "store", true, true, NULL);
    }
    ask_next(s);
}

static void ask_next(struct service *s)
{
    struct state *t = state_of(s);
    if (t->at == (int)ARRAY_LEN(pages)) {
        ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
        return;
    }
    (void)snprintf(t->url, sizeof(t->url), "http://127.0.0.1:%d%s", http_server_port(t->server),
                   pages[t->at]);
    t->call = (struct httpc_call){
        .method = "GET", .url = t->url, .timeout = MS(5000), .done = on_answer, .data = s};
    httpc_start(t->client, &t->call);
}

static int start_probe(struct service *s, struct err *e)
{
    (void)e;
    state_of(s)->client = httpc_new(service_loop(s));
    ask_next(s);
    note("+probe ");
    return 0;
}

static void close_probe(struct service *s)
{
    httpc_free(state_of(s)->client);
    note("-probe ");
    service_part_closed(s);
}

static int run_with(const struct service_part *parts, size_t n, int argc, char **argv)
{
    trail = (struct trail){0};
    struct service_desc d = {.name = "test",
                             .conf = &spec,
                             .settings_size = sizeof(struct settings),
                             .state_size = sizeof(struct state),
                             .log_level_offset = offsetof(struct settings, log_level),
                             .log_format_offset = offsetof(struct settings, log_format),
                             .parts = parts,
                             .n_parts = n,
                             .drain = MS(100)};
    return service_run(&d, argc, argv);
}

static char program[] = "kiln-test";
static char *argv_plain[] = {program, NULL};

START_TEST(parts_start_in_order_answer_probes_and_close_in_reverse)
{
    static const struct service_part parts[] = {{"store", start_store, close_store},
                                                {"http", start_http, close_http},
                                                {"probe", start_probe, close_probe}};

    int code = run_with(parts, 3, 1, argv_plain);

    ck_assert_int_eq(code, 0);
    ck_assert_str_eq(trail.text, "+store +http +probe -probe -http -store ");
    ck_assert(!trail.was_ready_in_drain);
    ck_assert_int_eq(trail.status[0], 200);
    ck_assert_str_eq(buf_str(&trail.body[0]), "{\"status\":\"ok\"}");
    ck_assert_int_eq(trail.status[1], 503);
    ck_assert_str_eq(buf_str(&trail.body[1]),
                     "{\"ready\":false,\"parts\":{\"store\":{\"ok\":false,\"reason\":"
                     "\"the \\\"store\\\" is away\"},\"cache\":{\"ok\":false,\"reason\":\"cold\","
                     "\"required\":false}}}");
    ck_assert_int_eq(trail.status[2], 200);
    ck_assert_ptr_nonnull(
        strstr(trail.body[2].p, "{\"ready\":true,\"parts\":{\"store\":{\"ok\":true}"));
    ck_assert_int_eq(trail.status[3], 200);
    ck_assert_ptr_nonnull(strstr(trail.body[3].p, "kiln_condition_ok{condition=\"cache\"} 0\n"));
    ck_assert_ptr_nonnull(strstr(trail.body[3].p, "\nprocess_resident_memory_bytes "));
    for (size_t i = 0; i < ARRAY_LEN(trail.body); i++) {
        buf_fini(&trail.body[i]);
    }
    metrics_reset();
}
END_TEST

static int start_bad(struct service *s, struct err *e)
{
    (void)s;
    return err_set(e, ERR_CONF, "cannot listen");
}

START_TEST(part_that_does_not_start_ends_the_process_and_closes_what_stands)
{
    static const struct service_part parts[] = {{"store", start_store, close_store},
                                                {"bad", start_bad, close_http},
                                                {"late", start_probe, close_probe}};

    int code = run_with(parts, 3, 1, argv_plain);

    ck_assert_int_eq(code, 1);
    ck_assert_str_eq(trail.text, "+store -store ");
}
END_TEST

static void on_fail_timer(struct loop_timer *t)
{
    service_fail(t->data, 7, "leadership %s", "lost");
}

static int start_failing(struct service *s, struct err *e)
{
    (void)e;
    note("+fail ");
    loop_timer_init(&state_of(s)->timer, service_loop(s), on_fail_timer, s);
    loop_timer_start(&state_of(s)->timer, MS(1));
    return 0;
}

START_TEST(failure_drains_and_gives_its_exit_code)
{
    static const struct service_part parts[] = {{"store", start_store, close_store},
                                                {"failing", start_failing, NULL}};

    int code = run_with(parts, 2, 1, argv_plain);

    ck_assert_int_eq(code, 7);
    ck_assert_str_eq(trail.text, "+store +fail -store ");
}
END_TEST

static void on_term_timer(struct loop_timer *t)
{
    (void)t;
    ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
}

static int start_ending(struct service *s, struct err *e)
{
    (void)e;
    loop_timer_init(&state_of(s)->timer, service_loop(s), on_term_timer, s);
    loop_timer_start(&state_of(s)->timer, MS(1));
    return 0;
}

static void close_never(struct service *s)
{
    (void)s;
    note("stuck ");
}

static void close_with_second_signal(struct service *s)
{
    (void)s;
    note("stuck ");
    ck_assert_int_eq(kill(getpid(), SIGINT), 0);
}

START_TEST(drain_ends_at_its_limit_or_at_a_second_signal)
{
    static const struct service_part stuck[] = {{"stuck", NULL, close_never},
                                                {"ending", start_ending, NULL}};
    static const struct service_part impatient[] = {{"stuck", NULL, close_with_second_signal},
                                                    {"ending", start_ending, NULL}};

    ck_assert_int_eq(run_with(stuck, 2, 1, argv_plain), 3);
    ck_assert_str_eq(trail.text, "stuck ");
    ck_assert_int_eq(run_with(impatient, 2, 1, argv_plain), 3);
    ck_assert_str_eq(trail.text, "stuck ");
}
END_TEST

START_TEST(bad_configuration_starts_nothing)
{
    static const struct service_part parts[] = {{"store", start_store, close_store}};
    char flag[] = "--answer", value[] = "1000";
    char *argv[] = {program, flag, value, NULL};
    (void)fflush(stderr);
    int kept = dup(STDERR_FILENO);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(dup2(null, STDERR_FILENO), 0);

    int code = run_with(parts, 1, 3, argv);

    ck_assert_int_ge(dup2(kept, STDERR_FILENO), 0);
    (void)close(kept);
    (void)close(null);
    ck_assert_int_eq(code, 2);
    ck_assert_str_eq(trail.text, "");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("service");
    tcase_add_test(tc, parts_start_in_order_answer_probes_and_close_in_reverse);
    tcase_add_test(tc, part_that_does_not_start_ends_the_process_and_closes_what_stands);
    tcase_add_test(tc, failure_drains_and_gives_its_exit_code);
    tcase_add_test(tc, drain_ends_at_its_limit_or_at_a_second_signal);
    tcase_add_test(tc, bad_configuration_starts_nothing);
    Suite *s = suite_create("service");
    suite_add_tcase(s, tc);
    return suite_run(s);
}
