#include "common/pgc/pgc_sim.h"
#include "tests/support/suite.h"
#include "tests/support/turn.h"

#define PATIENCE 10000 /* ms a test waits for a condition before it fails */
#define turn_until(l, claim) turn_until_within(l, PATIENCE, claim)

static struct loop *loop;
static struct pgc_pool *pool;
static struct pgc_sim sim;

/* The statements of these tests say themselves how they are answered. */
static void answer(struct pgc_sim *s, const struct pgc_stmt *stmt, struct pgc_sim_answer *a)
{
    static const char *const cells[] = {"1", "one", "2", NULL};
    (void)s;
    if (strcmp(stmt->sql, "rows") == 0) {
        a->cells = cells;
        a->n_rows = 2;
        a->n_cols = 2;
    } else if (strcmp(stmt->sql, "fails") == 0) {
        a->sqlstate = "40001";
    } else if (strcmp(stmt->sql, "hangs") == 0) {
        a->hangs = true;
    } else if (strcmp(stmt->sql, "is deaf") == 0) {
        a->ignores_cancel = true;
    } else if (strcmp(stmt->sql, "breaks") == 0) {
        a->breaks = true;
    }
}

static void setup(void)
{
    loop = loop_new();
    sim = (struct pgc_sim){.answer = answer};
    pool = pgc_sim_pool_new(loop, &(struct pgc_settings){.what = "sim", .max = 1}, &sim);
}

static void on_closed(void *data)
{
    *(bool *)data = true;
}

static bool closed;
static void close_pool(void)
{
    closed = false;
    pgc_pool_close(pool, on_closed, &closed);
    turn_until(loop, closed);
    pgc_pool_free(pool);
    pool = NULL;
}

static void teardown(void)
{
    if (pool) {
        close_pool();
    }
    loop_free(loop);
}

static void on_done(struct pgc_batch *b)
{
    *(int *)b->data += 1;
}

static int run_batch(struct pgc_batch *b, const struct pgc_stmt *stmts, size_t n)
{
    int dones = 0;
    *b = (struct pgc_batch){.stmts = stmts, .n = n, .done = on_done, .data = &dones};
    pgc_batch_start(pool, b);
    turn_until(loop, dones == 1);
    b->data = NULL;
    return b->rc;
}

static int run_sql(const char *sql)
{
    struct pgc_batch b;
    int rc = run_batch(&b, &(struct pgc_stmt){.sql = sql}, 1);
    pgc_batch_fini(&b);
    return rc;
}

START_TEST(scripted_rows_come_as_results)
{
    struct pgc_batch b;
    ck_assert_int_eq(run_batch(&b, &(struct pgc_stmt){.sql = "rows"}, 1), 0);
    ck_assert_uint_eq(pgc_rows(b.results[0]), 2);
    ck_assert_int_eq(pgc_i64(b.results[0], 1, 0), 2);
    ck_assert_str_eq(pgc_text(b.results[0], 0, 1), "one");
    ck_assert_ptr_null(pgc_text(b.results[0], 1, 1));
    ck_assert_uint_eq(pgc_affected(b.results[0]), 2);
    pgc_batch_fini(&b);
}
END_TEST

START_TEST(a_scripted_error_ends_the_batch)
{
    struct pgc_stmt stmts[] = {{.sql = "BEGIN"}, {.sql = "fails"}, {.sql = "rows"}};
    struct pgc_batch b;
    ck_assert_int_eq(run_batch(&b, stmts, 3), ERR_WH_TRANSIENT);
    ck_assert_uint_eq(b.failed_at, 1);
    ck_assert_ptr_null(b.results[2]);
    pgc_batch_fini(&b);
    ck_assert_int_eq(run_sql("rows"), 0); /* rolled back meanwhile */
    ck_assert_uint_eq(sim.opened, 1);
}
END_TEST

START_TEST(a_dead_idle_session_is_replaced)
{
    ck_assert_int_eq(run_sql("rows"), 0);
    pgc_sim_drop_idle(pool);
    ck_assert_int_eq(run_sql("rows"), 0);
    ck_assert_uint_eq(sim.opened, 2);
}
END_TEST

START_TEST(a_break_is_retried_once_for_readers_only)
{
    ck_assert_int_eq(run_sql("rows"), 0);
    ck_assert_int_eq(run_sql("breaks"), ERR_WH_LOST);
    ck_assert_uint_eq(sim.opened, 1);
    ck_assert_int_eq(run_sql("rows"), 0);
    ck_assert_uint_eq(sim.opened, 2);

    int dones = 0;
    struct pgc_stmt stmt = {.sql = "breaks"};
    struct pgc_batch b = {
        .stmts = &stmt, .n = 1, .read_only = true, .done = on_done, .data = &dones};
    pgc_batch_start(pool, &b);
    turn_until(loop, dones == 1);

    ck_assert_int_eq(b.rc, ERR_WH_LOST);
    ck_assert(b.unknown_outcome);
    ck_assert_uint_eq(sim.opened, 3);
    pgc_batch_fini(&b);
}
END_TEST

START_TEST(nothing_is_retried_once_the_pool_closes)
{
    int dones = 0;
    struct pgc_stmt stmt = {.sql = "breaks"};
    struct pgc_batch b = {
        .stmts = &stmt, .n = 1, .read_only = true, .done = on_done, .data = &dones};
    ck_assert_int_eq(run_sql("rows"), 0);
    pgc_batch_start(pool, &b);

    close_pool(); /* at once: not when the batch's time is over */

    ck_assert_int_eq(dones, 1);
    ck_assert_int_eq(b.rc, ERR_WH_LOST);
    ck_assert_uint_eq(sim.opened, 1);
    pgc_batch_fini(&b);
}
END_TEST

START_TEST(a_server_deaf_to_cancel_is_given_up)
{
    int dones = 0;
    struct pgc_stmt stmt = {.sql = "is deaf"};
    struct pgc_batch b = {.stmts = &stmt, .n = 1, .done = on_done, .data = &dones};
    pgc_batch_start(pool, &b);
    for (int i = 0; i < 3; i++) {
        (void)loop_turn(loop, MS(0));
    }
    pgc_batch_cancel(&b);
    turn_until(loop, dones == 1);

    ck_assert_int_eq(b.rc, ERR_CANCELLED);
    ck_assert(b.unknown_outcome);
    ck_assert_uint_gt(sim.cancels, 5);
    pgc_batch_fini(&b);
    ck_assert_int_eq(run_sql("rows"), 0);
}
END_TEST

START_TEST(a_refused_session_fails_the_request)
{
    sim.refuse_sqlstate = "28P01";
    ck_assert_int_eq(run_sql("rows"), ERR_WH_DENIED);
    sim.refuse_sqlstate = NULL;
    ck_assert_int_eq(run_sql("rows"), 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("pgc_sim");
    TCase *tc = tcase_create("sim");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, scripted_rows_come_as_results);
    tcase_add_test(tc, a_scripted_error_ends_the_batch);
    tcase_add_test(tc, a_dead_idle_session_is_replaced);
    tcase_add_test(tc, a_break_is_retried_once_for_readers_only);
    tcase_add_test(tc, nothing_is_retried_once_the_pool_closes);
    tcase_add_test(tc, a_server_deaf_to_cancel_is_given_up);
    tcase_add_test(tc, a_refused_session_fails_the_request);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
