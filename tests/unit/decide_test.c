/* Decisions: what is offered to the compiler, and what a receipt says. */
#include "services/gateway/core/decide.h"
#include "services/gateway/core/sql_shape.h"

#include "common/json/json.h"
#include "tests/support/suite.h"

#define DAY_US (INT64_C(86400) * 1000000)
#define NOW_US (INT64_C(1764547200) * 1000000) /* 2025-12-01 */
static const struct decide_now now = {.us = NOW_US};
static const struct decide_binding bindings[] = {
    {"a@mpkg://p/m.malloy", "b1", "\"s\".\"a\"", "G1", NOW_US - DAY_US, 0, 0, false},
    {"w@mpkg://p/m.malloy", "b2", "\"s\".\"w\"", "G2", NOW_US - DAY_US, 3600, 0, false},
};
static const struct decide_unbaked unbaked[] = {
    {"u@mpkg://p/m.malloy", "unbound_by_reload", ""},
    {"f@mpkg://p/m.malloy", "build_failed", "division by zero"},
    {"n@mpkg://p/m.malloy", "code_of_a_newer_planner", NULL},
};
static const struct decide_planned planned[] = {
    {"a@mpkg://p/m.malloy", "a", "b1", NULL, false},
    {"w@mpkg://p/m.malloy", "w", "b2", NULL, false},
    {"u@mpkg://p/m.malloy", "u", "b3", NULL, false},
    {"f@mpkg://p/m.malloy", "f", "b4", NULL, false},
    {"n@mpkg://p/m.malloy", "n", "b5", NULL, false},
    {"r@mpkg://p/m.malloy", "r", "", "source_parameters", false},
    {"l@mpkg://p/m.malloy", "l", "b6", NULL, true},
    {"x@mpkg://p/m.malloy", "x", "b7", NULL, false},
};
static const struct decide_package package = {.bindings = bindings,
                                              .n_bindings = ARRAY_LEN(bindings),
                                              .unbaked = unbaked,
                                              .n_unbaked = ARRAY_LEN(unbaked),
                                              .planned = planned,
                                              .n_planned = ARRAY_LEN(planned),
                                              .has_windows = true};

struct told {
    struct arena a;
    struct decide_receipt receipt;
};

static void tell(struct told *t, const struct decide_package *p, const struct decide_query *q)
{
    arena_init(&t->a);
    decide_receipt_make(p, q, 41, &t->a, &t->receipt);
}

/* The reason of a source that the compiler missed. */
static void expect_reason(const char *build_id, const char *source_id, const char *reason)
{
    struct told t;
    const struct decide_used used = {.build_id = build_id, .source_id = source_id};
    const struct decide_query q = {.used = &used, .n_used = 1, .is_flagged = true};
    tell(&t, &package, &q);
    ck_assert_int_eq(t.receipt.served, DECIDE_LIVE);
    ck_assert_str_eq(t.receipt.sources[0].reason, reason);
    ck_assert_str_eq(t.receipt.reason, reason);
    arena_fini(&t.a);
}

/* ---- freshness and the offer ---- */
START_TEST(a_table_is_stale_only_past_its_window)
{
    struct decide_binding b = {.window_s = 60, .data_as_of_us = NOW_US};

    ck_assert(!decide_is_stale(&b, NOW_US + 60 * 1000000));
    ck_assert(decide_is_stale(&b, NOW_US + 60 * 1000000 + 1));
    b.fallback = DECIDE_FAIL; /* acts like live */
    ck_assert(decide_is_stale(&b, NOW_US + DAY_US));
    b.fallback = DECIDE_STALE_OK;
    ck_assert(!decide_is_stale(&b, NOW_US + DAY_US));
    b = (struct decide_binding){.window_s = 60};
    ck_assert(!decide_is_stale(&b, NOW_US)); /* unknown age: the table is served */
    b = (struct decide_binding){.data_as_of_us = 1};
    ck_assert(!decide_is_stale(&b, NOW_US));
}
END_TEST

START_TEST(stale_and_broken_tables_are_not_offered)
{
    struct arena a;
    size_t n = 0;
    const struct decide_left_out broken = {0, REASON_table_missing};
    arena_init(&a);

    struct decide_left_out *left = decide_leave_out(&package, now, &broken, 1, &a, &n);

    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(left[0].why, REASON_table_missing);
    ck_assert_int_eq(left[1].why, REASON_stale);
    ck_assert(!decide_is_offered(&package, 0, left, n));
    ck_assert(!decide_is_offered(&package, 1, left, n));
    ck_assert(decide_is_offered(&package, 0, NULL, 0));
    arena_fini(&a);
}
END_TEST

