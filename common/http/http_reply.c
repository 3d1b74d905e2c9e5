/* Requests as handlers see them, and their answers. */
#include "common/err/err.h"
#include "common/http/http_internal.h"
#include "common/json/json.h"

static struct http_conn *conn_of(const struct http_req *r)
{
    const struct http_conn *c = (const void *)((const char *)r - offsetof(struct http_conn, req));
    return (struct http_conn *)(uintptr_t)c;
}

struct slice http_method(const struct http_req *r)
{
    return http_parse_method(&conn_of(r)->parse);
}

struct slice http_path(const struct http_req *r)
{
    return r->path;
}

struct slice http_query(const struct http_req *r)
{
    return r->query;
}

struct slice http_body(const struct http_req *r)
{
    return buf_slice(&conn_of(r)->parse.body);
}

struct slice http_header_get(const struct http_req *r, const char *name)
{
    return http_parse_header(&conn_of(r)->parse, name);
}

bool http_query_get(const struct http_req *r, const char *key, struct arena *a, char **value)
{
    return http_query_find(r->query, key, a, value);
}

struct arena *http_arena(struct http_req *r)
{
    return &r->arena;
}

bool http_is_local(const struct http_req *r)
{
    return conn_of(r)->is_local;
}

static void add_number(struct buf *out, uint64_t n)
{
    char digits[20];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n);
    buf_add(out, digits + at, sizeof(digits) - at);
}

/* A line end inside of a value would begin a header of its own. */
static void add_clean(struct buf *out, struct slice value)
{
    size_t at = out->len;
    buf_add_slice(out, value);
    for (; at < out->len; at++) {
        unsigned char c = (unsigned char)out->p[at];
        if (c < 0x20 || c == 0x7f) {
            out->p[at] = ' ';
        }
    }
}

void http_answer_header(struct http_req *r, struct slice name, struct slice value)
{
    must(r->n_extra < HTTP_EXTRA_MAX && !r->begun);
    r->extra[r->n_extra++] = (struct http_header){slice_of(arena_slice(&r->arena, name)),
                                                  slice_of(arena_slice(&r->arena, value))};
}

static void add_header(struct buf *out, const struct http_header *h)
{
    buf_add_slice(out, SLICE("\r\n"));
    add_clean(out, h->name);
    buf_add_slice(out, SLICE(": "));
    add_clean(out, h->value);
}

static bool names_header(const struct http_header *headers, size_t n, struct slice name)
{
    for (size_t i = 0; i < n; i++) {
        if (slice_ieq(headers[i].name, name)) {
            return true;
        }
    }
    return false;
}

static void add_head(struct http_conn *c, int status, const struct http_header *headers, size_t n)
{
    struct buf *out = &c->out.small;
    buf_reserve(out, 512);
    buf_add_slice(out, SLICE("HTTP/1.1 "));
    add_number(out, (uint64_t)status);
    buf_add_char(out, ' ');
    buf_add_str(out, http_status_text(status));
    buf_add_slice(out, SLICE("\r\nDate: "));
    buf_add_str(out, http_server_date(c->server));
    for (size_t i = 0; i < n; i++) {
        add_header(out, &headers[i]);
    }
    for (unsigned i = 0; i < c->req.n_extra; i++) {
        if (!names_header(headers, n, c->req.extra[i].name)) {
            add_header(out, &c->req.extra[i]);
        }
    }
    if (c->last || c->server->draining) {
        buf_add_slice(out, SLICE("\r\nConnection: close"));
    } else if (c->parse.is_http10) {
        buf_add_slice(out, SLICE("\r\nConnection: keep-alive"));
    }
}

static bool is_bodiless(int status)
{
    return status == 204 || status == 304;
}

static void add_length(struct http_conn *c, int status, size_t len)
{
    struct buf *out = &c->out.small;
    if (!is_bodiless(status)) {
        buf_add_slice(out, SLICE("\r\nContent-Length: "));
        add_number(out, len);
    }
    buf_add_slice(out, SLICE("\r\n\r\n"));
}

/* False when the client is gone: nothing needs to be written. */
static bool begin_answer(struct http_conn *c)
{
    must(c->busy && !c->req.begun);
    loop_assert_here(c->server->loop);
    c->req.begun = true;
    return !c->closing;
}

