/* What every engine promises of builds, of its catalog, and of clearing up. */
#include "tests/conformance/warehouse_fixture.h"
#include "tests/conformance/warehouse_suites.h"

#include <strings.h>

#define ROWS(n) "SELECT g.n AS n FROM generate_series(1, " #n ") AS g(n)"

START_TEST(a_connection_says_hello)
{
    struct run r;
    run_init(&r, wh);
    wh->ops->test(&r.op);
    ck_assert_msg(wait_for(&r) == 0, "%s", err_text(&r.op.err));
}
END_TEST

START_TEST(a_build_counts_and_describes_and_publishes_nothing)
{
    struct run r;

    ck_assert_msg(do_build(&r, "sales", 100, ROWS(7)) == 0, "%s", err_text(&r.op.err));

    ck_assert_uint_eq(r.op.facts.rows, 7);
    ck_assert_uint_gt(r.op.facts.bytes, 0);
    ck_assert_int_gt(r.op.facts.data_as_of_us, 1700000000000000);
    ck_assert_uint_eq(r.op.facts.columns.n, 1);
    ck_assert_str_eq(r.op.facts.columns.items[0].name, "n");
    ck_assert_str_eq(r.op.facts.columns.items[0].data_type, series_type());
    ck_assert_int_eq(rows_of("sales"), -1);
    ck_assert_int_eq(rows_of("_kiln_100"), 7);
}
END_TEST

START_TEST(a_build_drops_the_staging_of_earlier_attempts)
{
    struct run r;
    const uint64_t earlier[] = {100, 101};
    ck_assert_int_eq(do_build(&r, "sales", 100, ROWS(7)), 0);

    run_init(&r, wh);
    wh->ops->build(&r.op, &(struct wh_build){.table = staging_of("sales", 102),
                                             .token = 102,
                                             .sql = ROWS(8),
                                             .earlier = earlier,
                                             .n_earlier = 2});
    ck_assert_int_eq(wait_for(&r), 0);

    ck_assert_int_eq(rows_of("_kiln_100"), -1);
    ck_assert_int_eq(rows_of("_kiln_102"), 8);
}
END_TEST

START_TEST(a_build_that_is_repeated_starts_anew)
{
    struct run r;
    ck_assert_int_eq(do_build(&r, "sales", 100, ROWS(7)), 0);
    ck_assert_int_eq(do_build(&r, "sales", 100, ROWS(9)), 0);
    ck_assert_int_eq(rows_of("_kiln_100"), 9);
}
END_TEST

START_TEST(a_build_that_fails_leaves_nothing)
{
    struct run r;
    ck_assert_int_eq(do_build(&r, "sales", 100, "SELECT syntax error"), ERR_WH_SQL);
    ck_assert_int_eq(do_build(&r, "sales", 100, "SELECT * FROM \"mart\".\"gone\""), ERR_WH_MISSING);
    ck_assert_int_eq(rows_of("_kiln_100"), -1);
}
END_TEST

START_TEST(the_catalog_spells_tables_and_names_missing_ones)
{
    struct run r;
    put_table("sales", 1);
    const char *const paths[] = {"mart.sales", "mart.gone", "mart.\"sales\"", "a..b"};
    run_init(&r, wh);
    wh->ops->catalog_tables(&r.op, paths, 4);
    ck_assert_msg(wait_for(&r) == 0, "%s", err_text(&r.op.err));

    const struct wh_facts *facts = &r.op.facts;
    ck_assert_uint_eq(facts->n_schemas, 4);
    ck_assert_ptr_null(facts->schema_errors[0]);
    ck_assert_uint_eq(facts->schemas[0].n, 1);
    ck_assert_int_eq(strcasecmp(facts->schemas[0].items[0].data_type, "integer"), 0);
    ck_assert_ptr_nonnull(strstr(facts->schema_errors[1], "mart.gone"));
    ck_assert_uint_eq(facts->schemas[1].n, 0);
    ck_assert_uint_eq(facts->schemas[2].n, 1);
    ck_assert_ptr_nonnull(facts->schema_errors[3]);
}
END_TEST

START_TEST(a_statement_is_described_without_running_it)
{
    struct run r;
    run_init(&r, wh);
    wh->ops->describe(&r.op, ROWS(1000000));
    ck_assert_int_eq(wait_for(&r), 0);
    ck_assert_uint_eq(r.op.facts.columns.n, 1);
    ck_assert_str_eq(r.op.facts.columns.items[0].name, "n");
    ck_assert_str_eq(r.op.facts.columns.items[0].data_type, series_type());

    run_init(&r, wh);
    wh->ops->describe(&r.op, "SELECT syntax error");
    ck_assert_int_eq(wait_for(&r), ERR_WH_SQL);
}
END_TEST

