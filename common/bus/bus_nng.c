/* The only nng file: contexts and aio. Callbacks of nng's threads touch nng and the loop's inbox,
 * nothing else.
 *
 * A call takes an `asker` (one REQ context), a request sits in an `answerer` (one REP context).
 * Both are their own inbox item: they are posted at most once at a time. The receive that follows a
 * send is started by nng's thread, to save a turn of the loop. */
#include "common/bus/bus_envelope.h"
#include "common/bus/bus_transport.h"
#include "common/log/log.h"
#include <nng/nng.h>
#include <nng/protocol/pubsub0/pub.h>
#include <nng/protocol/pubsub0/sub.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>

enum {
    RECONNECT_FIRST_MS = 100,
    RECONNECT_MOST_MS = 1000,
    RESEND_MS = 86400000,
    HINT_BUFFER = 1024
};

struct transport {
    struct loop *loop;
    struct bus *bus;
    struct list sockets; /* of struct endpoint */
    bool is_closing;
    struct offload_job close_job;
    struct inbox_item last; /* posted when no callback can post any more */
};
/* One socket: dialled for calls, served, published on, or subscribed. */
struct endpoint {
    struct transport *tp;
    struct list link;
    nng_socket socket;
    size_t address;   /* dialled only */
    int pipes;        /* dialled only: live connections; loop only */
    struct list idle; /* dialled only: askers without a call */
    struct list all;  /* of struct seat */
    struct bus_server *server;
    struct bus_subscriber *subscriber;
    bool is_publisher;
};
/* A context with its aio: asker, answerer, or the one reader of a subscription. */
struct seat {
    struct inbox_item item;
    struct endpoint *home;
    struct list all_link, idle_link;
    nng_ctx ctx;
    nng_aio *aio;
    bool has_ctx;    /* asker: false at first and after a withdrawal. Loop only */
    bool is_sending; /* changes hands with the aio: loop before the send, nng's thread after it */
    int rv;          /* of the operation that is over */
    nng_msg *msg;    /* received */
    struct bus_attempt *attempt; /* asker: whose call; NULL: withdrawn. Loop only */
};

static int nng_fail(struct err *e, int rv, const char *doing, const char *url)
{
    if (rv == NNG_EADDRINUSE) {
        return err_set(e, ERR_CONF,
                       "bus address '%s' is taken by another process: stop it or choose another",
                       url);
    }
    return err_set(e, ERR_CONF, "cannot %s bus address '%s': %s", doing, url, nng_strerror(rv));
}

static nng_msg *msg_of(struct slice frame)
{
    nng_msg *m = NULL;
    must(nng_msg_alloc(&m, frame.len) == 0);
    if (frame.len) {
        memcpy(nng_msg_body(m), frame.p, frame.len);
    }
    return m;
}

static struct slice frame_of(nng_msg *m)
{
    return slice_make(nng_msg_body(m), nng_msg_len(m));
}

static struct endpoint *endpoint_new(struct transport *tp, int (*open)(nng_socket *))
{
    struct endpoint *p = xcalloc(1, sizeof(*p));
    p->tp = tp;
    list_init(&p->idle);
    list_init(&p->all);
    must(open(&p->socket) == 0); /* fails for want of memory only */
    list_add_tail(&tp->sockets, &p->link);
    must(nng_socket_set_size(p->socket, NNG_OPT_RECVMAXSZ, BUS_FRAME_CAP) == 0);
    return p;
}

static struct seat *seat_new(struct endpoint *home, void (*on_aio)(void *))
{
    struct seat *s = xcalloc(1, sizeof(*s));
    s->home = home;
    list_init(&s->idle_link);
    list_add_tail(&home->all, &s->all_link);
    must(nng_aio_alloc(&s->aio, on_aio, s) == 0);
    nng_aio_set_timeout(s->aio, NNG_DURATION_INFINITE); /* deadlines are the bus's */
    return s;
}

static int listen_on(struct endpoint *p, const char *url, struct err *e)
{
    nng_listener l;
    int rv = nng_listener_create(&l, p->socket, url);
    if (!rv && strncmp(url, "ipc:", 4) == 0) {
        rv = nng_listener_set_int(l, NNG_OPT_IPC_PERMISSIONS, 0600);
    }
    if (!rv) {
        rv = nng_listener_start(l, 0);
    }
    return rv ? nng_fail(e, rv, "listen on", url) : 0;
}

