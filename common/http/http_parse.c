#include "common/http/http_parse.h"

#define FIELDS_MAX 200       /* headers of one request */
#define FIELD_COST 4         /* ": " and line end, counted against the head's limit */
#define KEEP_CAP (64 * 1024) /* a bigger buffer is not kept for the next request */
#define RESERVE_MAX                                                                                \
    (1 << 20) /* a Content-Length is a claim: memory for more comes as bytes come                  \
               */

static struct http_parse *parse_of(llhttp_t *parser)
{
    return parser->data;
}

static int fail(struct http_parse *p, int status, const char *text)
{
    p->state = HTTP_PARSE_FAILED;
    p->fail_status = status;
    p->fail_text = text;
    return -1;
}

static int fail_head(struct http_parse *p)
{
    return fail(p, 431, "the request head is too large");
}

static int on_begin(llhttp_t *parser)
{
    parse_of(parser)->state = HTTP_PARSE_HEAD;
    return 0;
}

static int add_text(struct http_parse *p, const char *at, size_t len)
{
    if (p->text.len + len + p->n_fields * FIELD_COST > p->head_limit) {
        return fail_head(p);
    }
    buf_add(&p->text, at, len);
    return 0;
}

static int on_url(llhttp_t *parser, const char *at, size_t len)
{
    struct http_parse *p = parse_of(parser);
    p->url_len += len;
    return add_text(p, at, len);
}

static struct http_field *new_field(struct http_parse *p)
{
    if (p->n_fields == p->fields_cap) {
        p->fields_cap = p->fields_cap ? p->fields_cap * 2 : 16;
        p->fields = xrealloc(p->fields, p->fields_cap * sizeof(*p->fields));
    }
    struct http_field *f = &p->fields[p->n_fields++];
    *f = (struct http_field){.name_at = (uint32_t)p->text.len};
    return f;
}

static int on_name(llhttp_t *parser, const char *at, size_t len)
{
    struct http_parse *p = parse_of(parser);
    if (p->state == HTTP_PARSE_BODY) { /* a trailer: counted, not kept */
        p->head_raw += len;
        return p->head_raw > p->head_limit ? fail_head(p) : 0;
    }
    if (p->in_value || p->n_fields == 0) {
        if (p->n_fields == FIELDS_MAX) {
            return fail_head(p);
        }
        (void)new_field(p);
        p->in_value = false;
    }
    p->fields[p->n_fields - 1].name_len += (uint32_t)len;
    return add_text(p, at, len);
}

static int on_value(llhttp_t *parser, const char *at, size_t len)
{
    struct http_parse *p = parse_of(parser);
    if (p->state == HTTP_PARSE_BODY) {
        p->head_raw += len;
        return p->head_raw > p->head_limit ? fail_head(p) : 0;
    }
    struct http_field *f = &p->fields[p->n_fields - 1];
    if (!p->in_value) {
        p->in_value = true;
        f->value_at = (uint32_t)p->text.len;
    }
    f->value_len += (uint32_t)len;
    return add_text(p, at, len);
}

/* An empty value gives no piece at all. */
static int on_value_end(llhttp_t *parser)
{
    struct http_parse *p = parse_of(parser);
    if (p->state == HTTP_PARSE_HEAD) {
        p->in_value = true;
    }
    return 0;
}

static int on_extension(llhttp_t *parser, const char *at, size_t len)
{
    (void)at;
    struct http_parse *p = parse_of(parser);
    p->head_raw += len;
    return p->head_raw > p->head_limit ? fail_head(p) : 0;
}

static size_t count_header(const struct http_parse *p, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_fields; i++) {
        const struct http_field *f = &p->fields[i];
        n += slice_ieq(slice_make(p->text.p + f->name_at, f->name_len), slice_of(name));
    }
    return n;
}

static int check_expect(struct http_parse *p, bool has_body)
{
    struct slice expect = http_parse_header(p, "Expect");
    if (expect.len == 0) {
        return 0;
    }
    if (!slice_ieq(expect, SLICE("100-continue"))) {
        return fail(p, 417, "the only expectation known here is 100-continue");
    }
    p->expects_100 = has_body && !p->is_http10;
    return 0;
}

