/* Sending: at once if the socket takes it, the rest through one uv_write at a time. */
#include "common/http/http_internal.h"

#define KEEP_CAP (64 * 1024) /* a bigger buffer is not kept */

static size_t out_len(const struct http_out *o)
{
    return o->small.len + o->big.len;
}

static void out_clear(struct http_out *o)
{
    if (o->small.cap > KEEP_CAP) {
        buf_fini(&o->small);
    } else {
        buf_clear(&o->small);
    }
    buf_fini(&o->big);
}

size_t http_conn_unsent(const struct http_conn *c)
{
    size_t queued = c->flying ? uv_stream_get_write_queue_size(&c->s.stream) : 0;
    return out_len(&c->out) + queued;
}

/* The bytes of an http_out after `sent` of them. */
static unsigned vector(const struct http_out *o, size_t sent, uv_buf_t v[2])
{
    unsigned n = 0;
    if (sent < o->small.len) {
        v[n++] = uv_buf_init(o->small.p + sent, (unsigned)(o->small.len - sent));
        sent = 0;
    } else {
        sent -= o->small.len;
    }
    if (sent < o->big.len) {
        v[n++] = uv_buf_init(o->big.p + sent, (unsigned)(o->big.len - sent));
    }
    return n;
}

static void tell_drained(struct http_conn *c)
{
    if (c->busy && c->req.wants_drain && http_conn_unsent(c) < HTTP_SLOW_MARK / 2) {
        c->req.wants_drain = false;
        if (c->req.on_drain) {
            c->req.on_drain(c->req.drain_data);
        }
    }
}

static void on_written(uv_write_t *w, int status)
{
    struct http_conn *c = w->data;
    c->flying = false;
    out_clear(&c->fly);
    if (status < 0) {
        http_conn_close(c);
        return;
    }
    http_conn_flush(c);
    tell_drained(c);
}

static void fly(struct http_conn *c, size_t sent)
{
    struct http_out empty = c->fly;
    c->fly = c->out;
    c->out = empty;
    uv_buf_t v[2];
    unsigned n = vector(&c->fly, sent, v);
    c->write.data = c;
    c->flying = true;
    if (uv_write(&c->write, &c->s.stream, v, n, on_written)) {
        c->flying = false;
        http_conn_close(c);
        return;
    }
    c->unsent_before = uv_stream_get_write_queue_size(&c->s.stream);
    http_conn_set_deadline(c, c->server->lim.read);
}

void http_conn_flush(struct http_conn *c)
{
    if (c->closing) {
        out_clear(&c->out);
        return;
    }
    if (c->flying) {
        return;
    }
    uv_buf_t v[2];
    unsigned n = vector(&c->out, 0, v);
    int sent = n ? uv_try_write(&c->s.stream, v, n) : 0;
    if (sent == UV_EAGAIN) {
        sent = 0;
    }
    if (sent < 0) {
        http_conn_close(c);
        return;
    }
    if ((size_t)sent < out_len(&c->out)) {
        fly(c, (size_t)sent);
        return;
    }
    out_clear(&c->out);
    http_conn_sent(c);
}
