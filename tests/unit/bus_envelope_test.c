#include "common/bus/bus.h"
#include "common/bus/bus_envelope.h"
#include "common/bus/kinds.h"
#include "proto/gateway.pb-c.h"
#include "tests/support/suite.h"

static struct bus_frame sample(void)
{
    struct bus_frame f = {.topic = "bind",
                          .version = BUS_VERSION,
                          .kind = BUS_GET_RUN,
                          .instance = "builder-1",
                          .budget_ms = 1234,
                          .payload = SLICE("pay\0load"),
                          .error_code = ERR_FENCED,
                          .error_text = "held by another",
                          .retry_after_ms = 77};
    memset(f.request_id, 1, sizeof(f.request_id));
    memset(f.trace_id, 2, sizeof(f.trace_id));
    memset(f.installation.b, 3, sizeof(f.installation.b));
    memset(f.boot.b, 4, sizeof(f.boot.b));
    return f;
}

static void pack(const struct bus_frame *f, const char *key, struct buf *wire)
{
    struct err e = {0};
    buf_init(wire);
    ck_assert_msg(bus_frame_pack(f, slice_of(key), wire, &e) == 0, "%s", e.text);
}

START_TEST(every_field_survives_the_wire)
{
    struct bus_frame f = sample();
    struct bus_frame back;
    struct arena a;
    auto_buf struct buf wire;
    arena_init(&a);
    pack(&f, "key", &wire);

    ck_assert_int_eq(bus_frame_unpack(buf_slice(&wire), SLICE("key"), &a, &back, NULL), 0);

    ck_assert_mem_eq(back.topic, "bind", 4);
    ck_assert_uint_eq(back.version, BUS_VERSION);
    ck_assert_uint_eq(back.kind, BUS_GET_RUN);
    ck_assert_mem_eq(back.request_id, f.request_id, 16);
    ck_assert_mem_eq(back.trace_id, f.trace_id, 16);
    ck_assert(uuid_eq(&back.installation, &f.installation));
    ck_assert(uuid_eq(&back.boot, &f.boot));
    ck_assert_str_eq(back.instance, "builder-1");
    ck_assert_uint_eq(back.budget_ms, 1234);
    ck_assert(slice_eq(back.payload, f.payload));
    ck_assert_int_eq(back.error_code, ERR_FENCED);
    ck_assert_str_eq(back.error_text, "held by another");
    ck_assert_uint_eq(back.retry_after_ms, 77);
    arena_fini(&a);
}
END_TEST

START_TEST(without_a_key_the_mac_is_zero_and_not_asked_for)
{
    static const char zeroes[32];
    struct bus_frame f = sample();
    struct bus_frame back;
    struct arena a;
    auto_buf struct buf wire;
    arena_init(&a);
    pack(&f, "", &wire);

    ck_assert_mem_eq(wire.p + 4, zeroes, 32);
    memset(wire.p + 4, 9, 32);
    ck_assert_int_eq(bus_frame_unpack(buf_slice(&wire), SLICE_NONE, &a, &back, NULL), 0);
    arena_fini(&a);
}
END_TEST

START_TEST(the_mac_covers_the_whole_frame_and_the_topic)
{
    struct bus_frame f = sample();
    struct bus_frame back;
    auto_buf struct buf wire;
    pack(&f, "key", &wire);

    for (size_t i = 0; i < wire.len; i++) {
        struct arena a;
        arena_init(&a);
        wire.p[i] = (char)(wire.p[i] ^ 1);
        int rc = bus_frame_unpack(buf_slice(&wire), SLICE("key"), &a, &back, NULL);
        ck_assert_msg(rc == ERR_MAC || rc == ERR_BUS_FRAME, "byte %zu: %d", i, rc);
        wire.p[i] = (char)(wire.p[i] ^ 1);
        arena_fini(&a);
    }
}
END_TEST

START_TEST(a_refused_frame_still_tells_whom_to_answer)
{
    struct bus_frame f = sample();
    struct bus_frame back;
    struct err e = {0};
    struct arena a;
    auto_buf struct buf wire;
    arena_init(&a);
    pack(&f, "their key", &wire);

    ck_assert_int_eq(bus_frame_unpack(buf_slice(&wire), SLICE("our key"), &a, &back, &e), ERR_MAC);

    ck_assert_mem_eq(back.request_id, f.request_id, 16);
    ck_assert(strstr(e.text, "KILN_BUS_KEY") && strstr(e.text, "builder-1"));
    ck_assert(!strstr(e.text, "our key"));
    arena_fini(&a);
}
END_TEST

