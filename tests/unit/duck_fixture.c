#include "tests/unit/duck_fixture.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct loop *loop;
struct duck_pool *pool;
struct duck_instance *duck;
struct arena arena;
static char dir[64]; /* pkg/, work/ and ext/ below it */
static char home[4096];

void duck_reopen(const struct duck_settings *s)
{
    struct err e;
    duck_instance_unref(duck);
    duck = NULL;
    int rc = duck_instance_open(s, &duck, &e);
    ck_assert_msg(rc == 0, "%s", err_text(&e));
}

void duck_setup(void)
{
    loop = loop_new();
    arena_init(&arena);
    pool = duck_pool_new(3, 1);
    duck_reopen(&(struct duck_settings){.what = "connection 'duckdb'",
                                        .connections = 2,
                                        .threads = 2,
                                        .memory_bytes = UINT64_C(512) << 20});
}

void duck_teardown(void)
{
    if (duck_pool_jobs(pool) > 0) {
        return; /* a test that failed left its jobs running */
    }
    duck_instance_unref(duck);
    duck = NULL;
    duck_pool_free(pool);
    loop_free(loop);
    arena_fini(&arena);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

const char *in_dir(const char *name)
{
    return arena_printf(&arena, "%s/%s", dir, name);
}

void duck_dir_setup(void)
{
    duck_setup();
    snprintf(dir, sizeof dir, "/tmp/kt-duck.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(mkdir(in_dir("pkg"), 0755), 0);
    ck_assert_int_eq(mkdir(in_dir("work"), 0755), 0);
    ck_assert_ptr_nonnull(getcwd(home, sizeof home));
}

void duck_dir_teardown(void)
{
    ck_assert_int_eq(chdir(home), 0);
    duck_teardown();
    (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int work(struct duck_job *job, struct duck_conn *conn, struct err *e)
{
    struct told *t = job->data;
    const struct duck_query_ask ask = {.sql = t->sql, .prepare_as = t->prepare_as};
    struct duck_query *q;
    int rc = duck_query_open(conn, &ask, &q, e);
    if (rc < 0) {
        return rc;
    }
    t->n_columns = t->form == DUCK_FORM_JSON ? 1 : duck_query_n_columns(q);
    rc = duck_query_begin(q, e);
    while (rc == 0) {
        struct duck_page *page;
        rc = duck_query_next(q, t->form, &page, e);
        if (rc < 0 || !page) {
            break;
        }
        rc = duck_job_push(job, page, e);
    }
    duck_query_close(q);
    return rc;
}

static int on_page(struct duck_job *job, struct duck_page *page)
{
    struct told *t = job->data;
    t->n_pages++;
    auto_free struct slice *cells = xcalloc(t->n_columns + 1, sizeof(*cells));
    for (size_t i = 0; i < duck_page_rows(page); i++) {
        duck_page_cells(page, i, cells);
        for (size_t k = 0; k < t->n_columns; k++) {
            buf_add_str(&t->rows, k > 0 ? "|" : "");
            buf_add_slice(&t->rows, cells[k].p ? cells[k] : SLICE("NULL"));
        }
        buf_add_char(&t->rows, '\n');
        if (++t->n_rows == t->stop_after) {
            return ERR_QUERY_ROWS;
        }
    }
    return 0;
}

static void on_done(struct duck_job *job)
{
    ((struct told *)job->data)->dones++;
}

void told_init(struct told *t, const char *sql)
{
    *t = (struct told){.sql = sql};
    t->job = (struct duck_job){.instance = duck,
                               .loop = loop,
                               .work_pool = work,
                               .on_page = on_page,
                               .done = on_done,
                               .data = t};
}

void told_start(struct told *t)
{
    duck_job_start(pool, &t->job);
    ck_assert_int_eq(t->dones, 0);
}

int told_end(struct told *t)
{
    turn_until(t->dones > 0);
    ck_assert_int_eq(t->dones, 1);
    ck_assert_int_eq(t->job.rc, t->job.err.code);
    return t->job.rc;
}

const char *rows_of(const char *sql, enum duck_form form)
{
    struct told t;
    told_init(&t, sql);
    t.form = form;
    told_start(&t);
    int rc = told_end(&t);
    ck_assert_msg(rc == 0, "%s: %s", sql, err_text(&t.job.err));
    const char *rows = arena_slice(&arena, buf_slice(&t.rows));
    buf_fini(&t.rows);
    return rows;
}

int fails(const char *sql, const char **why)
{
    struct told t;
    told_init(&t, sql);
    told_start(&t);
    int rc = told_end(&t);
    *why = arena_strdup(&arena, t.job.err.text);
    buf_fini(&t.rows);
    return rc;
}
