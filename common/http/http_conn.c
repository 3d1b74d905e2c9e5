/* Life of a connection: accept, read, one request after the other, deadlines, close. */
#include "common/http/http_internal.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static struct http_conn *conn_of(struct http_req *r)
{
    return container_of(r, struct http_conn, req);
}

static bool is_loopback(const struct sockaddr_storage *addr)
{
    if (addr->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)addr;
        return (ntohl(in->sin_addr.s_addr) >> 24) == 127;
    }
    if (addr->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const void *)addr;
        bool mapped = IN6_IS_ADDR_V4MAPPED(&in->sin6_addr);
        return mapped ? in->sin6_addr.s6_addr[12] == 127 : IN6_IS_ADDR_LOOPBACK(&in->sin6_addr);
    }
    return false;
}

static void maybe_free(struct http_conn *c)
{
    if (!c->closed || c->busy || c->notifying) {
        return;
    }
    struct http_server *s = c->server;
    loop_timer_stop(&c->timer);
    loop_task_cancel(&c->resume);
    loop_task_cancel(&c->flush);
    loop_task_cancel(&c->gone);
    list_del(&c->link);
    http_parse_fini(&c->parse);
    arena_fini(&c->req.arena);
    buf_fini(&c->pending);
    buf_fini(&c->out.small);
    buf_fini(&c->out.big);
    buf_fini(&c->fly.small);
    buf_fini(&c->fly.big);
    free(c);
    s->open--;
    if (s->on_end) {
        s->on_end(s->end_data);
    }
    http_server_maybe_over(s);
}

static void tell_gone(struct http_conn *c)
{
    void (*fn)(struct http_req *, void *) = c->req.on_gone;
    if (!c->busy || !fn) {
        return;
    }
    c->req.on_gone = NULL;
    c->notifying = true;
    fn(&c->req, c->req.gone_data);
    c->notifying = false;
}

static void on_gone_task(struct loop_task *t)
{
    struct http_conn *c = t->data;
    tell_gone(c);
    maybe_free(c);
}

static void on_closed(uv_handle_t *h)
{
    struct http_conn *c = h->data;
    c->closed = true;
    tell_gone(c);
    maybe_free(c);
}

void http_conn_close(struct http_conn *c)
{
    if (c->closing) {
        return;
    }
    c->closing = true;
    loop_timer_stop(&c->timer);
    uv_close(&c->s.handle, on_closed);
}

/* Moving a deadline out costs nothing: the timer rings at its old time, looks and starts again. */
void http_conn_set_deadline(struct http_conn *c, struct ms span)
{
    if (c->closing) {
        return;
    }
    c->deadline = span.v == INT64_MAX ? MS_NONE : ms_add(loop_now(c->server->loop), span);
    if (c->deadline.v != INT64_MAX &&
        (c->timer.heap_at == 0 || ms_before(c->deadline, c->timer.due))) {
        loop_timer_start(&c->timer, span);
    }
}

static void on_deadline(struct loop_timer *t)
{
    struct http_conn *c = t->data;
    struct ms left = ms_sub(c->deadline, loop_now(c->server->loop));
    if (left.v == INT64_MAX) {
        return;
    }
    if (left.v > 0) {
        loop_timer_start(t, left);
        return;
    }
    size_t unsent = uv_stream_get_write_queue_size(&c->s.stream);
    if (c->flying && unsent < c->unsent_before) {
        c->unsent_before = unsent;
        http_conn_set_deadline(c, c->server->lim.read);
        return;
    }
    if (c->reading && !c->busy && !c->flying && !c->lingering) {
        http_refuse(c, 408, "the request did not arrive in time");
        return;
    }
    http_conn_close(c);
}

static void on_shutdown(uv_shutdown_t *req, int status)
{
    struct http_conn *c = req->data;
    if (status < 0) {
        http_conn_close(c);
    }
}

/* Closing with unread bytes would reset the connection under the answer: end our side, read on for
 * a while. */
