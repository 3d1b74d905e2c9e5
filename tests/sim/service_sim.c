/* service.h and metrics.h for simulated processes: parts start in order and close in reverse,
 * nobody listens. */
#include "common/log/log.h"
#include "common/service/metrics.h"
#include "tests/sim/trio_world.h"

#include <stdio.h>

struct service {
    struct proc *proc;
    struct service_state is;
    struct arena arena;
    size_t n_open;
    bool closing, draining;
    struct loop_task close_next;
};

/* ---- life ---- */
static void on_close_next(struct loop_task *t)
{
    struct service *s = t->data;
    if (s->closing) {
        return;
    }
    if (s->n_open == 0) {
        sim_time_set(&s->proc->w->time, &s->proc->ends, MS(0));
        return;
    }
    s->closing = true;
    const struct service_part *part = &s->is.parts[s->n_open - 1];
    if (part->close) {
        part->close(s);
    } else {
        service_part_closed(s);
    }
}

struct service *service_sim_new(struct proc *p, const struct service_state *is)
{
    struct service *s = xcalloc(1, sizeof(*s));
    s->proc = p;
    s->is = *is;
    p->service = s;
    arena_init(&s->arena);
    loop_task_init(&s->close_next, on_close_next, s);
    for (size_t i = 0; i < is->n_parts; i++) {
        struct err e = {0};
        if (is->parts[i].start && is->parts[i].start(s, &e)) {
            trio_fail("part %s of %s does not start: %s", is->parts[i].name, p->name, err_text(&e));
        }
        s->n_open = i + 1;
    }
    return s;
}

void service_sim_free(struct service *s)
{
    arena_fini(&s->arena);
    free(s->is.settings);
    free(s->is.state);
    free(s);
}

void proc_drain(struct proc *p)
{
    struct service *s = p->service;
    if (!s || s->draining) {
        return;
    }
    s->draining = p->leaving = true;
    p->w->n_drains++;
    loop_defer(p->loop, &s->close_next);
}

void service_part_closed(struct service *s)
{
    must(s->closing && s->n_open > 0);
    s->closing = false;
    s->n_open--;
    loop_defer(s->proc->loop, &s->close_next);
}

void service_fail(struct service *s, int exit_code, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    log_error("service.fail", "exit_code=%d error=%s", exit_code, log_q(text));
    proc_drain(s->proc);
}

struct loop *service_loop(struct service *s)
{
    return s->proc->loop;
}

void *service_settings(struct service *s)
{
    return s->is.settings;
}

void *service_state(struct service *s)
{
    return s->is.state;
}

struct arena *service_arena(struct service *s)
{
    return &s->arena;
}

bool service_is_draining(const struct service *s)
{
    return s->draining;
}

/* ---- what nobody looks at here ---- */
void health_set(struct service *s, const char *name, bool required, bool ok, const char *reason)
{
    must(s && name);
    (void)required;
    (void)ok;
    (void)reason;
}

bool health_ready(const struct service *s)
{
    return !s->draining;
}

void health_json(const struct service *s, struct buf *out)
{
    buf_addf(out, "{\"ready\":%s}", health_ready(s) ? "true" : "false");
}

bool service_answer_http(struct service *s, struct http_req *r)
{
    (void)s;
    (void)r;
    return false;
}

struct metric {
    double value;
};
static struct metric any_metric;

struct metric *metric_counter(const char *name, const char *labels, const char *help)
{
    must(name && labels && help);
    return &any_metric;
}

struct metric *metric_gauge(const char *name, const char *labels, const char *help)
{
    must(name && labels && help);
    return &any_metric;
}

struct metric *metric_histogram(const char *name, const char *labels, const char *help)
{
    must(name && labels && help);
    return &any_metric;
}

void metric_observe(struct metric *m, double v)
{
    m->value = v;
}

void metric_label_escape(struct buf *out, const char *value)
{
    buf_add_str(out, value);
}

void metric_add(struct metric *m, double n)
{
    m->value += n;
}

void metric_set(struct metric *m, double v)
{
    m->value = v;
}
