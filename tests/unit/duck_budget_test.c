/* One memory limit over the instances of a process. */
#include "tests/support/suite.h"
#include "tests/unit/duck_fixture.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
enum { MOST = 12 };

static char dir[64];
static struct duck_budget *budget;
static struct duck_instance *all[MOST];
static size_t n_all;

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void setup(void)
{
    duck_setup();
    snprintf(dir, sizeof dir, "/tmp/kt-budget.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    n_all = 0;
}

static void teardown(void)
{
    ck_assert_uint_eq(duck_pool_jobs(pool), 0);
    while (n_all > 0) {
        duck_instance_unref(all[--n_all]);
    }
    duck_teardown();
    duck_budget_free(budget);
    budget = NULL;
    (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void open_some(uint64_t bytes, size_t n)
{
    budget = duck_budget_new(bytes);
    for (size_t i = 0; i < n; i++) {
        struct err e;
        const struct duck_settings s = {.what = "connection 'duckdb'",
                                        .connections = 2,
                                        .threads = 2,
                                        .budget = budget,
                                        .temp_dir = arena_printf(&arena, "%s/spill-%zu", dir, i),
                                        .temp_bytes = UINT64_C(4) << 30,
                                        .allowed_dirs = (const char *const[]){dir, NULL}};
        int rc = duck_instance_open(&s, &all[n_all], &e);
        ck_assert_msg(rc == 0, "%s", err_text(&e));
        n_all++;
    }
}

static void begin(struct told *t, size_t i, const char *sql)
{
    told_init(t, sql);
    t->job.instance = all[i];
    told_start(t);
}

static const char *end(struct told *t)
{
    int rc = told_end(t);
    ck_assert_msg(rc == 0, "%s: %s", t->sql, err_text(&t->job.err));
    const char *rows = arena_slice(&arena, buf_slice(&t->rows));
    buf_fini(&t->rows);
    return rows;
}

static const char *ask(size_t i, const char *sql)
{
    struct told t;
    begin(&t, i, sql);
    return end(&t);
}

#define LIMIT                                                                                      \
    "SELECT (CASE WHEN s LIKE '%GiB' THEN 1024 ELSE 1 END * "                                      \
    "replace(replace(s, ' MiB', ''), ' GiB', '')::DOUBLE)::INT FROM "                              \
    "(SELECT current_setting('memory_limit') AS s)"

static uint64_t limit_of(size_t i)
{
    return strtoull(ask(i, LIMIT), NULL, 10);
}

START_TEST(limits_of_all_instances_never_add_up_to_more_than_the_processes)
{
    static struct told t[MOST];
    open_some(244 * MIB, 6);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < n_all; i++) {
            begin(&t[i], i, "SELECT count(DISTINCT hash(i)) FROM range(1000000) t(i)");
        }
        for (size_t i = 0; i < n_all; i++) {
            while (t[i].dones == 0) {
                (void)loop_turn(loop, MS(5));
                ck_assert_uint_le(duck_budget_given(budget), 244 * MIB);
            }
            ck_assert_str_eq(end(&t[i]), "1000000\n");
        }
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < n_all; i++) { /* what the budget believes is what DuckDB has */
        uint64_t told = limit_of(i) * MIB, believed = duck_instance_memory(all[i]);
        ck_assert_uint_le(told, believed + MIB);
        ck_assert_uint_le(believed, told + MIB);
    }
    for (size_t i = 0; i < n_all; i++) {
        sum += duck_instance_memory(all[i]);
    }
    ck_assert_uint_eq(sum, duck_budget_given(budget));
    ck_assert_uint_le(sum, 244 * MIB);
}
END_TEST

START_TEST(small_files_are_read_by_many_instances_within_256_mb)
{
    static struct told t[MOST];
    auto_free char *path = xasprintf("%s/one.ndjson", dir);
    auto_free char *sql = xasprintf("SELECT a FROM '%s'", path);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    (void)fputs("{\"a\": 42}\n", f);
    ck_assert_int_eq(fclose(f), 0);
    open_some(244 * MIB, MOST);
    for (size_t i = 0; i < n_all; i++) {
        begin(&t[i], i, sql);
    }
    for (size_t i = 0; i < n_all; i++) {
        ck_assert_str_eq(end(&t[i]), "42\n");
    }
}
END_TEST

START_TEST(two_statements_of_one_instance_have_what_two_need)
{
    static struct told endless, asks;
    open_some(244 * MIB, MOST);
    for (size_t i = 0; i < n_all; i++) {
        ck_assert_str_eq(ask(i, "SELECT 1"), "1\n");
    }
    begin(&endless, 0, "SELECT count(*) FROM range(1000000000000) t(i) WHERE i % 3 = 1");
    begin(&asks, 0, LIMIT);
    uint64_t limit = strtoull(end(&asks), NULL, 10);
    duck_job_cancel(&endless.job);
    ck_assert_int_eq(told_end(&endless), ERR_CANCELLED);
    buf_fini(&endless.rows);
    ck_assert_uint_ge(limit, 120);
}
END_TEST

START_TEST(statements_kept_prepared_do_not_keep_memory_from_others)
{
    static struct told t;
    auto_free char *path = xasprintf("%s/one.csv", dir);
    auto_free char *sql = xasprintf("SELECT a FROM '%s'", path);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    (void)fputs("a\n42\n", f);
    ck_assert_int_eq(fclose(f), 0);
    open_some(244 * MIB, MOST);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < n_all; i++) {
            told_init(&t, sql);
            t.job.instance = all[i];
            t.prepare_as = "it";
            told_start(&t);
            ck_assert_str_eq(end(&t), "42\n");
        }
    }
}
END_TEST

