/* The limits of each kind's requests and replies, held on both sides. */
#include "proto/planner.pb-c.h"
#include "tests/unit/bus_fixture.h"
#include "tests/unit/bus_suites.h"

START_TEST(request_at_its_kinds_limit_is_taken_and_one_byte_more_is_refused)
{
    struct serving s;
    size_t n = 0;
    const struct bus_kind_row *rows = bus_kind_rows(&n);
    serving_init(&s);
    for (size_t i = 0; i < n; i++) {
        const struct bus_kind_row *row = &rows[i];
        if (row->number == BUS_EVENT) {
            continue;
        }
        ck_assert_uint_le(row->request_most, (size_t)4 << 20);
        char *payload = xcalloc(1, row->request_most + 1);
        s.req = request((uint8_t)(i + 1));
        s.req.kind = row->number;
        s.req.payload = slice_make(payload, row->request_most);
        int before = s.h.n;
        deliver(&s, &s.seat);
        ck_assert_int_eq(s.h.n, before + 1);
        bus_reply(s.h.held, NULL);

        s.req.payload.len++;
        deliver(&s, &s.seat);
        ck_assert_int_eq(s.h.n, before + 1);
        ck_assert_int_eq(refusal(&s), ERR_LIMIT);
        auto_free char *says =
            xasprintf("%s: a request of %zu bytes is over its limit of %zu bytes", row->name,
                      row->request_most + 1, row->request_most);
        ck_assert_str_eq(s.rep.error_text, says);
        free(payload);
    }
    serving_fini(&s);
}
END_TEST

static char long_reply[(1088 << 10) + 1];

START_TEST(answer_over_its_kinds_limit_is_not_sent)
{
    struct serving s;
    serving_init(&s);
    s.req.kind = BUS_GET_FILE;
    ck_assert_uint_eq(bus_kind_find(BUS_GET_FILE)->reply_most, sizeof(long_reply) - 1);

    deliver(&s, &s.seat);
    bus_reply_packed(s.h.held, slice_make(long_reply, sizeof(long_reply) - 1));
    ck_assert_int_eq(refusal(&s), 0);
    ck_assert_uint_eq(s.rep.payload.len, sizeof(long_reply) - 1);
    deliver(&s, &s.seat);
    bus_reply_packed(s.h.held, slice_make(long_reply, sizeof(long_reply)));

    ck_assert_int_eq(refusal(&s), ERR_LIMIT);
    ck_assert_uint_eq(s.rep.payload.len, 0);
    serving_fini(&s);
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

TCase *bus_limit_tests(void)
{
    TCase *t = tcase_create("limits");
    tcase_add_test(t, request_at_its_kinds_limit_is_taken_and_one_byte_more_is_refused);
    tcase_add_test(t, answer_over_its_kinds_limit_is_not_sent);
    tcase_add_test(t, answer_over_its_kinds_limit_is_not_taken);
    tcase_add_test(t, request_over_its_kinds_limit_is_not_sent);
    return t;
}
