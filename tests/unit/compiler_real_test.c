/* The pool over the real compiler bundle: load with needs, query, replay, memory of the answers. */
#include "common/base/buf.h"
#include "common/compiler/compiler.h"
#include "proto/compiler.pb-c.h"
#include "tests/support/suite.h"
#include "tests/support/turn.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PATIENCE 60000 /* ms a test waits for a condition before it fails */
#define turn_until(l, claim) turn_until_within(l, PATIENCE, claim)

static struct loop *loop;
static struct compiler_pool *pool;
static bool ready;
static char why_not[1024], lone_bundle[64];

static void on_ready(void *data, bool is_ready, const char *why)
{
    (void)data;
    ready = is_ready;
    (void)snprintf(why_not, sizeof why_not, "%s", why);
}

static void open_pool(const char *bundle)
{
    char self[512];
    (void)snprintf(self, sizeof self, "%s/tests/compiler_launcher", getenv("KILN_BINARY_DIR"));
    ready = false;
    loop = loop_new();
    pool = compiler_pool_new(
        loop, &(struct compiler_settings){.children = 1, .bundle = bundle, .self = self}, on_ready,
        NULL);
    struct ms begun = loop_now(loop);
    turn_until(loop, ready);
    (void)printf("hello after %lld ms\n", (long long)ms_sub(loop_now(loop), begun).v);
    struct compiler_stats now;
    compiler_pool_stats(pool, &now);
    ck_assert_uint_eq(now.started, 1); /* a snapshot, where there is one, was taken */
}

static void setup_snapshot(void)
{
    char bundle[512];
    ck_assert_ptr_nonnull(getenv("KILN_BINARY_DIR"));
    (void)snprintf(bundle, sizeof bundle, "%s/bin/kiln-compiler.js", getenv("KILN_BINARY_DIR"));
    open_pool(bundle);
}

/* A copy of the bundle that has no snapshot beside it. */
static void setup_bundle(void)
{
    (void)snprintf(lone_bundle, sizeof lone_bundle, "/tmp/kiln-lone-%d.js", (int)getpid());
    auto_free char *command =
        xasprintf("cp '%s/bin/kiln-compiler.js' '%s'", getenv("KILN_BINARY_DIR"), lone_bundle);
    ck_assert_int_eq(system(command), 0);
    open_pool(lone_bundle);
}

static void on_closed(void *data)
{
    *(bool *)data = true;
}

static void teardown(void)
{
    bool closed = false;
    compiler_pool_close(pool, on_closed, &closed);
    turn_until(loop, closed);
    compiler_pool_free(pool);
    loop_free(loop);
    (void)unlink(lone_bundle);
}

struct answer {
    struct compiler_call call;
    bool done;
    char kind[32];
    struct buf reply;
    char text[ERR_TEXT_MAX];
};

static void on_done(struct compiler_call *c)
{
    struct answer *a = c->data;
    a->done = true;
    (void)snprintf(a->kind, sizeof a->kind, "%s", c->reply_kind);
    (void)snprintf(a->text, sizeof a->text, "%s", c->err.text);
    buf_add_slice(&a->reply, c->reply);
}

static struct ms ask(struct answer *a, const char *kind, const char *load_id,
                     const ProtobufCMessage *request)
{
    *a = (struct answer){.call = {.kind = kind,
                                  .load_id = load_id,
                                  .request = request,
                                  .timeout = MS(30000),
                                  .done = on_done,
                                  .data = a}};
    struct ms begun = loop_now(loop);
    compiler_call_start(pool, &a->call);
    turn_until(loop, a->done);
    return ms_sub(loop_now(loop), begun);
}

/* Mutable texts: generated structs want char *. */
static char load_id[] = "l1", package[] = "shop", path[] = "shop.malloy", pg[] = "pg",
            dialect[] = "postgres", digest[] = "d", table[] = "shop.orders",
            sql_block[] = "select 1 as one", col_id[] = "id", col_region[] = "region",
            col_one[] = "one", type_int[] = "integer", type_text[] = "text";