static void linger(struct http_conn *c)
{
    c->lingering = true;
    c->shutdown.data = c;
    http_conn_set_deadline(c, MS(HTTP_LINGER_MS));
    if (uv_shutdown(&c->shutdown, &c->s.stream, on_shutdown)) {
        http_conn_close(c);
    }
}

void http_conn_sent(struct http_conn *c)
{
    if (c->closing || c->lingering) {
        return;
    }
    if (c->busy) {
        http_conn_set_deadline(c, MS_NONE); /* from here on it is the handler's time */
    } else if (c->refused) {
        linger(c);
    } else if (c->last) { /* its answer is out: nothing is busy, nothing flies */
        http_conn_close(c);
    } else if (c->pending.len > 0 && !c->in_feed) {
        loop_defer(c->server->loop, &c->resume);
    }
}

static void req_reset(struct http_conn *c)
{
    struct arena arena = c->req.arena;
    if (arena.used > HTTP_READ_CAP) {
        arena_fini(&arena);
    } else if (arena.head) {
        arena_reset(&arena);
    }
    c->req = (struct http_req){.arena = arena};
}

void http_conn_answered(struct http_conn *c)
{
    must(c->busy);
    c->busy = false;
    c->reading = false;
    req_reset(c);
    if (c->closing) {
        maybe_free(c);
        return;
    }
    http_parse_reset(&c->parse);
    http_conn_set_deadline(c, c->server->lim.idle);
    c->last |= c->server->draining;
    http_conn_flush(c);
}

static size_t body_cap(struct http_parse *p, void *data)
{
    struct http_conn *c = data;
    const struct http_handler *h = &c->server->handler;
    http_parse_target(http_parse_url(p), &c->req.path, &c->req.query);
    return h->body_cap ? h->body_cap(h->data, &c->req) : c->server->lim.body_bytes;
}

static void dispatch(struct http_conn *c)
{
    struct http_server *s = c->server;
    c->busy = true;
    c->last = !c->parse.keep_alive || s->draining;
    c->req.is_head = c->parse.parser.method == HTTP_HEAD;
    http_parse_target(http_parse_url(&c->parse), &c->req.path, &c->req.query);
    http_conn_set_deadline(c, MS_NONE);
    s->handler.on_request(s->handler.data, &c->req);
}

static void read_on(struct http_conn *c, bool had_bytes)
{
    if (c->parse.expects_100) {
        c->parse.expects_100 = false;
        buf_add_str(&c->out.small, "HTTP/1.1 100 Continue\r\n\r\n");
        http_conn_flush(c);
    }
    if (!c->reading && had_bytes) {
        c->reading = true;
        http_conn_set_deadline(c, c->server->lim.read);
    }
}

static bool can_serve(const struct http_conn *c)
{
    return !c->busy && !c->flying && !c->closing && !c->last && !c->refused;
}

/* Takes bytes as far as requests can be served one after the other; the rest waits in c->pending.
 */
static void conn_feed(struct http_conn *c, const char *p, size_t len)
{
    c->in_feed = true;
    while (len > 0 && can_serve(c)) {
        size_t n = http_parse_feed(&c->parse, p, len);
        p += n;
        len -= n;
        if (c->parse.state == HTTP_PARSE_WHOLE) {
            dispatch(c);
        } else if (c->parse.state == HTTP_PARSE_FAILED) {
            http_refuse(c, c->parse.fail_status, c->parse.fail_text);
        } else {
            read_on(c, c->parse.state != HTTP_PARSE_IDLE);
        }
    }
    c->in_feed = false;
    if (len > 0 && !c->closing && !c->last && !c->refused) {
        buf_add(&c->pending, p, len);
    }
}

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *out)
{
    (void)hint;
    struct http_conn *c = h->data;
    *out = uv_buf_init(c->server->rbuf, sizeof(c->server->rbuf));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes)
{
    struct http_conn *c = stream->data;
    if (n < 0) {
        http_conn_close(c);
        return;
    }
    if (c->lingering || c->refused || n == 0) {
        return;
    }
    c->asked = true;
    if (can_serve(c) && c->pending.len == 0) {
        conn_feed(c, bytes->base, (size_t)n);
    } else {
        buf_add(&c->pending, bytes->base, (size_t)n);
    }
    if (c->pending.len >= HTTP_READ_CAP && !c->closing) {
        c->paused = true;
        (void)uv_read_stop(stream);
    }
}