START_TEST(sources_of_one_build_are_left_out_together)
{
    const struct decide_binding two[] = {{"a@m", "b1", "t", "G", NOW_US - DAY_US, 3600, 0, false},
                                         {"b@m", "b1", "t", "G", NOW_US - DAY_US, 0, 0, false}};
    const struct decide_package p = {.bindings = two, .n_bindings = 2, .has_windows = true};
    struct arena a;
    size_t n = 0;
    arena_init(&a);

    struct decide_left_out *left = decide_leave_out(&p, now, NULL, 0, &a, &n);

    ck_assert_uint_eq(n, 1);
    ck_assert(!decide_is_offered(&p, 1, left, n));
    arena_fini(&a);
}
END_TEST

START_TEST(without_windows_nothing_is_looked_at)
{
    struct decide_package p = package;
    struct arena a;
    size_t n = 7;
    p.has_windows = false;
    arena_init(&a);

    ck_assert(!decide_leave_out(&p, now, NULL, 0, &a, &n));
    ck_assert_uint_eq(n, 0);
    arena_fini(&a);
}
END_TEST

START_TEST(by_binding_results_are_not_offered_while_the_sets_may_be_old)
{
    const struct decide_binding two[] = {
        {.source_id = "a@m", .build_id = "b1", .table = "t", .is_by_binding = true},
        {.source_id = "b@m", .build_id = "b2", .table = "u"}};
    const struct decide_package p = {.bindings = two, .n_bindings = 2, .has_by_binding = true};
    const struct decide_now unread = {.us = NOW_US, .sets_unread = true};
    struct arena a;
    size_t n = 7;
    arena_init(&a);

    ck_assert(!decide_leave_out(&p, now, NULL, 0, &a, &n));
    ck_assert_uint_eq(n, 0);
    struct decide_left_out *left = decide_leave_out(&p, unread, NULL, 0, &a, &n);
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(left[0].why, REASON_bindings_unread);
    ck_assert(!decide_is_offered(&p, 0, left, n));
    ck_assert(decide_is_offered(&p, 1, left, n)); /* its fence tells */
    arena_fini(&a);
}
END_TEST

/* ---- receipts ---- */
START_TEST(one_table_read_is_baked_and_named)
{
    struct told t;
    const struct decide_used used = {.build_id = "b1",
                                     .source_id = "a@mpkg://p/m.malloy",
                                     .is_hit = true,
                                     .generation = "G9",
                                     .data_as_of_us = NOW_US};
    const struct decide_query q = {.used = &used, .n_used = 1, .is_flagged = true};
    auto_buf struct buf out = {0};

    tell(&t, &package, &q);
    decide_json(&t.receipt, &out);

    ck_assert_int_eq(t.receipt.served, DECIDE_BAKED);
    ck_assert_str_eq(t.receipt.generation, "G9"); /* of the fence row, newer than the binding's */
    ck_assert_ptr_null(t.receipt.reason);
    ck_assert_str_eq(buf_str(&out),
                     "{\"served\":\"baked\",\"epoch\":41,\"sources\":[{\"sourceID\":"
                     "\"a@mpkg://p/m.malloy\",\"name\":\"a\",\"served\":\"baked\",\"buildId\":"
                     "\"b1\",\"generation\":\"G9\",\"table\":\"\\\"s\\\".\\\"a\\\"\",\"dataAsOf\":"
                     "\"2025-12-01T00:00:00.000Z\"}]}");
    arena_fini(&t.a);
}
END_TEST

START_TEST(a_hit_without_a_fence_row_is_told_as_bound)
{
    struct told t;
    const struct decide_used used[] = {
        {.build_id = "b1", .source_id = "", .is_hit = true},
        {.build_id = "unknown", .source_id = "z@mpkg://p/z.malloy", .is_hit = true}};
    const struct decide_query q = {.used = used, .n_used = 2, .is_flagged = true};
    auto_buf struct buf out = {0};

    tell(&t, &package, &q);
    decide_json(&t.receipt, &out);

    ck_assert_str_eq(t.receipt.sources[0].generation, "G1");
    ck_assert_str_eq(t.receipt.sources[0].name, "a");
    ck_assert_str_eq(t.receipt.sources[1].name, "z");
    ck_assert_ptr_null(t.receipt.generation); /* two of them */
    ck_assert(strstr(buf_str(&out), "\"dataAsOf\":null"));
    arena_fini(&t.a);
}
END_TEST

