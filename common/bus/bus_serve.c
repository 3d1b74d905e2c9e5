/* Serving: requests are checked, joined when they are repeats of one that is still held, and
 * answered once. */
#include "common/bus/bus_internal.h"
#include "common/log/log.h"

enum { HELD_KEY_LEN = 16 + 16 + 4 };

/* One request that waits for its answer. */
struct served {
    struct bus_request pub;
    struct bus_server *server;
    struct list link; /* in bus->held */
    void *seat;       /* of the newest copy of it that came */
    uint8_t key[HELD_KEY_LEN];
};

static struct slice held_key(const struct served *s)
{
    return slice_make(s->key, sizeof(s->key));
}

static void served_free(struct served *s)
{
    struct bus *b = s->server->bus;
    if (list_linked(&s->link)) {
        list_del(&s->link);
        (void)map_del(&b->held_by_id, held_key(s)); /* a request without an id was never put */
    }
    arena_fini(&s->pub.arena);
    free(s);
}

void bus_held_drop(struct bus *b)
{
    while (!list_empty(&b->held)) {
        served_free(list_entry(b->held.next, struct served, link));
    }
}

static void answer(struct served *s, struct bus_frame *f)
{
    struct bus *b = s->server->bus;
    if (b->is_closing) {
        if (!b->is_closed) {
            b->tp_ops->abandon(b->tp, s->seat);
        }
        return;
    }
    auto_buf struct buf wire;
    struct err e = {0};
    buf_init(&wire);
    f->kind = (uint32_t)s->pub.kind;
    memcpy(f->request_id, s->pub.request_id, BUS_ID_LEN);
    memcpy(f->trace_id, s->pub.trace_id, BUS_ID_LEN);
    const struct bus_kind_row *row = bus_kind_find(f->kind); /* NULL: refused for it */
    int rc = row ? bus_kind_fits(row, "reply", f->payload.len, row->reply_most, &e) : 0;
    rc = rc ? rc : bus_frame_pack(f, bus_key(b), &wire, &e);
    if (rc) {
        log_error("bus.answer_too_long", "kind=%u bytes=%zu", f->kind, f->payload.len);
        f->payload = SLICE_NONE;
        f->error_code = ERR_LIMIT;
        f->error_text = e.text;
        must(bus_frame_pack(f, bus_key(b), &wire, NULL) == 0);
    }
    b->tp_ops->reply(b->tp, s->seat, buf_slice(&wire));
}

/* True when someone else takes the answer. */
static bool is_taken(struct bus_request *r, const struct bus_answer *a)
{
    void (*take)(struct bus_request *, const struct bus_answer *) = r->on_answer;
    r->on_answer = NULL;
    if (take) {
        take(r, a);
    }
    return take != NULL;
}

void bus_reply_packed(struct bus_request *r, struct slice packed)
{
    if (is_taken(r, &(struct bus_answer){.packed = packed})) {
        return;
    }
    struct served *s = r->impl;
    struct bus_frame f = bus_frame_ours(s->server->bus);
    f.payload = packed;
    answer(s, &f);
    served_free(s);
}

void bus_reply(struct bus_request *r, const ProtobufCMessage *message)
{
    auto_buf struct buf packed;
    buf_init(&packed);
    bus_pack_into(message, &packed);
    bus_reply_packed(r, buf_slice(&packed));
}

void bus_reply_error(struct bus_request *r, int code, const char *text, uint32_t retry_after_ms)
{
    code = code < 0 ? code : ERR_INTERNAL;
    if (is_taken(r, &(struct bus_answer){
                        .code = code, .text = text, .retry_after_ms = retry_after_ms})) {
        return;
    }
    struct served *s = r->impl;
    struct bus_frame f = bus_frame_ours(s->server->bus);
    f.error_code = code;
    f.error_text = text && *text ? text : err_code_text(f.error_code);
    f.retry_after_ms = retry_after_ms;
    answer(s, &f);
    served_free(s);
}