static char model[] = "##! experimental.persistence\n"
                      "source: orders is pg.table('shop.orders') extend { measure: n is count() }\n"
                      "source: one is pg.sql('select 1 as one')\n"
                      "#@ persist name=\"mart.per_region\"\n"
                      "source: per_region is orders -> { group_by: region aggregate: n }\n";

struct shop {
    Kiln__Mc__File file, *files[1];
    Kiln__Mc__Conn conn, *conns[1];
    Kiln__Mc__Col id, region, one, *orders_cols[2], *one_cols[1];
    Kiln__Mc__Table orders, *tables[1];
    Kiln__Mc__Sql sql, *sqls[1];
    Kiln__Mc__Load load;
};

static void shop_init(struct shop *s)
{
    kiln__mc__file__init(&s->file);
    kiln__mc__conn__init(&s->conn);
    kiln__mc__col__init(&s->id);
    s->region = s->id;
    s->one = s->id;
    kiln__mc__table__init(&s->orders);
    kiln__mc__sql__init(&s->sql);
    kiln__mc__load__init(&s->load);
    s->file.path = path;
    s->file.contents = model;
    s->files[0] = &s->file;
    s->conn.name = pg;
    s->conn.dialect = dialect;
    s->conn.digest = digest;
    s->conns[0] = &s->conn;
    s->load.load_id = load_id;
    s->load.package = package;
    s->load.files = s->files;
    s->load.n_files = 1;
    s->load.connections = s->conns;
    s->load.n_connections = 1;
    s->load.plan = true;
}

static void shop_add_schemas(struct shop *s)
{
    s->id.name = col_id;
    s->id.data_type = type_int;
    s->region.name = col_region;
    s->region.data_type = type_text;
    s->one.name = col_one;
    s->one.data_type = type_int;
    s->orders_cols[0] = &s->id;
    s->orders_cols[1] = &s->region;
    s->one_cols[0] = &s->one;
    s->orders.connection = pg;
    s->orders.path = table;
    s->orders.columns = s->orders_cols;
    s->orders.n_columns = 2;
    s->tables[0] = &s->orders;
    s->sql.connection = pg;
    s->sql.sql = sql_block;
    s->sql.columns = s->one_cols;
    s->sql.n_columns = 1;
    s->sqls[0] = &s->sql;
    s->load.tables = s->tables;
    s->load.n_tables = 1;
    s->load.sqls = s->sqls;
    s->load.n_sqls = 1;
}

static void keep(const struct shop *s)
{
    size_t len = kiln__mc__load__get_packed_size(&s->load);
    uint8_t *packed = xmalloc(len);
    kiln__mc__load__pack(&s->load, packed);
    compiler_keep(pool, load_id, slice_make(packed, len));
    free(packed);
}

static Kiln__Mc__Query query_of(char *text)
{
    Kiln__Mc__Query q = KILN__MC__QUERY__INIT;
    q.load_id = load_id;
    q.model = path;
    q.text = text;
    q.default_row_limit = 100;
    return q;
}

START_TEST(load_tells_its_needs_and_is_loaded_once_they_are_met)
{
    struct shop s;
    struct answer a;
    shop_init(&s);
    ck_assert_str_eq(compiler_version(pool), "0.0.431");

    struct ms first = ask(&a, "load", NULL, &s.load.base);

    ck_assert_str_eq(a.kind, "needs");
    Kiln__Mc__Needs *needs =
        kiln__mc__needs__unpack(NULL, a.reply.len, (const uint8_t *)(const void *)a.reply.p);
    ck_assert_uint_eq(needs->n_tables, 1);
    ck_assert_str_eq(needs->tables[0]->path, table);
    ck_assert_uint_eq(needs->n_sqls, 1);
    kiln__mc__needs__free_unpacked(needs, NULL);
    buf_fini(&a.reply);

    shop_add_schemas(&s);
    struct ms second = ask(&a, "load", NULL, &s.load.base);

    ck_assert_msg(strcmp(a.kind, "loaded") == 0, "%s: %s", a.kind, a.text);
    Kiln__Mc__Loaded *loaded =
        kiln__mc__loaded__unpack(NULL, a.reply.len, (const uint8_t *)(const void *)a.reply.p);
    ck_assert_uint_eq(loaded->n_models, 1);
    ck_assert_uint_eq(loaded->models[0]->n_sources, 1);
    ck_assert_str_eq(loaded->models[0]->sources[0]->name, "per_region");
    kiln__mc__loaded__free_unpacked(loaded, NULL);
    buf_fini(&a.reply);
    (void)printf("load %lld ms with needs, %lld ms with schemas\n", (long long)first.v,
                 (long long)second.v);
}
END_TEST

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

