/* Functions that callers may not name, databases attached before the lock, and what a server behind
 * them says. */
#include "tests/support/suite.h"
#include "tests/unit/duck_fixture.h"

static const char *const forbidden[] = {"range", "upper", NULL};

static int work_check(struct duck_job *job, struct duck_conn *conn, struct err *e)
{
    return duck_check_select(conn, ((struct told *)job->data)->sql, e);
}

static int check(const char *sql, const char **why)
{
    struct told t;
    told_init(&t, sql);
    t.job.work_pool = work_check;
    told_start(&t);
    int rc = told_end(&t);
    *why = arena_strdup(&arena, t.job.err.text);
    buf_fini(&t.rows);
    return rc;
}

static void reopen(const char *const *names, struct duck_attach *attach, size_t n)
{
    duck_reopen(&(struct duck_settings){.what = "connection 'lake'",
                                        .connections = 1,
                                        .threads = 1,
                                        .memory_bytes = UINT64_C(256) << 20,
                                        .attach = attach,
                                        .n_attach = n,
                                        .forbidden = names});
}

START_TEST(a_forbidden_function_is_found_however_it_is_written)
{
    static const char *const bad[] = {
        "SELECT upper('x')",
        "SELECT UpPeR('x')",
        "SELECT \"upper\"('x')",
        "SELECT main.upper('x')",
        "SELECT system.main.upper('x')",
        "SELECT ('x').upper()",
        "SELECT upper /* x */ ('x')",
        "SELECT * FROM range(3)",
        "FROM range(3)",
        "SELECT * FROM (VALUES (1)) v(a), LATERAL (FROM range(a))",
        "WITH t AS (FROM range(3)) FROM t",
        "SELECT (SELECT max(range) FROM range(3))",
        "SELECT 1 WHERE EXISTS (FROM range(3))",
        "SELECT 1 UNION ALL FROM range(3)",
        "SELECT list_transform(['a'], lambda x: upper(x))",
        "SELECT 1 ORDER BY upper('x')",
        "SELECT count(*) FILTER (upper('x') = 'X')",
        "DESCRIBE FROM range(3)",
        "SUMMARIZE FROM range(3)",
        "FROM query('FROM range(3)')",
        "FROM json_execute_serialized_sql(json_serialize_sql('FROM range(3)'))",
        "FROM '/etc/passwd'",
        "FROM 'x/y.csv'",
    };
    reopen(forbidden, NULL, 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const char *why;
        int rc = check(bad[i], &why);
        ck_assert_msg(rc == ERR_WH_DENIED, "%s: %d %s", bad[i], rc, why);
        ck_assert_ptr_nonnull(strstr(why, "connection 'lake': "));
    }
}
END_TEST

START_TEST(names_that_only_look_like_it_are_taken)
{
    static const char *const fine[] = {
        "SELECT lower('x')",
        "SELECT 'upper(1)' AS a",
        "SELECT '\"function_name\":\"upper\"' AS a",
        "SELECT 1 AS upper",
        "SELECT 1 AS \"a/b\"",
        "WITH range AS (SELECT 1 AS a) SELECT a FROM range",
        "SELECT 1 -- upper('x')",
        "SELECT 'schema_name' AS a, '/' AS b",
    };
    reopen(forbidden, NULL, 0);
    for (size_t i = 0; i < ARRAY_LEN(fine); i++) {
        const char *why;
        ck_assert_msg(check(fine[i], &why) == 0, "%s: %s", fine[i], why);
    }
}
END_TEST

START_TEST(what_is_no_select_is_refused_before_it_is_bound)
{
    static const char *const bad[] = {"CALL range(3)", "DETACH memory",
                                      "PIVOT (SELECT 1 AS a) ON a", "SELECT 1; SELECT 2",
                                      "CREATE TABLE t AS SELECT 1"};
    reopen(forbidden, NULL, 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const char *why;
        ck_assert_msg(check(bad[i], &why) == ERR_WH_SQL, "%s: %s", bad[i], why);
    }
}
END_TEST