static void on_resume(struct loop_task *t)
{
    struct http_conn *c = t->data;
    if (!can_serve(c)) {
        return;
    }
    struct buf taken = c->pending;
    buf_init(&c->pending);
    conn_feed(c, taken.p, taken.len);
    buf_fini(&taken);
    if (c->paused && c->pending.len < HTTP_READ_CAP && !c->closing) {
        c->paused = false;
        (void)uv_read_start(&c->s.stream, on_alloc, on_read);
    }
}

static void on_flush(struct loop_task *t)
{
    http_conn_flush(t->data);
}

static struct http_conn *conn_new(struct http_server *s, bool is_unix)
{
    struct http_conn *c = xcalloc(1, sizeof(*c));
    c->server = s;
    c->deadline = MS_NONE;
    http_parse_init(&c->parse, s->lim.head_bytes, s->lim.body_bytes);
    c->parse.body_cap = body_cap;
    c->parse.data = c;
    loop_timer_init(&c->timer, s->loop, on_deadline, c);
    loop_task_init(&c->resume, on_resume, c);
    loop_task_init(&c->flush, on_flush, c);
    loop_task_init(&c->gone, on_gone_task, c);
    if (is_unix) {
        must(uv_pipe_init(loop_uv(s->loop), &c->s.pipe, 0) == 0);
    } else {
        must(uv_tcp_init(loop_uv(s->loop), &c->s.tcp) == 0);
    }
    c->s.handle.data = c;
    list_add_tail(&s->conns, &c->link);
    s->open++;
    return c;
}

static bool is_unix_socket(int fd)
{
    struct sockaddr_storage addr;
    socklen_t len = sizeof(addr);
    return getsockname(fd, (void *)&addr, &len) == 0 && addr.ss_family == AF_UNIX;
}

static void set_up_tcp(struct http_conn *c)
{
    struct sockaddr_storage addr;
    int len = sizeof(addr);
    (void)uv_tcp_nodelay(&c->s.tcp, 1);
    (void)uv_tcp_keepalive(&c->s.tcp, 1, 60);
    if (uv_tcp_getpeername(&c->s.tcp, (void *)&addr, &len) == 0) {
        c->is_local = is_loopback(&addr);
    }
}

static void conn_begin(struct http_conn *c, bool is_unix)
{
    struct http_server *s = c->server;
    if (uv_read_start(&c->s.stream, on_alloc, on_read)) {
        http_conn_close(c);
        return;
    }
    c->is_local = is_unix;
    if (!is_unix) {
        set_up_tcp(c);
    }
    if (s->open > s->lim.connections) {
        http_refuse(c, 503, "too many connections");
        return;
    }
    http_conn_set_deadline(c, s->lim.idle);
}

void http_conn_accept(struct http_server *s, struct http_listener *from)
{
    struct http_conn *c = conn_new(s, from->is_unix);
    if (uv_accept(&from->s.stream, &c->s.stream)) {
        http_conn_close(c);
        return;
    }
    conn_begin(c, from->is_unix);
}

void http_server_take_fd(struct http_server *s, int fd)
{
    loop_assert_here(s->loop);
    bool is_unix = is_unix_socket(fd);
    struct http_conn *c = conn_new(s, is_unix);
    int rc = is_unix ? uv_pipe_open(&c->s.pipe, fd) : uv_tcp_open(&c->s.tcp, fd);
    if (rc || s->draining) {
        if (rc) {
            (void)close(fd);
        }
        http_conn_close(c);
        return;
    }
    conn_begin(c, is_unix);
}

void http_on_gone(struct http_req *r, void (*fn)(struct http_req *r, void *data), void *data)
{
    struct http_conn *c = conn_of(r);
    r->on_gone = fn;
    r->gone_data = data;
    if (fn && c->closed) {
        loop_defer(c->server->loop, &c->gone);
    }
}
