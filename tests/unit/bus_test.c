/* The bus over a transport that only writes down what it was asked: every frame is in the test's
 * hand. */
#include "common/bus/bus_envelope.h"
#include "common/bus/bus_transport.h"
#include "common/log/log.h"
#include "proto/planner.pb-c.h"
#include "tests/support/suite.h"
#include <stdio.h>

enum { SENT_MOST = 64 };
static const char url_0[] = "ipc:///a";
static const char url_1[] = "ipc:///b";

struct sent {
    struct bus_attempt *attempt; /* NULL: cancelled or answered */
    size_t address;
    struct ms at;
    struct buf frame;
};
struct fake {
    struct sim_time time;
    struct bus *bus;
    struct sent sent[SENT_MOST];
    int n_sent, n_cancelled, n_abandoned, n_replies;
    struct bus_server *server;
    struct buf reply; /* the last */
    void *reply_seat;
};

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

static void fake_init(struct fake *f)
{
    *f = (struct fake){0};
    sim_time_init(&f->time, 1);
    struct bus_identity me = {.instance = "gateway-1"};
    f->bus = bus_make(&bus_clock_scripted, &f->time, &me);
    bus_set_transport(f->bus, &fake_ops, f);
}

static void fake_dialled(struct fake *f)
{
    fake_init(f);
    const char *urls[] = {url_0, url_1};
    ck_assert_int_eq(bus_dial(f->bus, urls, 2, NULL), 0);
    bus_up_connected(f->bus, 0, true);
}

static void fake_fini(struct fake *f)
{
    bus_discard(f->bus);
}

static struct bus_frame frame_of(struct buf *b, struct arena *a)
{
    struct bus_frame f;
    ck_assert_int_eq(bus_frame_unpack(buf_slice(b), SLICE_NONE, a, &f, NULL), 0);
    return f;
}

/* Answers the i-th frame that was sent with what `change` made of a good answer. */
static void answer_sent(struct fake *f, int i, void (*change)(struct bus_frame *))
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

struct ask {
    struct bus_call call;
    int n_done;
    char reply[16];
};

static void on_done(struct bus_call *c)
{
    struct ask *a = c->data;
    a->n_done++;
    (void)snprintf(a->reply, sizeof(a->reply), "%.*s", SLICE_FMT(c->reply));
}

static void ask_start(struct ask *a, struct fake *f, int64_t timeout_ms)
{
    *a = (struct ask){
        .call = {.kind = BUS_GET_RUN, .timeout = MS(timeout_ms), .done = on_done, .data = a}};
    ck_assert_int_eq(bus_call_start(f->bus, &a->call), 0);
}

static void make_not_leader(struct bus_frame *f)
{
    f->error_code = ERR_NOT_LEADER;
    f->error_text = "standing by";
}

static void make_transient(struct bus_frame *f)
{
    f->error_code = ERR_STORE;
    f->error_text = "restarting";
}

static void make_old(struct bus_frame *f)
{
    f->version = BUS_VERSION + 1;
}

static void make_anothers(struct bus_frame *f)
{
    f->request_id[0] ^= 1;
}

static void make_rubbish_code(struct bus_frame *f)
{
    f->error_code = 12;
    f->error_text = "no code of ours";
}

START_TEST(budget_is_what_is_left_and_the_id_stays)
{
    struct fake f;
    struct ask a;
    struct arena arena;
    fake_dialled(&f);
    arena_init(&arena);
    ask_start(&a, &f, 6000);
    sim_time_pass(&f.time, MS(500));

    answer_sent(&f, 0, make_transient);
    sim_time_pass(&f.time, MS(100));

    ck_assert_int_eq(f.n_sent, 2);
    struct bus_frame first = frame_of(&f.sent[0].frame, &arena);
    struct bus_frame second = frame_of(&f.sent[1].frame, &arena);
    ck_assert_uint_eq(first.budget_ms, 6000);
    ck_assert_uint_eq(second.budget_ms, 5400);
    ck_assert_mem_eq(first.request_id, second.request_id, 16);
    ck_assert_mem_eq(first.trace_id, second.trace_id, 16);
    ck_assert(!id16_is_zero(first.request_id));
    answer_sent(&f, 1, NULL);
    ck_assert_int_eq(a.n_done, 1);
    ck_assert_str_eq(a.reply, "reply");
    arena_fini(&arena);
    fake_fini(&f);
}
END_TEST

