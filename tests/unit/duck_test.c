/* Instances, their locks and limits, and the threads over them. */
#include "tests/support/suite.h"
#include "tests/unit/duck_fixture.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENDLESS "SELECT max(hash(a.n, b.n)) FROM range(1000000000) a(n), range(1000000000) b(n)"

static char dir[64]; /* pkg/, work/ and ext/ below it */
static char home[4096];

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static const char *in_dir(const char *name)
{
    return arena_printf(&arena, "%s/%s", dir, name);
}

static void setup(void)
{
    duck_setup();
    snprintf(dir, sizeof dir, "/tmp/kt-duck.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(mkdir(in_dir("pkg"), 0755), 0);
    ck_assert_int_eq(mkdir(in_dir("work"), 0755), 0);
    ck_assert_ptr_nonnull(getcwd(home, sizeof home));
}

static void teardown(void)
{
    ck_assert_int_eq(chdir(home), 0);
    duck_teardown();
    (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *name, const char *text)
{
    FILE *f = fopen(in_dir(name), "w");
    ck_assert_ptr_nonnull(f);
    (void)fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

/* As a package is served: its folder, and a working directory of its own that is empty. */
static void sandbox(void)
{
    const char *const dirs[] = {".", in_dir("pkg"), NULL};
    ck_assert_int_eq(chdir(in_dir("work")), 0);
    duck_reopen(&(struct duck_settings){.what = "connection 'duckdb'",
                                        .memory_bytes = UINT64_C(512) << 20,
                                        .allowed_dirs = dirs,
                                        .search_path = in_dir("pkg")});
}

/* ---- jobs ---- */

START_TEST(rows_come_in_order_and_the_end_comes_last)
{
    struct told t;
    told_init(&t, "SELECT i, 'row ' || i FROM range(300000) t(i)");
    told_start(&t);
    ck_assert_int_eq(told_end(&t), 0);
    ck_assert_uint_eq(t.n_rows, 300000);
    ck_assert_uint_gt(t.n_pages, 8); /* the ring went round */
    ck_assert_int_eq(strncmp(t.rows.p, "0|row 0\n1|row 1\n", 16), 0);
    ck_assert_str_eq(t.rows.p + t.rows.len - 18, "299999|row 299999\n");
    buf_fini(&t.rows);
}
END_TEST

START_TEST(a_reader_that_stops_ends_a_query_that_would_go_on_for_ever)
{
    struct told t;
    told_init(&t, "SELECT i FROM range(100000000000) t(i)");
    t.stop_after = 5;
    told_start(&t);
    ck_assert_int_eq(told_end(&t), ERR_QUERY_ROWS);
    ck_assert_uint_eq(t.n_rows, 5);
    buf_fini(&t.rows);
}
END_TEST

START_TEST(a_job_that_waits_is_cancelled_at_once_and_a_running_one_soon)
{
    static struct told t[3];
    for (size_t i = 0; i < 3; i++) {
        told_init(&t[i], ENDLESS);
        told_start(&t[i]);
    }
    uint64_t rows;
    for (int i = 0; i < 5; i++) {
        (void)loop_turn(loop, MS(20));
    }
    (void)duck_job_progress(&t[0].job, &rows);
    ck_assert_uint_eq(duck_pool_jobs(pool), 3);
    duck_job_cancel(&t[2].job);
    duck_job_cancel(&t[2].job);
    ck_assert_int_eq(told_end(&t[2]), ERR_CANCELLED);
    ck_assert_int_eq(t[0].dones + t[1].dones, 0);

    duck_job_cancel(&t[0].job);
    duck_job_cancel(&t[1].job);
    ck_assert_int_eq(told_end(&t[0]), ERR_CANCELLED);
    ck_assert_int_eq(told_end(&t[1]), ERR_CANCELLED);
    ck_assert_uint_eq(duck_pool_jobs(pool), 0);
    ck_assert_str_eq(rows_of("SELECT 1", DUCK_FORM_TEXT), "1\n"); /* its connection is sound */
}
END_TEST

/* An interrupt before the statement has begun is lost: it is sent again. */
static int work_shown(struct duck_job *job, struct duck_conn *conn, struct err *e)
{
    const char *ignored;
    int rc = duck_show_progress(conn, e);
    struct told *t = job->data;
    return rc < 0 ? rc : duck_exec_value(conn, t->sql, &arena, &ignored, e);
}

START_TEST(a_job_tells_how_far_it_is_when_it_is_asked_to_although_settings_are_locked)
{
    struct told t;
    uint64_t rows;
    (void)rows_of("CREATE TABLE many AS SELECT i FROM range(1000000) r(i)", DUCK_FORM_TEXT);
    told_init(&t, "SELECT max(hash(a.i, b.i)) FROM many a, many b");
    t.job.work_pool = work_shown;
    told_start(&t);
    turn_until(duck_job_progress(&t.job, &rows) >= 0);
    duck_job_cancel(&t.job);
    ck_assert_int_eq(told_end(&t), ERR_CANCELLED);
}
END_TEST

START_TEST(a_cancel_at_any_moment_ends_the_job)
{
    for (int i = 0; i < 60; i++) {
        struct told t;
        told_init(&t, ENDLESS);
        told_start(&t);
        for (int k = 0; k < i % 6; k++) {
            (void)loop_turn(loop, MS(1));
        }
        duck_job_cancel(&t.job);
        ck_assert_int_eq(told_end(&t), ERR_CANCELLED);
        buf_fini(&t.rows);
    }
}
END_TEST

START_TEST(a_job_ends_at_its_deadline)
{
    struct told t;
    told_init(&t, ENDLESS);
    t.job.timeout = MS(150);
    struct ms start = loop_now(loop);
    told_start(&t);
    ck_assert_int_eq(told_end(&t), ERR_TIMEOUT);
    ck_assert_int_lt(ms_sub(loop_now(loop), start).v, 5000);
    ck_assert_ptr_nonnull(strstr(t.job.err.text, "took longer"));
}
END_TEST

START_TEST(an_urgent_job_runs_beside_a_full_house)
{
    static struct told t[4];
    for (size_t i = 0; i < 3; i++) {
        told_init(&t[i], ENDLESS);
        told_start(&t[i]);
    }
    told_init(&t[3], "SELECT 1");
    t[3].job.is_urgent = true;
    told_start(&t[3]);
    ck_assert_int_eq(told_end(&t[3]), 0);
    ck_assert_int_eq(t[0].dones + t[1].dones + t[2].dones, 0);
    for (size_t i = 0; i < 3; i++) {
        duck_job_cancel(&t[i].job);
        ck_assert_int_eq(told_end(&t[i]), ERR_CANCELLED);
    }
    buf_fini(&t[3].rows);
}
END_TEST

START_TEST(an_instance_with_a_long_queue_leaves_others_their_turn)
{
    struct duck_instance *other;
    struct err e;
    int rc = duck_instance_open(
        &(struct duck_settings){
            .what = "other", .connections = 1, .threads = 1, .memory_bytes = UINT64_C(256) << 20},
        &other, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    static struct told t[40];
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        told_init(&t[i], "SELECT count(*) FROM range(3000000) t(i) WHERE hash(i) % 7 = 1");
        if (i == ARRAY_LEN(t) - 1) {
            t[i].job.instance = other;
        }
        told_start(&t[i]);
    }
    ck_assert_int_eq(told_end(&t[ARRAY_LEN(t) - 1]), 0);
    size_t before = 0;
    for (size_t i = 0; i < ARRAY_LEN(t) - 1; i++) {
        before += t[i].dones > 0;
    }
    ck_assert_uint_lt(before, 20);
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        ck_assert_int_eq(told_end(&t[i]), 0);
        buf_fini(&t[i].rows);
    }
    duck_instance_unref(other);
}
END_TEST

START_TEST(an_instance_lives_as_long_as_its_jobs)
{
    struct told t;
    told_init(&t, "SELECT count(*) FROM range(3000000) t(i) WHERE hash(i) % 7 = 1");
    told_start(&t);
    duck_instance_unref(duck);
    duck = NULL;
    ck_assert_int_eq(told_end(&t), 0);
    buf_fini(&t.rows);
}
END_TEST

START_TEST(statements_are_kept_prepared_up_to_a_limit)
{
    for (int i = 0; i < 600; i++) {
        struct told t;
        told_init(&t, arena_printf(&arena, "SELECT %d", i % 300));
        t.prepare_as = t.sql;
        told_start(&t);
        ck_assert_int_eq(told_end(&t), 0);
        ck_assert_str_eq(buf_str(&t.rows), arena_printf(&arena, "%d\n", i % 300));
        buf_fini(&t.rows);
    }
}
END_TEST

/* ---- errors ---- */

START_TEST(errors_are_one_sentence_with_a_code_of_ours)
{
    static const struct {
        const char *sql;
        int code;
        const char *says;
    } wrong[] = {
        {"SELECT FROM x y z", ERR_WH_SQL, "syntax error"},
        {"SELECT x FROM (SELECT 1 AS a)", ERR_WH_SQL, "\"x\" not found"},
        {"SELECT * FROM missing", ERR_WH_MISSING, "missing does not exist"},
        {"SELECT * FROM nowhere.missing", ERR_WH_MISSING, "does not exist"},
        {"SELECT 'x'::INTEGER", ERR_WH_SQL, "Conversion"},
        {"SELECT i::TINYINT FROM range(300) t(i)", ERR_WH_SQL, "Conversion"},
        {"SELECT 1; SELECT 2", ERR_WH_SQL, "only one SELECT"},
        {"", ERR_WH_SQL, "only one SELECT"},
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        const char *why;
        int rc = fails(wrong[i].sql, &why);
        ck_assert_msg(rc == wrong[i].code, "%s: %d %s", wrong[i].sql, rc, why);
        ck_assert_msg(strstr(why, wrong[i].says), "%s: %s", wrong[i].sql, why);
        ck_assert_int_eq(strncmp(why, "connection 'duckdb': ", 21), 0);
        ck_assert_ptr_null(strchr(why, '\n'));
        ck_assert_ptr_null(strstr(why, "LINE 1"));
    }
}
END_TEST

static const char *ors(int n)
{
    auto_buf struct buf sql = {0};
    buf_add_str(&sql, "SELECT count(*) FROM range(10) t(i) WHERE i = 0");
    for (int i = 1; i <= n; i++) {
        buf_addf(&sql, " OR i = %d", i);
    }
    return arena_strdup(&arena, buf_str(&sql));
}

START_TEST(a_statement_that_nobody_could_interrupt_is_not_planned)
{
    const char *why;
    ck_assert_int_eq(fails(ors(50000), &why), ERR_WH_SQL);
    ck_assert_ptr_nonnull(strstr(why, "joins 50000 terms"));
    ck_assert_str_eq(rows_of(ors(2000), DUCK_FORM_TEXT), "10\n");
    ck_assert_str_eq(rows_of("SELECT 'a or b' AS \"x and y\", 1 AS oracle", DUCK_FORM_TEXT),
                     "a or b|1\n");
    auto_buf struct buf deep = {0};
    buf_add_str(&deep, "SELECT ");
    for (int i = 0; i < 50000; i++) {
        buf_add_char(&deep, '(');
    }
    ck_assert_int_eq(fails(buf_str(&deep), &why), ERR_WH_SQL);
    buf_clear(&deep);
    buf_add_str(&deep, "SELECT ");
    for (int i = 0; i < 20000; i++) {
        buf_add_str(&deep, "-(");
    }
    buf_add_str(&deep, "1");
    for (int i = 0; i < 20000; i++) {
        buf_add_char(&deep, ')');
    }
    ck_assert_int_eq(fails(buf_str(&deep), &why), ERR_WH_SQL);
    ck_assert_str_eq(rows_of("SELECT 1", DUCK_FORM_TEXT), "1\n");
}
END_TEST

START_TEST(ten_thousand_columns_are_read)
{
    auto_buf struct buf sql = {0};
    buf_add_str(&sql, "SELECT ");
    for (int i = 0; i < 10000; i++) {
        buf_addf(&sql, "%si + %d AS c%d", i ? ", " : "", i, i);
    }
    buf_add_str(&sql, " FROM range(20) t(i)");
    struct told t;
    told_init(&t, buf_str(&sql));
    t.form = DUCK_FORM_JSON;
    told_start(&t);
    ck_assert_msg(told_end(&t) == 0, "%s", t.job.err.text);
    ck_assert_uint_eq(t.n_rows, 20);
    ck_assert_uint_gt(t.n_pages, 5); /* cut by bytes, not by rows */
    buf_fini(&t.rows);
}
END_TEST

START_TEST(a_query_past_the_memory_limit_is_refused_and_the_instance_goes_on)
{
    duck_reopen(&(struct duck_settings){
        .what = "connection 'duckdb'", .threads = 2, .memory_bytes = UINT64_C(60) << 20});
    const char *big =
        "SELECT count(*) FROM (SELECT DISTINCT hash(i) || 'some more text to keep' FROM "
        "range(3000000) t(i))";
    const char *why;
    ck_assert_int_eq(fails(big, &why), ERR_QUERY_MEMORY);
    ck_assert_ptr_null(strstr(why, "Possible solutions"));
    ck_assert_str_eq(rows_of("SELECT 1", DUCK_FORM_TEXT), "1\n");

    duck_reopen(&(struct duck_settings){.what = "connection 'duckdb'",
                                        .threads = 2,
                                        .memory_bytes = UINT64_C(100) << 20,
                                        .temp_dir = in_dir("spill"),
                                        .temp_bytes = UINT64_C(4) << 30});
    ck_assert_str_eq(rows_of(big, DUCK_FORM_TEXT), "3000000\n");
}
END_TEST

/* ---- what it may touch ---- */

START_TEST(relative_names_are_files_of_the_package_whatever_they_look_like)
{
    static const char *const names[] = {"plain.csv",     "a b.csv",    "year=2024.csv", "it's.csv",
                                        "gr\u00fcn.csv", "da\"ta.csv", "sub/x.csv"};
    ck_assert_int_eq(mkdir(in_dir("pkg/sub"), 0755), 0);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        put(arena_printf(&arena, "pkg/%s", names[i]), arena_printf(&arena, "n\n%zu\n", i));
    }
    sandbox();
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        auto_buf struct buf sql = {0};
        buf_add_str(&sql, "SELECT n FROM ");
        duck_quote_text(&sql, names[i]);
        ck_assert_str_eq(rows_of(buf_str(&sql), DUCK_FORM_TEXT), arena_printf(&arena, "%zu\n", i));
    }
    ck_assert_str_eq(rows_of("SELECT n FROM plain.csv", DUCK_FORM_TEXT), "0\n");
    const char *why;
    ck_assert_int_eq(fails("SELECT * FROM 'gone.csv'", &why), ERR_WH_MISSING);
    ck_assert_ptr_nonnull(strstr(why, "gone.csv"));
}
END_TEST

