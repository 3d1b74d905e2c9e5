/* Stands for planner, builder and gateway in tests of `kiln up`: answers /readyz with 200 where the
 * real one would, and misbehaves on request: KILN_FAKE="<instance>=die" (at once, with an error),
 * "<instance>=deaf" (ignores SIGTERM). Writes its command line and secrets' names to standard
 * error. */
#include "common/http/http.h"
#include "common/log/log.h"
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static const char *value_of(int argc, char **argv, const char *flag)
{
    size_t n = strlen(flag);
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], flag, n) == 0 && argv[i][n] == '=') {
            return argv[i] + n + 1;
        }
    }
    return NULL;
}

static bool told(const char *instance, const char *what)
{
    const char *orders = getenv("KILN_FAKE");
    auto_free char *order = xasprintf("%s=%s", instance, what);
    return orders && strcmp(orders, order) == 0;
}

static void on_request(void *data, struct http_req *r)
{
    (void)data;
    http_reply_json(r, 200, SLICE("{\"ready\":true}"));
}

static void on_signal(void *data, int signum)
{
    (void)signum;
    loop_stop(data);
}

static const char *set_or_not(const char *name)
{
    return getenv(name) ? "set" : "unset";
}

int main(int argc, char **argv)
{
    const char *instance = value_of(argc, argv, "--instance");
    const char *address = value_of(argc, argv, "--listen");
    address = address ? address : value_of(argc, argv, "--webhook-listen");
    address = address ? address : value_of(argc, argv, "--health-listen");
    must(instance && address);
    log_setup(instance, LOG_INFO, LOG_FORM_JSON);
    log_info("fake.started", "instance=%s init=%d store=%s redis=%s key=%s", instance,
             argc > 1 && strcmp(argv[argc - 1], "--init") == 0, set_or_not("KILN_STORE_URL"),
             set_or_not("KILN_REDIS"), set_or_not("KILN_SECRET_KEY"));
    if (told(instance, "die")) {
        log_error("service.start", "part=base error=%s", log_q("the moon is not full"));
        return 1;
    }
    struct loop *l = loop_new();
    struct http_limits lim = {0};
    struct http_handler h = {.on_request = on_request};
    struct http_server *s = http_server_new(l, &lim, &h);
    struct err e = {0};
    if (http_server_listen(s, address, &e)) {
        log_error("service.start", "part=http error=%s", log_q(err_text(&e)));
        return 1;
    }
    loop_on_signal(l, on_signal, l);
    if (told(instance, "deaf")) {
        (void)signal(SIGTERM, SIG_IGN);
    }
    loop_run(l);
    _exit(0); /* the process takes loop and server with it */
}
