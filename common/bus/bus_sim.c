#include "common/bus/bus_sim.h"
#include "common/bus/bus_sim_internal.h"

/* ---- the transport ---- */
static int sim_dial(void *data, size_t address, const char *url, struct err *e)
{
    (void)e;
    struct end *end = data;
    struct dial *d = xcalloc(1, sizeof(*d));
    *d = (struct dial){.end = end, .url = xstrdup(url), .address = address};
    list_init(&d->attempts);
    list_add_tail(&end->dials, &d->link);
    sim_dial_setup(d);
    return 0;
}

static void sim_send(void *data, struct bus_attempt *pub, struct slice frame)
{
    struct end *end = data;
    list_for_each (it, &end->dials) {
        struct dial *d = list_entry(it, struct dial, link);
        if (d->address != pub->address) {
            continue;
        }
        struct attempt *a = xcalloc(1, sizeof(*a));
        a->pub = pub;
        a->number = ++end->w->last_attempt;
        list_add_tail(&d->attempts, &a->link);
        pub->impl = a;
        struct message *m = sim_message_new(end->w, REQUEST, frame);
        m->dial = d;
        m->connection = d->connection;
        m->attempt = a->number;
        sim_transmit(m);
        return;
    }
}

static void sim_cancel(void *data, struct bus_attempt *pub)
{
    (void)data;
    struct attempt *a = pub->impl;
    if (a) {
        list_del(&a->link);
        free(a);
        pub->impl = NULL;
    }
}

static int sim_serve(void *data, const char *url, unsigned held, struct bus_server *server,
                     struct err *e)
{
    struct end *end = data;
    if (sim_find_listener(end->w, url)) {
        return err_set(e, ERR_CONF,
                       "bus address '%s' is taken by another process: stop it or choose another",
                       url);
    }
    struct listener *l = xcalloc(1, sizeof(*l));
    *l = (struct listener){.end = end, .url = xstrdup(url), .server = server, .free_seats = held};
    sim_listener_setup(l);
    list_init(&l->seats);
    list_init(&l->queued);
    list_add_tail(&end->listeners, &l->link);
    sim_connect_waiting(end->w);
    return 0;
}

static void sim_reply(void *data, void *seat, struct slice frame)
{
    struct end *end = data;
    struct seat *s = seat;
    if (s->dial && s->dial->connection == s->connection) {
        struct message *m = sim_message_new(end->w, ANSWER, frame);
        m->dial = s->dial;
        m->connection = s->connection;
        m->attempt = s->attempt;
        sim_transmit(m);
    }
    sim_give_seat_back(s);
}

static void sim_abandon(void *data, void *seat)
{
    (void)data;
    sim_give_seat_back(seat);
}

static int sim_publish_on(void *data, const char *url, struct err *e)
{
    (void)e;
    struct end *end = data;
    struct publisher *p = xcalloc(1, sizeof(*p));
    p->url = xstrdup(url);
    list_add_tail(&end->publishers, &p->link);
    return 0;
}

static void publish_to(struct end *from, const char *url, struct slice frame)
{
    list_for_each (it, &from->w->ends) {
        struct end *end = list_entry(it, struct end, link);
        if (end->is_cut || from->is_cut) {
            continue;
        }
        list_for_each (rt, &end->readers) {
            struct reader *r = list_entry(rt, struct reader, link);
            if (strcmp(r->url, url) == 0) {
                struct message *m = sim_message_new(from->w, HINT, frame);
                m->reader = r;
                sim_transmit(m);
            }
        }
    }
}

static void sim_publish(void *data, struct slice frame)
{
    struct end *end = data;
    list_for_each (it, &end->publishers) {
        publish_to(end, list_entry(it, struct publisher, link)->url, frame);
    }
}

static int sim_subscribe(void *data, const char *url, struct bus_subscriber *subscriber,
                         struct err *e)
{
    (void)e;
    struct end *end = data;
    struct reader *r = xcalloc(1, sizeof(*r));
    *r = (struct reader){.end = end, .url = xstrdup(url), .subscriber = subscriber};
    list_add_tail(&end->readers, &r->link);
    return 0;
}

/* ---- the end of an end ---- */
static void forget_messages_of(struct end *end)
{
    list_for_each (it, &end->w->messages) {
        struct message *m = list_entry(it, struct message, link);
        if ((m->dial && m->dial->end == end) || (m->reader && m->reader->end == end)) {
            sim_message_free(m);
        }
    }
}

