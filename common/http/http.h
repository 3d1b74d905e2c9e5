/* HTTP/1.1 server on the loop (libuv + llhttp): requests whole in memory up to a cap, answers whole
 * or in pieces. */
#pragma once
#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/loop/loop.h"

struct http_server;
struct http_req;
struct http_header {
    struct slice name, value;
};
struct http_limits {
    size_t head_bytes;    /* request line and headers; 0: 64 KiB */
    size_t body_bytes;    /* 0: 1 MiB */
    unsigned connections; /* 0: 1024; more are answered 503 and closed */
    struct ms idle;       /* keep-alive without a request; 0: 60 s */
    struct ms read;       /* from the first byte of a request to its last; 0: 30 s */
};
struct http_handler {
    void *data;
    /* A whole request has arrived. The handler (or whoever it hands req to) answers exactly once
     * with http_reply or http_begin..http_end; req and its slices live until then. Pipelined
     * requests wait their turn. Loop thread. */
    void (*on_request)(void *data, struct http_req *req);
    /* The body cap for this request, asked after its head; NULL: the limit above. */
    size_t (*body_cap)(void *data, const struct http_req *req);
};
/* Listens on "unix:/path" or "host:port" (numeric host or localhost; port 0 picks one). Several
 * listens per server are fine. ERR_CONF with a sentence that names address and remedy when the port
 * is taken. */
struct http_server *http_server_new(struct loop *l, const struct http_limits *lim,
                                    const struct http_handler *h) MUST_USE;
int http_server_listen(struct http_server *s, const char *address, struct err *e) MUST_USE;
/* For worker loops: s hands each socket it accepts to fn (who owns it from then on) instead of
 * serving it .. */
void http_server_divert(struct http_server *s, void (*fn)(void *data, int fd), void *data);
/* .. and a server on another loop, which need not listen itself, takes it; its own thread calls
 * this. */
void http_server_take_fd(struct http_server *s, int fd);
/* fn runs whenever a connection of s has ended, taken or accepted. */
void http_server_on_end(struct http_server *s, void (*fn)(void *data), void *data);
int http_server_port(const struct http_server *s);      /* of the first TCP listener */
unsigned http_server_open(const struct http_server *s); /* connections now */
/* Stops accepting (what waits in the queue of a server that diverts is handed on first); idle
 * connections close at once, new ones when no request comes within half a second, busy ones after
 * their answer, all by force after `grace`; then done runs. */
void http_server_close(struct http_server *s, struct ms grace, void (*done)(void *data),
                       void *data);
void http_server_free(struct http_server *s); /* after done */

struct slice http_method(const struct http_req *r);
struct slice
http_path(const struct http_req *r); /* raw, without the query; still percent-encoded */
struct slice http_query(const struct http_req *r); /* raw, without '?' */
struct slice http_body(const struct http_req *r);
struct slice http_header_get(const struct http_req *r,
                             const char *name); /* empty if absent; case-insensitive */
bool http_query_get(const struct http_req *r, const char *key, struct arena *a,
                    char **value);            /* decoded; false if absent */
struct arena *http_arena(struct http_req *r); /* dies with the request */
bool http_is_local(const struct http_req *r); /* came over loopback or a unix socket */
/* Called once if the client hangs up (or the server closes by force) before the answer is complete;
 * the answer must still be given (it goes nowhere), and only then req dies. */
void http_on_gone(struct http_req *r, void (*fn)(struct http_req *r, void *data), void *data);

/* This header goes out with the answer, whoever gives it, unless the answer names it itself.
 * Copied; before the answer begins. */
void http_answer_header(struct http_req *r, struct slice name, struct slice value);
/* A whole answer. Adds Content-Length, Date, Connection. Headers are copied. HEAD gets no body. */
void http_reply(struct http_req *r, int status, const struct http_header *headers, size_t n,
                struct slice body);
void http_reply_json(struct http_req *r, int status, struct slice body);
/* Hands a whole body over without copying it; takes `body` (left empty). */
void http_reply_buf(struct http_req *r, int status, const struct http_header *headers, size_t n,
                    struct buf *body);
/* {"code": status, "message": text} of an error; status from the code's class (err_code_http). */
void http_reply_error(struct http_req *r, int code, const char *text);
/* In pieces, chunked: begin, write.., end. http_write returns false when the peer is slow: wait for
 * on_drain. */
void http_begin(struct http_req *r, int status, const struct http_header *headers, size_t n,
                void (*on_drain)(void *data), void *data);
bool http_write(struct http_req *r, struct slice piece);
void http_end(struct http_req *r);

/* The trace id of a W3C traceparent header; false, and trace_id as it was, when it is none. */
bool http_traceparent(struct slice header, uint8_t trace_id[16]);
/* Percent-decodes into the arena; NULL on bad encoding or a NUL byte. */
char *http_decode(struct arena *a, struct slice text) MUST_USE;
/* Splits a path at '/' and decodes each piece; returns the number of pieces, or -1 on bad encoding
 * or more than max. */
int http_split_path(struct arena *a, struct slice path, char **pieces, int max) MUST_USE;