START_TEST(what_is_no_frame_is_refused)
{
    struct bus_frame f = sample();
    struct bus_frame back;
    struct arena a;
    auto_buf struct buf wire;
    arena_init(&a);
    pack(&f, "", &wire);

    for (size_t len = 0; len < wire.len; len++) { /* every cut that ends inside of a field */
        int rc = bus_frame_unpack(slice_make(wire.p, len), SLICE_NONE, &a, &back, NULL);
        ck_assert(rc == 0 || rc == ERR_BUS_FRAME);
        ck_assert(len >= BUS_FRAME_HEAD || rc == ERR_BUS_FRAME);
        ck_assert(back.instance != NULL && back.error_text != NULL);
    }
    static const char short_id[] = {0x1a, 3, 'a', 'b', 'c'}; /* request_id of 3 bytes */
    wire.len = BUS_FRAME_HEAD;
    buf_add(&wire, short_id, sizeof(short_id));
    ck_assert_int_eq(bus_frame_unpack(buf_slice(&wire), SLICE_NONE, &a, &back, NULL),
                     ERR_BUS_FRAME);
    arena_fini(&a);
}
END_TEST

START_TEST(a_frame_over_the_cap_is_neither_made_nor_read)
{
    struct bus_frame f = sample();
    struct bus_frame back;
    struct err e = {0};
    struct arena a;
    auto_buf struct buf wire;
    arena_init(&a);
    buf_init(&wire);
    char *big = xcalloc(1, BUS_FRAME_CAP + 1);
    f.payload = slice_make(big, BUS_FRAME_CAP);

    ck_assert_int_eq(bus_frame_pack(&f, SLICE_NONE, &wire, &e), ERR_LIMIT);
    ck_assert_uint_eq(wire.len, 0);
    ck_assert_int_eq(
        bus_frame_unpack(slice_make(big, BUS_FRAME_CAP + 1), SLICE_NONE, &a, &back, NULL),
        ERR_BUS_FRAME);

    free(big);
    arena_fini(&a);
}
END_TEST

START_TEST(versions_n_and_n_minus_one_are_understood)
{
    ck_assert(bus_version_fits(3, 3));
    ck_assert(bus_version_fits(2, 3));
    ck_assert(!bus_version_fits(1, 3));
    ck_assert(!bus_version_fits(4, 3));
    ck_assert(!bus_version_fits(0, 1)); /* no version at all */
}
END_TEST

START_TEST(a_wire_error_is_never_a_success)
{
    ck_assert_int_eq(bus_error_code(ERR_FENCED), ERR_FENCED);
    ck_assert_int_eq(bus_error_code(0), ERR_INTERNAL);
    ck_assert_int_eq(bus_error_code(5), ERR_INTERNAL);
}
END_TEST

START_TEST(a_message_unpacks_into_an_arena)
{
    Kiln__GetFileReq req = KILN__GET_FILE_REQ__INIT;
    char path[] = "models/flights.malloy";
    req.path = path;
    req.offset = 1 << 20;
    auto_buf struct buf packed;
    struct arena a;
    struct err e = {0};
    buf_init(&packed);
    arena_init(&a);
    bus_pack_into(&req.base, &packed);

    Kiln__GetFileReq *back =
        bus_unpack(&kiln__get_file_req__descriptor, &a, buf_slice(&packed), &e);

    ck_assert(back != NULL);
    ck_assert_str_eq(back->path, path);
    ck_assert_uint_eq(back->offset, 1 << 20);
    ck_assert(!bus_unpack(&kiln__get_file_req__descriptor, &a, SLICE("\xff\xff"), &e));
    ck_assert_int_eq(e.code, ERR_BUS_FRAME);
    arena_fini(&a);
}
END_TEST

START_TEST(kinds_are_found_by_number_and_never_twice)
{
    size_t n = 0;
    const struct bus_kind_row *rows = bus_kind_rows(&n);

    for (size_t i = 0; i < n; i++) {
        ck_assert_ptr_eq(bus_kind_find(rows[i].number), &rows[i]); /* the first with its number */
        ck_assert(rows[i].number == BUS_EVENT || rows[i].timeout_ms > 0);
    }
    ck_assert_str_eq(bus_kind_find(BUS_PULL_JOB)->name, "PULL_JOB");
    ck_assert_ptr_null(bus_kind_find(BUS_KIND_NONE));
    ck_assert_ptr_null(bus_kind_find(9999));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("bus envelope");
    TCase *t = tcase_create("all");
    tcase_add_test(t, every_field_survives_the_wire);
    tcase_add_test(t, without_a_key_the_mac_is_zero_and_not_asked_for);
    tcase_add_test(t, the_mac_covers_the_whole_frame_and_the_topic);
    tcase_add_test(t, a_refused_frame_still_tells_whom_to_answer);
    tcase_add_test(t, what_is_no_frame_is_refused);
    tcase_add_test(t, a_frame_over_the_cap_is_neither_made_nor_read);
    tcase_add_test(t, versions_n_and_n_minus_one_are_understood);
    tcase_add_test(t, a_wire_error_is_never_a_success);
    tcase_add_test(t, a_message_unpacks_into_an_arena);
    tcase_add_test(t, kinds_are_found_by_number_and_never_twice);
    suite_add_tcase(s, t);
    return suite_run(s);
}