START_TEST(trace_of_the_caller_goes_with_the_call_and_without_one_it_has_its_own)
{
    struct fake f;
    struct arena arena;
    struct ask a[2];
    const uint8_t trace[16] = {4, 7};
    fake_dialled(&f);
    arena_init(&arena);
    for (size_t i = 0; i < 2; i++) {
        a[i] = (struct ask){
            .call = {.kind = BUS_GET_RUN, .timeout = MS(6000), .done = on_done, .data = &a[i]}};
        if (i == 0) {
            memcpy(a[i].call.trace_id, trace, sizeof(trace));
        }
        ck_assert_int_eq(bus_call_start(f.bus, &a[i].call), 0);
    }

    struct bus_frame given = frame_of(&f.sent[0].frame, &arena);
    struct bus_frame own = frame_of(&f.sent[1].frame, &arena);
    ck_assert_mem_eq(given.trace_id, trace, 16);
    ck_assert(!id16_is_zero(own.trace_id));
    ck_assert_mem_ne(own.trace_id, trace, 16);
    arena_fini(&arena);
    fake_fini(&f);
}
END_TEST

START_TEST(pauses_double_up_to_two_seconds)
{
    static const int64_t pauses[] = {100, 200, 400, 800, 1600, 2000, 2000};
    struct fake f;
    struct ask a;
    fake_dialled(&f);
    ask_start(&a, &f, 60000);

    for (size_t i = 0; i < ARRAY_LEN(pauses); i++) {
        answer_sent(&f, (int)i, make_transient);
        sim_time_pass(&f.time, MS(pauses[i]));
        ck_assert_int_eq(f.n_sent, (int)i + 2);
        ck_assert_int_eq(f.sent[i + 1].at.v - f.sent[i].at.v, pauses[i]);
    }
    fake_fini(&f);
}
END_TEST

START_TEST(a_lost_message_is_sent_again)
{
    struct fake f;
    struct ask a;
    fake_dialled(&f);
    bus_up_connected(f.bus, 1, true);
    ask_start(&a, &f, 6000);

    sim_time_pass(&f.time, MS(2000)); /* a third of the time */

    ck_assert_int_eq(f.n_sent, 2);
    ck_assert_int_eq(f.n_cancelled, 1);
    ck_assert_uint_eq(f.sent[1].address, 1); /* the other one may fare better */
    sim_time_pass(&f.time, MS(4000));
    ck_assert_int_eq(a.n_done, 1);
    ck_assert_int_eq(a.call.rc, ERR_BUS_TIMEOUT);
    fake_fini(&f);
}
END_TEST

START_TEST(call_that_may_not_wait_for_a_connection_ends_early_but_not_while_there_is_one)
{
    struct fake f;
    struct ask a = {.call = {.kind = BUS_CREATE_RUN,
                             .timeout = MS(30000),
                             .unconnected = MS(3000),
                             .done = on_done,
                             .data = &a}};
    struct ask patient;
    fake_dialled(&f);
    ck_assert_int_eq(bus_call_start(f.bus, &a.call), 0);
    ask_start(&patient, &f, 30000);
    sim_time_pass(&f.time, MS(9000)); /* sent, without an answer */
    ck_assert_int_eq(a.n_done, 0);

    bus_up_connected(f.bus, 0, false);
    sim_time_pass(&f.time, MS(2900));
    bus_up_connected(f.bus, 1, true); /* another one, in time, and not for long */
    bus_up_connected(f.bus, 1, false);
    sim_time_pass(&f.time, MS(2900));
    ck_assert_int_eq(a.n_done, 0);
    sim_time_pass(&f.time, MS(300));

    ck_assert_int_eq(a.n_done, 1);
    ck_assert_int_eq(a.call.rc, ERR_BUS_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(a.call.err.text, "not connected"));
    ck_assert_int_eq(patient.n_done, 0);
    fake_fini(&f);
}
END_TEST

