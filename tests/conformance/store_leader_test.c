/* Leadership and commits (protocol.md 1, 4). */
#include "tests/conformance/store_fixture.h"

#include <stdio.h>

static void add_instance(struct rows *rows, const char *name, const char *version)
{
    struct row_instance *i = &rows_add(rows, ROW_INSTANCE)->u.instance;
    *i = (struct row_instance){
        .instance = name, .role = "builder", .version = version, .boot = uuid_random()};
}

START_TEST(second_planner_stands_by_and_takes_over_when_the_first_stops_renewing)
{
    peer_open(&one, "planner-1", 50, 400);
    peer_lead(&one);
    peer_open(&two, "planner-2", 50, 400);
    struct ms until = ms_add(loop_now(two.loop), MS(1200));

    while (
        ms_before(loop_now(two.loop),
                  until)) { /* three times as long as a take-over: it renews, so nothing happens */
        (void)loop_turn(one.loop, MS(5));
        (void)loop_turn(two.loop, MS(5));
    }
    ck_assert_int_eq(two.leaders, 0);
    ck_assert(two.is_up);

    struct ms still = loop_now(two.loop);
    peer_lead(&two); /* one is held still: its loop does not turn */
    ck_assert_int_ge(ms_sub(loop_now(two.loop), still).v, 300);
    ck_assert_uint_gt(two.term, one.term);
}
END_TEST

START_TEST(old_leader_is_refused_by_the_guard_and_told)
{
    peer_open(&one, "planner-1", 60000, 400);
    peer_lead(&one);
    peer_open(&two, "planner-2", 50, 200);
    peer_lead(&two);
    struct rows rows = rows_new();
    add_instance(&rows, "builder-1", "1");
    struct store_op *op = op_new();

    store_commit(one.s, op, &rows);

    ck_assert_int_eq(op_wait(op), ERR_STORE_LEADER);
    turn_until(one.loop, one.losts == 1);
    ck_assert_int_eq(one.lost_code, ERR_STORE_LEADER);
    ck_assert_str_eq(value("SELECT count(*) FROM kiln.instance"), "0");
    /* Other writes are guarded too. */
    op = op_new();
    uint64_t id = 0;
    store_put_environment(one.s, op, &(struct store_environment){.name = "e"}, &id);
    ck_assert_int_eq(op_wait(op), ERR_STORE_LEADER);
    ck_assert_int_eq(two.losts, 0);
}
END_TEST

START_TEST(write_outside_the_commits_of_an_old_leader_loses_the_leadership)
{
    peer_open(&one, "planner-1", 60000, 400);
    peer_lead(&one);
    peer_open(&two, "planner-2", 50, 200);
    peer_lead(&two);
    struct store_op *op = op_new();
    uint64_t id = 0;

    store_put_environment(one.s, op, &(struct store_environment){.name = "e"}, &id);

    ck_assert_int_eq(op_wait(op), ERR_STORE_LEADER);
    turn_until(one.loop, one.losts == 1);
    ck_assert_str_eq(value("SELECT count(*) FROM kiln.environment"), "0");
}
END_TEST

START_TEST(old_leader_that_wakes_up_stands_by)
{
    peer_open(&one, "planner-1", 50, 300);
    peer_lead(&one);
    peer_open(&two, "planner-2", 50, 300);
    peer_lead(&two);

    turn_until(one.loop, (loop_turn(two.loop, MS(5)), one.losts == 1));

    ck_assert_int_eq(one.lost_code, ERR_STORE_LEADER);
    ck_assert_int_eq(two.losts, 0);
    ck_assert_int_eq(one.leaders, 1);
}
END_TEST

START_TEST(leader_that_closes_gives_the_leadership_up_at_once)
{
    peer_open(&one, "planner-1", 50, 60000);
    peer_lead(&one);
    peer_open(&two, "planner-2", 50, 60000);
    turn_until(two.loop, two.heard);
    ck_assert_int_eq(two.leaders, 0);

    peer_close(&one);

    peer_lead(&two);
    ck_assert_uint_eq(two.term, 2);
}
END_TEST

START_TEST(row_that_moved_aborts_the_whole_commit_and_everything_behind_it)
{
    peer_open(&one, "planner-1", 50, 500);
    peer_lead(&one);
    struct rows good = rows_new(), bad = rows_new(), late = rows_new();
    add_instance(&good, "builder-1", "1");
    add_instance(&bad, "builder-2", "1");
    rows_add(&bad, ROW_RUN_MOVE)->u.run = (struct row_run){
        .id = "1766012345678-000000001", .from = RUN_PLANNING, .state = RUN_BUILDING, .load = 1};
    add_instance(&late, "builder-3", "1");
    ck_assert_int_eq(commit(&good), 0);
    struct store_op *first = op_new(), *second = op_new();

    store_commit(one.s, first, &bad);
    store_commit(one.s, second, &late);

    ck_assert_int_eq(op_wait(first), ERR_STORE_MOVED);
    ck_assert_ptr_nonnull(
        strstr(first->err.text, "run 1766012345678-000000001 is not planning any more"));
    ck_assert_int_lt(op_wait(second), 0);
    ck_assert_int_eq(one.losts, 1);
    ck_assert_str_eq(value("SELECT string_agg(instance, ' ') FROM kiln.instance"), "builder-1");

    uint64_t before = one.term;
    peer_lead(&one); /* the coordinator is loaded again under a new term */
    ck_assert_uint_gt(one.term, before);
    ck_assert_int_eq(commit(&late), 0);
}
END_TEST

