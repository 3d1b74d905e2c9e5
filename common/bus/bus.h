/* The bus: idempotent calls over REQ/REP contexts, hints over PUB/SUB (protocol.md 9). Two
 * transports: nng and the simulation. */
#pragma once
#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/crypto.h"
#include "common/bus/kinds.h"
#include "common/loop/loop.h"
#include <protobuf-c/protobuf-c.h>

struct bus;
struct bus_identity {
    struct uuid installation; /* all zero: not known yet; then nothing is refused by it and it is
                                 learned from the first answer */
    struct uuid boot;         /* of this process */
    const char *instance;     /* configured name, borrowed for the bus's life */
    struct slice key; /* KILN_BUS_KEY bytes; empty: frames carry no mac and none is asked for */
};
/* One bus end per process. Nothing is opened yet. */
struct bus *bus_new(struct loop *l, const struct bus_identity *me) MUST_USE;
void bus_set_installation(struct bus *b, const struct uuid *installation);
const struct uuid *bus_installation(const struct bus *b);
/* Closes sockets and fails what is in flight with ERR_SHUTDOWN; done runs on the loop when all
 * callbacks are over. */
void bus_close(struct bus *b, void (*done)(void *data), void *data);
void bus_free(struct bus *b); /* after done */

/* ---- calling ---- */
/* Where calls go: "ipc:///path" or "tcp://host:port"; several addresses are tried in turn on
 * ERR_NOT_LEADER and connection loss. */
int bus_dial(struct bus *b, const char *const *urls, size_t n, struct err *e) MUST_USE;
struct bus_call {
    /* set by the caller */
    enum bus_kind kind;
    uint8_t request_id[16]; /* all zero: bus_call_start makes a random one; the same id on every
                               retry */
    uint8_t trace_id[16]; /* of the request, hook or run that this call belongs to; all zero: of its
                             own */
    const ProtobufCMessage *request; /* packed inside bus_call_start; NULL: empty payload */
    struct ms timeout;               /* whole call, retries included; 0: the kind's default */
    struct ms unconnected; /* ends earlier when no address is connected for so long; 0: it waits */
    void (*done)(struct bus_call *c); /* on the loop, exactly once, never inside bus_call_start */
    void *data;
    /* set when done */
    int rc;
    struct err err; /* the server's sentence, or ours */
    uint32_t retry_after_ms;
    struct slice reply; /* packed reply message; valid inside done only */
    void *impl;
};
/* Retries lost messages and transient errors (same request id, 100 ms doubling to 2 s) until the
 * timeout. */
int bus_call_start(struct bus *b, struct bus_call *c) MUST_USE;
void bus_call_cancel(struct bus_call *c); /* done still comes, with ERR_CANCELLED */
/* Unpacks c->reply; everything lives in the arena. NULL: ERR_BUS_FRAME in e. */
void *bus_unpack(const ProtobufCMessageDescriptor *d, struct arena *a, struct slice packed,
                 struct err *e) MUST_USE;
/* An allocator view of an arena for protobuf-c. */
ProtobufCAllocator bus_arena_allocator(struct arena *a);

/* protobuf-c declares its strings as char * and only reads them when packing: a text as such a
 * member, "" for NULL. */
static inline char *bus_str(const char *text)
{
    union {
        const char *in;
        char *out;
    } u = {text ? text : ""};
    return u.out;
}

/* ---- serving ---- */
struct bus_request;
struct bus_answer { /* as a handler gave it; borrowed from the handler */
    int code;       /* 0: no error */
    const char *text;
    uint32_t retry_after_ms;
    struct slice packed; /* without an error */
};
struct bus_request {
    enum bus_kind kind;
    uint8_t request_id[16], trace_id[16];
    const char *instance; /* the caller's configured name */
    struct uuid boot;     /* the caller's boot */
    struct ms deadline;   /* on our clock: when the caller gives up */
    struct slice payload; /* packed request; lives until the reply */
    struct arena arena;   /* dies with the reply */
    void *data;           /* the handler's */
    /* NULL, or who takes the answer that is given, in place of the caller, once: whatever is given
     * after that goes to the caller. */
    void (*on_answer)(struct bus_request *r, const struct bus_answer *a);
    void *impl;
};
/* Called on the loop for each request; answered exactly once, now or later, by one of the two
 * below. A repeat (same boot, request id and kind) of a request that is still held does not come
 * here again, its answer goes to the newest copy; after the answer it does. Answering after
 * bus_close only gives the request back; bus_free frees what is still held then. */
typedef void (*bus_serve_fn)(void *data, struct bus_request *r);
/* Listens for calls. `held` = most calls that may be held at once (stack.md 15: builders + 32 at
 * least). A unix path gets mode 0600. */
int bus_serve(struct bus *b, const char *url, unsigned held, bus_serve_fn fn, void *data,
              struct err *e) MUST_USE;
void bus_reply(struct bus_request *r,
               const ProtobufCMessage *message); /* NULL: empty payload. r is dead after it */
void bus_reply_packed(struct bus_request *r, struct slice packed);
void bus_reply_error(struct bus_request *r, int code, const char *text, uint32_t retry_after_ms);

/* ---- hints ---- */
int bus_publish_on(struct bus *b, const char *url,
                   struct err *e) MUST_USE; /* the planner's PUB listener */
void bus_publish(struct bus *b, const char topic[4],
                 const ProtobufCMessage *m); /* never blocks; may be lost */
typedef void (*bus_hint_fn)(void *data, const char topic[4], struct slice packed);
int bus_subscribe(struct bus *b, const char *url, bus_hint_fn fn, void *data,
                  struct err *e) MUST_USE; /* all topics */
