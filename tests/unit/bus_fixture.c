/* The fixture of the bus tests. */
#include "tests/unit/bus_fixture.h"

#include <stdio.h>

static const char url_0[] = "ipc:///a";
static const char url_1[] = "ipc:///b";

static int fake_dial(void *data, size_t address, const char *url, struct err *e)
{
    (void)data, (void)address, (void)url, (void)e;
    return 0;
}

static void fake_send(void *data, struct bus_attempt *a, struct slice frame)
{
    struct fake *f = data;
    ck_assert_int_lt(f->n_sent, SENT_MOST);
    struct sent *s = &f->sent[f->n_sent++];
    *s = (struct sent){.attempt = a, .address = a->address, .at = f->time.now};
    buf_add_slice(&s->frame, frame);
}

static void fake_cancel(void *data, struct bus_attempt *a)
{
    struct fake *f = data;
    f->n_cancelled++;
    for (int i = 0; i < f->n_sent; i++) {
        if (f->sent[i].attempt == a) {
            f->sent[i].attempt = NULL;
        }
    }
}

static int fake_serve(void *data, const char *url, unsigned held, struct bus_server *s,
                      struct err *e)
{
    (void)url, (void)held, (void)e;
    ((struct fake *)data)->server = s;
    return 0;
}

static void fake_reply(void *data, void *seat, struct slice frame)
{
    struct fake *f = data;
    f->n_replies++;
    f->reply_seat = seat;
    buf_clear(&f->reply);
    buf_add_slice(&f->reply, frame);
}

static void fake_abandon(void *data, void *seat)
{
    (void)seat;
    ((struct fake *)data)->n_abandoned++;
}

static void fake_close(void *data)
{
    bus_up_closed(((struct fake *)data)->bus);
}

static void fake_free(void *data)
{
    struct fake *f = data;
    for (int i = 0; i < f->n_sent; i++) {
        buf_fini(&f->sent[i].frame);
    }
    buf_fini(&f->reply);
}

static const struct bus_transport_ops fake_ops = {.dial = fake_dial,
                                                  .send = fake_send,
                                                  .cancel = fake_cancel,
                                                  .serve = fake_serve,
                                                  .reply = fake_reply,
                                                  .abandon = fake_abandon,
                                                  .close = fake_close,
                                                  .free = fake_free};

void fake_init(struct fake *f)
{
    *f = (struct fake){0};
    sim_time_init(&f->time, 1);
    struct bus_identity me = {.instance = "gateway-1"};
    f->bus = bus_make(&bus_clock_scripted, &f->time, &me);
    bus_set_transport(f->bus, &fake_ops, f);
}

void fake_dialled(struct fake *f)
{
    fake_init(f);
    const char *urls[] = {url_0, url_1};
    ck_assert_int_eq(bus_dial(f->bus, urls, 2, NULL), 0);
    bus_up_connected(f->bus, 0, true);
}

void fake_fini(struct fake *f)
{
    bus_discard(f->bus);
}

struct bus_frame frame_of(struct buf *b, struct arena *a)
{
    struct bus_frame f;
    ck_assert_int_eq(bus_frame_unpack(buf_slice(b), SLICE_NONE, a, &f, NULL), 0);
    return f;
}

void answer_sent(struct fake *f, int i, void (*change)(struct bus_frame *))
{
    struct arena a;
    arena_init(&a);
    struct bus_frame rep = frame_of(&f->sent[i].frame, &a);
    auto_buf struct buf wire;
    buf_init(&wire);
    rep.instance = "planner-1";
    rep.payload = SLICE("reply");
    if (change) {
        change(&rep);
    }
    ck_assert_int_eq(bus_frame_pack(&rep, SLICE_NONE, &wire, NULL), 0);
    struct bus_attempt *attempt = f->sent[i].attempt;
    ck_assert_ptr_nonnull(attempt);
    f->sent[i].attempt = NULL;
    bus_up_answer(f->bus, attempt, 0, buf_slice(&wire));
    arena_fini(&a);
}

void on_done(struct bus_call *c)
{
    struct ask *a = c->data;
    a->n_done++;
    (void)snprintf(a->reply, sizeof(a->reply), "%.*s", SLICE_FMT(c->reply));
}

void ask_start(struct ask *a, struct fake *f, int64_t timeout_ms)
{
    *a = (struct ask){
        .call = {.kind = BUS_GET_RUN, .timeout = MS(timeout_ms), .done = on_done, .data = a}};
    ck_assert_int_eq(bus_call_start(f->bus, &a->call), 0);
}

/* ---- serving ---- */
static void on_request(void *data, struct bus_request *r)
{
    struct handler *h = data;
    h->n++;
    h->held = r;
}

struct bus_frame request(uint8_t id)
{
    struct bus_frame f = {
        .version = BUS_VERSION, .kind = BUS_GET_RUN, .instance = "builder-1", .budget_ms = 5000};
    memset(f.request_id, id, sizeof(f.request_id));
    return f;
}

void serving_init(struct serving *s)
{
    *s = (struct serving){.req = request(1)};
    fake_init(&s->f);
    arena_init(&s->arena);
    ck_assert_int_eq(bus_serve(s->f.bus, url_0, 4, on_request, &s->h, NULL), 0);
}

void serving_fini(struct serving *s)
{
    arena_fini(&s->arena);
    fake_fini(&s->f);
}

void deliver(struct serving *s, void *seat)
{
    auto_buf struct buf wire;
    buf_init(&wire);
    ck_assert_int_eq(bus_frame_pack(&s->req, SLICE_NONE, &wire, NULL), 0);
    bus_up_request(s->f.server, seat, buf_slice(&wire));
}

int refusal(struct serving *s)
{
    s->rep = frame_of(&s->f.reply, &s->arena);
    return s->rep.error_code;
}
