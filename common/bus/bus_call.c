/* Calling: one request id over as many attempts as it takes until the deadline (protocol.md 9).
 *
 *   WAITING --connected--> OUT --answer--> done
 *      ^                    |  \--transient error, loss, no answer in `patience`--> PAUSED (100 ms
 * doubling to 2 s)
 *      \------ not connected ------------------------------------------------------/   |
 */
#include "common/bus/bus_internal.h"
#include "common/log/log.h"

enum {
    PAUSE_FIRST_MS = 100,
    PAUSE_MOST_MS = 2000,
    PATIENCE_LEAST_MS = 500,
    PATIENCE_MOST_MS = 10000
};

enum phase { WAITING, OUT, PAUSED, FAILING };

struct call {
    struct bus *bus;
    struct bus_call *pub;
    struct list link; /* in bus->calls */
    enum phase phase;
    struct bus_attempt attempt; /* valid while OUT */
    struct bus_timer timer;     /* the nearest of: deadline, patience, end of the pause */
    struct ms deadline;
    struct ms next;  /* end of patience, of the pause, or of waiting for a connection */
    struct ms pause; /* the next one */
    size_t hops;     /* addresses in a row that were not the leader */
    int failing_with;
    struct buf payload;
    struct buf wire;
};

static void call_free(struct call *c)
{
    struct bus *b = c->bus;
    b->clock_ops->stop(&c->timer);
    list_del(&c->link);
    buf_fini(&c->payload);
    buf_fini(&c->wire);
    free(c);
}

static void withdraw(struct call *c)
{
    if (c->phase == OUT) {
        c->bus->tp_ops->cancel(c->bus->tp, &c->attempt);
    }
}

static void finish(struct call *c, int rc)
{
    struct bus_call *pub = c->pub;
    withdraw(c);
    call_free(c);
    pub->impl = NULL;
    pub->rc = rc;
    if (rc == 0) {
        err_clear(&pub->err);
    }
    pub->done(pub);
}

static const char *kind_name(const struct call *c)
{
    const struct bus_kind_row *row = bus_kind_find((uint32_t)c->pub->kind);
    return row ? row->name : "?";
}

/* The deadline is over: what the server said last is the better reason, if it said anything. */
static void finish_late(struct call *c)
{
    if (c->pub->rc) {
        finish(c, c->pub->rc);
        return;
    }
    struct bus *b = c->bus;
    const struct bus_address *a = &b->addresses[b->preferred];
    err_set(&c->pub->err, ERR_BUS_TIMEOUT, "no answer to %s from %s in time (%s)", kind_name(c),
            a->url, a->is_connected ? "connected" : "not connected");
    finish(c, ERR_BUS_TIMEOUT);
}

static void set_timer(struct call *c)
{
    struct bus *b = c->bus;
    struct ms at = ms_min(c->deadline, c->next);
    b->clock_ops->start(b->clock, &c->timer, ms_sub(at, bus_now(b)));
}

static bool pick_address(struct bus *b, size_t *out)
{
    for (size_t i = 0; i < b->n_addresses; i++) {
        size_t at = (b->preferred + i) % b->n_addresses;
        if (b->addresses[at].is_connected) {
            b->preferred = at;
            *out = at;
            return true;
        }
    }
    return false;
}

static void leave_address(struct bus *b, size_t address)
{
    if (b->preferred == address) {
        b->preferred = (address + 1) % b->n_addresses;
    }
}

/* How long one attempt may stay without an answer before it is sent again: the server joins repeats
 * of what it still holds, so this costs little, and only a message lost without a lost connection
 * needs it. */
static struct ms patience(const struct call *c)
{
    int64_t third = ms_sub(c->deadline, bus_now(c->bus)).v / 3;
    return ms_min(ms_max(MS(third), MS(PATIENCE_LEAST_MS)), MS(PATIENCE_MOST_MS));
}

static void send_or_wait(struct call *c)
{
    struct bus *b = c->bus;
    size_t address = 0;
    if (b->is_closing || !pick_address(b, &address)) {
        bool is_patient = c->pub->unconnected.v <= 0;
        c->phase = WAITING;
        c->next = is_patient ? MS_NONE : ms_add(bus_now(b), c->pub->unconnected);
        set_timer(c);
        return;
    }
    struct bus_frame f = bus_frame_ours(b);
    f.kind = (uint32_t)c->pub->kind;
    memcpy(f.request_id, c->pub->request_id, BUS_ID_LEN);
    memcpy(f.trace_id, c->pub->trace_id, BUS_ID_LEN);
    struct ms left = ms_sub(c->deadline, bus_now(b));
    f.budget_ms = (uint32_t)ms_min(ms_max(left, MS(1)), MS(UINT32_MAX)).v;
    f.payload = buf_slice(&c->payload);
    buf_clear(&c->wire);
    must(bus_frame_pack(&f, bus_key(b), &c->wire, NULL) ==
         0); /* its size was checked at the start */
    c->phase = OUT;
    c->attempt = (struct bus_attempt){.address = address};
    c->next = ms_add(bus_now(b), patience(c));
    set_timer(c);
    b->tp_ops->send(b->tp, &c->attempt, buf_slice(&c->wire));
}

