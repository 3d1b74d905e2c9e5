#include "tests/conformance/warehouse_fixture.h"

#include "common/generation/generation.h"

#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

enum engine engine;
struct loop *loop;
struct wh *wh;
struct arena arena;
struct pg_server server;
struct wh_sim *sim;
char database[32];
const struct uuid us = {{1}}, them = {{2}};
struct duck_pool *duck_threads;
struct duck_instance *duck;
char duck_root[64];
struct wh_duckdb_binding duck_bindings[16];
size_t n_duck_bindings;
uint64_t duck_epoch;
uint64_t duck_resident;

static struct wh *duck_open(void)
{
    struct wh *out = NULL;
    struct err e;
    int rc = wh_duckdb_open(loop,
                            &(struct wh_duckdb_settings){.name = "duckdb",
                                                         .pool = duck_threads,
                                                         .instance = duck,
                                                         .root = duck_root,
                                                         .dataset = DUCK_DATASET,
                                                         .installation = us,
                                                         .resident_bytes = duck_resident},
                            &out, &e);
    ck_assert_msg(rc == 0, "%s", err_text(&e));
    return out;
}

struct wh *connection_open(bool builder, unsigned sessions)
{
    if (engine == ENGINE_SIM) {
        return wh_sim_open(sim);
    }
    if (engine == ENGINE_DUCKDB) {
        return duck_open();
    }
    char *config = arena_printf(&arena,
                                "{\"name\":\"pg\",\"type\":\"postgres\",\"postgresConnection\":{"
                                "\"host\":\"%s\",\"port\":%d,\"databaseName\":\"%s\",\"userName\":"
                                "\"kiln\"}}",
                                server.dir, server.port, database);
    struct wh *out = NULL;
    struct err e;
    int rc = wh_open(loop,
                     &(struct wh_settings){.name = "pg",
                                           .type = "postgres",
                                           .config_json = config,
                                           .sessions = sessions,
                                           .builder = builder},
                     &out, &e);
    ck_assert_msg(rc == 0, "%s", err_text(&e));
    return out;
}

static void on_closed(void *data)
{
    *(bool *)data = true;
}

void connection_close(struct wh *w)
{
    bool closed = false;
    w->ops->close(w, on_closed, &closed);
    turn_until(closed);
    wh_free(w);
}

/* ---- DuckDB ---- */

