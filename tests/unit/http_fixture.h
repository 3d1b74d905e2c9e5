/* A server for tests: answers at once on most paths, holds the requests of /hold until the test
 * answers them. */
#pragma once
#include "http_client.h"

enum { HELD_MAX = 8 };
struct fixture {
    struct loop *loop;
    struct http_server *server;
    struct http_req *held[HELD_MAX];
    int n_held;
    int n_requests;
    int gone;
    int drained;
    bool over;
    struct client c;
};

static inline void on_fixture_request(void *data, struct http_req *r)
{
    struct fixture *f = data;
    f->n_requests++;
    if (slice_starts(http_path(r), SLICE("/hold"))) {
        f->held[f->n_held++] = r;
        return;
    }
    if (slice_is(http_path(r), "/bytes")) {
        uint64_t n = 0;
        ck_assert_int_eq(slice_to_u64(http_query(r), &n), 0);
        struct buf body = {0};
        buf_reserve(&body, n);
        memset(body.p, 'x', n);
        body.len = n;
        http_reply_buf(r, 200, NULL, 0, &body);
        return;
    }
    if (slice_is(http_path(r), "/error")) {
        http_reply_error(r, ERR_NOT_FOUND, "no package \"x\"");
        return;
    }
    struct arena *a = http_arena(r);
    struct http_header h = {SLICE("X-Seen"), http_header_get(r, "x-name")};
    char *text =
        arena_printf(a, "%.*s %.*s ?%.*s [%.*s]", SLICE_FMT(http_method(r)),
                     SLICE_FMT(http_path(r)), SLICE_FMT(http_query(r)), SLICE_FMT(http_body(r)));
    http_reply(r, 200, &h, 1, slice_of(text));
}

static inline size_t fixture_body_cap(void *data, const struct http_req *r)
{
    (void)data;
    return slice_is(http_path(r), "/tiny") ? 10 : 1000000;
}

static inline void fixture_init(struct fixture *f, const struct http_limits *lim)
{
    *f = (struct fixture){.loop = loop_new()};
    struct http_handler h = {f, on_fixture_request, fixture_body_cap};
    f->server = http_server_new(f->loop, lim, &h);
    struct err e;
    ck_assert_int_eq(http_server_listen(f->server, "127.0.0.1:0", &e), 0);
    client_connect(&f->c, http_server_port(f->server));
}

static inline void on_fixture_over(void *data)
{
    ((struct fixture *)data)->over = true;
}

static inline void fixture_fini(struct fixture *f)
{
    client_close(&f->c);
    if (!f->over) {
        http_server_close(f->server, MS(1000), on_fixture_over, f);
    }
    turn_until(f->loop, f->over);
    http_server_free(f->server);
    loop_free(f->loop);
}

static inline void on_fixture_gone(struct http_req *r, void *data)
{
    (void)r;
    ((struct fixture *)data)->gone++;
}

static inline void on_fixture_drain(void *data)
{
    ((struct fixture *)data)->drained++;
}