START_TEST(nothing_outside_of_the_package_is_reachable)
{
    put("secret.csv", "n\n42\n");
    put("pkg/own.csv", "n\n1\n");
    ck_assert_int_eq(symlink(in_dir("secret.csv"), in_dir("pkg/link.csv")), 0);
    sandbox();
    const char *const attacks[] = {
        arena_printf(&arena, "SELECT * FROM '%s'", in_dir("secret.csv")),
        "SELECT * FROM read_csv('../secret.csv')",
        "SELECT * FROM read_csv('./../secret.csv')",
        "SELECT * FROM read_csv('link.csv')",
        arena_printf(&arena, "SELECT * FROM read_csv('%s')", in_dir("pkg/../secret.csv")),
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_blob('/proc/self/environ')",
        "SELECT * FROM read_text('/proc/self/cwd/../secret.csv')",
        "SELECT * FROM read_csv('/dev/stdin')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM glob('../*')",
        "SELECT * FROM sniff_csv('/etc/passwd')",
        "SELECT * FROM parquet_metadata('/etc/passwd')",
        "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
        "SELECT * FROM query_table('/etc/passwd')",
        "SELECT getenv('HOME')",
        "ATTACH '/tmp/kt-never.db'",
        "ATTACH '' AS pg (TYPE postgres)",
        arena_printf(&arena, "COPY (SELECT 1) TO '%s'", in_dir("out.csv")),
        "COPY (SELECT 1) TO '../out.csv'",
        "EXPORT DATABASE '/tmp/kt-never'",
        "IMPORT DATABASE '/tmp'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "LOAD '/tmp/x.duckdb_extension'",
        "SELECT * FROM 'https://127.0.0.1:9/x.csv'",
        "SELECT * FROM read_csv('s3://bucket/x.csv')",
        "SET enable_external_access = true",
        "SET GLOBAL allowed_directories = ['/']",
        "SET lock_configuration = false",
        "SET extension_directory = '/tmp'",
        "SET temp_directory = '/tmp'",
        "SET file_search_path = '/etc'",
        "SET memory_limit = '100GB'",
        "SET TimeZone = 'Europe/Berlin'",
        "RESET lock_configuration",
        "PRAGMA enable_profiling = 'json'",
        "PRAGMA profiling_output = '/tmp/kt-never'",
        "CREATE PERSISTENT SECRET s (TYPE s3)",
    };
    for (size_t i = 0; i < ARRAY_LEN(attacks); i++) {
        const char *why;
        int rc = fails(attacks[i], &why);
        ck_assert_msg(rc < 0, "%s went well", attacks[i]);
        ck_assert_msg(why[0] && !strchr(why, '\n'), "%s: %s", attacks[i], why);
    }
    ck_assert_int_ne(access(in_dir("out.csv"), F_OK), 0);
    ck_assert_int_ne(access("/tmp/kt-never.db", F_OK), 0);
    ck_assert_str_eq(rows_of("SELECT * FROM own.csv", DUCK_FORM_TEXT), "1\n");
}
END_TEST