static int dial_to(struct endpoint *p, const char *url, struct err *e)
{
    nng_dialer d;
    int rv = nng_dialer_create(&d, p->socket, url);
    if (!rv) {
        rv = nng_dialer_set_ms(d, NNG_OPT_RECONNMINT, RECONNECT_FIRST_MS);
    }
    if (!rv) {
        rv = nng_dialer_set_ms(d, NNG_OPT_RECONNMAXT, RECONNECT_MOST_MS);
    }
    if (!rv) {
        rv = nng_dialer_start(d, NNG_FLAG_NONBLOCK); /* keeps trying */
    }
    return rv ? nng_fail(e, rv, "dial", url) : 0;
}

/* ---- dialling ---- */
struct pipe_item {
    struct inbox_item item;
    struct endpoint *p;
    int change;
};

static void on_pipe_item(struct inbox_item *item)
{
    struct pipe_item *i = container_of(item, struct pipe_item, item);
    struct endpoint *p = i->p;
    p->pipes += i->change;
    free(i);
    if (!p->tp->is_closing) {
        bus_up_connected(p->tp->bus, p->address, p->pipes > 0);
    }
}

static void on_pipe(nng_pipe pipe, nng_pipe_ev ev, void *data)
{
    (void)pipe;
    struct endpoint *p = data;
    struct pipe_item *i = xcalloc(1, sizeof(*i));
    i->item.fn = on_pipe_item;
    i->p = p;
    i->change = ev == NNG_PIPE_EV_ADD_POST ? 1 : -1;
    loop_post(p->tp->loop, &i->item);
}

static int nng_dial_address(void *data, size_t address, const char *url, struct err *e)
{
    struct endpoint *p = endpoint_new(data, nng_req0_open);
    p->address = address;
    /* A day: nng must not repeat calls that are held, repeating is the bus's. */
    must(nng_socket_set_ms(p->socket, NNG_OPT_REQ_RESENDTIME, RESEND_MS) == 0);
    must(nng_pipe_notify(p->socket, NNG_PIPE_EV_ADD_POST, on_pipe, p) == 0);
    must(nng_pipe_notify(p->socket, NNG_PIPE_EV_REM_POST, on_pipe, p) == 0);
    return dial_to(p, url, e);
}

static void on_asker_aio(void *data)
{
    struct seat *s = data;
    s->rv = nng_aio_result(s->aio);
    if (s->is_sending) {
        s->is_sending = false;
        if (s->rv == 0) {
            nng_ctx_recv(s->ctx, s->aio);
            return;
        }
        nng_msg_free(nng_aio_get_msg(s->aio));
    } else if (s->rv == 0) {
        s->msg = nng_aio_get_msg(s->aio);
    }
    loop_post(s->home->tp->loop, &s->item);
}

static void on_asker_item(struct inbox_item *item)
{
    struct seat *s = container_of(item, struct seat, item);
    struct transport *tp = s->home->tp;
    struct bus_attempt *attempt = s->attempt;
    nng_msg *msg = s->msg;
    int rv = s->rv;
    s->attempt = NULL;
    s->msg = NULL;
    list_add_tail(&s->home->idle, &s->idle_link);
    if (attempt && !tp->is_closing) {
        attempt->impl = NULL;
        bus_up_answer(tp->bus, attempt, rv ? ERR_BUS_TIMEOUT : 0, rv ? SLICE_NONE : frame_of(msg));
    }
    nng_msg_free(msg);
}

static struct seat *asker_take(struct endpoint *p)
{
    struct list *it = list_take_head(&p->idle);
    if (it) {
        return list_entry(it, struct seat, idle_link);
    }
    struct seat *s = seat_new(p, on_asker_aio);
    s->item.fn = on_asker_item;
    return s;
}

static struct endpoint *endpoint_at(struct transport *tp, size_t address)
{
    list_for_each (it, &tp->sockets) {
        struct endpoint *p = list_entry(it, struct endpoint, link);
        if (!p->server && !p->subscriber && !p->is_publisher && p->address == address) {
            return p;
        }
    }
    return NULL;
}

