/* Inside of the simulated network: what bus_sim.c and bus_sim_wire.c share. Not for anyone else. */
#pragma once
#include "common/bus/bus_internal.h"
#include "common/bus/bus_sim.h"

enum message_kind { REQUEST, ANSWER, HINT };

struct bus_world {
    struct sim_time *time;
    struct bus_faults faults;
    struct bus_world_stats stats;
    struct list ends;     /* of struct end */
    struct list messages; /* of struct message, in flight or queued */
    uint64_t last_connection, last_attempt;
};
/* The transport of one bus. */
struct end {
    struct bus_world *w;
    struct bus *bus;
    struct list link;
    struct list dials, listeners, publishers, readers;
    struct sim_event closing;
    bool is_cut;
};
struct listener {
    struct end *end;
    struct list link;
    char *url;
    struct bus_server *server;
    unsigned free_seats;
    struct list seats;  /* of struct seat */
    struct list queued; /* of struct message: wait for a seat */
    struct sim_event next;
};
/* A dialled address. connection 0: down. */
struct dial {
    struct end *end;
    struct list link;
    char *url;
    size_t address;
    uint64_t connection;
    struct listener *peer;
    struct list attempts; /* of struct attempt */
    struct sim_event up, down;
    struct ms last_due[2]; /* per direction: messages of one connection keep their order */
};
struct attempt {
    struct list link;
    struct bus_attempt *pub;
    uint64_t number;
};
struct seat {
    struct list link;
    struct listener *listener;
    struct dial *dial; /* NULL: the caller is gone */
    uint64_t connection, attempt;
};
struct publisher {
    struct list link;
    char *url;
};
struct reader {
    struct end *end;
    struct list link;
    char *url;
    struct bus_subscriber *subscriber;
};
struct message {
    struct sim_event arrival;
    struct list link;   /* in world->messages */
    struct list queued; /* in listener->queued */
    struct bus_world *w;
    enum message_kind kind;
    struct dial *dial;     /* REQUEST, ANSWER */
    struct reader *reader; /* HINT */
    uint64_t connection, attempt;
    struct buf frame;
};

struct listener *sim_find_listener(struct bus_world *w, const char *url);
/* Sets the events by which a dial connects, breaks and comes back. */
void sim_dial_setup(struct dial *d);
/* All connections of an end break. */
void sim_break_all_of(struct end *gone);
/* Someone listens or is plugged in: whoever waits tries again. */
void sim_connect_waiting(struct bus_world *w);
struct message *sim_message_new(struct bus_world *w, enum message_kind kind, struct slice frame);
void sim_message_free(struct message *m);
/* Takes m: it arrives, once or twice, or it is lost. */
void sim_transmit(struct message *m);
void sim_listener_setup(struct listener *l);
void sim_give_seat_back(struct seat *s);
