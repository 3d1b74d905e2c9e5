/* The bus without its transport: identity, addresses, hints, closing. Calls: bus_call.c; serving:
 * bus_serve.c. */
#include "common/bus/bus_internal.h"
#include "common/log/log.h"

enum { IPC_PATH_MAX = 107, MAC_WARN_EVERY_MS = 1000 };

struct slice bus_key(const struct bus *b)
{
    return buf_slice(&b->key);
}

struct ms bus_now(const struct bus *b)
{
    return b->clock_ops->now(b->clock);
}

struct bus_frame bus_frame_ours(const struct bus *b)
{
    return (struct bus_frame){.version = BUS_VERSION,
                              .installation = b->installation,
                              .boot = b->boot,
                              .instance = b->instance,
                              .error_text = ""};
}

int bus_frame_check(const struct bus *b, const struct bus_frame *f, struct err *e)
{
    static const struct uuid unknown;
    if (!bus_version_fits(f->version, BUS_VERSION)) {
        return err_set(e, ERR_VERSION,
                       "%s speaks message version %u, this process speaks %u: bring both to the "
                       "same release",
                       f->instance, f->version, BUS_VERSION);
    }
    if (!uuid_eq(&b->installation, &unknown) && !uuid_eq(&f->installation, &unknown) &&
        !uuid_eq(&b->installation, &f->installation)) {
        char theirs[UUID_TEXT];
        char ours[UUID_TEXT];
        uuid_format(&f->installation, theirs);
        uuid_format(&b->installation, ours);
        return err_set(e, ERR_INSTALLATION,
                       "%s belongs to installation %s, this process to %s: check the addresses in "
                       "its configuration",
                       f->instance, theirs, ours);
    }
    return 0;
}

void bus_warn_mac(struct bus *b, const struct err *e, const char *what)
{
    struct ms now = bus_now(b);
    if (b->mac_warned_at.v && now.v - b->mac_warned_at.v < MAC_WARN_EVERY_MS) {
        return;
    }
    b->mac_warned_at = now.v ? now : MS(1);
    log_warn("bus.mac", "what=%s why=%s", what, log_q(err_text(e)));
}

int bus_url_check(const char *url, struct err *e)
{
    static const char ipc[] = "ipc://";
    static const char tcp[] = "tcp://";
    if (!url || !*url) {
        return err_set(e, ERR_CONF, "a bus address is empty: give ipc:///path or tcp://host:port");
    }
    if (strncmp(url, tcp, sizeof(tcp) - 1) == 0 && strrchr(url + sizeof(tcp) - 1, ':')) {
        return 0;
    }
    if (strncmp(url, ipc, sizeof(ipc) - 1) != 0 || !url[sizeof(ipc) - 1]) {
        return err_set(e, ERR_CONF,
                       "bus address '%s' is not understood: give ipc:///path or tcp://host:port",
                       url);
    }
    size_t len = strlen(url + sizeof(ipc) - 1);
    if (len > IPC_PATH_MAX) {
        return err_set(e, ERR_CONF,
                       "the path of bus address '%s' is %zu bytes long and a unix socket takes %d: "
                       "choose a shorter run directory",
                       url, len, IPC_PATH_MAX);
    }
    return 0;
}

/* ---- life ---- */
struct bus *bus_make(const struct bus_clock_ops *clock_ops, void *clock,
                     const struct bus_identity *me)
{
    struct bus *b = xcalloc(1, sizeof(*b));
    b->clock_ops = clock_ops;
    b->clock = clock;
    b->installation = me->installation;
    b->boot = me->boot;
    b->instance = me->instance ? me->instance : "";
    buf_init(&b->key);
    buf_add_slice(&b->key, me->key);
    list_init(&b->calls);
    list_init(&b->servers);
    list_init(&b->subscribers);
    list_init(&b->held);
    map_init(&b->held_by_id);
    return b;
}

void bus_set_transport(struct bus *b, const struct bus_transport_ops *ops, void *tp)
{
    b->tp_ops = ops;
    b->tp = tp;
}

void bus_set_installation(struct bus *b, const struct uuid *installation)
{
    b->installation = *installation;
}

const struct uuid *bus_installation(const struct bus *b)
{
    return &b->installation;
}

static void on_close(struct bus_timer *t)
{
    struct bus *b = container_of(t, struct bus, close_timer);
    bus_calls_fail(b, ERR_SHUTDOWN);
    b->tp_ops->close(b->tp);
}

void bus_close(struct bus *b, void (*done)(void *data), void *data)
{
    must(!b->is_closing);
    b->is_closing = true;
    b->closed = done;
    b->closed_data = data;
    b->close_timer.fn = on_close;
    b->clock_ops->init(b->clock, &b->close_timer);
    b->clock_ops->start(b->clock, &b->close_timer, MS(0));
}

