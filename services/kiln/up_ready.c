/* Ready: gateway and planner both answer 200 to /readyz, and are our own. Until then one question
 * to each at a time; afterwards none. */
#include "common/json/json.h"
#include "common/log/log.h"
#include "services/kiln/up.h"
#include <stdio.h>

#define EVERY_MS 20
#define SAY_MS 10000 /* how often a long wait says what it waits for */

static void set_why(struct up_probe *p, const char *why)
{
    free(p->why);
    p->why = xstrdup(why);
}

/* "run store: connecting; compiler: starting" out of {"ready":false,"parts":{..}}. */
static void explain(struct up_probe *p)
{
    struct err ignored = {0};
    json_t *v = json_parse(buf_slice(&p->call.answer), &ignored);
    auto_buf struct buf text = {0};
    const char *name;
    json_t *part;
    json_object_foreach(json_object_get(v, "parts"), name, part)
    {
        if (json_flag(part, "required", true) && !json_flag(part, "ok", false)) {
            buf_addf(&text, "%s%s: %s", text.len ? "; " : "", name, json_str(part, "reason", "?"));
        }
    }
    set_why(p, text.len ? buf_str(&text) : "not ready, and it does not say why");
    json_decref(v);
}

static void on_answer(struct httpc_call *call)
{
    struct up_probe *p = call->data;
    bool same = p->child->starts == p->starts && p->child->state == UP_CHILD_RUNNING;
    p->in_flight = false;
    p->ok = same && call->rc == 0 && call->status == 200;
    if (p->ok) {
        p->child->proven = true;
    } else if (call->rc == 0) {
        explain(p);
    } else {
        set_why(p, err_text(&call->err));
    }
    buf_fini(&call->answer);
    buf_fini(&call->answer_head);
}

static void ask(struct up *u, struct up_probe *p)
{
    p->ok = p->ok && p->child->starts == p->starts && p->child->state == UP_CHILD_RUNNING;
    if (p->in_flight || p->ok || p->child->state != UP_CHILD_RUNNING) {
        return;
    }
    p->in_flight = true;
    p->starts = p->child->starts;
    p->call = (struct httpc_call){.method = "GET",
                                  .url = p->url,
                                  .unix_socket = p->socket[0] ? p->socket : NULL,
                                  .timeout = MS(2000),
                                  .done = on_answer,
                                  .data = p};
    httpc_start(u->http, &p->call);
}

static void say_ready(struct up *u)
{
    auto_buf struct buf line = {0};
    const char *host = u->set->host;
    u->ready = true;
    (void)printf("PUBLISHER_READY\n");
    (void)fflush(stdout);
    buf_addf(&line, "kiln up: ready in %.1f s: http://%s%s%s:%d",
             (double)ms_sub(loop_now(u->loop), u->begun).v / 1000, strchr(host, ':') ? "[" : "",
             host, strchr(host, ':') ? "]" : "", (int)u->set->port);
    if (u->webhook_port) {
        buf_addf(&line, ", webhooks: http://127.0.0.1:%d/hooks/publish", u->webhook_port);
    }
    (void)fprintf(stderr, "%s\n", buf_str(&line));
}

static void say_waiting(struct up *u)
{
    struct ms now = loop_now(u->loop);
    if (ms_sub(now, u->said_waiting).v < SAY_MS) {
        return;
    }
    u->said_waiting = now;
    for (size_t i = 0; i < UP_PROBES; i++) {
        const struct up_probe *p = &u->probes[i];
        if (!p->ok) {
            log_warn("up.waiting", "child=%s for_s=%lld reason=%s", p->child->name,
                     (long long)(ms_sub(now, u->begun).v / 1000),
                     log_q(p->child->starts ? p->why : "not started: it waits for PostgreSQL"));
        }
    }
}

static void on_probe(struct loop_timer *t)
{
    struct up *u = t->data;
    bool all = true;
    if (u->stopping || u->ready) {
        return;
    }
    for (size_t i = 0; i < UP_PROBES; i++) {
        ask(u, &u->probes[i]);
        all = all && u->probes[i].ok;
    }
    if (all) {
        say_ready(u);
        return;
    }
    say_waiting(u);
    loop_timer_start(&u->probe_timer, MS(EVERY_MS));
}

static const char *probe_host(const char *host)
{
    return strcmp(host, "0.0.0.0") == 0 ? "127.0.0.1" : strcmp(host, "::") == 0 ? "::1" : host;
}

void up_ready_init(struct up *u)
{
    struct up_probe *g = &u->probes[UP_PROBE_GATEWAY];
    struct up_probe *p = &u->probes[UP_PROBE_PLANNER];
    const char *host = probe_host(u->set->host);
    bool is_v6 = strchr(host, ':') != NULL;
    g->child = &u->gateway;
    (void)snprintf(g->url, sizeof(g->url), is_v6 ? "http://[%s]:%d/readyz" : "http://%s:%d/readyz",
                   host, (int)u->set->port);
    p->child = &u->planner;
    if (u->webhook_port) {
        (void)snprintf(p->url, sizeof(p->url), "http://127.0.0.1:%d/readyz", u->webhook_port);
    } else {
        (void)snprintf(p->url, sizeof(p->url), "http://planner/readyz");
        must(up_socket_path(u->run, "planner-1.ctl", p->socket, NULL) == 0);
    }
    u->http = httpc_new(u->loop);
    loop_timer_init(&u->probe_timer, u->loop, on_probe, u);
}

void up_ready_start(struct up *u)
{
    u->said_waiting = loop_now(u->loop);
    loop_timer_start(&u->probe_timer, MS(EVERY_MS));
}

void up_ready_stop(struct up *u)
{
    loop_timer_stop(&u->probe_timer);
    for (size_t i = 0; i < UP_PROBES; i++) {
        if (u->probes[i].in_flight) {
            httpc_cancel(&u->probes[i].call);
        }
    }
}

void up_ready_fini(struct up *u)
{
    for (size_t i = 0; i < UP_PROBES; i++) {
        free(u->probes[i].why);
    }
    httpc_free(u->http);
}
