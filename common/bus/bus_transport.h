/* What the bus asks of a transport and of time, and what the transport tells it. For bus*.c only.
 */
#pragma once
#include "common/bus/bus.h"
#include "common/flow/sim_time.h"

/* ---- time: the loop's, or scripted ---- */
struct bus_timer {
    void (*fn)(struct bus_timer *t);
    union {
        struct loop_timer real;
        struct sim_event scripted;
    } u;
};
struct bus_clock_ops {
    struct ms (*now)(void *clock);
    void (*init)(void *clock, struct bus_timer *t);
    void (*start)(void *clock, struct bus_timer *t, struct ms after); /* 0: on the next turn */
    void (*stop)(struct bus_timer *t);                                /* idempotent */
    void (*random)(void *clock, void *out, size_t len);
};
extern const struct bus_clock_ops bus_clock_loop;     /* clock: struct loop */
extern const struct bus_clock_ops bus_clock_scripted; /* clock: struct sim_time */

/* ---- transport ---- */
struct bus_server;
struct bus_subscriber;
struct bus_attempt {
    size_t address; /* index of the dialled address */
    void *impl;     /* the transport's, while the attempt is out */
};
/* All on the loop. Frames are copied. No upcall is made from inside of an operation. */
struct bus_transport_ops {
    int (*dial)(void *tp, size_t address, const char *url, struct err *e);
    void (*send)(void *tp, struct bus_attempt *a,
                 struct slice frame);                /* only while the address is connected */
    void (*cancel)(void *tp, struct bus_attempt *a); /* no answer comes after it */
    int (*serve)(void *tp, const char *url, unsigned held, struct bus_server *s, struct err *e);
    void (*reply)(void *tp, void *seat,
                  struct slice frame);     /* the seat of the request is given back */
    void (*abandon)(void *tp, void *seat); /* the same without an answer */
    int (*publish_on)(void *tp, const char *url, struct err *e);
    void (*publish)(void *tp, struct slice frame);
    int (*subscribe)(void *tp, const char *url, struct bus_subscriber *s, struct err *e);
    void (*close)(void *tp); /* bus_up_closed comes later, and no other upcall after it */
    void (*free)(void *tp);
};

/* ---- told by the transport, on the loop ---- */
void bus_up_connected(struct bus *b, size_t address, bool is_connected);
/* rc 0 and the answer's frame, or the code of a lost attempt. */
void bus_up_answer(struct bus *b, struct bus_attempt *a, int rc, struct slice frame);
void bus_up_request(struct bus_server *s, void *seat, struct slice frame);
void bus_up_hint(struct bus_subscriber *s, struct slice frame);
void bus_up_closed(struct bus *b);

/* ---- making one ---- */
/* The transport is set right after, by bus_set_transport. */
struct bus *bus_make(const struct bus_clock_ops *clock_ops, void *clock,
                     const struct bus_identity *me);
void bus_set_transport(struct bus *b, const struct bus_transport_ops *ops, void *tp);
/* Frees at once and calls nobody back: the end of a process in a simulation. */
void bus_discard(struct bus *b);
/* Ends the library's own threads, which free what was closed some time after it. At the end of a
 * process that looks for leaks; no bus is left. */
void bus_nng_end(void);
void *bus_nng_new(struct loop *l, struct bus *b, const struct bus_transport_ops **ops);
