/* Engines that publish in place, under a fence. */
#include "tests/conformance/warehouse_fixture.h"
#include "tests/conformance/warehouse_suites.h"

#define ROWS(n) "SELECT g.n AS n FROM generate_series(1, " #n ") AS g(n)"

START_TEST(a_build_into_a_missing_schema_is_refused)
{
    struct run r;
    run_init(&r, wh);
    struct wh_table t = table_of("sales", NULL, NULL);
    t.name.schema = "nowhere";
    wh->ops->build(&r.op, &(struct wh_build){.table = t, .token = 1, .sql = ROWS(1)});
    ck_assert_int_eq(wait_for(&r), ERR_WH_MISSING);
    ck_assert_ptr_nonnull(strstr(r.op.err.text, "nowhere"));
}
END_TEST

START_TEST(a_swap_publishes)
{
    struct run r;
    publish("sales", 100, "g1", 7);

    ck_assert_int_eq(rows_of("sales"), 7);
    ck_assert_int_eq(rows_of("_kiln_100"), -1);
    ck_assert_int_eq(do_probe(&r, "sales", "g1"), 0);
    const struct wh_fence *fence = &r.op.facts.relations[0].fence;
    ck_assert(fence->exists && fence->still_there);
    ck_assert_uint_eq(fence->claim, 100);
    ck_assert_uint_eq(fence->published, 100);
    ck_assert_str_eq(fence->generation, "g1");
    ck_assert_str_eq(fence->build_id, "b1");
    ck_assert_int_eq(fence->rows, 7);
    ck_assert_int_eq(fence->data_as_of_us, 1700000000123456);
    ck_assert(uuid_eq(&fence->owner, &us));

    publish("sales", 200, "g2", 9);
    ck_assert_int_eq(rows_of("sales"), 9);
    ck_assert_int_eq(do_probe(&r, "sales", "g1"), 0);
    ck_assert(!r.op.facts.relations[0].fence.still_there);
}
END_TEST

START_TEST(a_swap_asked_for_twice_is_done_once)
{
    struct run r;
    publish("sales", 100, "g1", 7);
    ck_assert_msg(do_swap(&r, "sales", 100, "g1", false) == 0, "%s", err_text(&r.op.err));
    ck_assert_uint_eq(r.op.facts.fence.published, 100);
}
END_TEST

START_TEST(a_swap_is_refused_after_a_newer_claim)
{
    struct run r;
    publish("sales", 100, "g1", 7);
    ck_assert_int_eq(do_build(&r, "sales", 200, ROWS(9)), 0);
    ck_assert_int_eq(do_resolve(&r, "sales", 250), 0);
    ck_assert_uint_eq(r.op.facts.fence.published, 100);
    ck_assert_uint_eq(r.op.facts.fence.claim, 250);
    ck_assert(r.op.facts.fence.still_there);

    ck_assert_int_eq(do_swap(&r, "sales", 200, "g2", false), ERR_FENCED);

    ck_assert_int_eq(rows_of("sales"), 7);
    ck_assert_int_eq(do_probe(&r, "sales", "g1"), 0);
    ck_assert(r.op.facts.relations[0].fence.still_there);
}
END_TEST

START_TEST(a_first_swap_is_refused_after_a_resolve)
{
    struct run r;
    ck_assert_int_eq(do_build(&r, "sales", 100, ROWS(7)), 0);
    ck_assert_int_eq(do_resolve(&r, "sales", 150), 0);
    ck_assert_uint_eq(r.op.facts.fence.published, 0);
    ck_assert(!r.op.facts.fence.still_there);

    ck_assert_int_eq(do_swap(&r, "sales", 100, "g1", false), ERR_FENCED);
    ck_assert_int_eq(rows_of("sales"), -1);
}
END_TEST

START_TEST(an_older_resolve_does_not_lower_the_claim)
{
    struct run r;
    ck_assert_int_eq(do_resolve(&r, "sales", 150), 0);
    ck_assert_int_eq(do_resolve(&r, "sales", 90), 0);
    ck_assert_uint_eq(r.op.facts.fence.claim, 150);
}
END_TEST

