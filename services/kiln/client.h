/* REST calls for verbs: one at a time, each turned to its end on a loop of its own. */
#pragma once
#include "common/httpc/httpc.h"
#include "common/json/json.h"

struct client;
struct client_answer {
    int status;
    struct buf body; /* as it came */
    struct buf head; /* raw header lines */
    json_t *json;    /* the body, where it is JSON of ordinary numbers; else NULL */
};
struct client_request {
    const char *method; /* "GET" */
    const char *path;   /* "/api/v0/status?x=y", encoded; borrowed */
    const char *header; /* one more "Name: value"; NULL: none */
    const json_t *body; /* NULL: none */
    struct ms timeout;  /* 0: 60 s */
};

/* url: http://host:port, a trailing slash or /api/v0 is taken off. ERR_INVALID when it is no such
 * thing. */
struct client *client_new(const char *url, struct err *e) MUST_USE;
void client_free(struct client *c); /* NULL is fine */
const char *client_url(const struct client *c);
/* 0 with a 2xx answer. Else ERR_HTTP_UNREACHABLE, or the code that stands for the status, with the
 * server's message; *out is filled wherever an answer came. Ended by client_answer_fini. */
int client_call(struct client *c, const struct client_request *q, struct client_answer *out,
                struct err *e) MUST_USE;
void client_answer_fini(struct client_answer *a);
/* A header of the answer; empty if absent. Borrowed from the answer. */
struct slice client_header(const struct client_answer *a, const char *name);
struct ms client_now(struct client *c);
void client_sleep(struct client *c, struct ms span);
/* Percent-encodes one path segment; with keep_slashes a path of several. */
void client_encode(struct buf *out, const char *text, bool keep_slashes);