START_TEST(a_broken_connection_moves_its_calls)
{
    struct fake f;
    struct ask a;
    fake_dialled(&f);
    bus_up_connected(f.bus, 1, true);
    ask_start(&a, &f, 6000);

    bus_up_connected(f.bus, 0, false);
    sim_time_pass(&f.time, MS(100));

    ck_assert_int_eq(f.n_sent, 2);
    ck_assert_uint_eq(f.sent[1].address, 1);
    answer_sent(&f, 1, NULL);
    ck_assert_int_eq(a.call.rc, 0);
    fake_fini(&f);
}
END_TEST

START_TEST(not_leader_goes_on_at_once_and_round_again_after_a_pause)
{
    struct fake f;
    struct ask a;
    fake_dialled(&f);
    bus_up_connected(f.bus, 1, true);
    ask_start(&a, &f, 6000);

    answer_sent(&f, 0, make_not_leader);
    sim_time_pass(&f.time, MS(0));
    ck_assert_int_eq(f.n_sent, 2);
    ck_assert_uint_eq(f.sent[1].address, 1);
    answer_sent(&f, 1, make_not_leader);
    sim_time_pass(&f.time, MS(99));
    ck_assert_int_eq(f.n_sent, 2);
    sim_time_pass(&f.time, MS(1));

    ck_assert_int_eq(f.n_sent, 3);
    ck_assert_uint_eq(f.sent[2].address, 0);
    fake_fini(&f);
}
END_TEST

static void refused_answer(void (*change)(struct bus_frame *), int code)
{
    struct fake f;
    struct ask a;
    fake_dialled(&f);
    ask_start(&a, &f, 6000);

    answer_sent(&f, 0, change);

    ck_assert_int_eq(a.n_done, 1);
    ck_assert_int_eq(a.call.rc, code);
    ck_assert_int_eq(a.call.err.code, code);
    fake_fini(&f);
}

START_TEST(answers_that_do_not_fit_are_refused)
{
    refused_answer(make_old, ERR_VERSION);
    refused_answer(make_anothers, ERR_BUS_FRAME);
    refused_answer(make_rubbish_code, ERR_INTERNAL);
}
END_TEST

START_TEST(an_answer_that_is_rubbish_is_refused)
{
    struct fake f;
    struct ask a;
    fake_dialled(&f);
    ask_start(&a, &f, 6000);

    bus_up_answer(f.bus, f.sent[0].attempt, 0, SLICE("rubbish"));

    ck_assert_int_eq(a.call.rc, ERR_BUS_FRAME);
    fake_fini(&f);
}
END_TEST

START_TEST(cancelling_one_call_leaves_the_other)
{
    struct fake f;
    struct ask a;
    struct ask b;
    fake_dialled(&f);
    ask_start(&a, &f, 6000);
    ask_start(&b, &f, 6000);

    bus_call_cancel(&a.call);
    answer_sent(&f, 1, NULL);
    ck_assert_int_eq(a.n_done, 0);
    sim_time_pass(&f.time, MS(0));

    ck_assert_int_eq(a.n_done, 1);
    ck_assert_int_eq(a.call.rc, ERR_CANCELLED);
    ck_assert_int_eq(b.call.rc, 0);
    fake_fini(&f);
}
END_TEST

START_TEST(bad_calls_are_refused_at_once)
{
    struct fake f;
    struct ask a = {.call = {.kind = BUS_EVENT, .done = on_done}};
    fake_dialled(&f);

    ck_assert_int_eq(bus_call_start(f.bus, &a.call), ERR_ARG);
    a.call.kind = (enum bus_kind)9999;
    ck_assert_int_eq(bus_call_start(f.bus, &a.call), ERR_ARG);
    fake_fini(&f);
    fake_init(&f);
    a.call.kind = BUS_GET_RUN;
    ck_assert_int_eq(bus_call_start(f.bus, &a.call), ERR_ARG);
    ck_assert(strstr(a.call.err.text, "has not been dialled"));
    fake_fini(&f);
}
END_TEST