START_TEST(one_database_that_cannot_be_attached_leaves_the_others)
{
    static const char *const here[] = {"ATTACH ':memory:' AS one",
                                       "CREATE TABLE one.t AS SELECT 7 AS a", NULL};
    static const char *const gone[] = {"ATTACH '/nowhere/x.duckdb' AS two (READ_ONLY)", NULL};
    struct duck_attach attach[] = {{.setup = gone}, {.setup = here}};
    reopen(NULL, attach, ARRAY_LEN(attach));
    ck_assert_int_ne(attach[0].err.code, 0);
    ck_assert_ptr_nonnull(strstr(attach[0].err.text, "/nowhere/x.duckdb"));
    ck_assert_int_eq(attach[1].err.code, 0);
    ck_assert_str_eq(rows_of("SELECT a FROM one.t", DUCK_FORM_TEXT), "7\n");
    const char *why;
    ck_assert_int_eq(fails("ATTACH '/tmp/x.duckdb' AS three", &why), ERR_WH_DENIED);
}
END_TEST

/* DuckDB's error() gives any text: as the extension words it. */
static int said(const char *text, const char **why)
{
    auto_buf struct buf sql = {0};
    buf_add_str(&sql, "SELECT error(");
    duck_quote_text(&sql, text);
    buf_add_char(&sql, ')');
    return fails(buf_str(&sql), why);
}

START_TEST(what_a_server_says_is_told_without_statement_and_address)
{
    static const struct {
        const char *text;
        int code;
        const char *told;
    } rows[] = {
        {"Unable to connect to Postgres at \"connect_timeout='5'\": connection to server at \"h\", "
         "port 1 failed: FATAL:  password authentication failed for user \"u\"\n",
         ERR_WH_CONNECT,
         "connection 'duckdb': PostgreSQL: connection to server at \"h\", port 1 failed: FATAL:  "
         "password authentication failed for user \"u\""},
        {"Failed to prepare COPY \"COPY (SELECT 1 FROM \"public\".\"t\") TO STDOUT\": ERROR:  "
         "relation "
         "\"public.t\" does not exist\nLINE 1: COPY (SELECT",
         ERR_WH_MISSING, "connection 'duckdb': PostgreSQL: relation \"public.t\" does not exist"},
        {"Failed to prepare COPY \"x\": ERROR:  permission denied for table t", ERR_WH_DENIED,
         "connection 'duckdb': PostgreSQL: permission denied for table t"},
        {"Failed to execute query \"x\": FATAL:  terminating connection due to administrator "
         "command",
         ERR_WH_CONNECT,
         "connection 'duckdb': PostgreSQL: terminating connection due to administrator command"},
        {"Failed to fetch data: server closed the connection unexpectedly", ERR_WH_LOST,
         "connection 'duckdb': PostgreSQL: server closed the connection unexpectedly"},
        {"Failed to fetch header for COPY: ERROR:  canceling statement due to statement timeout",
         ERR_CANCELLED,
         "connection 'duckdb': PostgreSQL: canceling statement due to statement timeout"},
        {"Failed to execute query \"x\": ERROR:  division by zero", ERR_WH_SQL,
         "connection 'duckdb': PostgreSQL: division by zero"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *why;
        ck_assert_int_eq(said(rows[i].text, &why), rows[i].code);
        ck_assert_str_eq(why, rows[i].told);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("duck guard");
    TCase *tc = tcase_create("guard");
    tcase_add_checked_fixture(tc, duck_setup, duck_teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_forbidden_function_is_found_however_it_is_written);
    tcase_add_test(tc, names_that_only_look_like_it_are_taken);
    tcase_add_test(tc, what_is_no_select_is_refused_before_it_is_bound);
    tcase_add_test(tc, one_database_that_cannot_be_attached_leaves_the_others);
    tcase_add_test(tc, what_a_server_says_is_told_without_statement_and_address);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