static void nng_send_attempt(void *data, struct bus_attempt *a, struct slice frame)
{
    struct endpoint *p = endpoint_at(data, a->address);
    must(p);
    struct seat *s = asker_take(p);
    if (!s->has_ctx) {
        must(nng_ctx_open(&s->ctx, p->socket) == 0);
        s->has_ctx = true;
    }
    s->attempt = a;
    a->impl = s;
    s->is_sending = true;
    nng_aio_set_msg(s->aio, msg_of(frame));
    nng_ctx_send(s->ctx, s->aio);
}

/* Closing the context ends its send or receive in any state of the race with nng's thread; the
 * asker comes back by its item. */
static void nng_cancel_attempt(void *data, struct bus_attempt *a)
{
    (void)data;
    struct seat *s = a->impl;
    if (!s) {
        return;
    }
    a->impl = NULL;
    s->attempt = NULL;
    s->has_ctx = false;
    (void)nng_ctx_close(s->ctx);
}

/* ---- serving ---- */
static void on_answerer_aio(void *data)
{
    struct seat *s = data;
    int rv = nng_aio_result(s->aio);
    if (s->is_sending) {
        s->is_sending = false;
        if (rv) {
            nng_msg_free(nng_aio_get_msg(s->aio));
        }
        nng_ctx_recv(s->ctx, s->aio);
        return;
    }
    if (rv == NNG_ECLOSED || rv == NNG_ECANCELED) {
        return;
    }
    if (rv) {
        nng_ctx_recv(s->ctx, s->aio);
        return;
    }
    s->msg = nng_aio_get_msg(s->aio);
    loop_post(s->home->tp->loop, &s->item);
}

static void on_answerer_item(struct inbox_item *item)
{
    struct seat *s = container_of(item, struct seat, item);
    nng_msg *msg = s->msg;
    s->msg = NULL;
    if (!s->home->tp->is_closing) {
        bus_up_request(s->home->server, s, frame_of(msg));
    }
    nng_msg_free(msg);
}

static int nng_serve(void *data, const char *url, unsigned held, struct bus_server *server,
                     struct err *e)
{
    struct endpoint *p = endpoint_new(data, nng_rep0_open);
    p->server = server;
    int rc = listen_on(p, url, e);
    if (rc) {
        return rc;
    }
    for (unsigned i = 0; i < held; i++) {
        struct seat *s = seat_new(p, on_answerer_aio);
        s->item.fn = on_answerer_item;
        must(nng_ctx_open(&s->ctx, p->socket) == 0);
        nng_ctx_recv(s->ctx, s->aio);
    }
    return 0;
}

static void nng_reply(void *data, void *seat, struct slice frame)
{
    struct transport *tp = data;
    struct seat *s = seat;
    if (tp->is_closing) {
        return;
    }
    s->is_sending = true;
    nng_aio_set_msg(s->aio, msg_of(frame));
    nng_ctx_send(s->ctx, s->aio);
}

static void nng_abandon(void *data, void *seat)
{
    struct transport *tp = data;
    struct seat *s = seat;
    if (!tp->is_closing) {
        nng_ctx_recv(s->ctx, s->aio);
    }
}

/* ---- hints ---- */
static int nng_publish_on(void *data, const char *url, struct err *e)
{
    struct endpoint *p = endpoint_new(data, nng_pub0_open);
    p->is_publisher = true;
    (void)nng_socket_set_int(p->socket, NNG_OPT_SENDBUF, HINT_BUFFER);
    return listen_on(p, url, e);
}

static void nng_publish(void *data, struct slice frame)
{
    struct transport *tp = data;
    list_for_each (it, &tp->sockets) {
        struct endpoint *p = list_entry(it, struct endpoint, link);
        if (!p->is_publisher) {
            continue;
        }
        nng_msg *m = msg_of(frame);
        if (nng_sendmsg(p->socket, m, NNG_FLAG_NONBLOCK)) {
            nng_msg_free(m); /* a hint may be lost */
        }
    }
}

static void on_reader_aio(void *data)
{
    struct seat *s = data;
    s->rv = nng_aio_result(s->aio);
    if (s->rv == NNG_ECLOSED || s->rv == NNG_ECANCELED) {
        return;
    }
    s->msg = s->rv ? NULL : nng_aio_get_msg(s->aio);
    loop_post(s->home->tp->loop, &s->item);
}