void http_reply(struct http_req *r, int status, const struct http_header *headers, size_t n,
                struct slice body)
{
    struct http_conn *c = conn_of(r);
    if (begin_answer(c)) {
        add_head(c, status, headers, n);
        add_length(c, status, body.len);
        if (!r->is_head && !is_bodiless(status)) {
            struct buf *to = body.len > HTTP_COPY_MAX ? &c->out.big : &c->out.small;
            buf_add_slice(to, body);
        }
    }
    http_conn_answered(c);
}

void http_reply_buf(struct http_req *r, int status, const struct http_header *headers, size_t n,
                    struct buf *body)
{
    struct http_conn *c = conn_of(r);
    if (body->len <= HTTP_COPY_MAX || r->is_head || is_bodiless(status) || c->closing) {
        struct buf mine = *body;
        buf_init(body);
        http_reply(r, status, headers, n, buf_slice(&mine));
        buf_fini(&mine);
        return;
    }
    must(begin_answer(c));
    add_head(c, status, headers, n);
    add_length(c, status, body->len);
    c->out.big = *body;
    buf_init(body);
    http_conn_answered(c);
}

static const struct http_header content_json = {SLICE("Content-Type"),
                                                SLICE("application/json; charset=utf-8")};

void http_reply_json(struct http_req *r, int status, struct slice body)
{
    http_reply(r, status, &content_json, 1, body);
}

static void add_error(struct buf *out, int status, const char *text)
{
    buf_addf(out, "{\"code\":%d,\"message\":", status);
    jsonw_str(out, slice_of(text));
    buf_add_char(out, '}');
}

void http_reply_error(struct http_req *r, int code, const char *text)
{
    int status = err_code_http(code);
    auto_buf struct buf body;
    buf_init(&body);
    add_error(&body, status, text && text[0] ? text : err_code_text(code));
    http_reply_json(r, status, buf_slice(&body));
}

void http_refuse(struct http_conn *c, int status, const char *text)
{
    auto_buf struct buf body;
    buf_init(&body);
    add_error(&body, status, text);
    c->refused = true;
    c->last = true;
    c->parse.is_http10 = false;
    add_head(c, status, &content_json, 1);
    add_length(c, status, body.len);
    if (c->parse.state == HTTP_PARSE_IDLE || c->parse.parser.method != HTTP_HEAD) {
        buf_add_slice(&c->out.small, buf_slice(&body));
    }
    http_conn_flush(c);
}

void http_begin(struct http_req *r, int status, const struct http_header *headers, size_t n,
                void (*on_drain)(void *data), void *data)
{
    struct http_conn *c = conn_of(r);
    bool is_there = begin_answer(c);
    r->on_drain = on_drain;
    r->drain_data = data;
    r->bodiless = is_bodiless(status);
    r->chunked = !c->parse.is_http10;
    if (!is_there) {
        return;
    }
    if (!r->chunked) {
        c->last = true; /* HTTP/1.0: the end of the body is the end of the connection */
    }
    add_head(c, status, headers, n);
    buf_add_str(&c->out.small,
                r->chunked && !r->bodiless ? "\r\nTransfer-Encoding: chunked\r\n\r\n" : "\r\n\r\n");
    loop_defer(c->server->loop, &c->flush);
}

bool http_write(struct http_req *r, struct slice piece)
{
    struct http_conn *c = conn_of(r);
    must(c->busy && r->begun);
    if (c->closing) {
        return true; /* it goes nowhere, so there is nothing to wait for */
    }
    if (piece.len == 0 || r->is_head || r->bodiless) {
        return true;
    }
    struct buf *out = &c->out.small;
    if (r->chunked) {
        buf_addf(out, "%zx\r\n", piece.len);
    }
    buf_add_slice(out, piece);
    if (r->chunked) {
        buf_add_slice(out, SLICE("\r\n"));
    }
    if (out->len >= HTTP_COPY_MAX) {
        http_conn_flush(c);
    } else {
        loop_defer(c->server->loop, &c->flush); /* small pieces travel together */
    }
    r->wants_drain = !c->closing && http_conn_unsent(c) > HTTP_SLOW_MARK;
    return !r->wants_drain;
}

void http_end(struct http_req *r)
{
    struct http_conn *c = conn_of(r);
    must(c->busy && r->begun);
    if (!c->closing && r->chunked && !r->is_head && !r->bodiless) {
        buf_add_slice(&c->out.small, SLICE("0\r\n\r\n"));
    }
    http_conn_answered(c);
}