static void pause_for(struct call *c, struct ms least)
{
    withdraw(c);
    c->phase = PAUSED;
    c->next = ms_add(bus_now(c->bus), ms_max(c->pause, least));
    c->pause = ms_min(MS(c->pause.v * 2), MS(PAUSE_MOST_MS));
    set_timer(c);
}

/* After the pause that the server asks for, at least; at once with its error when there is no time
 * for it. */
static void pause_after_error(struct call *c, struct ms least)
{
    pause_for(c, least);
    if (!ms_before(c->next, c->deadline)) {
        finish_late(c);
    }
}

static void on_timer(struct bus_timer *t)
{
    struct call *c = container_of(t, struct call, timer);
    if (c->phase == FAILING) {
        finish(c, c->failing_with);
        return;
    }
    bool is_late = !ms_before(bus_now(c->bus), c->deadline);
    bool is_alone = c->phase == WAITING && !ms_before(bus_now(c->bus), c->next);
    if (is_late || is_alone) {
        finish_late(c);
        return;
    }
    if (c->phase == PAUSED) {
        send_or_wait(c);
    } else if (c->phase == OUT && !ms_before(bus_now(c->bus), c->next)) {
        log_debug("bus.repeat", "kind=%s", kind_name(c));
        leave_address(c->bus, c->attempt.address);
        withdraw(c);
        send_or_wait(c);
    } else {
        set_timer(c); /* rang early */
    }
}

/* ---- answers ---- */
static int check_answer(struct call *c, const struct bus_frame *f, int rc, struct err *e)
{
    struct bus *b = c->bus;
    static const struct uuid unknown;
    if (rc == ERR_MAC) {
        bus_warn_mac(b, e, "answer");
    }
    if (rc) {
        return rc;
    }
    bool is_ours = memcmp(f->request_id, c->pub->request_id, BUS_ID_LEN) == 0;
    if (!is_ours && !(f->error_code && id16_is_zero(f->request_id))) {
        return err_set(e, ERR_BUS_FRAME, "an answer to %s carries another request's id",
                       kind_name(c));
    }
    if (f->error_code) {
        return err_set(e, f->error_code, "%s", f->error_text);
    }
    const struct bus_kind_row *row = bus_kind_find((uint32_t)c->pub->kind);
    rc = bus_frame_check(b, f, e);
    rc = rc ? rc : bus_kind_fits(row, "reply", f->payload.len, row->reply_most, e);
    if (rc) {
        return rc;
    }
    if (uuid_eq(&b->installation, &unknown)) {
        b->installation = f->installation;
    }
    return 0;
}

static void on_error_answer(struct call *c, int rc, uint32_t retry_after_ms)
{
    struct bus *b = c->bus;
    size_t address = c->attempt.address;
    c->pub->rc = rc;
    c->pub->retry_after_ms = retry_after_ms;
    if (err_code_class(rc) != ERR_CLASS_TRANSIENT) {
        finish(c, rc);
        return;
    }
    if (rc == ERR_NOT_LEADER) {
        leave_address(b, address);
        if (++c->hops < b->n_addresses) {
            withdraw(c);
            c->phase = PAUSED;
            c->next = bus_now(b);
            set_timer(c);
            return;
        }
        c->hops = 0;
    }
    pause_after_error(c, MS(retry_after_ms));
}

void bus_up_answer(struct bus *b, struct bus_attempt *attempt, int rc, struct slice wire)
{
    struct call *c = container_of(attempt, struct call, attempt);
    must(c->bus == b && c->phase == OUT);
    c->phase = PAUSED; /* the attempt is over: nothing is left to withdraw */
    if (rc) {
        leave_address(b, attempt->address);
        pause_for(c, MS(0));
        return;
    }
    struct arena a;
    struct bus_frame f;
    struct err e = {0};
    arena_init(&a);
    rc = check_answer(c, &f, bus_frame_unpack(wire, bus_key(b), &a, &f, &e), &e);
    if (rc) {
        c->pub->err = e;
        on_error_answer(c, rc, f.retry_after_ms);
    } else {
        c->pub->retry_after_ms = 0;
        c->pub->reply = f.payload;
        finish(c, 0);
    }
    arena_fini(&a);
}

