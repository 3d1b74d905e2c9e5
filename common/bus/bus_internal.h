/* Inside of the bus: what bus.c, bus_call.c and bus_serve.c share. Not for anyone else. */
#pragma once
#include "common/base/map.h"
#include "common/bus/bus_envelope.h"
#include "common/bus/bus_transport.h"

struct bus_address {
    char *url;
    bool is_connected;
};
struct bus {
    const struct bus_clock_ops *clock_ops;
    void *clock;
    const struct bus_transport_ops *tp_ops;
    void *tp;
    struct uuid installation, boot;
    const char *instance;
    struct buf key; /* ours: cleared when freed */

    struct bus_address *addresses;
    size_t n_addresses;
    size_t preferred;  /* where the next attempt goes, if it is connected */
    struct list calls; /* of struct call (bus_call.c) */

    struct list servers;     /* of struct bus_server */
    struct list subscribers; /* of struct bus_subscriber */
    struct list held;        /* of struct served (bus_serve.c): requests not yet answered */
    struct map held_by_id;   /* boot, request id, kind -> struct served */
    bool publishes;

    bool is_closing, is_closed;
    struct bus_timer close_timer; /* bus_close takes effect on the next turn */
    void (*closed)(void *data);
    void *closed_data;
    struct ms mac_warned_at; /* one warning a second is enough */
};
struct bus_server {
    struct bus *bus;
    struct list link;
    char *url;
    bus_serve_fn fn;
    void *data;
};
struct bus_subscriber {
    struct bus *bus;
    struct list link;
    char *url;
    bus_hint_fn fn;
    void *data;
};

struct slice bus_key(const struct bus *b);
struct ms bus_now(const struct bus *b);
/* A frame of ours with version, installation, instance and boot filled in. */
struct bus_frame bus_frame_ours(const struct bus *b);
/* 0, or the reason why a frame that decoded is not for us: version, installation. */
int bus_frame_check(const struct bus *b, const struct bus_frame *f, struct err *e);
void bus_warn_mac(struct bus *b, const struct err *e, const char *what);
/* One clear sentence about an address that cannot work. */
int bus_url_check(const char *url, struct err *e);
void bus_calls_fail(struct bus *b, int code); /* completes every call */
void bus_calls_drop(struct bus *b);           /* frees every call without completing it */
void bus_held_drop(struct bus *b);            /* frees requests that nobody answered */
