#include "services/gateway/query/answer.h"

static void add_limit(struct buf *body, const struct gw_answer *a)
{
    if (a->row_limit == 0) {
        buf_add_slice(body, SLICE(",\"queryRowLimit\":null,\"queryRowLimitSource\":null"));
        return;
    }
    buf_addf(body, ",\"queryRowLimit\":%u,\"queryRowLimitSource\":\"%s\"", a->row_limit,
             a->limit_added ? "server_default" : "query");
}

void gw_add_correlation(struct buf *body, const char *id)
{
    if (id) {
        buf_addf(body, ",\"queryCorrelationId\":\"%s\"", id);
    } else {
        buf_add_slice(body, SLICE(",\"queryCorrelationId\":null"));
    }
}

void gw_tag_statement(struct wh_query *q, const char *tag, char id[GW_CORRELATION_CAP])
{
    q->tag = tag;
    if (tag) {
        uint8_t bytes[16];
        random_bytes(bytes, sizeof(bytes));
        hex_encode(bytes, sizeof(bytes), id);
        q->correlation = id;
    }
}

/* Order of spec 7.4, then the receipt. */
static void finish_body(struct http_req *r, const struct gw_answer *a, struct buf *body)
{
    buf_add_slice(body, SLICE("\",\"resource\":"));
    jsonw_str(body, http_path(r));
    add_limit(body, a);
    gw_add_correlation(body, a->correlation);
    buf_addf(body,
             ",\"servedFrom\":null,\"executionTimeMs\":%lld,"
             "\"queryCostBytes\":null,\"decision\":",
             (long long)a->took_ms);
    decide_json(a->receipt, body);
    buf_add_char(body, '}');
}

void gw_answer_send(struct http_req *r, const struct gw_answer *a, struct buf *body)
{
    char epoch[24];
    struct http_header h[6] = {
        {SLICE("Content-Type"), SLICE("application/json; charset=utf-8")},
        {SLICE("Kiln-Served"), slice_of(decide_served_name(a->receipt->served))},
        {SLICE("Kiln-Epoch"), SLICE_NONE},
    };
    size_t n = 3;
    snprintf(epoch, sizeof(epoch), "%llu", (unsigned long long)a->receipt->epoch);
    h[2].value = slice_of(epoch);
    if (a->receipt->reason) {
        h[n++] = (struct http_header){SLICE("Kiln-Reason"), slice_of(a->receipt->reason)};
    }
    if (a->receipt->generation) {
        h[n++] = (struct http_header){SLICE("Kiln-Generation"), slice_of(a->receipt->generation)};
    }
    if (a->is_deprecated) {
        h[n++] = (struct http_header){SLICE("Deprecation"), SLICE("true")};
    }
    finish_body(r, a, body);
    http_reply_buf(r, 200, h, n, body);
}