void bus_up_connected(struct bus *b, size_t address, bool is_connected)
{
    struct bus_address *at = &b->addresses[address];
    if (b->is_closing || at->is_connected == is_connected) {
        return;
    }
    at->is_connected = is_connected;
    log_debug("bus.connection", "to=%s up=%d", at->url, is_connected);
    if (!is_connected) {
        leave_address(b, address);
    }
    list_for_each (it, &b->calls) {
        struct call *c = list_entry(it, struct call, link);
        if (is_connected && c->phase == WAITING) {
            send_or_wait(c);
        } else if (!is_connected && c->phase == OUT && c->attempt.address == address) {
            pause_for(c, MS(0));
        }
    }
}

/* ---- the caller's side ---- */
/* Ends the call on the next turn. */
static void fail_soon(struct call *c, int rc)
{
    struct bus *b = c->bus;
    if (c->phase == FAILING) {
        return;
    }
    withdraw(c);
    c->phase = FAILING;
    c->failing_with = rc;
    b->clock_ops->start(b->clock, &c->timer, MS(0));
}

void bus_calls_fail(struct bus *b, int code)
{
    while (!list_empty(&b->calls)) {
        struct call *c = list_entry(b->calls.next, struct call, link);
        int rc = c->phase == FAILING ? c->failing_with : code;
        err_set(&c->pub->err, rc, "%s: %s", kind_name(c), err_code_text(rc));
        finish(c, rc);
    }
}

void bus_calls_drop(struct bus *b)
{
    while (!list_empty(&b->calls)) {
        struct call *c = list_entry(b->calls.next, struct call, link);
        withdraw(c);
        call_free(c);
    }
}

void bus_call_cancel(struct bus_call *pub)
{
    struct call *c = pub->impl;
    if (c && c->phase != FAILING) {
        err_set(&pub->err, ERR_CANCELLED, "%s was cancelled", kind_name(c));
        fail_soon(c, ERR_CANCELLED);
    }
}

static int check_call(const struct bus *b, const struct bus_call *pub, struct err *e)
{
    const struct bus_kind_row *row = bus_kind_find((uint32_t)pub->kind);
    if (!row || pub->kind == BUS_EVENT || !pub->done) {
        return err_set(e, ERR_ARG, "kind %d cannot be called", (int)pub->kind);
    }
    if (b->is_closing) {
        return err_set(e, ERR_SHUTDOWN, "%s: the bus is closing", row->name);
    }
    if (!b->n_addresses) {
        return err_set(e, ERR_ARG, "%s: the bus has not been dialled", row->name);
    }
    size_t len = pub->request ? protobuf_c_message_get_packed_size(pub->request) : 0;
    size_t room = BUS_FRAME_CAP - BUS_FRAME_HEAD - 256 - strlen(b->instance);
    if (len > room) {
        return err_set(e, ERR_LIMIT, "%s: a request of %zu bytes is over the limit of %zu bytes",
                       row->name, len, room);
    }
    return bus_kind_fits(row, "request", len, row->request_most, e);
}

int bus_call_start(struct bus *b, struct bus_call *pub)
{
    err_clear(&pub->err);
    pub->rc = 0;
    pub->retry_after_ms = 0;
    pub->reply = SLICE_NONE;
    pub->impl = NULL;
    int rc = check_call(b, pub, &pub->err);
    if (rc) {
        pub->rc = rc;
        return rc;
    }
    struct call *c = xcalloc(1, sizeof(*c));
    *c = (struct call){.bus = b, .pub = pub, .pause = MS(PAUSE_FIRST_MS)};
    c->timer.fn = on_timer;
    b->clock_ops->init(b->clock, &c->timer);
    if (id16_is_zero(pub->request_id)) {
        b->clock_ops->random(b->clock, pub->request_id, BUS_ID_LEN);
    }
    if (id16_is_zero(pub->trace_id)) {
        b->clock_ops->random(b->clock, pub->trace_id, BUS_ID_LEN);
    }
    bus_pack_into(pub->request, &c->payload);
    struct ms timeout = pub->timeout;
    if (timeout.v <= 0) {
        timeout = MS(bus_kind_find((uint32_t)pub->kind)->timeout_ms);
    }
    c->deadline = ms_add(bus_now(b), timeout);
    pub->impl = c;
    list_add_tail(&b->calls, &c->link);
    send_or_wait(c);
    return 0;
}
