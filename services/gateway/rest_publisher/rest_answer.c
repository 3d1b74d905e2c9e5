#include "common/log/log.h"
#include "services/gateway/rest_publisher/rest.h"

void rest_epoch_header(struct rest_call *c)
{
    const struct gw_package *p =
        c->package ? gw_shelf_find(c->w, c->environment, c->package) : NULL;
    if (p) {
        char text[24];
        snprintf(text, sizeof(text), "%llu", (unsigned long long)p->epoch);
        http_answer_header(c->r, SLICE("Kiln-Epoch"), slice_of(text));
    }
}

const uint8_t *rest_trace(struct rest_call *c)
{
    if (id16_is_zero(c->trace) &&
        !http_traceparent(http_header_get(c->r, "traceparent"), c->trace)) {
        random_bytes(c->trace, sizeof(c->trace));
    }
    return c->trace;
}

/* The end of every answer of this folder: headers that all have, and what the request held. */
static void prepare(struct rest_call *c, int status)
{
    json_decref(c->body);
    c->body = NULL;
    rest_epoch_header(c);
    if (!slice_is(http_method(c->r), "GET") && !slice_is(http_method(c->r), "HEAD")) {
        log_info("rest.answered", "method=%.*s path=%s status=%d trace=%s",
                 SLICE_FMT(http_method(c->r)), log_q(arena_slice(c->a, http_path(c->r))), status,
                 log_id(rest_trace(c)));
    }
}

void rest_reply(struct rest_call *c, int status, struct slice json)
{
    prepare(c, status);
    http_reply_json(c->r, status, json);
}

void rest_reply_json(struct rest_call *c, int status, json_t *v)
{
    static const struct http_header json_type = {SLICE("Content-Type"),
                                                 SLICE("application/json; charset=utf-8")};
    auto_buf struct buf text = {0};
    json_print(v, &text);
    json_decref(v);
    prepare(c, status);
    http_reply_buf(c->r, status, &json_type, 1, &text);
}

void rest_reply_empty(struct rest_call *c, int status)
{
    prepare(c, status);
    http_reply(c->r, status, NULL, 0, SLICE_NONE);
}

void rest_fail(struct rest_call *c, int code, const char *fmt, ...)
{
    struct err e;
    va_list ap;
    va_start(ap, fmt);
    err_vset(&e, code, fmt, ap);
    va_end(ap);
    rest_fail_err(c, &e);
}

void rest_fail_err(struct rest_call *c, const struct err *e)
{
    prepare(c, err_code_http(e->code));
    http_reply_error(c->r, e->code, err_text(e));
}

bool rest_take_body(struct rest_call *c, bool may_be_empty)
{
    struct err e = {0};
    c->body = rest_body_parse(http_body(c->r), may_be_empty, &e);
    if (!c->body) {
        rest_fail_err(c, &e);
    }
    return c->body != NULL;
}

char *rest_query(struct rest_call *c, const char *key)
{
    char *value = NULL;
    return http_query_get(c->r, key, c->a, &value) ? value : NULL;
}

bool rest_query_is(struct rest_call *c, const char *key, const char *value)
{
    const char *given = rest_query(c, key);
    return given && strcmp(given, value) == 0;
}