START_TEST(discard_drops_staging_tables)
{
    struct run r;
    ck_assert_int_eq(do_build(&r, "sales", 100, ROWS(7)), 0);
    struct wh_table t = table_of("sales", NULL, NULL);
    const uint64_t tokens[] = {99, 100};
    run_init(&r, wh);
    wh->ops->discard(&r.op, &t, tokens, 2);
    ck_assert_int_eq(wait_for(&r), 0);
    ck_assert_int_eq(rows_of("_kiln_100"), -1);
}
END_TEST

START_TEST(a_sweep_drops_old_orphans_only)
{
    struct run r;
    ck_assert_int_eq(do_build(&r, "sales", 100, ROWS(1)), 0);
    ck_assert_int_eq(do_build(&r, "sales", 101, ROWS(1)), 0);
    ck_assert_int_eq(do_build(&r, "sales", 900, ROWS(1)), 0);
    put_table("_kiln_notes", 4);
    const char *const schemas[] = {"mart", "nowhere"};
    const uint64_t live[] = {101};
    const char *const recorded[] = {generation_of("g", 101)};
    run_init(&r, wh);
    wh->ops->sweep(&r.op, &(struct wh_sweep){.schemas = schemas,
                                             .n_schemas = 2,
                                             .live = live,
                                             .n_live = 1,
                                             .older_than_us = time_of(500),
                                             .generations = recorded,
                                             .n_generations = 1});
    ck_assert_msg(wait_for(&r) == 0, "%s", err_text(&r.op.err));

    ck_assert_uint_eq(r.op.facts.rows, 1);
    ck_assert_int_eq(rows_of("_kiln_100"), -1);
    ck_assert_int_eq(rows_of("_kiln_101"), 1);
    ck_assert_int_eq(rows_of("_kiln_900"), 1);
    ck_assert_int_eq(rows_of("_kiln_notes"), 4);
}
END_TEST

START_TEST(a_cancelled_build_ends_soon_and_leaves_nothing)
{
    struct run r;
    run_init(&r, wh);
    wh->ops->build(&r.op, &(struct wh_build){
                              .table = staging_of("sales", 100), .token = 100, .sql = endless()});
    for (int i = 0; i < 10; i++) {
        (void)loop_turn(loop, MS(20));
    }
    struct wh_progress p;
    wh->ops->progress(&r.op, &p);
    ck_assert_ptr_nonnull(p.stage);
    struct ms start = loop_now(loop);

    wh->ops->cancel(&r.op);
    wh->ops->cancel(&r.op);
    ck_assert_int_eq(wait_for(&r), ERR_CANCELLED);

    ck_assert_int_lt(ms_sub(loop_now(loop), start).v, 2000);
    ck_assert_int_eq(rows_of("_kiln_100"), -1);
}
END_TEST

START_TEST(a_cancel_before_anything_began_ends_the_operation)
{
    struct run r;
    run_init(&r, wh);
    wh->ops->build(
        &r.op, &(struct wh_build){.table = staging_of("sales", 100), .token = 100, .sql = ROWS(1)});
    wh->ops->cancel(&r.op);
    ck_assert_int_eq(wait_for(&r), ERR_CANCELLED);
}
END_TEST

void add_build_tests(TCase *tc)
{
    tcase_add_test(tc, a_connection_says_hello);
    tcase_add_test(tc, a_build_counts_and_describes_and_publishes_nothing);
    tcase_add_test(tc, a_build_drops_the_staging_of_earlier_attempts);
    tcase_add_test(tc, a_build_that_is_repeated_starts_anew);
    tcase_add_test(tc, a_build_that_fails_leaves_nothing);
    tcase_add_test(tc, the_catalog_spells_tables_and_names_missing_ones);
    tcase_add_test(tc, a_statement_is_described_without_running_it);
    tcase_add_test(tc, discard_drops_staging_tables);
    tcase_add_test(tc, a_sweep_drops_old_orphans_only);
    tcase_add_test(tc, a_cancelled_build_ends_soon_and_leaves_nothing);
    tcase_add_test(tc, a_cancel_before_anything_began_ends_the_operation);
}