struct ordered {
    struct store_op op;
    struct rows rows;
    int at, *n_done;
    bool in_order;
};

static void on_ordered(struct store_op *op)
{
    struct ordered *o = op->data;
    o->in_order = op->rc == 0 && *o->n_done == o->at;
    ++*o->n_done;
}

START_TEST(grouped_commits_keep_their_order_and_share_transactions)
{
    enum { N = 250 };
    peer_open(&one, "planner-1", 50, 500);
    peer_lead(&one);
    struct ordered *list = arena_zalloc(&arena, N * sizeof *list);
    int n_done = 0;

    for (int i = 0; i < N; i++) {
        struct ordered *o = &list[i];
        *o = (struct ordered){.op = {.arena = &arena, .done = on_ordered, .data = o},
                              .rows = rows_new(),
                              .at = i,
                              .n_done = &n_done};
        add_instance(&o->rows, "the-same", arena_printf(&arena, "%d", i));
        add_instance(&o->rows, arena_printf(&arena, "own-%d", i), "1");
        store_commit(one.s, &o->op, &o->rows);
    }
    turn_until(one.loop, n_done == N);

    for (int i = 0; i < N; i++) {
        ck_assert(list[i].in_order);
    }
    ck_assert_str_eq(value("SELECT version FROM kiln.instance WHERE instance = 'the-same'"), "249");
    ck_assert_str_eq(value("SELECT count(*) FROM kiln.instance"), "251");
    ck_assert_str_eq(value("SELECT count(DISTINCT xmin::text) <= 5 FROM kiln.instance"), "t");
}
END_TEST

START_TEST(lost_server_fails_what_waits_and_leads_again_when_it_is_back)
{
    peer_open(&one, "planner-1", 50, 500);
    peer_lead(&one);
    uint64_t before = one.term;
    struct rows rows = rows_new();
    add_instance(&rows, "builder-1", "1");
    ck_assert_int_eq(commit(&rows), 0);
    struct store_op *op = op_new();

    pg_server_crash(&server);
    store_commit(one.s, op, &rows);

    ck_assert_int_eq(op_wait(op), ERR_STORE);
    turn_until(one.loop, one.losts == 1);
    ck_assert(!one.is_up);
    pg_server_restart(&server);
    peer_lead(&one);
    ck_assert_uint_gt(one.term, before);
    ck_assert(one.is_up);
    ck_assert_int_eq(commit(&rows), 0);
}
END_TEST

START_TEST(idle_leader_notices_that_the_server_is_gone)
{
    peer_open(&one, "planner-1", 50, 500);
    peer_lead(&one);

    pg_server_crash(&server);
    turn_until(one.loop, one.losts == 1);

    pg_server_restart(&server);
    peer_lead(&one);
}
END_TEST

START_TEST(commit_before_leading_and_while_closing_is_refused)
{
    peer_open(&one, "planner-1", 50, 500);
    struct rows rows = rows_new();
    add_instance(&rows, "builder-1", "1");
    struct store_op *op = op_new();

    store_commit(one.s, op, &rows);
    ck_assert_int_eq(op->rc, 1); /* never inside the call */
    ck_assert_int_eq(op_wait(op), ERR_STORE_LEADER);

    peer_lead(&one);
    op = op_new();
    store_commit(one.s, op, &rows);
    peer_close(&one);
    ck_assert_int_eq(op->rc, ERR_SHUTDOWN);
}
END_TEST

START_TEST(server_that_is_not_there_is_told_and_closing_still_ends)
{
    pg_server_crash(&server);
    peer_open(&one, "planner-1", 50, 500);

    turn_until(one.loop, one.heard);

    ck_assert(!one.is_up);
    ck_assert_ptr_nonnull(strstr(one.why, "run store"));
    peer_close(&one);
    pg_server_restart(&server);
}
END_TEST

START_TEST(table_of_the_flow_is_whole)
{
    ck_assert_msg(flow_type_check(&store_compete_type) == NULL, "%s",
                  flow_type_check(&store_compete_type));
}
END_TEST

TCase *leader_case(void)
{
    TCase *tc = tcase_create("leader");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, fresh_database, end_database);
    tcase_add_test(tc, table_of_the_flow_is_whole);
    tcase_add_test(tc, second_planner_stands_by_and_takes_over_when_the_first_stops_renewing);
    tcase_add_test(tc, old_leader_is_refused_by_the_guard_and_told);
    tcase_add_test(tc, write_outside_the_commits_of_an_old_leader_loses_the_leadership);
    tcase_add_test(tc, old_leader_that_wakes_up_stands_by);
    tcase_add_test(tc, leader_that_closes_gives_the_leadership_up_at_once);
    tcase_add_test(tc, row_that_moved_aborts_the_whole_commit_and_everything_behind_it);
    tcase_add_test(tc, grouped_commits_keep_their_order_and_share_transactions);
    tcase_add_test(tc, lost_server_fails_what_waits_and_leads_again_when_it_is_back);
    tcase_add_test(tc, idle_leader_notices_that_the_server_is_gone);
    tcase_add_test(tc, commit_before_leading_and_while_closing_is_refused);
    tcase_add_test(tc, server_that_is_not_there_is_told_and_closing_still_ends);
    return tc;
}