/* ---- serving ---- */
struct handler {
    int n;
    struct bus_request *held;
};

static void on_request(void *data, struct bus_request *r)
{
    struct handler *h = data;
    h->n++;
    h->held = r;
}

static struct bus_frame request(uint8_t id)
{
    struct bus_frame f = {
        .version = BUS_VERSION, .kind = BUS_GET_RUN, .instance = "builder-1", .budget_ms = 5000};
    memset(f.request_id, id, sizeof(f.request_id));
    return f;
}

static void deliver(struct fake *f, const struct bus_frame *req, void *seat)
{
    auto_buf struct buf wire;
    buf_init(&wire);
    ck_assert_int_eq(bus_frame_pack(req, SLICE_NONE, &wire, NULL), 0);
    bus_up_request(f->server, seat, buf_slice(&wire));
}

static void serving(struct fake *f, struct handler *h)
{
    fake_init(f);
    *h = (struct handler){0};
    ck_assert_int_eq(bus_serve(f->bus, url_0, 4, on_request, h, NULL), 0);
}

static int refusal(struct fake *f, struct bus_frame *out, struct arena *a)
{
    *out = frame_of(&f->reply, a);
    return out->error_code;
}

START_TEST(the_bus_itself_answers_what_nobody_handles)
{
    struct fake f;
    struct handler h;
    struct bus_frame rep;
    struct arena a;
    int seat = 0;
    serving(&f, &h);
    arena_init(&a);

    struct bus_frame req = request(1);
    req.kind = 9999;
    deliver(&f, &req, &seat);
    ck_assert_int_eq(refusal(&f, &rep, &a), ERR_UNKNOWN_KIND);
    ck_assert_mem_eq(rep.request_id, req.request_id, 16);
    req.kind = BUS_EVENT;
    deliver(&f, &req, &seat);
    ck_assert_int_eq(refusal(&f, &rep, &a), ERR_UNKNOWN_KIND);
    req = request(1);
    req.version = BUS_VERSION + 1;
    deliver(&f, &req, &seat);
    ck_assert_int_eq(refusal(&f, &rep, &a), ERR_VERSION);
    bus_up_request(f.server, &seat, SLICE("rubbish"));
    ck_assert_int_eq(refusal(&f, &rep, &a), ERR_BUS_FRAME);

    ck_assert_int_eq(f.n_replies, 4);
    ck_assert_int_eq(h.n, 0);
    arena_fini(&a);
    fake_fini(&f);
}
END_TEST

START_TEST(request_at_its_kinds_limit_is_taken_and_one_byte_more_is_refused)
{
    struct fake f;
    struct handler h;
    struct arena a;
    int seat = 0;
    size_t n = 0;
    const struct bus_kind_row *rows = bus_kind_rows(&n);
    serving(&f, &h);
    for (size_t i = 0; i < n; i++) {
        const struct bus_kind_row *row = &rows[i];
        if (row->number == BUS_EVENT) {
            continue;
        }
        ck_assert_uint_le(row->request_most, (size_t)4 << 20);
        char *payload = xcalloc(1, row->request_most + 1);
        struct bus_frame req = request((uint8_t)(i + 1)), rep;
        req.kind = row->number;
        req.payload = slice_make(payload, row->request_most);
        int before = h.n;
        deliver(&f, &req, &seat);
        ck_assert_int_eq(h.n, before + 1);
        bus_reply(h.held, NULL);

        req.payload.len++;
        deliver(&f, &req, &seat);
        ck_assert_int_eq(h.n, before + 1);
        arena_init(&a);
        ck_assert_int_eq(refusal(&f, &rep, &a), ERR_LIMIT);
        auto_free char *says =
            xasprintf("%s: a request of %zu bytes is over its limit of %zu bytes", row->name,
                      row->request_most + 1, row->request_most);
        ck_assert_str_eq(rep.error_text, says);
        arena_fini(&a);
        free(payload);
    }
    fake_fini(&f);
}
END_TEST