int bus_serve(struct bus *b, const char *url, unsigned held, bus_serve_fn fn, void *data,
              struct err *e)
{
    int rc = bus_url_check(url, e);
    if (rc) {
        return rc;
    }
    if (held == 0) {
        return err_set(e, ERR_ARG, "a bus server must be able to hold at least one call");
    }
    struct bus_server *s = xcalloc(1, sizeof(*s));
    *s = (struct bus_server){.bus = b, .url = xstrdup(url), .fn = fn, .data = data};
    list_add_tail(&b->servers, &s->link);
    return b->tp_ops->serve(b->tp, url, held, s, e);
}

/* Why the bus itself refuses a request, or 0. */
static int check_request(struct bus *b, const struct bus_frame *f, struct err *e)
{
    int rc = bus_frame_check(b, f, e);
    if (rc) {
        return rc;
    }
    const struct bus_kind_row *row = bus_kind_find(f->kind);
    if (!row || f->kind == BUS_EVENT) {
        return err_set(e, ERR_UNKNOWN_KIND, "%s does not know message kind %u", b->instance,
                       f->kind);
    }
    return bus_kind_fits(row, "request", f->payload.len, row->request_most, e);
}

static void set_request(struct served *s, const struct bus_frame *f)
{
    struct bus *b = s->server->bus;
    const struct bus_kind_row *row = bus_kind_find(f->kind);
    uint32_t budget = f->budget_ms ? f->budget_ms : row ? row->timeout_ms : 0;
    s->pub.kind = (enum bus_kind)f->kind;
    memcpy(s->pub.request_id, f->request_id, BUS_ID_LEN);
    memcpy(s->pub.trace_id, f->trace_id, BUS_ID_LEN);
    s->pub.instance = f->instance;
    s->pub.boot = f->boot;
    s->pub.deadline = ms_add(bus_now(b), MS(budget));
    s->pub.payload = f->payload;
    memcpy(s->key, f->boot.b, 16);
    memcpy(s->key + 16, f->request_id, 16);
    memcpy(s->key + 32, &f->kind, 4);
}

/* A repeat of a request that is still held: its caller waits at the new seat now. */
static bool joins_held(struct served *repeat)
{
    struct bus *b = repeat->server->bus;
    struct served *first = map_get(&b->held_by_id, held_key(repeat));
    if (!first || id16_is_zero(repeat->pub.request_id)) {
        return false;
    }
    b->tp_ops->abandon(b->tp, first->seat);
    first->seat = repeat->seat;
    first->pub.deadline = ms_max(first->pub.deadline, repeat->pub.deadline);
    return true;
}

void bus_up_request(struct bus_server *server, void *seat, struct slice wire)
{
    struct bus *b = server->bus;
    if (b->is_closing) {
        b->tp_ops->abandon(b->tp, seat);
        return;
    }
    struct err e = {0};
    struct bus_frame f;
    struct served *s = xcalloc(1, sizeof(*s));
    s->server = server;
    s->seat = seat;
    s->pub.impl = s;
    list_init(&s->link);
    arena_init(&s->pub.arena);
    int rc = bus_frame_unpack(wire, bus_key(b), &s->pub.arena, &f, &e);
    set_request(s, &f);
    if (rc == ERR_MAC) {
        bus_warn_mac(b, &e, "call");
    }
    if (!rc) {
        rc = check_request(b, &f, &e);
    }
    if (rc) {
        log_debug("bus.refused", "from=%s kind=%u why=%s", log_q(f.instance), f.kind,
                  log_q(err_text(&e)));
        bus_reply_error(&s->pub, rc, e.text, 0);
        return;
    }
    if (joins_held(s)) {
        served_free(s);
        return;
    }
    list_add_tail(&b->held, &s->link);
    if (!id16_is_zero(s->pub.request_id)) {
        (void)map_put(&b->held_by_id, held_key(s), s);
    }
    server->fn(server->data, &s->pub);
}