static void forget_seats_of(struct end *gone)
{
    list_for_each (it, &gone->w->ends) {
        struct end *end = list_entry(it, struct end, link);
        list_for_each (lt, &end->listeners) {
            struct listener *l = list_entry(lt, struct listener, link);
            list_for_each (st, &l->seats) {
                struct seat *s = list_entry(st, struct seat, link);
                if (s->dial && s->dial->end == gone) {
                    s->dial = NULL;
                }
            }
        }
    }
}

static void listener_free(struct listener *l)
{
    for (struct list *it; (it = list_take_head(&l->seats));) {
        free(list_entry(it, struct seat, link));
    }
    while (!list_empty(&l->queued)) {
        sim_message_free(list_entry(l->queued.next, struct message, queued));
    }
    sim_time_unset(&l->next);
    free(l->url);
    free(l);
}

static void dial_free(struct dial *d)
{
    for (struct list *it; (it = list_take_head(&d->attempts));) {
        free(list_entry(it, struct attempt, link));
    }
    sim_time_unset(&d->up);
    sim_time_unset(&d->down);
    free(d->url);
    free(d);
}

/* Out of the world: nothing refers to it any more, peers see their connections break. */
static void leave_world(struct end *end)
{
    sim_break_all_of(end);
    forget_messages_of(end);
    forget_seats_of(end);
    for (struct list *it; (it = list_take_head(&end->listeners));) {
        listener_free(list_entry(it, struct listener, link));
    }
    for (struct list *it; (it = list_take_head(&end->dials));) {
        dial_free(list_entry(it, struct dial, link));
    }
    for (struct list *it; (it = list_take_head(&end->publishers));) {
        struct publisher *p = list_entry(it, struct publisher, link);
        free(p->url);
        free(p);
    }
    for (struct list *it; (it = list_take_head(&end->readers));) {
        struct reader *r = list_entry(it, struct reader, link);
        free(r->url);
        free(r);
    }
}

static void on_closing(struct sim_event *ev)
{
    struct end *end = container_of(ev, struct end, closing);
    leave_world(end);
    bus_up_closed(end->bus);
}

static void sim_close(void *data)
{
    struct end *end = data;
    end->closing.fn = on_closing;
    sim_time_set(end->w->time, &end->closing, MS(0));
}

static void sim_free(void *data)
{
    struct end *end = data;
    leave_world(end);
    sim_time_unset(&end->closing);
    list_del(&end->link);
    free(end);
}

/* ---- public ---- */
struct bus_world *bus_world_new(struct sim_time *t)
{
    struct bus_world *w = xcalloc(1, sizeof(*w));
    w->time = t;
    list_init(&w->ends);
    list_init(&w->messages);
    return w;
}

void bus_world_free(struct bus_world *w)
{
    must(list_empty(&w->ends));
    must(list_empty(&w->messages));
    free(w);
}

void bus_world_set_faults(struct bus_world *w, const struct bus_faults *f)
{
    w->faults = *f;
}

const struct bus_world_stats *bus_world_stats(const struct bus_world *w)
{
    return &w->stats;
}

struct bus *bus_sim_new(struct bus_world *w, const struct bus_identity *me)
{
    static const struct bus_transport_ops sim_ops = {.dial = sim_dial,
                                                     .send = sim_send,
                                                     .cancel = sim_cancel,
                                                     .serve = sim_serve,
                                                     .reply = sim_reply,
                                                     .abandon = sim_abandon,
                                                     .publish_on = sim_publish_on,
                                                     .publish = sim_publish,
                                                     .subscribe = sim_subscribe,
                                                     .close = sim_close,
                                                     .free = sim_free};
    struct end *end = xcalloc(1, sizeof(*end));
    end->w = w;
    list_init(&end->dials);
    list_init(&end->listeners);
    list_init(&end->publishers);
    list_init(&end->readers);
    list_add_tail(&w->ends, &end->link);
    end->bus = bus_make(&bus_clock_scripted, w->time, me);
    bus_set_transport(end->bus, &sim_ops, end);
    return end->bus;
}

void bus_sim_crash(struct bus *b)
{
    bus_discard(b);
}

void bus_sim_cut(struct bus *b)
{
    struct end *end = b->tp;
    end->is_cut = true;
    sim_break_all_of(end);
}

void bus_sim_heal(struct bus *b)
{
    struct end *end = b->tp;
    end->is_cut = false;
    sim_connect_waiting(end->w);
}