static char long_reply[(1088 << 10) + 1];

START_TEST(answer_over_its_kinds_limit_is_not_sent)
{
    struct fake f;
    struct handler h;
    struct arena a;
    struct bus_frame rep, req = request(1);
    int seat = 0;
    serving(&f, &h);
    arena_init(&a);
    req.kind = BUS_GET_FILE;
    ck_assert_uint_eq(bus_kind_find(BUS_GET_FILE)->reply_most, sizeof(long_reply) - 1);

    deliver(&f, &req, &seat);
    bus_reply_packed(h.held, slice_make(long_reply, sizeof(long_reply) - 1));
    ck_assert_int_eq(refusal(&f, &rep, &a), 0);
    ck_assert_uint_eq(rep.payload.len, sizeof(long_reply) - 1);
    deliver(&f, &req, &seat);
    bus_reply_packed(h.held, slice_make(long_reply, sizeof(long_reply)));

    ck_assert_int_eq(refusal(&f, &rep, &a), ERR_LIMIT);
    ck_assert_uint_eq(rep.payload.len, 0);
    arena_fini(&a);
    fake_fini(&f);
}
END_TEST

static void make_longest(struct bus_frame *f)
{
    f->payload = slice_make(long_reply, sizeof(long_reply) - 1);
}

static void make_too_long(struct bus_frame *f)
{
    f->payload = slice_make(long_reply, sizeof(long_reply));
}

START_TEST(answer_over_its_kinds_limit_is_not_taken)
{
    struct fake f;
    struct ask a[2];
    fake_dialled(&f);
    for (size_t i = 0; i < 2; i++) {
        a[i] = (struct ask){.call = {.kind = BUS_GET_FILE, .done = on_done, .data = &a[i]}};
        ck_assert_int_eq(bus_call_start(f.bus, &a[i].call), 0);
    }

    answer_sent(&f, 0, make_longest);
    answer_sent(&f, 1, make_too_long);

    ck_assert_int_eq(a[0].call.rc, 0);
    ck_assert_int_eq(a[1].call.rc, ERR_LIMIT);
    ck_assert_str_eq(a[1].call.err.text,
                     "GET_FILE: a reply of 1114113 bytes is over its limit of 1114112 bytes");
    fake_fini(&f);
}
END_TEST

START_TEST(request_over_its_kinds_limit_is_not_sent)
{
    struct fake f;
    struct ask a = {.call = {.kind = BUS_GET_RUN, .done = on_done, .data = &a}};
    Kiln__GetRunReq q = KILN__GET_RUN_REQ__INIT;
    char *id = xcalloc(1, 64 << 10);
    memset(id, 'x', (64 << 10) - 3); /* a tag, three bytes of length, and it is one too long */
    q.id = id;
    a.call.request = &q.base;
    fake_dialled(&f);

    ck_assert_int_eq(bus_call_start(f.bus, &a.call), ERR_LIMIT);
    id[(64 << 10) - 4] = '\0';
    ck_assert_int_eq(bus_call_start(f.bus, &a.call), 0);
    ck_assert_int_eq(f.n_sent, 1);
    free(id);
    fake_fini(&f);
}
END_TEST

static int n_taken;
static void on_taken(struct bus_request *r, const struct bus_answer *a)
{
    n_taken++;
    ck_assert_str_eq(a->text, "not now");
    r->data = NULL;
}

START_TEST(answer_that_someone_takes_is_given_when_he_gives_it)
{
    struct fake f;
    struct handler h;
    struct arena a;
    struct bus_frame rep, req = request(1);
    int seat = 0;
    serving(&f, &h);
    arena_init(&a);
    n_taken = 0;

    deliver(&f, &req, &seat);
    h.held->on_answer = on_taken;
    bus_reply_error(h.held, ERR_STORE, "not now", 7);
    ck_assert_int_eq(n_taken, 1);
    ck_assert_int_eq(f.n_replies, 0);
    deliver(&f, &req, &seat); /* still held: a repeat joins it */
    ck_assert_int_eq(h.n, 1);
    bus_reply_error(h.held, ERR_CONFLICT, "no", 0);

    ck_assert_int_eq(n_taken, 1);
    ck_assert_int_eq(refusal(&f, &rep, &a), ERR_CONFLICT);
    arena_fini(&a);
    fake_fini(&f);
}
END_TEST