START_TEST(a_table_beside_a_live_source_is_mixed)
{
    struct told t;
    const struct decide_used used[] = {
        {.build_id = "b1", .source_id = "a@mpkg://p/m.malloy", .is_hit = true},
        {.build_id = "b4", .source_id = "f@mpkg://p/m.malloy"}};
    const struct decide_query q = {.used = used, .n_used = 2, .is_flagged = true};
    auto_buf struct buf out = {0};

    tell(&t, &package, &q);
    decide_json(&t.receipt, &out);

    ck_assert_int_eq(t.receipt.served, DECIDE_MIXED);
    ck_assert_str_eq(t.receipt.generation, "G1");
    ck_assert_str_eq(t.receipt.reason, "build_failed");
    ck_assert(strstr(buf_str(&out), "{\"served\":\"mixed\",\"reason\":\"build_failed\""));
    ck_assert(strstr(buf_str(&out), "\"message\":\"division by zero\",\"remedy\":\"read "));
    arena_fini(&t.a);
}
END_TEST

START_TEST(every_missing_table_has_its_reason)
{
    expect_reason("b3", "u@mpkg://p/m.malloy", "unbound_by_reload");
    expect_reason("b3", "", "unbound_by_reload"); /* found by its build */
    expect_reason("b4", "f@mpkg://p/m.malloy", "build_failed");
    expect_reason("b5", "n@mpkg://p/m.malloy", "code_of_a_newer_planner");
    expect_reason("b8", "r@mpkg://p/m.malloy", "refused");
    expect_reason("b6", "l@mpkg://p/m.malloy", "storage_not_built");
    expect_reason("b7", "x@mpkg://p/m.malloy", "never_built");
    expect_reason("b9", "", "never_built");
    expect_reason("b1", "a@mpkg://p/m.malloy", "given_in_persisted_query"); /* offered, not taken */
}
END_TEST

START_TEST(what_was_left_out_says_why)
{
    struct told t;
    const struct decide_left_out left[] = {{1, REASON_stale}, {0, REASON_binding_superseded}};
    const struct decide_used used[] = {{.build_id = "b2", .source_id = "w@mpkg://p/m.malloy"},
                                       {.build_id = "b1", .source_id = "a@mpkg://p/m.malloy"}};
    struct decide_query q = {
        .used = used, .n_used = 2, .left_out = left, .n_left_out = 2, .is_flagged = true};

    tell(&t, &package, &q);
    ck_assert_str_eq(t.receipt.reason, "stale");
    ck_assert_str_eq(t.receipt.sources[1].reason, "binding_superseded");
    arena_fini(&t.a);

    q.is_live_mode = true;
    tell(&t, &package, &q);
    ck_assert_str_eq(t.receipt.sources[0].reason, "mode_live");
    ck_assert_str_eq(t.receipt.sources[1].reason, "mode_live");
    arena_fini(&t.a);
}
END_TEST

