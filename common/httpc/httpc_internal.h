/* Inside of httpc: one exchange, and the multi handle it runs on. Not for anyone else. */
#pragma once
#include "common/httpc/httpc.h"
#include <curl/curl.h>

struct httpc {
    struct loop *loop;
    CURLM *multi;
    struct loop_timer timer; /* libcurl's one timer */
    size_t in_flight;
};

struct httpc_run {
    struct httpc *owner;
    struct httpc_call *call;
    CURL *easy;
    struct curl_slist *headers;
    struct loop_task cancelled; /* brings the end of a cancelled call */
    bool too_large;
    char reason[CURL_ERROR_SIZE];
};

/* Makes an easy handle from what the caller has set. */
struct httpc_run *httpc_run_new(struct httpc *h, struct httpc_call *c);
/* Writes rc, err and status into the call, frees the run and calls done. */
void httpc_run_end(struct httpc_run *r, CURLcode code);
void httpc_run_end_cancelled(struct httpc_run *r);
