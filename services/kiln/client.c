#include "services/kiln/client.h"

#define API "/api/v0"

struct client {
    struct loop *loop;
    struct httpc *http;
    char *url; /* without a trailing slash */
    bool done; /* the call in flight has ended */
};

static char *trimmed_url(const char *url)
{
    struct slice s = slice_trim(slice_of(url));
    while (s.len && s.p[s.len - 1] == '/') {
        s.len--;
    }
    size_t n = sizeof(API) - 1;
    if (s.len > n && memcmp(s.p + s.len - n, API, n) == 0) {
        s.len -= n;
    }
    return xstrndup(s.p, s.len);
}

struct client *client_new(const char *url, struct err *e)
{
    struct slice text = slice_trim(slice_of(url));
    bool is_http = slice_starts(text, SLICE("http://")) || slice_starts(text, SLICE("https://"));
    if (!is_http || text.len < sizeof("http://x") - 1 || memchr(text.p, '?', text.len)) {
        (void)err_set(e, ERR_INVALID, "'%s' is no URL of a gateway; write http://host:port", url);
        return NULL;
    }
    struct client *c = xcalloc(1, sizeof(*c));
    c->loop = loop_new();
    c->http = httpc_new(c->loop);
    c->url = trimmed_url(url);
    return c;
}

void client_free(struct client *c)
{
    if (!c) {
        return;
    }
    httpc_free(c->http);
    loop_free(c->loop);
    free(c->url);
    free(c);
}

const char *client_url(const struct client *c)
{
    return c->url;
}

static void on_done(struct httpc_call *call)
{
    struct client *c = call->data;
    c->done = true;
}

static int code_of_status(int status)
{
    static const struct {
        int status, code;
    } codes[] = {{400, ERR_INVALID},     {401, ERR_TOKEN},      {403, ERR_FROZEN},
                 {404, ERR_NOT_FOUND},   {409, ERR_CONFLICT},   {413, ERR_QUERY_BYTES},
                 {422, ERR_REFUSED},     {424, ERR_PACKAGE},    {429, ERR_LIMIT},
                 {501, ERR_UNSUPPORTED}, {502, ERR_WH_CONNECT}, {503, ERR_HTTP_UNREACHABLE},
                 {504, ERR_TIMEOUT}};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        if (codes[i].status == status) {
            return codes[i].code;
        }
    }
    return ERR_INTERNAL;
}

static int judge(const struct client *c, const struct client_request *q,
                 const struct client_answer *a, struct err *e)
{
    if (a->status >= 200 && a->status < 300) {
        return 0;
    }
    const char *message = json_str(a->json, "message", json_str(a->json, "error", NULL));
    int code = code_of_status(a->status);
    if (message && message[0]) {
        return err_set(e, code, "%s", message);
    }
    return err_set(e, code, "%s answered status %d to %s %s and did not say why", c->url, a->status,
                   q->method, q->path);
}

static int unreachable(const struct client *c, const struct httpc_call *call, struct err *e)
{
    const char *why = err_text(&call->err);
    const char *colon = strstr(why, ": "); /* behind method and URL */
    return err_set(e, ERR_HTTP_UNREACHABLE,
                   "no answer from %s (%s); start the services with kiln up, or name another "
                   "gateway with --url or KILN_URL",
                   c->url, colon ? colon + 2 : why);
}

int client_call(struct client *c, const struct client_request *q, struct client_answer *out,
                struct err *e)
{
    *out = (struct client_answer){0};
    auto_free char *url = xasprintf("%s%s", c->url, q->path);
    auto_free char *body = q->body ? json_text(q->body) : NULL;
    const char *headers[4] = {"Accept: application/json"};
    size_t n = 1;
    if (body) {
        headers[n++] = "Content-Type: application/json";
    }
    if (q->header) {
        headers[n++] = q->header;
    }
    struct httpc_call call = {.method = q->method,
                              .url = url,
                              .headers = headers,
                              .body = slice_of(body),
                              .timeout = q->timeout,
                              .done = on_done,
                              .data = c};
    c->done = false;
    httpc_start(c->http, &call);
    while (!c->done) {
        (void)loop_turn(c->loop, MS(1000));
    }
    if (call.rc) {
        buf_fini(&call.answer);
        buf_fini(&call.answer_head);
        return unreachable(c, &call, e);
    }
    out->status = call.status;
    out->body = call.answer;
    out->head = call.answer_head;
    struct err ignored = {0};
    out->json = out->body.len ? json_parse(buf_slice(&out->body), &ignored) : NULL;
    return judge(c, q, out, e);
}

void client_answer_fini(struct client_answer *a)
{
    json_decref(a->json);
    buf_fini(&a->body);
    buf_fini(&a->head);
    *a = (struct client_answer){0};
}

struct slice client_header(const struct client_answer *a, const char *name)
{
    struct httpc_call call = {.answer_head = a->head};
    return httpc_header(&call, name);
}

struct ms client_now(struct client *c)
{
    return loop_now(c->loop);
}

static void on_woken(struct loop_timer *t)
{
    *(bool *)t->data = true;
}

void client_sleep(struct client *c, struct ms span)
{
    bool woken = false;
    struct loop_timer t;
    loop_timer_init(&t, c->loop, on_woken, &woken);
    loop_timer_start(&t, span);
    while (!woken) {
        (void)loop_turn(c->loop, MS(1000));
    }
}

void client_encode(struct buf *out, const char *text, bool keep_slashes)
{
    for (const char *p = text; *p; p++) {
        unsigned char c = (unsigned char)*p;
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || strchr("-_.~", c) || (keep_slashes && c == '/');
        if (is_plain) {
            buf_add_char(out, (char)c);
        } else {
            buf_addf(out, "%%%02X", c);
        }
    }
}