static void duck_start(void)
{
    struct err e;
    snprintf(duck_root, sizeof duck_root, "/tmp/kt-duck.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(duck_root));
    const char *const dirs[] = {duck_root, NULL};
    const char *const setup[] = {"CREATE SCHEMA mart", NULL};
    int rc = duck_instance_open(&(struct duck_settings){.what = "connection 'duckdb'",
                                                        .connections = 2,
                                                        .threads = 2,
                                                        .memory_bytes = UINT64_C(512) << 20,
                                                        .allowed_dirs = dirs,
                                                        .setup = setup},
                                &duck, &e);
    ck_assert_msg(rc == 0, "%s", err_text(&e));
    duck_threads = duck_pool_new(3, 1);
    n_duck_bindings = 0;
    duck_epoch = 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void duck_stop(void)
{
    duck_pool_free(duck_threads);
    duck_instance_unref(duck);
    (void)nftw(duck_root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

struct outside {
    struct duck_job job;
    const char *text;
    bool over;
};

static int work_outside(struct duck_job *job, struct duck_conn *conn, struct err *e)
{
    return duck_exec(conn, ((struct outside *)job->data)->text, e);
}

static void on_outside_done(struct duck_job *job)
{
    ((struct outside *)job->data)->over = true;
}

int duck_run(const char *text, struct err *e)
{
    struct outside o = {.text = text};
    o.job = (struct duck_job){.instance = duck,
                              .loop = loop,
                              .work_pool = work_outside,
                              .done = on_outside_done,
                              .data = &o};
    duck_job_start(duck_threads, &o.job);
    turn_until(o.over);
    *e = o.job.err;
    return o.job.rc;
}

static void duck_sql(const char *text)
{
    struct err e;
    int rc = duck_run(text, &e);
    ck_assert_msg(rc == 0, "%s: %s", text, err_text(&e));
}

int duck_bind(struct run *r, uint64_t epoch)
{
    run_init(r, wh);
    wh_duckdb_bind(&r->op, duck_bindings, n_duck_bindings, epoch);
    return wait_for(r);
}

static void duck_publish(struct run *r, const char *table, uint64_t token)
{
    size_t i = 0;
    while (i < n_duck_bindings && strcmp(duck_bindings[i].name, table) != 0) {
        i++;
    }
    n_duck_bindings += i == n_duck_bindings;
    duck_bindings[i] = (struct wh_duckdb_binding){table, generation_of(NULL, token), "b1"};
    ck_assert_msg(duck_bind(r, ++duck_epoch) == 0, "%s", err_text(&r->op.err));
}

static int on_count(void *data, const struct slice *cells)
{
    uint64_t n;
    ck_assert_int_eq(slice_to_u64(cells[0], &n), 0);
    *(long *)data = (long)n;
    return 0;
}

static long duck_rows(const char *table)
{
    uint64_t token;
    struct generation_manifest m;
    struct err e;
    if (strncmp(table, "_kiln_", 6) == 0 && slice_to_u64(slice_of(table + 6), &token) == 0) {
        const struct generation_ref ref = {duck_root, DUCK_DATASET, generation_of(NULL, token)};
        int rc = generation_read(&arena, &ref, &m, &e);
        ck_assert_msg(rc == 0 || rc == ERR_NOT_FOUND, "%s", e.text);
        return rc == 0 ? (long)m.rows : -1;
    }
    bool is_bound = false;
    for (size_t i = 0; i < n_duck_bindings; i++) {
        is_bound = is_bound || strcmp(duck_bindings[i].name, table) == 0;
    }
    long n = -1;
    struct run r;
    struct wh_sink sink = {.data = &n, .on_row = on_count};
    struct wh_query q = {.sql = arena_printf(&arena, "SELECT count(*) FROM %s\"%s\"",
                                             is_bound ? "" : "mart.", table)};
    run_init(&r, wh);
    wh->ops->query(&r.op, &q, &sink);
    (void)wait_for(&r);
    return n;
}

/* ---- any engine ---- */

void engine_start(enum engine e)
{
    static int n;
    engine = e;
    loop = loop_new();
    arena_init(&arena);
    if (e == ENGINE_POSTGRES) {
        snprintf(database, sizeof database, "w%d_%d", (int)getpid(), ++n);
        pg_server_exec(&server, "postgres",
                       arena_printf(&arena, "CREATE DATABASE %s OWNER kiln", database));
        sql("CREATE SCHEMA mart AUTHORIZATION kiln");
    } else if (e == ENGINE_DUCKDB) {
        duck_start();
    } else {
        sim = wh_sim_new(loop);
        wh_sim_put_schema(sim, "mart");
    }
    wh = connection_open(true, 3);
}

void engine_stop(void)
{
    connection_close(wh);
    if (engine == ENGINE_SIM) {
        wh_sim_free(sim);
    }
    if (engine == ENGINE_DUCKDB) {
        duck_stop();
    }
    loop_free(loop);
    arena_fini(&arena);
}

void sql(const char *text)
{
    pg_server_exec(&server, database, text);
}

const char *value(const char *text)
{
    auto_free char *got = pg_server_value(&server, database, text);
    return arena_strdup(&arena, got);
}

void put_table(const char *table, unsigned rows)
{
    if (engine == ENGINE_SIM) {
        wh_sim_put_table(sim, "mart", table, rows);
        return;
    }
    if (engine == ENGINE_DUCKDB) {
        duck_sql(arena_printf(&arena,
                              "CREATE OR REPLACE TABLE mart.\"%s\" AS SELECT g::INTEGER AS n FROM "
                              "range(%u) t(g)",
                              table, rows));
        return;
    }
    sql(arena_printf(&arena,
                     "DROP TABLE IF EXISTS mart.\"%s\"; CREATE TABLE mart.\"%s\" AS SELECT g AS n "
                     "FROM generate_series(1, %u) g; ALTER TABLE mart.\"%s\" OWNER TO kiln",
                     table, table, rows, table));
}

void drop_table(const char *table)
{
    if (engine == ENGINE_SIM) {
        wh_sim_drop_table(sim, "mart", table);
        return;
    }
    sql(arena_printf(&arena, "DROP TABLE mart.\"%s\"", table));
}

long rows_of(const char *table)
{
    if (engine == ENGINE_SIM) {
        return (long)wh_sim_rows(sim, "mart", table);
    }
    if (engine == ENGINE_DUCKDB) {
        return duck_rows(table);
    }
    const char *there =
        value(arena_printf(&arena, "SELECT to_regclass('mart.\"%s\"') IS NOT NULL", table));
    if (strcmp(there, "t") != 0) {
        return -1;
    }
    return strtol(value(arena_printf(&arena, "SELECT count(*) FROM mart.\"%s\"", table)), NULL, 10);
}

void depend_on(const char *table)
{
    if (engine == ENGINE_SIM) {
        wh_sim_depend(sim, "mart", table, arena_printf(&arena, "view mart.%s_v", table));
        return;
    }
    sql(arena_printf(&arena, "CREATE VIEW mart.%s_v AS SELECT * FROM mart.%s", table, table));
}

static void on_done(struct wh_op *op)
{
    ((struct run *)op->data)->dones++;
}

void run_init(struct run *r, struct wh *w)
{
    *r = (struct run){.op = {.wh = w, .arena = &arena, .done = on_done, .data = r}};
}

int wait_for(struct run *r)
{
    ck_assert_int_eq(r->dones, 0); /* never inside the starter */
    turn_until(r->dones > 0);
    ck_assert_int_eq(r->dones, 1);
    ck_assert_int_eq(r->op.rc, r->op.err.code);
    return r->op.rc;
}

struct wh_table table_of(const char *table, const char *generation, const char *build_id)
{
    return (struct wh_table){.name = {.schema = "mart", .table = table},
                             .target_key = table,
                             .owner = us,
                             .generation = generation,
                             .build_id = build_id};
}

struct wh_table staging_of(const char *table, uint64_t token)
{
    bool by_binding = engine == ENGINE_DUCKDB;
    return table_of(table, by_binding ? generation_of(NULL, token) : NULL,
                    by_binding ? "b1" : NULL);
}

const char *generation_of(const char *name, uint64_t token)
{
    static const uint8_t noise[10] = {7};
    if (engine != ENGINE_DUCKDB) {
        return name;
    }
    char id[ULID_TEXT];
    ulid_format(token, noise, id);
    return arena_strdup(&arena, id);
}

int64_t time_of(uint64_t token)
{
    return (int64_t)token * (engine == ENGINE_DUCKDB ? 1000 : 1);
}

const char *series_type(void)
{
    return engine == ENGINE_DUCKDB ? "BIGINT" : "integer";
}

const char *endless(void)
{
    return engine == ENGINE_DUCKDB ? "SELECT max(hash(a.n, b.n)) AS n FROM range(1000000000) a(n), "
                                     "range(1000000000) b(n)"
                                   : "SELECT pg_sleep(600)::text AS n";
}

const char *count_of(const char *table)
{
    return arena_printf(&arena, "SELECT count(*) FROM %s\"%s\"",
                        engine == ENGINE_DUCKDB ? "" : "\"mart\".", table);
}

int do_build(struct run *r, const char *table, uint64_t token, const char *query)
{
    run_init(r, wh);
    wh->ops->build(&r->op, &(struct wh_build){.table = staging_of(table, token),
                                              .token = token,
                                              .sql = query,
                                              .tag = "kiln */ test"});
    return wait_for(r);
}

int do_swap(struct run *r, const char *table, uint64_t token, const char *generation,
            bool take_over)
{
    run_init(r, wh);
    wh->ops->swap(&r->op, &(struct wh_publish){.table = table_of(table, generation, "b1"),
                                               .token = token,
                                               .rows = 7,
                                               .data_as_of_us = 1700000000123456,
                                               .take_over = take_over});
    return wait_for(r);
}

int do_resolve(struct run *r, const char *table, uint64_t token)
{
    struct wh_table t = table_of(table, NULL, NULL);
    run_init(r, wh);
    wh->ops->resolve(&r->op, &t, token);
    return wait_for(r);
}

int do_drop(struct run *r, const char *table, uint64_t token)
{
    struct wh_table t = table_of(table, NULL, NULL);
    run_init(r, wh);
    wh->ops->drop(&r->op, &t, token);
    return wait_for(r);
}

int do_probe(struct run *r, const char *table, const char *generation)
{
    struct wh_table t = table_of(table, generation, "b1");
    run_init(r, wh);
    wh->ops->probe(&r->op, &t, 1);
    return wait_for(r);
}

void publish(const char *table, uint64_t token, const char *generation, unsigned rows)
{
    struct run r;
    const char *query =
        arena_printf(&arena, "SELECT g.n AS n FROM generate_series(1, %u) AS g(n)", rows);
    ck_assert_msg(do_build(&r, table, token, query) == 0, "%s", err_text(&r.op.err));
    if (engine == ENGINE_DUCKDB) {
        duck_publish(&r, table, token);
        return;
    }
    ck_assert_msg(do_swap(&r, table, token, generation, false) == 0, "%s", err_text(&r.op.err));
}

static int on_columns(void *data, const struct wh_columns *cols)
{
    struct sink_told *s = data;
    s->columns += (int)cols->n;
    ck_assert_int_eq(s->rows, 0);
    return 0;
}

static int on_row(void *data, const struct slice *cells)
{
    struct sink_told *s = data;
    if (s->rows++ == 0) {
        snprintf(s->first, sizeof s->first, "%.*s", SLICE_FMT(cells[0]));
    }
    return s->stop_after && s->rows >= s->stop_after ? ERR_QUERY_ROWS : 0;
}

void sink_init(struct sink_told *s)
{
    *s = (struct sink_told){.sink = {.data = s, .on_columns = on_columns, .on_row = on_row}};
}