void bus_up_closed(struct bus *b)
{
    b->is_closed = true;
    if (b->closed) {
        b->closed(b->closed_data);
    }
}

static void servers_free(struct bus *b)
{
    for (struct list *it; (it = list_take_head(&b->servers));) {
        struct bus_server *s = list_entry(it, struct bus_server, link);
        free(s->url);
        free(s);
    }
    for (struct list *it; (it = list_take_head(&b->subscribers));) {
        struct bus_subscriber *s = list_entry(it, struct bus_subscriber, link);
        free(s->url);
        free(s);
    }
}

void bus_free(struct bus *b)
{
    if (!b) {
        return;
    }
    must(b->is_closed);
    bus_calls_drop(b);
    bus_held_drop(b);
    map_fini(&b->held_by_id);
    b->tp_ops->free(b->tp);
    servers_free(b);
    for (size_t i = 0; i < b->n_addresses; i++) {
        free(b->addresses[i].url);
    }
    free(b->addresses);
    if (b->key.p) {
        explicit_bzero(b->key.p, b->key.len);
    }
    buf_fini(&b->key);
    free(b);
}

void bus_discard(struct bus *b)
{
    if (b->close_timer.fn) {
        b->clock_ops->stop(&b->close_timer);
    }
    b->is_closing = true;
    b->is_closed = true;
    bus_free(b);
}

/* ---- addresses ---- */
int bus_dial(struct bus *b, const char *const *urls, size_t n, struct err *e)
{
    if (b->n_addresses || n == 0) {
        return err_set(e, ERR_ARG, "the bus is dialled once, with at least one address");
    }
    for (size_t i = 0; i < n; i++) {
        int rc = bus_url_check(urls[i], e);
        if (rc) {
            return rc;
        }
    }
    b->addresses = xcalloc(n, sizeof(*b->addresses));
    b->n_addresses = n;
    for (size_t i = 0; i < n; i++) {
        b->addresses[i].url = xstrdup(urls[i]);
        int rc = b->tp_ops->dial(b->tp, i, urls[i], e);
        if (rc) {
            return rc;
        }
    }
    return 0;
}

/* ---- hints ---- */
int bus_publish_on(struct bus *b, const char *url, struct err *e)
{
    int rc = bus_url_check(url, e);
    if (rc) {
        return rc;
    }
    rc = b->tp_ops->publish_on(b->tp, url, e);
    if (rc) {
        return rc;
    }
    b->publishes = true;
    return 0;
}

void bus_publish(struct bus *b, const char topic[4], const ProtobufCMessage *m)
{
    if (b->is_closing || !b->publishes) {
        return;
    }
    auto_buf struct buf packed;
    auto_buf struct buf frame;
    struct err e = {0};
    buf_init(&packed);
    buf_init(&frame);
    bus_pack_into(m, &packed);
    struct bus_frame f = bus_frame_ours(b);
    memcpy(f.topic, topic, sizeof(f.topic));
    f.kind = BUS_EVENT;
    f.payload = buf_slice(&packed);
    if (bus_frame_pack(&f, bus_key(b), &frame, &e)) {
        log_warn("bus.hint_lost", "topic=%.4s why=%s", topic, log_q(err_text(&e)));
        return;
    }
    b->tp_ops->publish(b->tp, buf_slice(&frame));
}

int bus_subscribe(struct bus *b, const char *url, bus_hint_fn fn, void *data, struct err *e)
{
    int rc = bus_url_check(url, e);
    if (rc) {
        return rc;
    }
    struct bus_subscriber *s = xcalloc(1, sizeof(*s));
    *s = (struct bus_subscriber){.bus = b, .url = xstrdup(url), .fn = fn, .data = data};
    list_add_tail(&b->subscribers, &s->link);
    return b->tp_ops->subscribe(b->tp, url, s, e);
}

void bus_up_hint(struct bus_subscriber *s, struct slice wire)
{
    struct bus *b = s->bus;
    if (b->is_closing) {
        return;
    }
    struct arena a;
    struct bus_frame f;
    struct err e = {0};
    arena_init(&a);
    int rc = bus_frame_unpack(wire, bus_key(b), &a, &f, &e);
    if (rc == ERR_MAC) {
        bus_warn_mac(b, &e, "hint");
    }
    if (!rc) {
        rc = bus_frame_check(b, &f, &e);
    }
    const struct bus_kind_row *row = bus_kind_find(BUS_EVENT);
    rc = rc ? rc : bus_kind_fits(row, "hint", f.payload.len, row->request_most, &e);
    if (!rc && f.kind == BUS_EVENT) {
        s->fn(s->data, f.topic, f.payload);
    } else if (rc && rc != ERR_MAC) {
        log_debug("bus.hint_dropped", "why=%s", log_q(err_text(&e)));
    }
    arena_fini(&a);
}
