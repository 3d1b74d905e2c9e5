/* One exchange: its libcurl options, its answer, its error in words. */
#include "common/httpc/httpc_internal.h"
#include <strings.h>

#define MAX_BYTES (64 * 1024 * 1024)
#define HEAD_BYTES (256 * 1024)
#define TIMEOUT_MS 60000

static size_t on_body(char *p, size_t size, size_t n, void *data)
{
    struct httpc_run *r = data;
    struct httpc_call *c = r->call;
    size_t len = size * n;
    size_t cap = c->max_bytes ? c->max_bytes : MAX_BYTES;
    if (len > cap - c->answer.len) {
        r->too_large = true;
        return 0; /* ends the transfer */
    }
    buf_add(&c->answer, p, len);
    return len;
}

static size_t on_head(char *p, size_t size, size_t n, void *data)
{
    struct httpc_run *r = data;
    struct buf *head = &r->call->answer_head;
    size_t len = size * n;
    if (slice_starts(slice_make(p, len), SLICE("HTTP/"))) {
        buf_clear(head); /* what came before was an interim answer */
    }
    if (head->len + len > HEAD_BYTES) {
        r->too_large = true;
        return 0;
    }
    buf_add(head, p, len);
    return len;
}

static bool has_header(const struct httpc_call *c, const char *name)
{
    size_t len = strlen(name);
    for (const char *const *h = c->headers; h && *h; h++) {
        if (strncasecmp(*h, name, len) == 0 && (*h)[len] == ':') {
            return true;
        }
    }
    return false;
}

static void add_header(struct httpc_run *r, const char *line)
{
    r->headers = curl_slist_append(r->headers, line);
    must(r->headers);
}

static void set_headers(struct httpc_run *r)
{
    const struct httpc_call *c = r->call;
    for (const char *const *h = c->headers; h && *h; h++) {
        add_header(r, *h);
    }
    add_header(r, "Expect:"); /* bodies are small and servers near: no round trip for a 100 */
    if (!has_header(c, "Content-Type")) {
        add_header(r, "Content-Type:"); /* libcurl would claim a form */
    }
    (void)curl_easy_setopt(r->easy, CURLOPT_HTTPHEADER, r->headers);
}

static void set_method(struct httpc_run *r)
{
    const struct httpc_call *c = r->call;
    if (strcmp(c->method, "HEAD") == 0) {
        (void)curl_easy_setopt(r->easy, CURLOPT_NOBODY, 1L);
        return;
    }
    bool sends = c->body.len > 0 || strcmp(c->method, "POST") == 0 ||
                 strcmp(c->method, "PUT") == 0 || strcmp(c->method, "PATCH") == 0;
    if (sends) {
        (void)curl_easy_setopt(r->easy, CURLOPT_POSTFIELDS, c->body.len ? c->body.p : "");
        (void)curl_easy_setopt(r->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body.len);
    }
    (void)curl_easy_setopt(r->easy, CURLOPT_CUSTOMREQUEST, c->method);
}

static long timeout_of(const struct httpc_call *c)
{
    if (c->timeout.v <= 0) {
        return TIMEOUT_MS;
    }
    return c->timeout.v > INT32_MAX ? 0L : (long)c->timeout.v;
}

struct httpc_run *httpc_run_new(struct httpc *h, struct httpc_call *c)
{
    struct httpc_run *r = xcalloc(1, sizeof(*r));
    r->owner = h;
    r->call = c;
    r->easy = curl_easy_init();
    must(r->easy);
    (void)curl_easy_setopt(r->easy, CURLOPT_PRIVATE, r);
    (void)curl_easy_setopt(r->easy, CURLOPT_URL, c->url);
    (void)curl_easy_setopt(r->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(r->easy, CURLOPT_PROXY, ""); /* no surprise from the environment */
    (void)curl_easy_setopt(r->easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(r->easy, CURLOPT_TIMEOUT_MS, timeout_of(c));
    (void)curl_easy_setopt(r->easy, CURLOPT_ERRORBUFFER, r->reason);
    (void)curl_easy_setopt(r->easy, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(r->easy, CURLOPT_WRITEDATA, r);
    (void)curl_easy_setopt(r->easy, CURLOPT_HEADERFUNCTION, on_head);
    (void)curl_easy_setopt(r->easy, CURLOPT_HEADERDATA, r);
    if (c->unix_socket) {
        (void)curl_easy_setopt(r->easy, CURLOPT_UNIX_SOCKET_PATH, c->unix_socket);
    }
    set_method(r);
    set_headers(r);
    return r;
}

/* The URL as an error may show it: a password or a signed query must not reach a log. */
static struct slice shown_url(const char *url, struct slice *host_on)
{
    const char *scheme_end = strstr(url, "://");
    const char *rest = scheme_end ? scheme_end + 3 : url;
    size_t host_len = strcspn(rest, "/?#");
    const char *at = memrchr(rest, '@', host_len);
    if (at) {
        host_len -= (size_t)(at + 1 - rest);
    }
    const char *host = at ? at + 1 : rest;
    *host_on = slice_make(host, host_len + strcspn(host + host_len, "?#"));
    return slice_make(url, (size_t)(rest - url));
}

static int code_of(const struct httpc_run *r, CURLcode code)
{
    if (r->too_large) {
        return ERR_HTTP_TOO_LARGE;
    }
    switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
        return ERR_TIMEOUT;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return ERR_INVALID;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
        return ERR_HTTP_UNREACHABLE;
    default:
        return ERR_IO;
    }
}

static void run_free_and_tell(struct httpc_run *r)
{
    struct httpc_call *c = r->call;
    r->owner->in_flight--;
    curl_easy_cleanup(r->easy);
    curl_slist_free_all(r->headers);
    free(r);
    c->impl = NULL;
    c->done(c);
}

static void set_error(struct httpc_run *r, int code, const char *why)
{
    struct slice host;
    struct slice scheme = shown_url(r->call->url, &host);
    r->call->rc = err_set(&r->call->err, code, "%s %.*s%.*s: %s", r->call->method,
                          SLICE_FMT(scheme), SLICE_FMT(host), why);
}

void httpc_run_end(struct httpc_run *r, CURLcode code)
{
    long status = 0;
    (void)curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
    r->call->status = (int)status;
    if (code != CURLE_OK) {
        const char *why = r->reason[0] ? r->reason : curl_easy_strerror(code);
        set_error(r, code_of(r, code), r->too_large ? "the answer is too large" : why);
    }
    run_free_and_tell(r);
}

void httpc_run_end_cancelled(struct httpc_run *r)
{
    set_error(r, ERR_CANCELLED, err_code_text(ERR_CANCELLED));
    run_free_and_tell(r);
}