START_TEST(a_swap_without_its_staging_table_says_so)
{
    struct run r;
    ck_assert_int_eq(do_swap(&r, "sales", 100, "g1", false), ERR_WH_LOST);
    ck_assert_int_eq(rows_of("sales"), -1);
}
END_TEST

START_TEST(a_foreign_table_is_not_replaced_unless_it_is_empty_or_given_over)
{
    struct run r;
    put_table("sales", 3);
    ck_assert_int_eq(do_build(&r, "sales", 100, ROWS(7)), 0);

    ck_assert_int_eq(do_swap(&r, "sales", 100, "g1", false), ERR_WH_TARGET);
    ck_assert_int_eq(rows_of("sales"), 3);
    ck_assert_msg(do_swap(&r, "sales", 100, "g1", true) == 0, "%s", err_text(&r.op.err));
    ck_assert_int_eq(rows_of("sales"), 7);

    put_table("empty", 0);
    publish("empty", 101, "g1", 2);
    ck_assert_int_eq(rows_of("empty"), 2);
}
END_TEST

START_TEST(a_target_with_dependents_is_refused_by_their_names)
{
    struct run r;
    publish("sales", 100, "g1", 7);
    depend_on("sales");
    ck_assert_int_eq(do_build(&r, "sales", 200, ROWS(9)), 0);

    ck_assert_int_eq(do_swap(&r, "sales", 200, "g2", false), ERR_WH_DEPENDENTS);
    ck_assert_ptr_nonnull(strstr(r.op.err.text, "view mart.sales_v"));
    ck_assert_int_eq(rows_of("sales"), 7);

    ck_assert_int_eq(do_drop(&r, "sales", 300), ERR_WH_DEPENDENTS);
    ck_assert_ptr_nonnull(strstr(r.op.err.text, "view mart.sales_v"));
    ck_assert_int_eq(rows_of("sales"), 7);
}
END_TEST

START_TEST(the_catalog_tells_what_stands_at_a_name)
{
    struct run r;
    publish("sales", 100, "g1", 7);
    depend_on("sales");
    put_table("empty", 0);
    put_table("full", 1);
    const struct wh_name names[] = {{"mart", "sales"}, {"mart", "nothing"}, {"mart", "empty"},
                                    {"mart", "full"},  {"nowhere", "x"},    {"", "y"}};
    run_init(&r, wh);
    wh->ops->catalog_targets(&r.op, names, 6);
    ck_assert_msg(wait_for(&r) == 0, "%s", err_text(&r.op.err));

    const struct wh_relation *rel = r.op.facts.relations;
    ck_assert_uint_eq(r.op.facts.n_relations, 6);
    ck_assert_int_eq(rel[0].kind, 'r');
    ck_assert(rel[0].schema_exists && rel[0].schema_writable && !rel[0].is_empty);
    ck_assert(rel[0].fence.exists && rel[0].fence.still_there);
    ck_assert_str_eq(rel[0].fence.generation, "g1");
    ck_assert_uint_eq(rel[0].n_dependents, 1);
    ck_assert_str_eq(rel[0].dependents[0], "view mart.sales_v");
    ck_assert_int_eq(rel[1].kind, 0);
    ck_assert(rel[1].schema_exists && !rel[1].fence.exists);
    ck_assert(rel[2].is_empty && !rel[3].is_empty);
    ck_assert(!rel[4].schema_exists);
    ck_assert_str_eq(rel[5].name.schema, "public");
    ck_assert_str_eq(rel[5].name.table, "y");
}
END_TEST

