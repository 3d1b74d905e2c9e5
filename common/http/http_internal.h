/* Inside of http: what server, connection, writing and answering share. Not for anyone else. */
#pragma once
#include "common/http/http.h"
#include "common/http/http_parse.h"
#include <time.h>
#include <uv.h>

#define HTTP_READ_CAP                                                                              \
    (64 * 1024) /* one read; also what is read ahead while a request is worked on */
#define HTTP_COPY_MAX (16 * 1024)   /* bodies up to this are copied behind their head */
#define HTTP_SLOW_MARK (256 * 1024) /* more unsent bytes than this: http_write says stop */
#define HTTP_EXTRA_MAX 8            /* headers that http_answer_header takes per request */
#define HTTP_FRESH_MS 500           /* a new connection, for its request, when the server closes */
#define HTTP_LINGER_MS                                                                             \
    2000 /* how long we read on after refusing a request, so that the answer arrives */

union http_stream {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
};

struct http_listener {
    struct http_server *server;
    struct list link;
    union http_stream s;
    bool is_unix;
};

/* What goes out together: small pieces in order, then at most one big body that we own. */
struct http_out {
    struct buf small;
    struct buf big;
};

/* A connection carries one request at a time, so the request is a part of it. */
struct http_req {
    struct arena arena;
    struct slice path, query;
    struct http_header extra[HTTP_EXTRA_MAX]; /* http_answer_header */
    unsigned n_extra;
    bool is_head; /* HEAD: no body goes out */
    bool begun;   /* http_begin was called */
    bool chunked;
    bool bodiless; /* 204 and 304 */
    void (*on_drain)(void *data);
    void *drain_data;
    bool wants_drain; /* http_write said false */
    void (*on_gone)(struct http_req *r, void *data);
    void *gone_data;
};

struct http_conn {
    struct http_server *server;
    struct list link; /* in server->conns */
    union http_stream s;
    struct http_parse parse;
    struct http_req req;
    struct buf pending;       /* bytes read ahead, of later requests */
    struct http_out out, fly; /* gathered; handed to uv_write */
    uv_write_t write;
    uv_shutdown_t shutdown;
    struct loop_timer timer; /* lazy: rings at or before `deadline` and looks */
    struct ms deadline;
    size_t unsent_before;    /* at the last ring, to see progress */
    struct loop_task resume; /* serve what is pending */
    struct loop_task flush;  /* send what is gathered */
    struct loop_task gone;   /* tell a late listener that the client went */
    bool is_local;
    bool asked;   /* the first byte of a request has come */
    bool busy;    /* a request is with the handler */
    bool in_feed; /* conn_feed is on the stack: it goes on by itself */
    bool reading; /* some bytes of a request have come */
    bool flying;  /* a uv_write is under way */
    bool paused;  /* not reading: too much is pending */
    bool last;    /* close after this answer */
    bool refused; /* the request was not read to its end: linger before closing */
    bool lingering;
    bool closing;   /* uv_close was called */
    bool closed;    /* its callback has come */
    bool notifying; /* on_gone is on the stack */
};

struct http_server {
    struct loop *loop;
    struct http_limits lim;
    struct http_handler handler;
    struct list conns, listeners;
    unsigned open;      /* connections not yet freed */
    unsigned listening; /* listeners not yet closed */
    int port;
    void (*divert)(void *data, int fd); /* http_server_divert */
    void *divert_data;
    void (*on_end)(void *data); /* http_server_on_end */
    void *end_data;
    bool draining;
    struct loop_timer grace;
    struct loop_task over;
    void (*done)(void *data);
    void *done_data;
    time_t date_at; /* second that `date` shows */
    char date[32];
    char rbuf[HTTP_READ_CAP]; /* every read lands here; only leftovers are copied */
};

/* http_listen.c */
void http_listener_close(struct http_listener *l);

/* http_conn.c */
void http_conn_accept(struct http_server *s, struct http_listener *from);
void http_conn_close(struct http_conn *c);    /* by force; idempotent */
void http_conn_answered(struct http_conn *c); /* the whole answer has been gathered */
void http_conn_sent(struct http_conn *c);     /* nothing is left to send */
void http_conn_set_deadline(struct http_conn *c, struct ms span);

/* http_write.c */
void http_conn_flush(struct http_conn *c);
size_t http_conn_unsent(const struct http_conn *c);

/* http_reply.c: an answer of the server itself; the connection closes after it */
void http_refuse(struct http_conn *c, int status, const char *text);

/* http_server.c */
void http_server_maybe_over(struct http_server *s);
const char *http_server_date(struct http_server *s);

/* http_text.c */
const char *http_status_text(int status);
bool http_query_find(struct slice query, const char *key, struct arena *a, char **value);
