#include "tests/conformance/warehouse_fixture.h"

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

struct wh *connection_open(bool builder, unsigned sessions)
{
    if (engine == ENGINE_SIM) {
        return wh_sim_open(sim);
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

int do_build(struct run *r, const char *table, uint64_t token, const char *query)
{
    run_init(r, wh);
    wh->ops->build(&r->op, &(struct wh_build){.table = table_of(table, NULL, NULL),
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
    const char *query = arena_printf(&arena, "SELECT g AS n FROM generate_series(1, %u) g", rows);
    ck_assert_msg(do_build(&r, table, token, query) == 0, "%s", err_text(&r.op.err));
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
