/* Inside of http: bytes to one whole request, over llhttp. Pure: no socket, no clock. Also the
 * entry of the fuzz target. */
#pragma once
#include "common/base/buf.h"
#include <llhttp.h>

enum http_parse_state {
    HTTP_PARSE_IDLE, /* no byte of a request yet */
    HTTP_PARSE_HEAD,
    HTTP_PARSE_BODY,
    HTTP_PARSE_WHOLE, /* stays until http_parse_reset */
    HTTP_PARSE_FAILED /* for good: status and text say why */
};
/* Offsets into `text`, which may move while it grows. */
struct http_field {
    uint32_t name_at, name_len, value_at, value_len;
};
struct http_parse {
    llhttp_t parser;
    enum http_parse_state state;
    struct buf text; /* the URL, then names and values */
    struct http_field *fields;
    size_t n_fields, fields_cap;
    size_t url_len;
    struct buf body;
    size_t head_limit, body_limit;
    size_t head_raw;  /* bytes of the head as they came, blanks included */
    bool in_value;    /* the last field has its name */
    bool expects_100; /* the client waits for 100 Continue; cleared by who sends it */
    bool keep_alive;  /* WHOLE: the connection may carry another request */
    bool is_http10;
    int fail_status;       /* 400, 413, 417, 431 */
    const char *fail_text; /* static */
    /* The body cap of this request, asked after its head; NULL: body_limit. */
    size_t (*body_cap)(struct http_parse *p, void *data);
    void *data;
};

void http_parse_init(struct http_parse *p, size_t head_limit, size_t body_limit);
void http_parse_fini(struct http_parse *p);
/* Takes bytes up to the end of one request; returns how many. Look at state. Takes nothing when
 * WHOLE or FAILED. */
size_t http_parse_feed(struct http_parse *p, const char *bytes, size_t len);
/* Forgets the request that is WHOLE and makes ready for the next; gives back memory of uncommon
 * size. */
void http_parse_reset(struct http_parse *p);

struct slice http_parse_method(const struct http_parse *p);
struct slice http_parse_url(const struct http_parse *p);
struct slice http_parse_header(const struct http_parse *p, const char *name); /* empty if absent */
/* Path and query of a request target in origin or absolute form. */
void http_parse_target(struct slice url, struct slice *path, struct slice *query);
