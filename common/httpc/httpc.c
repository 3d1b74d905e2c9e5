/* libcurl's multi interface on the loop: one poll handle per socket, one timer. */
#include "common/httpc/httpc_internal.h"
#include <uv.h>

struct httpc_socket {
    uv_poll_t poll;
    struct httpc *owner;
    curl_socket_t fd;
};

static void collect(struct httpc *h)
{
    int left = 0;
    for (CURLMsg *m; (m = curl_multi_info_read(h->multi, &left));) {
        if (m->msg != CURLMSG_DONE) {
            continue;
        }
        CURL *easy = m->easy_handle;
        CURLcode code = m->data.result;
        struct httpc_run *r = NULL;
        (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &r);
        (void)curl_multi_remove_handle(h->multi, easy);
        httpc_run_end(r, code);
    }
}

static void act(struct httpc *h, curl_socket_t fd, int events)
{
    int running = 0;
    (void)curl_multi_socket_action(h->multi, fd, events, &running);
    collect(h);
}

static void on_timer(struct loop_timer *t)
{
    act(t->data, CURL_SOCKET_TIMEOUT, 0);
}

static int on_curl_timer(CURLM *multi, long after_ms, void *data)
{
    (void)multi;
    struct httpc *h = data;
    if (after_ms < 0) {
        loop_timer_stop(&h->timer);
    } else {
        loop_timer_start(&h->timer, MS(after_ms));
    }
    return 0;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct httpc_socket *s = container_of(poll, struct httpc_socket, poll);
    int flags = status < 0 ? CURL_CSELECT_ERR : 0;
    flags |= events & UV_READABLE ? CURL_CSELECT_IN : 0;
    flags |= events & UV_WRITABLE ? CURL_CSELECT_OUT : 0;
    act(s->owner, s->fd, flags);
}

static void on_poll_closed(uv_handle_t *handle)
{
    free(container_of((uv_poll_t *)handle, struct httpc_socket, poll));
}

static struct httpc_socket *socket_new(struct httpc *h, curl_socket_t fd)
{
    struct httpc_socket *s = xcalloc(1, sizeof(*s));
    s->owner = h;
    s->fd = fd;
    must(uv_poll_init(loop_uv(h->loop), &s->poll, fd) == 0);
    (void)curl_multi_assign(h->multi, fd, s);
    return s;
}

static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *data, void *socket_data)
{
    (void)easy;
    struct httpc *h = data;
    struct httpc_socket *s = socket_data;
    if (what == CURL_POLL_REMOVE) {
        if (s) {
            (void)curl_multi_assign(h->multi, fd, NULL);
            uv_close((uv_handle_t *)&s->poll, on_poll_closed);
        }
        return 0;
    }
    if (!s) {
        s = socket_new(h, fd);
    }
    int events = what & CURL_POLL_IN ? UV_READABLE : 0;
    events |= what & CURL_POLL_OUT ? UV_WRITABLE : 0;
    must(uv_poll_start(&s->poll, events, on_poll) == 0);
    return 0;
}

struct httpc *httpc_new(struct loop *l)
{
    must(curl_global_init(CURL_GLOBAL_DEFAULT) == 0);
    struct httpc *h = xcalloc(1, sizeof(*h));
    h->loop = l;
    h->multi = curl_multi_init();
    must(h->multi);
    loop_timer_init(&h->timer, l, on_timer, h);
    (void)curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
    (void)curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
    (void)curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
    (void)curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
    return h;
}

void httpc_free(struct httpc *h)
{
    must(h->in_flight == 0);
    (void)curl_multi_cleanup(h->multi);
    loop_timer_stop(&h->timer);
    free(h);
    curl_global_cleanup();
}

void httpc_start(struct httpc *h, struct httpc_call *c)
{
    loop_assert_here(h->loop);
    must(c->method && c->url && c->done);
    c->rc = 0;
    c->status = 0;
    err_clear(&c->err);
    buf_init(&c->answer);
    buf_init(&c->answer_head);
    struct httpc_run *r = httpc_run_new(h, c);
    c->impl = r;
    h->in_flight++;
    must(curl_multi_add_handle(h->multi, r->easy) == CURLM_OK);
}

static void on_cancelled(struct loop_task *t)
{
    httpc_run_end_cancelled(t->data);
}

void httpc_cancel(struct httpc_call *c)
{
    struct httpc_run *r = c->impl;
    if (!r || r->cancelled.fn) {
        return; /* it is over, or on its way there */
    }
    (void)curl_multi_remove_handle(r->owner->multi, r->easy);
    loop_task_init(&r->cancelled, on_cancelled, r);
    loop_defer(r->owner->loop, &r->cancelled);
}

struct slice httpc_header(const struct httpc_call *c, const char *name)
{
    struct slice rest = buf_slice(&c->answer_head);
    struct slice wanted = slice_of(name);
    for (struct slice line; slice_cut(&rest, '\n', &line);) {
        struct slice key;
        if (line.len && memchr(line.p, ':', line.len) && slice_cut(&line, ':', &key) &&
            slice_ieq(key, wanted)) {
            return slice_trim(line);
        }
    }
    return SLICE_NONE;
}
