/* What every warehouse promises, run on PostgreSQL, on the twin in memory, and on DuckDB; and what
 * those promise that publish in place. */
#include "tests/conformance/warehouse_fixture.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <strings.h>

#define ROWS(n) "SELECT g.n AS n FROM generate_series(1, " #n ") AS g(n)"

static void setup_postgres(void)
{
    engine_start(ENGINE_POSTGRES);
}

static void setup_sim(void)
{
    engine_start(ENGINE_SIM);
}

static void setup_duckdb(void)
{
    duck_resident = 0;
    engine_start(ENGINE_DUCKDB);
}

static void setup_duckdb_resident(void)
{
    duck_resident = 1 << 20;
    engine_start(ENGINE_DUCKDB);
}

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

/* ---- queries ---- */

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

/* Of every engine. */
static void add_tests(TCase *tc)
{
    tcase_set_timeout(tc, 120);
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
    tcase_add_test(tc, a_query_streams_its_rows);
    tcase_add_test(tc, a_baked_query_carries_its_receipt);
    tcase_add_test(tc, a_baked_query_whose_table_moved_sends_nothing);
    tcase_add_test(tc, a_baked_query_without_a_fence_table_is_missing);
    tcase_add_test(tc, a_cancelled_query_ends_soon);
}

/* Of those that publish in place, under a fence. */
static void add_in_place_tests(TCase *tc)
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
    tcase_add_test(tc, a_baked_query_whose_table_was_replaced_by_hand_sends_nothing);
}

static Suite *suite(void)
{
    Suite *s = suite_create("warehouse");
    TCase *in_memory = tcase_create("sim");
    tcase_add_checked_fixture(in_memory, setup_sim, engine_stop);
    add_tests(in_memory);
    add_in_place_tests(in_memory);
    suite_add_tcase(s, in_memory);
    TCase *postgres = tcase_create("postgres");
    tcase_add_checked_fixture(postgres, setup_postgres, engine_stop);
    add_tests(postgres);
    add_in_place_tests(postgres);
    suite_add_tcase(s, postgres);
    TCase *duckdb = tcase_create("duckdb");
    tcase_add_checked_fixture(duckdb, setup_duckdb, engine_stop);
    add_tests(duckdb);
    add_by_binding_tests(duckdb);
    suite_add_tcase(s, duckdb);
    TCase *resident = tcase_create("duckdb, small results in memory");
    tcase_add_checked_fixture(resident, setup_duckdb_resident, engine_stop);
    add_tests(resident);
    add_by_binding_tests(resident);
    suite_add_tcase(s, resident);
    add_carry_tests(s);
    add_postgres_tests(s);
    return s;
}

static void stop_server(void)
{
    pg_server_stop(&server);
}

int main(void)
{
    pg_server_start(&server);
    if (atexit(stop_server) != 0) {
        return EXIT_FAILURE;
    }
    pg_server_exec(&server, "postgres",
                   "CREATE ROLE kiln LOGIN; CREATE ROLE analyst LOGIN; CREATE ROLE auditor;"
                   "CREATE ROLE steward; GRANT steward TO kiln");
    return suite_run(suite());
}
