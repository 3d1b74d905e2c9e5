/* The server as a whole: limits, drain, end. */
#include "common/http/http_internal.h"
#include <time.h>

static void on_over(struct loop_task *t)
{
    struct http_server *s = t->data;
    void (*done)(void *) = s->done;
    s->done = NULL;
    if (done) {
        done(s->done_data);
    }
}

static void on_grace(struct loop_timer *t)
{
    struct http_server *s = t->data;
    list_for_each (it, &s->conns) {
        http_conn_close(list_entry(it, struct http_conn, link));
    }
}

struct http_server *http_server_new(struct loop *l, const struct http_limits *lim,
                                    const struct http_handler *h)
{
    struct http_server *s = xcalloc(1, sizeof(*s));
    s->loop = l;
    s->handler = *h;
    if (lim) {
        s->lim = *lim;
    }
    s->lim.head_bytes = s->lim.head_bytes ? s->lim.head_bytes : 64 * 1024;
    s->lim.body_bytes = s->lim.body_bytes ? s->lim.body_bytes : 1024 * 1024;
    s->lim.connections = s->lim.connections ? s->lim.connections : 1024;
    s->lim.idle = s->lim.idle.v ? s->lim.idle : MS(60000);
    s->lim.read = s->lim.read.v ? s->lim.read : MS(30000);
    list_init(&s->conns);
    list_init(&s->listeners);
    loop_timer_init(&s->grace, l, on_grace, s);
    loop_task_init(&s->over, on_over, s);
    return s;
}

void http_server_divert(struct http_server *s, void (*fn)(void *data, int fd), void *data)
{
    s->divert = fn;
    s->divert_data = data;
}

void http_server_on_end(struct http_server *s, void (*fn)(void *data), void *data)
{
    s->on_end = fn;
    s->end_data = data;
}

int http_server_port(const struct http_server *s)
{
    return s->port;
}

unsigned http_server_open(const struct http_server *s)
{
    return s->open;
}

void http_server_maybe_over(struct http_server *s)
{
    if (s->draining && s->open == 0 && s->listening == 0) {
        loop_timer_stop(&s->grace);
        loop_defer(s->loop, &s->over);
    }
}

void http_server_close(struct http_server *s, struct ms grace, void (*done)(void *data), void *data)
{
    must(!s->draining);
    s->draining = true;
    s->done = done;
    s->done_data = data;
    loop_timer_start(&s->grace, grace);
    list_for_each (it, &s->listeners) {
        http_listener_close(list_entry(it, struct http_listener, link));
    }
    list_for_each (conn, &s->conns) {
        struct http_conn *c = list_entry(conn, struct http_conn, link);
        if (!c->asked) { /* its request may lie in the socket already */
            http_conn_set_deadline(c, MS(HTTP_FRESH_MS));
        } else if (!c->busy && !c->reading && !c->flying && c->pending.len == 0 && !c->lingering) {
            http_conn_close(c);
        }
    }
    http_server_maybe_over(s);
}

void http_server_free(struct http_server *s)
{
    must(s->open == 0 && s->listening == 0);
    loop_timer_stop(&s->grace);
    loop_task_cancel(&s->over);
    free(s);
}

const char *http_server_date(struct http_server *s)
{
    time_t now = time(NULL);
    if (now != s->date_at) {
        struct tm tm;
        s->date_at = now;
        (void)gmtime_r(&now, &tm);
        (void)strftime(s->date, sizeof(s->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
    }
    return s->date;
}
