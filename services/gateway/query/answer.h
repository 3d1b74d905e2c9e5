/* The answer of a query: what follows the result in its body, and its headers. */
#pragma once
#include "services/gateway/core/decide.h"
#include "services/gateway/query/query.h"

struct gw_answer {
    const struct decide_receipt *receipt;
    unsigned row_limit; /* 0: none */
    bool limit_added;   /* by the server's default */
    int64_t took_ms;
    const char *correlation; /* NULL: the statement was not tagged */
    bool is_deprecated;      /* the request used what goes away */
};
void gw_add_correlation(struct buf *body, const char *id); /* the member; NULL: null */
/* `body` holds {"result":".. without its closing quote; taken. */
void gw_answer_send(struct http_req *r, const struct gw_answer *a, struct buf *body);
