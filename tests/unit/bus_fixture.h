/* An end of the bus over a transport that only writes down what it was asked: every frame is in the
 * test's hand. */
#pragma once
#include "common/bus/bus_envelope.h"
#include "common/bus/bus_transport.h"
#include <check.h>

enum { SENT_MOST = 64 };
struct sent {
    struct bus_attempt *attempt; /* NULL: cancelled or answered */
    size_t address;
    struct ms at;
    struct buf frame;
};
struct fake {
    struct sim_time time;
    struct bus *bus;
    struct sent sent[SENT_MOST];
    int n_sent, n_cancelled, n_abandoned, n_replies;
    struct bus_server *server;
    struct buf reply; /* the last */
    void *reply_seat;
};
void fake_init(struct fake *f);
void fake_dialled(struct fake *f); /* to two addresses, connected to the first */
void fake_fini(struct fake *f);
struct bus_frame frame_of(struct buf *b, struct arena *a);
/* Answers the i-th frame that was sent with what `change` made of a good answer. */
void answer_sent(struct fake *f, int i, void (*change)(struct bus_frame *));

/* ---- calling ---- */
struct ask {
    struct bus_call call;
    int n_done;
    char reply[16];
};
void on_done(struct bus_call *c); /* of a struct ask */
void ask_start(struct ask *a, struct fake *f, int64_t timeout_ms);

/* ---- serving ---- */
struct handler {
    int n;
    struct bus_request *held;
};
/* An end that serves, the request that is sent to it, and its last answer. */
struct serving {
    struct fake f;
    struct handler h;
    struct arena arena; /* of the answers */
    struct bus_frame req, rep;
    int seat;
};
void serving_init(struct serving *s);
void serving_fini(struct serving *s); /* frees what is still held */
struct bus_frame request(uint8_t id);
void deliver(struct serving *s, void *seat); /* the request */
int refusal(struct serving *s);              /* reads the last answer; its code */
