#include "common/log/log.h"
#include "common/service/service_internal.h"
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { EXIT_PART = 1, EXIT_CONF = 2, EXIT_CUT_SHORT = 3 };

struct loop *service_loop(struct service *s)
{
    return s->loop;
}

void *service_settings(struct service *s)
{
    return s->settings;
}

void *service_state(struct service *s)
{
    return s->state;
}

struct arena *service_arena(struct service *s)
{
    return &s->arena;
}

char **service_rest(struct service *s)
{
    return s->rest;
}

bool service_is_draining(const struct service *s)
{
    return s->draining;
}

static void cut_short(struct service *s, const char *why)
{
    const char *part = s->n_open ? s->desc->parts[s->n_open - 1].name : "";
    log_warn("service.cut_short", "why=%s part=%s", log_q(why), part);
    s->cut_short = true;
    if (s->exit_code == 0) {
        s->exit_code = EXIT_CUT_SHORT;
    }
    loop_stop(s->loop);
}

static void on_drain_limit(struct loop_timer *t)
{
    cut_short(t->data, "the drain took too long");
}

/* Closes one part per turn, from the last to the first: a part may close at once without deep
 * stacks. */
static void on_close_next(struct loop_task *t)
{
    struct service *s = t->data;
    if (s->part_closing) {
        return;
    }
    if (s->n_open == 0) {
        loop_timer_stop(&s->drain_limit);
        loop_stop(s->loop);
        return;
    }
    const struct service_part *p = &s->desc->parts[s->n_open - 1];
    log_debug("service.part_close", "part=%s", p->name);
    s->part_closing = true;
    if (p->close) {
        p->close(s);
    } else {
        service_part_closed(s);
    }
}

void service_part_closed(struct service *s)
{
    loop_assert_here(s->loop);
    must(s->part_closing && s->n_open > 0);
    s->part_closing = false;
    s->n_open--;
    loop_defer(s->loop, &s->close_next);
}

/* The drain's limit is a timer of the loop; a library call that never comes back holds the loop
 * too. So the kernel's own alarm stands behind it: past it the process ends where it is. */
static volatile sig_atomic_t alarm_code;
static void on_alarm(int signum)
{
    (void)signum;
    _exit(alarm_code);
}

static void arm_alarm(const struct service *s)
{
    int64_t limit = s->desc->drain.v ? s->desc->drain.v : 30000;
    alarm_code = s->exit_code ? s->exit_code : EXIT_CUT_SHORT;
    struct sigaction a = {.sa_handler = on_alarm};
    sigemptyset(&a.sa_mask);
    (void)sigaction(SIGALRM, &a, NULL);
    (void)alarm((unsigned)(limit / 1000) + 2);
}

void service_drain(struct service *s)
{
    if (s->draining) {
        return;
    }
    s->draining = true;
    arm_alarm(s);
    loop_timer_start(&s->drain_limit, s->desc->drain.v ? s->desc->drain : MS(30000));
    loop_defer(s->loop, &s->close_next);
}

static void on_signal(void *data, int signum)
{
    struct service *s = data;
    const char *name = signum == SIGTERM ? "SIGTERM" : "SIGINT";
    if (s->draining) {
        cut_short(s, "a second signal");
        return;
    }
    log_info("service.drain", "signal=%s", name);
    service_drain(s);
}

void service_fail(struct service *s, int exit_code, const char *fmt, ...)
{
    must(exit_code != 0);
    char text[ERR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    log_error("service.fail", "exit_code=%d error=%s", exit_code, log_q(text));
    if (s->exit_code == 0) {
        s->exit_code = exit_code;
    }
    service_drain(s);
}

static const char *setting_text(struct service *s, size_t offset)
{
    const char *text;
    memcpy(&text, (const char *)s->settings + offset, sizeof(text));
    return text;
}

static void set_up_log(struct service *s)
{
    enum log_level level = LOG_INFO;
    const char *level_text = setting_text(s, s->desc->log_level_offset);
    const char *form_text = setting_text(s, s->desc->log_format_offset);
    enum log_form form = LOG_FORM_AUTO;
    if (form_text && strcmp(form_text, "json") == 0) {
        form = LOG_FORM_JSON;
    } else if (form_text && strcmp(form_text, "text") == 0) {
        form = LOG_FORM_TEXT;
    }
    bool is_known = level_text && log_level_parse(level_text, &level) == 0;
    log_setup(s->desc->name, level, form);
    if (level_text && !is_known) {
        log_warn("service.log_level", "unknown=%s used=info", log_q(level_text));
    }
}

static void start_parts(struct service *s)
{
    struct ms begun = loop_now(s->loop);
    for (size_t i = 0; i < s->desc->n_parts && !s->draining; i++) {
        const struct service_part *p = &s->desc->parts[i];
        struct err e;
        err_clear(&e);
        if (p->start && p->start(s, &e)) {
            log_error("service.start", "part=%s error=%s", p->name, log_q(err_text(&e)));
            s->exit_code = EXIT_PART;
            service_drain(s);
            return;
        }
        s->n_open = i + 1;
    }
    if (!s->draining) {
        log_info("service.started", "parts=%zu took_ms=%lld", s->n_open,
                 (long long)ms_sub(loop_now(s->loop), begun).v);
    }
}

static int run(struct service *s)
{
    set_up_log(s);
    s->loop = loop_new();
    loop_task_init(&s->close_next, on_close_next, s);
    loop_timer_init(&s->drain_limit, s->loop, on_drain_limit, s);
    loop_on_signal(s->loop, on_signal, s);
    start_parts(s);
    loop_run(s->loop);
    log_info("service.ended", "exit_code=%d", s->exit_code);
    if (s->cut_short && s->desc->has_threads) {
        (void)fflush(stdout);
        _exit(s->exit_code);
    }
    if (!s->cut_short) {
        loop_free(s->loop); /* after a cut, handles are still open: the process ends with them */
    }
    return s->exit_code;
}

/* Services that were cut short: something open may still point at them until the process ends. */
static struct service *abandoned;

static void service_free(struct service *s)
{
    health_fini(s);
    free(s->state);
    free(s->settings);
    arena_fini(&s->arena);
    free(s);
}

int service_run(const struct service_desc *d, int argc, char **argv)
{
    struct service *s = xcalloc(1, sizeof(*s));
    s->desc = d;
    list_init(&s->conditions);
    arena_init(&s->arena);
    s->settings = xcalloc(1, d->settings_size ? d->settings_size : 1);
    s->state = xcalloc(1, d->state_size ? d->state_size : 1);
    enum conf_action action =
        conf_load(d->conf, &s->arena, s->settings, argc, argv, &s->rest, stdout, stderr);
    int code = action == CONF_EXIT_BAD ? EXIT_CONF : 0;
    if (action == CONF_RUN) {
        code = run(s);
    }
    (void)alarm(0);
    if (s->cut_short) {
        s->next_abandoned = abandoned;
        abandoned = s;
        return code;
    }
    service_free(s);
    return code;
}