START_TEST(an_idle_instance_gives_its_memory_and_keeps_its_tables)
{
    open_some(160 * MIB, 2);
    (void)ask(0, "CREATE TABLE t AS SELECT i, hash(i) AS h FROM range(2000000) r(i)");
    ck_assert_uint_ge(limit_of(0), 75);
    ck_assert_uint_ge(limit_of(1), 75);
    ck_assert_str_eq(ask(1, "SELECT count(DISTINCT hash(i)) FROM range(2000000) t(i)"),
                     "2000000\n");
    ck_assert_str_eq(ask(0, "SELECT count(*), sum(i) FROM t"), "2000000|1999999000000\n");
    ck_assert_uint_le(duck_budget_given(budget), 160 * MIB);
}
END_TEST

START_TEST(an_instance_that_is_asked_again_keeps_what_it_has)
{
    open_some(1000 * MIB, 3);
    for (size_t i = 0; i < n_all; i++) {
        (void)limit_of(i);
    }
    uint64_t first = limit_of(0), second = limit_of(1), third = limit_of(2);
    ck_assert_uint_ge(first, 249);
    ck_assert_uint_ge(second, 200);
    ck_assert_uint_ge(third, 200);
    ck_assert_uint_eq(limit_of(0), first);
    ck_assert_uint_eq(limit_of(1), second);
    ck_assert_uint_eq(limit_of(2), third);
}
END_TEST

static int work_hungry(struct duck_job *job, struct duck_conn *conn, struct err *e)
{
    struct told *t = job->data;
    t->stop_after = duck_job_more_memory(job, conn);
    const char *limit;
    int rc = duck_exec_value(conn, LIMIT, &arena, &limit, e);
    t->n_rows = rc == 0 ? strtoull(limit, NULL, 10) : 0;
    return rc;
}

START_TEST(a_statement_that_needs_it_has_nearly_the_whole_limit_and_only_once)
{
    struct told t;
    open_some(1000 * MIB, 4);
    told_init(&t, "");
    t.job.instance = all[2];
    t.job.work_pool = work_hungry;
    told_start(&t);
    ck_assert_int_eq(told_end(&t), 0);
    ck_assert_uint_eq(t.stop_after, 1); /* there was more */
    ck_assert_uint_ge(t.n_rows, 890);
    ck_assert_uint_le(duck_budget_given(budget), 1000 * MIB);
    t.dones = 0;
    told_start(&t);
    ck_assert_int_eq(told_end(&t), 0);
    ck_assert_uint_eq(t.stop_after, 0);
    ck_assert_uint_ge(limit_of(0), 75); /* a small one beside it */
}
END_TEST

START_TEST(a_query_beyond_the_limit_is_one_sentence_with_limit_setting_and_remedy)
{
    open_some(100 * MIB, 2);
    struct told t;
    begin(&t, 1, "SELECT len(list(i)) FROM range(30000000) t(i)");
    ck_assert_int_eq(told_end(&t), ERR_QUERY_MEMORY);
    ck_assert_ptr_nonnull(strstr(t.job.err.text, "MiB"));
    ck_assert_ptr_nonnull(strstr(t.job.err.text, "(duckdb_memory), or ask for less"));
    ck_assert_ptr_null(strchr(t.job.err.text, '\n'));
    buf_fini(&t.rows);
    ck_assert_str_eq(ask(1, "SELECT 1"), "1\n");
}
END_TEST

START_TEST(no_other_setting_can_be_changed_for_the_budgets_sake)
{
    open_some(100 * MIB, 1);
    static const char *const attacks[] = {"SET threads = 7",
                                          "SET allowed_configs = ['threads']",
                                          "SET temp_directory = '/tmp'",
                                          "RESET allowed_configs",
                                          "SET lock_configuration = false",
                                          "SET enable_external_access = true"};
    for (size_t i = 0; i < ARRAY_LEN(attacks); i++) {
        struct told t;
        begin(&t, 0, attacks[i]);
        ck_assert_msg(told_end(&t) < 0, "%s went well", attacks[i]);
        buf_fini(&t.rows);
    }
}
END_TEST

START_TEST(memory_of_a_closed_instance_goes_to_the_others)
{
    open_some(200 * MIB, 2);
    ck_assert_uint_ge(limit_of(0), 79);
    duck_instance_unref(all[0]);
    all[0] = all[1];
    n_all = 1;
    ck_assert_uint_le(duck_budget_given(budget), 110 * MIB);
    (void)limit_of(0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("duck_budget");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, limits_of_all_instances_never_add_up_to_more_than_the_processes);
    tcase_add_test(tc, small_files_are_read_by_many_instances_within_256_mb);
    tcase_add_test(tc, two_statements_of_one_instance_have_what_two_need);
    tcase_add_test(tc, statements_kept_prepared_do_not_keep_memory_from_others);
    tcase_add_test(tc, an_idle_instance_gives_its_memory_and_keeps_its_tables);
    tcase_add_test(tc, an_instance_that_is_asked_again_keeps_what_it_has);
    tcase_add_test(tc, a_statement_that_needs_it_has_nearly_the_whole_limit_and_only_once);
    tcase_add_test(tc, a_query_beyond_the_limit_is_one_sentence_with_limit_setting_and_remedy);
    tcase_add_test(tc, no_other_setting_can_be_changed_for_the_budgets_sake);
    tcase_add_test(tc, memory_of_a_closed_instance_goes_to_the_others);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
