/* kiln up: one foreground process, everything else is its child. */
#include "services/kiln/up.h"
#include "common/conf/conf.h"
#include "common/log/log.h"
#include "services/kiln/kiln.h"
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void on_signal(void *data, int signum)
{
    struct up *u = data;
    log_info("up.end", "signal=%s", signum == SIGTERM ? "SIGTERM" : "SIGINT");
    up_stop(u);
}

static void on_hangup(uv_signal_t *handle, int signum)
{
    (void)signum;
    up_stop(handle->data);
}

void up_store_is_there(struct up *u)
{
    up_child_start(&u->planner);
}

static void say_accepted(const struct up *u)
{
    if (u->set->mcp_port[0]) {
        log_info("up.mcp_port", "port=%s reason=\"MCP is not built yet: the port is ignored\"",
                 u->set->mcp_port);
    }
    if (u->set->watch_env[0]) {
        log_warn("up.watch_env", "environment=%s reason=%s", log_q(u->set->watch_env),
                 log_q("watching files is not built yet: packages are read in place at each load"));
    }
}

/* Everything at once: each retries its connections. Only the planner waits for its own database: it
 * tries again more and more rarely, and would miss it by more than it gains (tried: 1 s). */
static void start_children(struct up *u)
{
    if (u->has_postgres) {
        up_postgres_start(u);
    }
    if (u->has_redis) {
        up_child_start(&u->redis);
    }
    up_child_start(&u->gateway);
    for (size_t i = 0; i < u->n_builders; i++) {
        up_child_start(&u->builders[i]);
    }
    if (!u->has_postgres) {
        up_child_start(&u->planner);
    }
}

static void fini_children(struct up *u)
{
    for (size_t i = 0; i < u->n_all; i++) {
        up_child_fini(u->all[i]);
    }
}

/* The lock is still ours: nobody else uses what is in there. */
static void remove_run_dir(struct up *u)
{
    struct err e = {0};
    if (up_dir_empty(u->run, &e)) {
        log_warn("up.run_dir", "error=%s", log_q(err_text(&e)));
    } else {
        (void)rmdir(u->run);
    }
}

static int run(struct up *u)
{
    struct err e = {0};
    u->begun = loop_now(u->loop);
    if (up_prepare(u, &e)) {
        (void)fprintf(stderr, "kiln up: %s\n", err_text(&e));
        return KILN_FAILED;
    }
    say_accepted(u);
    up_services_init(u);
    up_ready_init(u);
    loop_on_signal(u->loop, on_signal, u);
    must(uv_signal_init(loop_uv(u->loop), &u->hangup) == 0);
    u->hangup.data = u;
    must(uv_signal_start(&u->hangup, on_hangup, SIGHUP) == 0);
    start_children(u);
    up_ready_start(u);
    loop_run(u->loop);
    uv_close((uv_handle_t *)&u->hangup, NULL);
    while (u->probes[0].in_flight || u->probes[1].in_flight) {
        (void)loop_turn(u->loop, MS(50)); /* cancelled calls end on the next turns */
    }
    up_ready_fini(u);
    fini_children(u);
    remove_run_dir(u);
    if (u->failure) {
        (void)fprintf(stderr, "kiln up: %s\n", u->failure);
    }
    return u->exit_code;
}

static enum log_level level_of(const char *text)
{
    enum log_level level = LOG_INFO;
    return log_level_parse(text, &level) ? LOG_INFO : level;
}

int kiln_up(int argc, char **argv)
{
    struct up_settings set = {0};
    struct up *u = xcalloc(1, sizeof(*u));
    int code = KILN_DONE;
    arena_init(&u->arena);
    u->set = &set;
    u->lock_fd = -1;
    enum conf_action action =
        conf_load(&up_conf, &u->arena, &set, argc, argv, NULL, stdout, stderr);
    if (action == CONF_RUN) {
        const char *form = set.log_format;
        log_setup("kiln", level_of(set.log_level),
                  strcmp(form, "json") == 0   ? LOG_FORM_JSON
                  : strcmp(form, "text") == 0 ? LOG_FORM_TEXT
                                              : LOG_FORM_AUTO);
        u->loop = loop_new();
        code = run(u);
        loop_free(u->loop);
    } else if (action == CONF_EXIT_BAD) {
        code = KILN_USAGE;
    }
    if (u->lock_fd >= 0) {
        (void)close(u->lock_fd);
    }
    arena_fini(&u->arena);
    free(u);
    return code;
}