static int on_head_end(llhttp_t *parser)
{
    struct http_parse *p = parse_of(parser);
    parser->upgrade = 0; /* offers of another protocol are not taken up */
    p->is_http10 = parser->http_major == 1 && parser->http_minor == 0;
    if (parser->http_major != 1) {
        return fail(p, 400, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    }
    size_t hosts = count_header(p, "Host");
    if (hosts > 1 || (hosts == 0 && !p->is_http10)) {
        return fail(p, 400, "the request needs exactly one Host header");
    }
    p->state = HTTP_PARSE_BODY;
    if (p->body_cap) {
        p->body_limit = p->body_cap(p, p->data);
    }
    bool has_length = parser->flags & F_CONTENT_LENGTH;
    bool is_chunked = parser->flags & F_CHUNKED;
    if (has_length && parser->content_length > p->body_limit) {
        return fail(p, 413, "the request body is too large");
    }
    if (has_length) {
        size_t want = (size_t)parser->content_length;
        buf_reserve(&p->body, want < RESERVE_MAX ? want : RESERVE_MAX);
    }
    return check_expect(p, is_chunked || (has_length && parser->content_length > 0));
}

static int on_body(llhttp_t *parser, const char *at, size_t len)
{
    struct http_parse *p = parse_of(parser);
    p->expects_100 = false; /* it did not wait */
    if (len > p->body_limit - p->body.len) {
        return fail(p, 413, "the request body is too large");
    }
    buf_add(&p->body, at, len);
    return 0;
}

static int on_end(llhttp_t *parser)
{
    struct http_parse *p = parse_of(parser);
    p->keep_alive = llhttp_should_keep_alive(parser);
    p->state = HTTP_PARSE_WHOLE;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_message_begin = on_begin,
    .on_url = on_url,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_header_value_complete = on_value_end,
    .on_headers_complete = on_head_end,
    .on_body = on_body,
    .on_chunk_extension_name = on_extension,
    .on_chunk_extension_value = on_extension,
    .on_message_complete = on_end,
};

void http_parse_init(struct http_parse *p, size_t head_limit, size_t body_limit)
{
    *p = (struct http_parse){.head_limit = head_limit, .body_limit = body_limit};
    llhttp_init(&p->parser, HTTP_REQUEST, &settings);
    p->parser.data = p;
}

void http_parse_fini(struct http_parse *p)
{
    buf_fini(&p->text);
    buf_fini(&p->body);
    free(p->fields);
    p->fields = NULL;
}

size_t http_parse_feed(struct http_parse *p, const char *bytes, size_t len)
{
    if (p->state == HTTP_PARSE_WHOLE || p->state == HTTP_PARSE_FAILED || len == 0) {
        return 0;
    }
    bool was_in_head = p->state != HTTP_PARSE_BODY;
    llhttp_errno_t rc = llhttp_execute(&p->parser, bytes, len);
    if (p->state == HTTP_PARSE_FAILED) {
        return len;
    }
    if (rc == HPE_PAUSED && p->state == HTTP_PARSE_WHOLE) {
        return (size_t)(llhttp_get_error_pos(&p->parser) - bytes);
    }
    if (rc != HPE_OK) {
        const char *reason = llhttp_get_error_reason(&p->parser);
        (void)fail(p, 400, reason && reason[0] ? reason : "this is not HTTP");
        return len;
    }
    if (was_in_head && p->state != HTTP_PARSE_BODY) {
        p->head_raw += len;
        if (p->head_raw > p->head_limit) {
            (void)fail_head(p);
        }
    }
    return len;
}

static void trim(struct buf *b)
{
    if (b->cap > KEEP_CAP) {
        buf_fini(b);
    } else {
        buf_clear(b);
    }
}

void http_parse_reset(struct http_parse *p)
{
    must(p->state == HTTP_PARSE_WHOLE);
    trim(&p->text);
    trim(&p->body);
    p->n_fields = 0;
    p->url_len = 0;
    p->head_raw = 0;
    p->in_value = false;
    p->expects_100 = false;
    p->state = HTTP_PARSE_IDLE;
    llhttp_resume(&p->parser);
}

struct slice http_parse_method(const struct http_parse *p)
{
    return slice_of(llhttp_method_name((llhttp_method_t)p->parser.method));
}

struct slice http_parse_url(const struct http_parse *p)
{
    return slice_make(p->text.p, p->url_len);
}

struct slice http_parse_header(const struct http_parse *p, const char *name)
{
    struct slice wanted = slice_of(name);
    for (size_t i = 0; i < p->n_fields; i++) {
        const struct http_field *f = &p->fields[i];
        if (slice_ieq(slice_make(p->text.p + f->name_at, f->name_len), wanted)) {
            return slice_trim(slice_make(p->text.p + f->value_at, f->value_len));
        }
    }
    return SLICE_NONE;
}

void http_parse_target(struct slice url, struct slice *path, struct slice *query)
{
    if (slice_starts(url, SLICE("http://")) || slice_starts(url, SLICE("https://"))) {
        const char *host = memchr(url.p, ':', url.len);
        size_t skip = (size_t)(host - url.p) + 3;
        const char *slash = memchr(url.p + skip, '/', url.len - skip);
        url = slash ? slice_make(slash, url.len - (size_t)(slash - url.p)) : SLICE("/");
    }
    const char *mark = url.len ? memchr(url.p, '?', url.len) : NULL;
    if (!mark) {
        *path = url;
        *query = SLICE_NONE;
        return;
    }
    size_t at = (size_t)(mark - url.p);
    *path = slice_make(url.p, at);
    *query = slice_make(mark + 1, url.len - at - 1);
}
