/* Publishing by binding: what is read under a name, and from when on. */
#include "tests/conformance/warehouse_duckdb_fixture.h"
#include "tests/conformance/warehouse_suites.h"

#include <unistd.h>

START_TEST(a_bound_generation_is_read_under_its_name_with_its_epoch)
{
    struct run r;
    struct sink_told s;
    publish("Sales of \"2024\"", 100, NULL, 7);
    struct wh_query q = {.sql = "SELECT count(*) FROM \"Sales of \"\"2024\"\"\"",
                         .read_only = true};
    sink_init(&s);
    run_init(&r, wh);
    wh->ops->query(&r.op, &q, &s.sink);
    ck_assert_msg(wait_for(&r) == 0, "%s", r.op.err.text);
    ck_assert_str_eq(s.first, "7");
    ck_assert_uint_eq(q.epoch, 1);
    ck_assert_uint_eq(wh_duckdb_epoch(wh), 1);
}
END_TEST

START_TEST(an_older_epoch_changes_nothing)
{
    struct run r;
    publish("sales", 100, NULL, 7);
    publish("sales", 101, NULL, 9);
    bind_names(1, (const char *const[]){"sales"}, (const uint64_t[]){100});
    ck_assert_int_eq(duck_bind(&r, 1), 0);
    ck_assert_int_eq(duck_bind(&r, 2), 0);
    ck_assert_int_eq(rows_of("sales"), 9);
    ck_assert_uint_eq(wh_duckdb_epoch(wh), 2);
}
END_TEST

START_TEST(names_that_are_bound_no_more_are_gone)
{
    struct run r;
    struct sink_told s;
    publish("sales", 100, NULL, 7);
    publish("other", 101, NULL, 3);
    bind_names(1, (const char *const[]){"other"}, (const uint64_t[]){101});
    ck_assert_int_eq(duck_bind(&r, 10), 0);
    ck_assert_int_eq(ask(&r, &s, (struct wh_query){.sql = "SELECT * FROM sales"}), ERR_WH_MISSING);
    ck_assert_int_eq(rows_of("other"), 3);
}
END_TEST

START_TEST(what_cannot_be_bound_leaves_the_bindings_in_force)
{
    struct run r;
    const char *const names[] = {"other", "sales"};
    publish("sales", 100, NULL, 7);
    ck_assert_int_eq(do_build(&r, "other", 101, "SELECT 1 AS n"), 0);

    bind_names(2, names, (const uint64_t[]){101, 999});
    ck_assert_int_eq(duck_bind(&r, 5), ERR_WH_MISSING);
    ck_assert_ptr_nonnull(strstr(r.op.err.text, "sales cannot be bound"));

    cut_file(path_of(101, "data-0.parquet"), 100);
    bind_names(2, names, (const uint64_t[]){101, 100});
    ck_assert_int_eq(duck_bind(&r, 5), ERR_GENERATION);
    ck_assert_ptr_nonnull(strstr(r.op.err.text, "other cannot be bound"));

    ck_assert_uint_eq(wh_duckdb_epoch(wh), 1);
    ck_assert_int_eq(rows_of("sales"), 7);
    ck_assert_int_eq(rows_of("other"), -1);
}
END_TEST

/* All names are left out: the root is away. */
static int duck_bind_nothing(struct run *r, uint64_t epoch)
{
    run_init(r, wh);
    wh_duckdb_bind_rest(&r->op, NULL, 0, epoch);
    return wait_for(r);
}

START_TEST(names_left_out_for_the_root_are_out_of_reach_until_it_is_back)
{
    struct run r;
    struct sink_told s;
    struct wh_receipt baked = {.name = {"", "sales"}, .build_id = "b1"};
    struct wh_query q = {.sql = "SELECT count(*) FROM sales", .baked = &baked, .n_baked = 1};
    ck_assert_int_eq(duck_bind_nothing(&r, 5), 0);
    ck_assert_uint_eq(wh_duckdb_epoch(wh), 5);
    ck_assert_int_eq(ask(&r, &s, q), ERR_WH_MISSING);
    ck_assert(baked.out_of_reach);
    ck_assert(!wh_duckdb_is_outdated(wh));
    wh_duckdb_root_is_back(wh);
    ck_assert(wh_duckdb_is_outdated(wh));
}
END_TEST

START_TEST(a_root_that_is_back_changes_nothing_where_no_name_was_left_out)
{
    publish("sales", 100, NULL, 7);
    wh_duckdb_root_is_back(wh);
    ck_assert(!wh_duckdb_is_outdated(wh));
}
END_TEST

START_TEST(a_bound_file_that_vanishes_is_missing_and_one_cut_off_an_error)
{
    struct run r;
    struct sink_told s;
    publish("sales", 100, NULL, 7);
    struct wh_receipt baked = {.name = {"", "sales"}, .build_id = "b1"};
    struct wh_query q = {.sql = "SELECT max(n) FROM sales", .baked = &baked, .n_baked = 1};

    ck_assert_int_eq(ask(&r, &s, q), 0);
    ck_assert_int_eq(unlink(path_of(100, "data-0.parquet")), 0);
    ck_assert_int_eq(ask(&r, &s, q), ERR_WH_MISSING);
    ck_assert_int_eq(s.rows, 0);

    publish("sales", 101, NULL, 7);
    cut_file(path_of(101, "data-0.parquet"), 30);
    ck_assert_int_lt(ask(&r, &s, q), 0);
    ck_assert_int_eq(s.rows, 0);
    ck_assert_ptr_nonnull(strstr(r.op.err.text, "data-0.parquet"));
    ck_assert_ptr_nonnull(strstr(r.op.err.text, generation_of(NULL, 101)));
}
END_TEST