START_TEST(every_connection_is_in_utc)
{
    static struct told t[2];
    for (size_t i = 0; i < 2; i++) {
        told_init(&t[i], "SELECT current_setting('TimeZone'), count(*) FROM range(20000000)");
        told_start(&t[i]);
    }
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(told_end(&t[i]), 0);
        ck_assert_str_eq(buf_str(&t[i].rows), "UTC|20000000\n");
        buf_fini(&t[i].rows);
    }
}
END_TEST

/* ---- extensions ---- */

static const char *installed_extension(const char *name)
{
    const char *prefix = getenv("KILN_PREFIX");
    if (!prefix) {
        prefix = arena_printf(&arena, "%s/build/tools", getenv("KILN_SOURCE_DIR"));
    }
    return arena_printf(&arena, "%s/lib/duckdb/ext/v1.5.5/linux_amd64/%s.duckdb_extension", prefix,
                        name);
}

/* A folder with a copy of an extension in which one byte is another. */
static const char *changed_extension(const char *name)
{
    auto_buf struct buf bytes = {0};
    FILE *f = fopen(installed_extension(name), "r");
    ck_assert_msg(f, "%s is not installed", installed_extension(name));
    for (size_t n = 1; n > 0; bytes.len += n) {
        buf_reserve(&bytes, 1 << 20);
        n = fread(bytes.p + bytes.len, 1, 1 << 20, f);
    }
    (void)fclose(f);
    bytes.p[100000] = (char)(bytes.p[100000] ^ 1);
    ck_assert_int_eq(mkdir(in_dir("ext"), 0755), 0);
    ck_assert_int_eq(mkdir(in_dir("ext/v1.5.5"), 0755), 0);
    ck_assert_int_eq(mkdir(in_dir("ext/v1.5.5/linux_amd64"), 0755), 0);
    f = fopen(in_dir(arena_printf(&arena, "ext/v1.5.5/linux_amd64/%s.duckdb_extension", name)),
              "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes.p, 1, bytes.len, f), bytes.len);
    (void)fclose(f);
    return in_dir("ext");
}

START_TEST(extensions_are_loaded_from_the_pinned_files)
{
    static const char *const all[] = {"excel",          "httpfs",   "postgres_scanner",
                                      "sqlite_scanner", "ducklake", NULL};
    duck_reopen(&(struct duck_settings){
        .what = "connection 'duckdb'", .extensions = all, .unlocked = true});
    ck_assert_str_eq(rows_of("SELECT count(*) FROM duckdb_extensions() WHERE loaded AND "
                             "extension_name IN ('excel', 'httpfs', 'postgres_scanner', "
                             "'sqlite_scanner', 'ducklake')",
                             DUCK_FORM_TEXT),
                     "5\n");
    ck_assert_str_eq(duck_version(), "v1.5.5");
}
END_TEST

START_TEST(an_extension_that_is_missing_or_changed_by_a_byte_is_one_clear_sentence)
{
    static const char *const excel[] = {"excel", NULL};
    struct duck_settings s = {.what = "connection 'duckdb'", .extensions = excel};
    struct duck_instance *i = NULL;
    struct err e;
    s.extension_dir = in_dir("nothing");
    ck_assert_int_eq(duck_instance_open(&s, &i, &e), ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(e.text, "extension excel is missing or is not the one"));
    ck_assert_ptr_null(strchr(e.text, '\n'));
    s.extension_dir = changed_extension("excel");
    ck_assert_int_eq(duck_instance_open(&s, &i, &e), ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(e.text, "setup.sh duckdb"));
    ck_assert_ptr_null(strchr(e.text, '\n'));
    ck_assert_ptr_null(i);
}
END_TEST

START_TEST(a_database_file_is_open_once_and_readable_again_afterwards)
{
    static const char *const setup[] = {"CREATE TABLE IF NOT EXISTS t AS SELECT 42 AS n", NULL};
    struct duck_settings s = {
        .what = "connection 'duckdb'", .file = in_dir("a b.duckdb"), .setup = setup};
    struct duck_instance *second = NULL;
    struct err e;
    duck_reopen(&s);
    int rc = duck_instance_open(&s, &second, &e);
    ck_assert_msg(rc < 0, "opened twice");
    ck_assert_ptr_nonnull(strstr(e.text, "connection 'duckdb': "));
    ck_assert_str_eq(rows_of("SELECT n FROM t", DUCK_FORM_TEXT), "42\n");

    duck_reopen(&(struct duck_settings){.what = "x"});
    s.read_only = true;
    s.setup = NULL;
    duck_reopen(&s);
    ck_assert_str_eq(rows_of("SELECT n FROM t", DUCK_FORM_TEXT), "42\n");
    const char *why;
    ck_assert_int_lt(fails("INSERT INTO t VALUES (1)", &why), 0);
}
END_TEST

START_TEST(settings_that_cannot_be_are_refused)
{
    struct duck_instance *i = NULL;
    struct err e;
    struct duck_settings s = {.what = "connection 'duckdb'", .search_path = "/tmp/a,b"};
    ck_assert_int_eq(duck_instance_open(&s, &i, &e), ERR_CONF);
    ck_assert_ptr_nonnull(strstr(e.text, "comma"));
    s = (struct duck_settings){.what = "connection 'duckdb'", .file = "/nowhere/x.duckdb"};
    ck_assert_int_lt(duck_instance_open(&s, &i, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "/nowhere/x.duckdb"));
    static const char *const setup[] = {"SELECT nonsense", NULL};
    s = (struct duck_settings){.what = "connection 'duckdb'", .setup = setup};
    ck_assert_int_eq(duck_instance_open(&s, &i, &e), ERR_WH_SQL);
    ck_assert_ptr_null(i);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("duck");
    TCase *tc = tcase_create("all");
    tcase_set_timeout(tc, 180);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, rows_come_in_order_and_the_end_comes_last);
    tcase_add_test(tc, a_reader_that_stops_ends_a_query_that_would_go_on_for_ever);
    tcase_add_test(tc, a_job_that_waits_is_cancelled_at_once_and_a_running_one_soon);
    tcase_add_test(tc, a_job_tells_how_far_it_is_when_it_is_asked_to_although_settings_are_locked);
    tcase_add_test(tc, a_cancel_at_any_moment_ends_the_job);
    tcase_add_test(tc, a_job_ends_at_its_deadline);
    tcase_add_test(tc, an_urgent_job_runs_beside_a_full_house);
    tcase_add_test(tc, an_instance_with_a_long_queue_leaves_others_their_turn);
    tcase_add_test(tc, an_instance_lives_as_long_as_its_jobs);
    tcase_add_test(tc, statements_are_kept_prepared_up_to_a_limit);
    tcase_add_test(tc, errors_are_one_sentence_with_a_code_of_ours);
    tcase_add_test(tc, a_statement_that_nobody_could_interrupt_is_not_planned);
    tcase_add_test(tc, ten_thousand_columns_are_read);
    tcase_add_test(tc, a_query_past_the_memory_limit_is_refused_and_the_instance_goes_on);
    tcase_add_test(tc, relative_names_are_files_of_the_package_whatever_they_look_like);
    tcase_add_test(tc, nothing_outside_of_the_package_is_reachable);
    tcase_add_test(tc, every_connection_is_in_utc);
    tcase_add_test(tc, extensions_are_loaded_from_the_pinned_files);
    tcase_add_test(tc, an_extension_that_is_missing_or_changed_by_a_byte_is_one_clear_sentence);
    tcase_add_test(tc, a_database_file_is_open_once_and_readable_again_afterwards);
    tcase_add_test(tc, settings_that_cannot_be_are_refused);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