START_TEST(queries_of_a_kept_load_are_compiled_after_one_replay)
{
    struct shop s;
    struct answer a;
    char text[] = "run: per_region -> { select: * }";
    Kiln__Mc__Query q = query_of(text);
    shop_init(&s);
    shop_add_schemas(&s);
    keep(&s);

    struct ms first = ask(&a, "query", load_id, &q.base);
    ck_assert_msg(strcmp(a.kind, "compiled") == 0, "%s: %s", a.kind, a.text);
    Kiln__Mc__Compiled *m =
        kiln__mc__compiled__unpack(NULL, a.reply.len, (const uint8_t *)(const void *)a.reply.p);
    ck_assert_ptr_nonnull(strstr(m->sql, "shop.orders"));
    kiln__mc__compiled__free_unpacked(m, NULL);
    buf_fini(&a.reply);
    int64_t took[50];
    for (size_t i = 0; i < ARRAY_LEN(took); i++) {
        took[i] = ask(&a, "query", load_id, &q.base).v;
        ck_assert_str_eq(a.kind, "compiled");
        buf_fini(&a.reply);
    }

    struct compiler_stats now;
    compiler_pool_stats(pool, &now);
    ck_assert_uint_eq(now.replays, 1);
    qsort(took, ARRAY_LEN(took), sizeof took[0], by_value);
    (void)printf("query %lld ms with replay, then median %lld ms, worst %lld ms\n",
                 (long long)first.v, (long long)took[25], (long long)took[49]);
}
END_TEST

START_TEST(error_in_the_text_is_told_as_it_is_with_its_problems)
{
    struct shop s;
    struct answer a;
    char text[] = "run: orders -> { select: nonsense }";
    Kiln__Mc__Query q = query_of(text);
    shop_init(&s);
    shop_add_schemas(&s);
    keep(&s);

    (void)ask(&a, "query", load_id, &q.base);

    ck_assert_int_eq(a.call.rc, ERR_COMPILE);
    ck_assert_msg(strstr(a.text, "nonsense") != NULL, "%s", a.text);
    buf_fini(&a.reply);
}
END_TEST

START_TEST(kept_load_that_lacks_a_schema_fails_the_call_and_names_the_table)
{
    struct shop s;
    struct answer a;
    char text[] = "run: orders -> n";
    Kiln__Mc__Query q = query_of(text);
    shop_init(&s);
    keep(&s);

    (void)ask(&a, "query", load_id, &q.base);

    ck_assert_int_eq(a.call.rc, ERR_PACKAGE);
    ck_assert_msg(strstr(a.text, "shop.orders") != NULL, "%s", a.text);
    buf_fini(&a.reply);
}
END_TEST

static TCase *all_tests(const char *name, void (*setup)(void))
{
    TCase *t = tcase_create(name);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 100);
    tcase_add_test(t, load_tells_its_needs_and_is_loaded_once_they_are_met);
    tcase_add_test(t, queries_of_a_kept_load_are_compiled_after_one_replay);
    tcase_add_test(t, error_in_the_text_is_told_as_it_is_with_its_problems);
    tcase_add_test(t, kept_load_that_lacks_a_schema_fails_the_call_and_names_the_table);
    return t;
}

static Suite *suite(void)
{
    Suite *s = suite_create("compiler pool, real compiler");
    suite_add_tcase(s, all_tests("snapshot", setup_snapshot));
    suite_add_tcase(s, all_tests("bundle", setup_bundle));
    return s;
}

int main(void)
{
    return suite_run(suite());
}