START_TEST(a_repeat_of_a_held_request_moves_its_answer)
{
    struct fake f;
    struct handler h;
    int seat_1 = 0;
    int seat_2 = 0;
    struct bus_frame req = request(1);
    serving(&f, &h);

    deliver(&f, &req, &seat_1);
    deliver(&f, &req, &seat_2);
    ck_assert_int_eq(h.n, 1);
    ck_assert_int_eq(f.n_abandoned, 1);
    bus_reply(h.held, NULL);
    ck_assert_ptr_eq(f.reply_seat, &seat_2);
    deliver(&f, &req, &seat_1); /* after the answer it is a new request: handlers are idempotent */

    ck_assert_int_eq(h.n, 2);
    bus_reply(h.held, NULL);
    fake_fini(&f);
}
END_TEST

START_TEST(equal_ids_of_different_callers_are_different_requests)
{
    struct fake f;
    struct handler h;
    int seat = 0;
    struct bus_frame req = request(1);
    serving(&f, &h);

    deliver(&f, &req, &seat);
    req.boot.b[0] = 9;
    deliver(&f, &req, &seat);
    req.kind = BUS_LIST_RUNS;
    deliver(&f, &req, &seat);

    ck_assert_int_eq(h.n, 3);
    fake_fini(&f); /* frees what is still held */
}
END_TEST

START_TEST(a_request_without_a_budget_has_the_kinds_own)
{
    struct fake f;
    struct handler h;
    int seat = 0;
    struct bus_frame req = request(1);
    serving(&f, &h);
    sim_time_pass(&f.time, MS(10));

    req.budget_ms = 0;
    deliver(&f, &req, &seat);

    ck_assert_int_eq(h.held->deadline.v, 5010);
    fake_fini(&f);
}
END_TEST

int main(void)
{
    log_setup("test", LOG_ERROR, LOG_FORM_TEXT);
    Suite *s = suite_create("bus");
    TCase *t = tcase_create("all");
    tcase_add_test(t, budget_is_what_is_left_and_the_id_stays);
    tcase_add_test(t, trace_of_the_caller_goes_with_the_call_and_without_one_it_has_its_own);
    tcase_add_test(t, pauses_double_up_to_two_seconds);
    tcase_add_test(t, a_lost_message_is_sent_again);
    tcase_add_test(t,
                   call_that_may_not_wait_for_a_connection_ends_early_but_not_while_there_is_one);
    tcase_add_test(t, a_broken_connection_moves_its_calls);
    tcase_add_test(t, not_leader_goes_on_at_once_and_round_again_after_a_pause);
    tcase_add_test(t, answers_that_do_not_fit_are_refused);
    tcase_add_test(t, an_answer_that_is_rubbish_is_refused);
    tcase_add_test(t, cancelling_one_call_leaves_the_other);
    tcase_add_test(t, bad_calls_are_refused_at_once);
    tcase_add_test(t, the_bus_itself_answers_what_nobody_handles);
    tcase_add_test(t, request_at_its_kinds_limit_is_taken_and_one_byte_more_is_refused);
    tcase_add_test(t, answer_over_its_kinds_limit_is_not_sent);
    tcase_add_test(t, answer_over_its_kinds_limit_is_not_taken);
    tcase_add_test(t, request_over_its_kinds_limit_is_not_sent);
    tcase_add_test(t, answer_that_someone_takes_is_given_when_he_gives_it);
    tcase_add_test(t, a_repeat_of_a_held_request_moves_its_answer);
    tcase_add_test(t, equal_ids_of_different_callers_are_different_requests);
    tcase_add_test(t, a_request_without_a_budget_has_the_kinds_own);
    suite_add_tcase(s, t);
    return suite_run(s);
}