START_TEST(what_is_in_memory_goes_when_it_is_bound_no_more)
{
    struct run r;
    struct sink_told s;
    struct wh_query q = {.sql = "SELECT count(*) FROM information_schema.tables WHERE table_schema "
                                "= 'kiln'"};
    publish("sales", 100, NULL, 7);
    publish("other", 101, NULL, 7);
    publish("sales", 102, NULL, 8);
    ck_assert_int_eq(ask(&r, &s, q), 0);
    ck_assert_str_eq(s.first, duck_resident ? "2" : "0");
    ck_assert_int_eq(rows_of("sales"), 8);
}
END_TEST

START_TEST(a_prepared_query_reads_what_is_bound_now)
{
    struct run r;
    struct sink_told s;
    struct wh_query q = {.sql = "SELECT count(*) FROM sales", .prepare_as = "q", .read_only = true};
    for (uint64_t i = 0; i < 6; i++) {
        publish("sales", 100 + i, NULL, (unsigned)(7 + i));
        ck_assert_int_eq(ask(&r, &s, q), 0);
        ck_assert_str_eq(s.first, arena_printf(&arena, "%d", (int)(7 + i)));
    }
    q.sql = "SELECT 1 + count(*) FROM sales"; /* the same key for another text */
    ck_assert_int_eq(ask(&r, &s, q), 0);
    ck_assert_str_eq(s.first, "13");
}
END_TEST

/* Two names of one generation number, swapped under readers: they never differ. */
struct reader {
    struct run run;
    struct sink_told told;
    struct wh_query query;
    bool differs;
};

static int on_pair(void *data, const struct slice *cells)
{
    struct reader *r = data;
    r->differs = r->differs || !slice_eq(cells[0], cells[1]) ||
                 !slice_is(cells[0],
                           arena_printf(&arena, "%llu", (unsigned long long)(90 + r->query.epoch)));
    return 0;
}

static void read_again(struct reader *r)
{
    r->query = (struct wh_query){.sql = "SELECT (SELECT max(n) FROM a), (SELECT max(n) FROM b)",
                                 .prepare_as = "pair"};
    r->told.sink = (struct wh_sink){.data = r, .on_row = on_pair};
    run_init(&r->run, wh);
    wh->ops->query(&r->run.op, &r->query, &r->told.sink);
}

START_TEST(a_swap_under_readers_is_seen_whole_and_with_its_epoch)
{
    static struct reader readers[2];
    struct run r;
    memset(readers, 0, sizeof readers);
    for (uint64_t i = 1; i <= 20; i++) {
        const char *sql = arena_printf(&arena, "SELECT %d AS n", (int)(90 + i));
        ck_assert_int_eq(do_build(&r, "a", 1000 + i, sql), 0);
        ck_assert_int_eq(do_build(&r, "b", 2000 + i, sql), 0);
    }
    for (uint64_t i = 1; i <= 20; i++) { /* each swap meets the reads that began before it */
        bind_names(2, (const char *const[]){"a", "b"}, (const uint64_t[]){1000 + i, 2000 + i});
        ck_assert_int_eq(duck_bind(&r, i), 0);
        for (size_t k = 0; k < ARRAY_LEN(readers); k++) {
            if (i > 1) {
                turn_until(readers[k].run.dones == 1);
                ck_assert_msg(readers[k].run.op.rc == 0, "%s", readers[k].run.op.err.text);
            }
            read_again(&readers[k]);
        }
    }
    for (size_t k = 0; k < ARRAY_LEN(readers); k++) {
        turn_until(readers[k].run.dones == 1);
        ck_assert_int_eq(readers[k].run.op.rc, 0);
        ck_assert(!readers[k].differs);
    }
}
END_TEST

START_TEST(handles_of_a_package_share_what_is_bound)
{
    struct run r;
    struct sink_told s;
    struct wh *second = wh_duckdb_share(loop, wh);
    publish("sales", 100, NULL, 7);
    struct wh_query q = {.sql = "SELECT count(*) FROM sales"};
    sink_init(&s);
    run_init(&r, second);
    second->ops->query(&r.op, &q, &s.sink);
    ck_assert_int_eq(wait_for(&r), 0);
    ck_assert_str_eq(s.first, "7");
    ck_assert_uint_eq(wh_duckdb_epoch(second), 1);
    connection_close(second);
    ck_assert_int_eq(rows_of("sales"), 7);
}
END_TEST

void add_duckdb_bind_tests(TCase *tc)
{
    tcase_add_test(tc, a_bound_generation_is_read_under_its_name_with_its_epoch);
    tcase_add_test(tc, an_older_epoch_changes_nothing);
    tcase_add_test(tc, names_that_are_bound_no_more_are_gone);
    tcase_add_test(tc, what_cannot_be_bound_leaves_the_bindings_in_force);
    tcase_add_test(tc, names_left_out_for_the_root_are_out_of_reach_until_it_is_back);
    tcase_add_test(tc, a_root_that_is_back_changes_nothing_where_no_name_was_left_out);
    tcase_add_test(tc, a_bound_file_that_vanishes_is_missing_and_one_cut_off_an_error);
    tcase_add_test(tc, what_is_in_memory_goes_when_it_is_bound_no_more);
    tcase_add_test(tc, a_prepared_query_reads_what_is_bound_now);
    tcase_add_test(tc, a_swap_under_readers_is_seen_whole_and_with_its_epoch);
    tcase_add_test(tc, handles_of_a_package_share_what_is_bound);
}