START_TEST(a_query_of_no_persisted_source_says_why)
{
    static const struct {
        struct decide_query q;
        bool has_flagless;
        const char *reason;
    } cases[] = {
        {{.is_flagged = true}, false, "not_persisted"},
        {{.is_flagged = true}, true, "not_persisted"},
        {{.is_flagged = false}, false, "not_persisted"},
        {{.is_flagged = false}, true, "model_not_flagged"},
        {{.is_flagged = true, .given_refused = true}, false, "given_in_persisted_query"},
        {{.is_flagged = true, .is_live_mode = true}, false, "mode_live"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct decide_package p = package;
        struct told t;
        auto_buf struct buf out = {0};
        p.has_flagless = cases[i].has_flagless;
        tell(&t, &p, &cases[i].q);
        decide_json(&t.receipt, &out);
        ck_assert_int_eq(t.receipt.served, DECIDE_LIVE);
        ck_assert_str_eq(t.receipt.reason, cases[i].reason);
        ck_assert(strstr(buf_str(&out), "\"sources\":[]}"));
        arena_fini(&t.a);
    }
}
END_TEST

START_TEST(a_given_refused_names_the_sources)
{
    struct told t;
    const struct decide_used used = {.build_id = "b7", .source_id = "x@mpkg://p/m.malloy"};
    const struct decide_query q = {
        .used = &used, .n_used = 1, .is_flagged = true, .given_refused = true};

    tell(&t, &package, &q);

    ck_assert_str_eq(t.receipt.sources[0].reason, "given_in_persisted_query");
    arena_fini(&t.a);
}
END_TEST

START_TEST(unknown_codes_have_no_remedy)
{
    struct told t;
    const struct decide_used used = {.build_id = "b5", .source_id = "n@mpkg://p/m.malloy"};
    const struct decide_query q = {.used = &used, .n_used = 1, .is_flagged = true};
    auto_buf struct buf out = {0};

    tell(&t, &package, &q);
    decide_json(&t.receipt, &out);

    ck_assert(strstr(buf_str(&out), "\"reason\":\"code_of_a_newer_planner\"}"));
    arena_fini(&t.a);
}
END_TEST

/* ---- reasons ---- */
START_TEST(reasons_are_found_by_their_code)
{
    for (int r = 1; r < REASON_COUNT; r++) {
        ck_assert_int_eq(reason_find(reason_code((enum reason)r)), r);
        ck_assert_str_ne(reason_when((enum reason)r), "");
        ck_assert_str_ne(reason_remedy((enum reason)r), "");
    }
    ck_assert_int_eq(reason_find("nonsense"), REASON_NONE);
    ck_assert_str_eq(reason_code(REASON_NONE), "");
    ck_assert_str_eq(decide_served_name(DECIDE_MIXED), "mixed");
}
END_TEST

/* ---- SQL statements of callers ---- */
START_TEST(only_reading_statements_pass)
{
    static const char *const good[] = {
        "select 1",       "  SELECT 1 ;\n",
        "(((select 1)))", "-- a\n/* b /* c */ */ with x as (select 1) table x",
        "VALUES (1)",     "table t",
        "select"};
    static const char *const bad[] = {"",
                                      ";",
                                      "insert into t values (1)",
                                      "selecting",
                                      "show x",
                                      "-- select 1",
                                      "/* select 1",
                                      "/* a */",
                                      "explain select 1",
                                      "/",
                                      "-"};
    struct slice core;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        ck_assert_msg(sql_is_select(slice_of(good[i]), &core), "%s", good[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        ck_assert_msg(!sql_is_select(slice_of(bad[i]), &core), "%s", bad[i]);
    }
}
END_TEST

START_TEST(statements_are_wrapped_so_that_comments_end)
{
    struct arena a;
    struct slice core;
    arena_init(&a);
    ck_assert(sql_is_select(SLICE("select 1 -- x\n;; "), &core));
    ck_assert_str_eq(sql_rows_as_json(&a, core, 0),
                     "SELECT row_to_json(kiln_row) FROM (\nselect 1 -- x\n) AS kiln_row");
    ck_assert_str_eq(sql_rows_as_json(&a, SLICE("table t"), 5),
                     "SELECT row_to_json(kiln_row) FROM (\ntable t\n) AS kiln_row LIMIT 5");
    arena_fini(&a);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("decide");
    TCase *t = tcase_create("decide");
    tcase_add_test(t, a_table_is_stale_only_past_its_window);
    tcase_add_test(t, stale_and_broken_tables_are_not_offered);
    tcase_add_test(t, sources_of_one_build_are_left_out_together);
    tcase_add_test(t, without_windows_nothing_is_looked_at);
    tcase_add_test(t, by_binding_results_are_not_offered_while_the_sets_may_be_old);
    tcase_add_test(t, one_table_read_is_baked_and_named);
    tcase_add_test(t, a_hit_without_a_fence_row_is_told_as_bound);
    tcase_add_test(t, a_table_beside_a_live_source_is_mixed);
    tcase_add_test(t, every_missing_table_has_its_reason);
    tcase_add_test(t, what_was_left_out_says_why);
    tcase_add_test(t, a_query_of_no_persisted_source_says_why);
    tcase_add_test(t, a_given_refused_names_the_sources);
    tcase_add_test(t, unknown_codes_have_no_remedy);
    tcase_add_test(t, reasons_are_found_by_their_code);
    tcase_add_test(t, only_reading_statements_pass);
    tcase_add_test(t, statements_are_wrapped_so_that_comments_end);
    suite_add_tcase(suite, t);
    return suite_run(suite);
}
