/* The wire of the simulated network: connections and messages. */
#include "common/bus/bus_sim_internal.h"

enum { REORDER_MOST_MS = 200, RECONNECT_MOST_MS = 100 };

/* ---- connections ---- */
struct listener *sim_find_listener(struct bus_world *w, const char *url)
{
    list_for_each (it, &w->ends) {
        struct end *end = list_entry(it, struct end, link);
        list_for_each (lt, &end->listeners) {
            struct listener *l = list_entry(lt, struct listener, link);
            if (strcmp(l->url, url) == 0) {
                return l;
            }
        }
    }
    return NULL;
}

static void connect_soon(struct dial *d)
{
    struct bus_world *w = d->end->w;
    struct ms most = w->faults.reconnect_most.v ? w->faults.reconnect_most : MS(RECONNECT_MOST_MS);
    sim_time_set(w->time, &d->up, sim_time_between(w->time, w->faults.reconnect_least, most));
}

/* Nobody polls: who listens or heals later calls connect_soon for all that wait for it. */
static void on_up(struct sim_event *ev)
{
    struct dial *d = container_of(ev, struct dial, up);
    struct listener *l = sim_find_listener(d->end->w, d->url);
    if (d->connection || !l || l->end->is_cut || d->end->is_cut) {
        return;
    }
    d->peer = l;
    d->connection = ++d->end->w->last_connection;
    d->last_due[0] = d->last_due[1] = MS(0);
    bus_up_connected(d->end->bus, d->address, true);
}

static void on_down(struct sim_event *ev)
{
    struct dial *d = container_of(ev, struct dial, down);
    bus_up_connected(d->end->bus, d->address, false);
    connect_soon(d);
}

/* What is in flight on it is lost from now on; the caller notices in the same instant, but not
 * inside of this call. */
static void break_connection(struct dial *d)
{
    if (d->connection) {
        d->connection = 0;
        d->peer = NULL;
        d->end->w->stats.cut++;
        sim_time_set(d->end->w->time, &d->down, MS(0));
    }
}

void sim_break_all_of(struct end *gone)
{
    list_for_each (it, &gone->w->ends) {
        struct end *end = list_entry(it, struct end, link);
        list_for_each (dt, &end->dials) {
            struct dial *d = list_entry(dt, struct dial, link);
            if (end == gone || (d->peer && d->peer->end == gone)) {
                break_connection(d);
            }
        }
    }
}

void sim_connect_waiting(struct bus_world *w)
{
    list_for_each (it, &w->ends) {
        struct end *end = list_entry(it, struct end, link);
        list_for_each (dt, &end->dials) {
            struct dial *d = list_entry(dt, struct dial, link);
            if (!d->connection && !list_linked(&d->down.link) && !list_linked(&d->up.link)) {
                connect_soon(d);
            }
        }
    }
}

/* ---- messages ---- */
void sim_message_free(struct message *m)
{
    sim_time_unset(&m->arrival);
    if (list_linked(&m->queued)) {
        list_del(&m->queued);
    }
    list_del(&m->link);
    buf_fini(&m->frame);
    free(m);
}

static void on_arrival(struct sim_event *ev);

struct message *sim_message_new(struct bus_world *w, enum message_kind kind, struct slice frame)
{
    struct message *m = xcalloc(1, sizeof(*m));
    m->arrival.fn = on_arrival;
    m->w = w;
    m->kind = kind;
    list_init(&m->queued);
    list_add_tail(&w->messages, &m->link);
    buf_init(&m->frame);
    buf_add_slice(&m->frame, frame);
    return m;
}

static void schedule(struct message *m)
{
    struct bus_world *w = m->w;
    struct ms due = ms_add(w->time->now,
                           sim_time_between(w->time, w->faults.delay_least, w->faults.delay_most));
    if (sim_time_chance(w->time, w->faults.reorder)) {
        w->stats.reordered++;
        due = ms_add(due, sim_time_between(w->time, MS(0), MS(REORDER_MOST_MS)));
    } else if (m->dial) {
        struct ms *last = &m->dial->last_due[m->kind == ANSWER];
        due = ms_max(due, *last);
        *last = due;
    }
    sim_time_set(w->time, &m->arrival, ms_sub(due, w->time->now));
}

void sim_transmit(struct message *m)
{
    struct bus_world *w = m->w;
    w->stats.sent++;
    if (m->dial && sim_time_chance(w->time, w->faults.cut)) {
        break_connection(m->dial);
        sim_message_free(m);
        return;
    }
    if (sim_time_chance(w->time, w->faults.drop)) {
        w->stats.dropped++;
        sim_message_free(m);
        return;
    }
    if (sim_time_chance(w->time, w->faults.duplicate)) {
        w->stats.duplicated++;
        struct message *twin = sim_message_new(w, m->kind, buf_slice(&m->frame));
        twin->dial = m->dial;
        twin->reader = m->reader;
        twin->connection = m->connection;
        twin->attempt = m->attempt;
        schedule(twin);
    }
    schedule(m);
}

static void take_seat(struct listener *l, struct message *m)
{
    struct seat *s = xcalloc(1, sizeof(*s));
    *s = (struct seat){
        .listener = l, .dial = m->dial, .connection = m->connection, .attempt = m->attempt};
    list_add_tail(&l->seats, &s->link);
    l->free_seats--;
    struct buf frame = m->frame;
    buf_init(&m->frame);
    sim_message_free(m);
    bus_up_request(l->server, s, buf_slice(&frame));
    buf_fini(&frame);
}

static void on_next(struct sim_event *ev)
{
    struct listener *l = container_of(ev, struct listener, next);
    while (l->free_seats && !list_empty(&l->queued)) {
        struct list *it = list_take_head(&l->queued);
        take_seat(l, list_entry(it, struct message, queued));
    }
}

static void request_arrives(struct message *m)
{
    struct listener *l = m->dial->peer;
    if (l->free_seats == 0) {
        list_add_tail(&l->queued, &m->queued);
        return;
    }
    take_seat(l, m);
}

static void answer_arrives(struct message *m)
{
    struct dial *d = m->dial;
    list_for_each (it, &d->attempts) {
        struct attempt *a = list_entry(it, struct attempt, link);
        if (a->number == m->attempt) {
            struct bus_attempt *pub = a->pub;
            list_del(&a->link);
            free(a);
            pub->impl = NULL;
            bus_up_answer(d->end->bus, pub, 0, buf_slice(&m->frame));
            break;
        }
    }
    sim_message_free(m);
}

static void on_arrival(struct sim_event *ev)
{
    struct message *m = container_of(ev, struct message, arrival);
    if (m->kind == HINT) {
        m->w->stats.delivered++;
        bus_up_hint(m->reader->subscriber, buf_slice(&m->frame));
        sim_message_free(m);
        return;
    }
    if (!m->connection || m->dial->connection != m->connection) { /* broken when sent, or since */
        sim_message_free(m);
        return;
    }
    m->w->stats.delivered++;
    if (m->kind == REQUEST) {
        request_arrives(m);
    } else {
        answer_arrives(m);
    }
}

void sim_give_seat_back(struct seat *s)
{
    struct listener *l = s->listener;
    l->free_seats++;
    if (!list_empty(&l->queued)) {
        sim_time_set(l->end->w->time, &l->next, MS(0));
    }
    list_del(&s->link);
    free(s);
}

void sim_dial_setup(struct dial *d)
{
    d->up.fn = on_up;
    d->down.fn = on_down;
    connect_soon(d);
}

void sim_listener_setup(struct listener *l)
{
    l->next.fn = on_next;
}
