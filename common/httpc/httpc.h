/* HTTP client on the loop (libcurl multi): libcurl stays inside of this folder. */
#pragma once
#include "common/base/buf.h"
#include "common/loop/loop.h"

struct httpc;
struct httpc_call {
    /* set by the caller; borrowed until done */
    const char *method;         /* "GET" */
    const char *url;            /* http://host:port/.. */
    const char *unix_socket;    /* connect here instead; NULL: TCP */
    const char *const *headers; /* "Name: value", NULL-terminated; NULL: none */
    struct slice body;
    struct ms timeout;                  /* of the whole exchange; 0: 60 s */
    size_t max_bytes;                   /* answer cap; 0: 64 MiB */
    void (*done)(struct httpc_call *c); /* on the loop, exactly once, never inside httpc_start */
    void *data;
    /* set when done */
    int rc;         /* 0: an answer of any status came */
    struct err err; /* names method and URL, without user, password and query */
    int status;
    struct buf answer;      /* body; the caller buf_fini()s */
    struct buf answer_head; /* raw header lines */
    void *impl;
};
struct httpc *httpc_new(struct loop *l) MUST_USE;
void httpc_free(struct httpc *h); /* no call may be in flight */
void httpc_start(struct httpc *h, struct httpc_call *c);
void httpc_cancel(struct httpc_call *c); /* done still comes, with ERR_CANCELLED */
/* A header's value from answer_head; empty if absent. */
struct slice httpc_header(const struct httpc_call *c, const char *name);
