/* compiler.h without children: packages of this world compile to what trio_package.c says of them.
 */
#include "common/bus/bus.h"
#include "common/compiler/compiler.h"
#include "proto/compiler.pb-c.h"
#include "tests/sim/trio_world.h"

#include <stdio.h>

enum { READY_MS = 20, CALL_MOST_MS = 30 };

struct compiler_pool {
    struct loop *loop;
    struct loop_timer ready;
    struct loop_task closing;
    void (*on_ready)(void *data, bool ready, const char *why);
    void *data;
    struct list calls; /* of struct work */
    void (*closed)(void *data);
    void *closed_data;
};
struct work {
    struct list link;
    struct loop_timer timer;
    struct compiler_pool *pool;
    struct compiler_call *call;
    struct arena arena;
    int rc;
    const char *kind;
    struct slice reply;
};

/* ---- pool ---- */
static void on_ready(struct loop_timer *t)
{
    struct compiler_pool *p = t->data;
    p->on_ready(p->data, true, "");
}

static void on_closing(struct loop_task *t)
{
    struct compiler_pool *p = t->data;
    while (!list_empty(&p->calls)) {
        struct work *w = list_entry(list_take_head(&p->calls), struct work, link);
        struct compiler_call *c = w->call;
        loop_timer_stop(&w->timer);
        arena_fini(&w->arena);
        free(w);
        c->impl = NULL;
        c->rc = err_set(&c->err, ERR_SHUTDOWN, "the compiler pool is closing");
        c->done(c);
    }
    p->closed(p->closed_data);
}

struct compiler_pool *compiler_pool_new(struct loop *l, const struct compiler_settings *s,
                                        void (*on)(void *data, bool ready, const char *why),
                                        void *data)
{
    struct compiler_pool *p = xcalloc(1, sizeof(*p));
    (void)s;
    p->loop = l;
    p->on_ready = on;
    p->data = data;
    list_init(&p->calls);
    loop_timer_init(&p->ready, l, on_ready, p);
    loop_task_init(&p->closing, on_closing, p);
    loop_timer_start(&p->ready, MS(READY_MS));
    return p;
}

void compiler_pool_close(struct compiler_pool *p, void (*done)(void *data), void *data)
{
    p->closed = done;
    p->closed_data = data;
    loop_timer_stop(&p->ready);
    loop_defer(p->loop, &p->closing);
}

void compiler_pool_free(struct compiler_pool *p)
{
    must(list_empty(&p->calls));
    free(p);
}

const char *compiler_version(const struct compiler_pool *p)
{
    (void)p;
    return "0.0.1";
}

void compiler_keep(struct compiler_pool *p, const char *load_id, struct slice packed_load)
{
    must(p && load_id && packed_load.len);
}

void compiler_forget(struct compiler_pool *p, const char *load_id)
{
    must(p && load_id);
}

/* ---- what the child says ---- */
static void pack(struct work *w, const ProtobufCMessage *m, const char *kind)
{
    size_t len = protobuf_c_message_get_packed_size(m);
    uint8_t *to = arena_alloc(&w->arena, len);
    protobuf_c_message_pack(m, to);
    w->reply = slice_make((const char *)to, len);
    w->kind = kind;
}

static void answer_load(struct work *w, const Kiln__Mc__Load *q)
{
    const struct trio_unit *u = package_named(world_now(), q->package, strlen(q->package));
    must(u);
    w->kind = "loaded";
    if (q->plan) {
        w->reply = package_loaded(&w->arena, u, u->version);
    }
}

static const char *table_of(const Kiln__Mc__BuildSql *q, const char *build)
{
    for (size_t i = 0; i < q->n_manifest; i++) {
        if (strcmp(q->manifest[i]->build_id, build) == 0) {
            return q->manifest[i]->table;
        }
    }
    return NULL;
}

/* "s2@mpkg://p1/m.malloy": reads its parent's table if the manifest offers it, else all the way
 * down. */
static void answer_sql(struct work *w, const Kiln__Mc__BuildSql *q)
{
    size_t source = 0;
    char name[16] = "";
    must(sscanf(q->source_id, "s%zu@mpkg://%15[^/]/", &source, name) == 2);
    const struct trio_unit *u = package_named(world_now(), name, strlen(name));
    must(u && source < u->n);
    const char *table = NULL;
    int parent = u->sources[source].parent;
    for (unsigned v = 0; parent >= 0 && !table && v <= u->version; v++) {
        table = table_of(q, package_build(&w->arena, u, (size_t)parent, v));
    }
    Kiln__Mc__SqlText m = KILN__MC__SQL_TEXT__INIT;
    m.sql = table ? arena_printf(&w->arena, "SELECT * FROM %s", table)
                  : arena_printf(&w->arena, "SELECT n FROM generate_series(1, %llu) n",
                                 (unsigned long long)package_rows(u, source));
    pack(w, &m.base, "sql");
}

static void on_answer(struct loop_timer *t)
{
    struct work *w = t->data;
    struct compiler_call *c = w->call;
    list_del(&w->link);
    c->impl = NULL;
    c->rc = w->rc;
    if (w->rc) {
        err_set(&c->err, w->rc, "the compiler call was cancelled");
    }
    c->reply_kind = w->kind;
    c->reply = w->reply;
    c->done(c);
    arena_fini(&w->arena);
    free(w);
}

void compiler_call_start(struct compiler_pool *p, struct compiler_call *c)
{
    struct work *w = xcalloc(1, sizeof(*w));
    w->pool = p;
    w->call = c;
    arena_init(&w->arena);
    if (strcmp(c->kind, "load") == 0) {
        answer_load(w, (const Kiln__Mc__Load *)c->request);
    } else if (strcmp(c->kind, "build_sql") == 0) {
        answer_sql(w, (const Kiln__Mc__BuildSql *)c->request);
    } else {
        trio_fail("the compiler of this world is asked for \"%s\"", c->kind);
    }
    c->impl = w;
    list_add_tail(&p->calls, &w->link);
    loop_timer_init(&w->timer, p->loop, on_answer, w);
    loop_timer_start(&w->timer, sim_time_between(&world_now()->time, MS(0), MS(CALL_MOST_MS)));
}

void compiler_call_cancel(struct compiler_call *c)
{
    struct work *w = c->impl;
    if (w) {
        w->rc = ERR_CANCELLED;
        loop_timer_start(&w->timer, MS(0));
    }
}

int compiler_child_main(int argc, char **argv, bool *was_child)
{
    (void)argc;
    (void)argv;
    *was_child = false;
    return 0;
}
