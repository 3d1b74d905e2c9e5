/* Queries of every engine: their rows, their receipts, their end. */
#include "tests/conformance/warehouse_fixture.h"
#include "tests/conformance/warehouse_suites.h"

#define ROWS(n) "SELECT g.n AS n FROM generate_series(1, " #n ") AS g(n)"

static int ask(struct run *r, struct sink_told *s, const char *query, struct wh_receipt *baked,
               size_t n)
{
    struct wh_query q = {.sql = query,
                         .baked = baked,
                         .n_baked = n,
                         .read_only = true,
                         .prepare_as = arena_printf(&arena, "q %s", query)};
    run_init(r, wh);
    wh->ops->query(&r->op, &q, &s->sink);
    return wait_for(r);
}

START_TEST(a_query_streams_its_rows)
{
    struct run r;
    struct sink_told s;
    sink_init(&s);
    ck_assert_msg(ask(&r, &s, ROWS(2000), NULL, 0) == 0, "%s", err_text(&r.op.err));
    ck_assert_int_eq(s.columns, 1);
    ck_assert_int_eq(s.rows, 2000);
    ck_assert_str_eq(s.first, "1");
    ck_assert_uint_eq(r.op.facts.rows, 2000);

    sink_init(&s);
    s.stop_after = 5;
    ck_assert_int_eq(ask(&r, &s, ROWS(2000), NULL, 0), ERR_QUERY_ROWS);
    ck_assert_int_eq(s.rows, 5);
}
END_TEST

START_TEST(a_baked_query_carries_its_receipt)
{
    struct run r;
    struct sink_told s;
    publish("sales", 100, "g1", 7);
    publish("other", 101, "h1", 3);
    struct wh_receipt baked[] = {{.name = {"mart", "sales"}, .build_id = "b1"},
                                 {.name = {"mart", "other"}, .build_id = "b1"}};
    sink_init(&s);
    ck_assert_msg(ask(&r, &s, count_of("sales"), baked, 2) == 0, "%s", err_text(&r.op.err));
    ck_assert_str_eq(s.first, "7");
    ck_assert(baked[0].ok && baked[1].ok);
    ck_assert_str_eq(baked[0].generation, generation_of("g1", 100));
    ck_assert_str_eq(baked[1].generation, generation_of("h1", 101));
    ck_assert_uint_eq(baked[0].published, 100);
    ck_assert_int_ge(baked[0].data_as_of_us, 1700000000123456);

    /* A newer generation of the same build id is served and named. */
    publish("sales", 200, "g2", 9);
    sink_init(&s);
    ck_assert_int_eq(ask(&r, &s, count_of("sales"), baked, 2), 0);
    ck_assert_str_eq(s.first, "9");
    ck_assert_str_eq(baked[0].generation, generation_of("g2", 200));
}
END_TEST

START_TEST(a_baked_query_whose_table_moved_sends_nothing)
{
    struct run r;
    struct sink_told s;
    publish("sales", 100, "g1", 7);
    struct wh_receipt baked = {.name = {"mart", "sales"}, .build_id = "another build"};
    const char *query = count_of("sales");
    sink_init(&s);
    ck_assert_int_eq(ask(&r, &s, query, &baked, 1), ERR_STORE_MOVED);
    ck_assert_int_eq(s.rows, 0);
    ck_assert_ptr_nonnull(strstr(r.op.err.text, "sales"));
}
END_TEST

START_TEST(a_baked_query_whose_table_was_replaced_by_hand_sends_nothing)
{
    struct run r;
    struct sink_told s;
    publish("sales", 100, "g1", 7);
    struct wh_receipt baked = {.name = {"mart", "sales"}, .build_id = "b1"};
    const char *query = count_of("sales");
    put_table("sales", 7);
    sink_init(&s);
    ck_assert_int_eq(ask(&r, &s, query, &baked, 1), ERR_STORE_MOVED);
    ck_assert_int_eq(s.rows, 0);

    drop_table("sales");
    sink_init(&s);
    ck_assert_int_eq(ask(&r, &s, query, &baked, 1), ERR_WH_MISSING);
    ck_assert_int_eq(s.rows, 0);
}
END_TEST

START_TEST(a_baked_query_without_a_fence_table_is_missing)
{
    struct run r;
    struct sink_told s;
    struct wh_receipt baked = {.name = {"mart", "sales"}, .build_id = "b1"};
    sink_init(&s);
    ck_assert_int_eq(ask(&r, &s, count_of("sales"), &baked, 1), ERR_WH_MISSING);
    ck_assert_int_eq(s.rows, 0);
}
END_TEST

START_TEST(a_cancelled_query_ends_soon)
{
    struct run r;
    struct sink_told s;
    struct wh_query q = {.sql = endless(), .read_only = true};
    sink_init(&s);
    run_init(&r, wh);
    wh->ops->query(&r.op, &q, &s.sink);
    for (int i = 0; i < 10; i++) {
        (void)loop_turn(loop, MS(20));
    }
    struct ms start = loop_now(loop);
    wh->ops->cancel(&r.op);
    ck_assert_int_eq(wait_for(&r), ERR_CANCELLED);
    ck_assert_int_lt(ms_sub(loop_now(loop), start).v, 2000);
}
END_TEST

void add_query_tests(TCase *tc)
{
    tcase_add_test(tc, a_query_streams_its_rows);
    tcase_add_test(tc, a_baked_query_carries_its_receipt);
    tcase_add_test(tc, a_baked_query_whose_table_moved_sends_nothing);
    tcase_add_test(tc, a_baked_query_without_a_fence_table_is_missing);
    tcase_add_test(tc, a_cancelled_query_ends_soon);
}

void add_in_place_query_tests(TCase *tc)
{
    tcase_add_test(tc, a_baked_query_whose_table_was_replaced_by_hand_sends_nothing);
}