START_TEST(a_probe_sees_a_table_replaced_by_hand)
{
    struct run r;
    publish("sales", 100, "g1", 7);
    put_table("sales", 7);

    ck_assert_int_eq(do_probe(&r, "sales", "g1"), 0);
    ck_assert(r.op.facts.relations[0].fence.exists);
    ck_assert(!r.op.facts.relations[0].fence.still_there);

    drop_table("sales");
    ck_assert_int_eq(do_probe(&r, "sales", "g1"), 0);
    ck_assert(!r.op.facts.relations[0].fence.still_there);
    ck_assert_int_eq(r.op.facts.relations[0].kind, 0);
    publish("sales", 200, "g2", 8);
    ck_assert_int_eq(rows_of("sales"), 8);
}
END_TEST

START_TEST(a_probe_of_a_schema_without_fence_finds_nothing)
{
    struct run r;
    ck_assert_int_eq(do_probe(&r, "sales", "g1"), 0);
    ck_assert(!r.op.facts.relations[0].fence.exists);
}
END_TEST

START_TEST(a_drop_removes_the_table_and_a_second_one_succeeds)
{
    struct run r;
    publish("sales", 100, "g1", 7);

    ck_assert_int_eq(do_drop(&r, "sales", 200), 0);
    ck_assert_uint_eq(r.op.facts.rows, 1);
    ck_assert_int_eq(rows_of("sales"), -1);
    ck_assert_int_eq(do_drop(&r, "sales", 200), 0);
    ck_assert_int_eq(do_drop(&r, "sales", 300), 0);
    ck_assert_uint_eq(r.op.facts.rows, 0);

    /* The claim stays: what was built before the drop cannot come back. */
    ck_assert_int_eq(do_build(&r, "sales", 150, ROWS(7)), 0);
    ck_assert_int_eq(do_swap(&r, "sales", 150, "g0", false), ERR_FENCED);
    publish("sales", 400, "g3", 5);
    ck_assert_int_eq(rows_of("sales"), 5);
}
END_TEST

START_TEST(a_drop_of_what_never_was_succeeds)
{
    struct run r;
    ck_assert_msg(do_drop(&r, "sales", 200) == 0, "%s", err_text(&r.op.err));
}
END_TEST

START_TEST(a_drop_is_refused_after_a_newer_claim)
{
    struct run r;
    publish("sales", 300, "g1", 7);
    ck_assert_int_eq(do_drop(&r, "sales", 200), ERR_FENCED);
    ck_assert_int_eq(rows_of("sales"), 7);
}
END_TEST

START_TEST(a_drop_leaves_a_table_that_was_replaced_by_hand)
{
    struct run r;
    publish("sales", 100, "g1", 7);
    put_table("sales", 3);
    ck_assert_int_eq(do_drop(&r, "sales", 200), 0);
    ck_assert_int_eq(rows_of("sales"), 3);
}
END_TEST

void add_in_place_tests(TCase *tc)
{
    tcase_add_test(tc, a_build_into_a_missing_schema_is_refused);
    tcase_add_test(tc, a_swap_publishes);
    tcase_add_test(tc, a_swap_asked_for_twice_is_done_once);
    tcase_add_test(tc, a_swap_is_refused_after_a_newer_claim);
    tcase_add_test(tc, a_first_swap_is_refused_after_a_resolve);
    tcase_add_test(tc, an_older_resolve_does_not_lower_the_claim);
    tcase_add_test(tc, a_swap_without_its_staging_table_says_so);
    tcase_add_test(tc, a_foreign_table_is_not_replaced_unless_it_is_empty_or_given_over);
    tcase_add_test(tc, a_target_with_dependents_is_refused_by_their_names);
    tcase_add_test(tc, the_catalog_tells_what_stands_at_a_name);
    tcase_add_test(tc, a_probe_sees_a_table_replaced_by_hand);
    tcase_add_test(tc, a_probe_of_a_schema_without_fence_finds_nothing);
    tcase_add_test(tc, a_drop_removes_the_table_and_a_second_one_succeeds);
    tcase_add_test(tc, a_drop_of_what_never_was_succeeds);
    tcase_add_test(tc, a_drop_is_refused_after_a_newer_claim);
    tcase_add_test(tc, a_drop_leaves_a_table_that_was_replaced_by_hand);
}