static void on_reader_item(struct inbox_item *item)
{
    struct seat *s = container_of(item, struct seat, item);
    nng_msg *msg = s->msg;
    s->msg = NULL;
    if (!s->home->tp->is_closing) {
        if (msg) {
            bus_up_hint(s->home->subscriber, frame_of(msg));
        }
        nng_recv_aio(s->home->socket, s->aio);
    }
    nng_msg_free(msg);
}

static int nng_subscribe(void *data, const char *url, struct bus_subscriber *subscriber,
                         struct err *e)
{
    struct endpoint *p = endpoint_new(data, nng_sub0_open);
    p->subscriber = subscriber;
    must(nng_socket_set(p->socket, NNG_OPT_SUB_SUBSCRIBE, "", 0) == 0);
    (void)nng_socket_set_int(p->socket, NNG_OPT_RECVBUF, HINT_BUFFER);
    int rc = dial_to(p, url, e);
    if (rc) {
        return rc;
    }
    struct seat *s = seat_new(p, on_reader_aio);
    s->item.fn = on_reader_item;
    nng_recv_aio(p->socket, s->aio);
    return 0;
}

/* ---- closing ---- */
/* nng_close and nng_aio_stop wait for nng's threads, so they run off the loop. Nothing else touches
 * the lists meanwhile. Operations end first: nng_close does not wait for one that is just being
 * started on a context (it frees the socket once the context is off the list, nni_ctx_rele), and
 * what is given to a stopped aio is not started. */
static void close_sockets_offload(struct offload_job *job)
{
    struct transport *tp = container_of(job, struct transport, close_job);
    list_for_each (it, &tp->sockets) {
        struct endpoint *p = list_entry(it, struct endpoint, link);
        (void)nng_pipe_notify(p->socket, NNG_PIPE_EV_ADD_POST, NULL, NULL);
        (void)nng_pipe_notify(p->socket, NNG_PIPE_EV_REM_POST, NULL, NULL);
        list_for_each (st, &p->all) {
            nng_aio_stop(list_entry(st, struct seat, all_link)->aio);
        }
        (void)nng_close(p->socket);
    }
}

static void on_sockets_closed(struct offload_job *job)
{
    struct transport *tp = container_of(job, struct transport, close_job);
    loop_post(tp->loop, &tp->last); /* behind whatever was posted before */
}

static void on_last(struct inbox_item *item)
{
    struct transport *tp = container_of(item, struct transport, last);
    bus_up_closed(tp->bus);
}

static void nng_close_all(void *data)
{
    struct transport *tp = data;
    tp->is_closing = true;
    tp->last.fn = on_last;
    tp->close_job =
        (struct offload_job){.work_offload = close_sockets_offload, .done = on_sockets_closed};
    loop_offload(tp->loop, &tp->close_job);
}

static void nng_free_all(void *data)
{
    struct transport *tp = data;
    for (struct list *it; (it = list_take_head(&tp->sockets));) {
        struct endpoint *p = list_entry(it, struct endpoint, link);
        for (struct list *st; (st = list_take_head(&p->all));) {
            struct seat *s = list_entry(st, struct seat, all_link);
            nng_aio_free(s->aio);
            free(s);
        }
        free(p);
    }
    free(tp);
}

void *bus_nng_new(struct loop *l, struct bus *b, const struct bus_transport_ops **ops)
{
    static const struct bus_transport_ops nng_ops = {.dial = nng_dial_address,
                                                     .send = nng_send_attempt,
                                                     .cancel = nng_cancel_attempt,
                                                     .serve = nng_serve,
                                                     .reply = nng_reply,
                                                     .abandon = nng_abandon,
                                                     .publish_on = nng_publish_on,
                                                     .publish = nng_publish,
                                                     .subscribe = nng_subscribe,
                                                     .close = nng_close_all,
                                                     .free = nng_free_all};
    struct transport *tp = xcalloc(1, sizeof(*tp));
    tp->loop = l;
    tp->bus = b;
    list_init(&tp->sockets);
    *ops = &nng_ops;
    return tp;
}

void bus_nng_end(void)
{
    nng_fini();
}
