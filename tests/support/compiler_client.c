#include "tests/support/compiler_client.h"
#include "proto/compiler.pb-c.h"
#include <stdio.h>
#include <stdlib.h>

static int done_count; /* gives questions their order */

static void on_ready(void *data, bool ready, const char *why)
{
    struct pool_fixture *f = data;
    f->ready = ready;
    f->ready_calls += ready ? 1 : 0;
    f->down_calls += ready ? 0 : 1;
    (void)snprintf(f->why, sizeof f->why, "%s", why);
}

void pool_open(struct pool_fixture *f, struct compiler_settings s)
{
    const char *build = getenv("KILN_BINARY_DIR");
    const char *source = getenv("KILN_SOURCE_DIR");
    ck_assert_ptr_nonnull(build);
    ck_assert_ptr_nonnull(source);
    auto_free char *bundle = xasprintf("%s/tests/support/fake_compiler.js", source);
    auto_free char *self = xasprintf("%s/tests/compiler_launcher", build);
    s.bundle = s.bundle ? s.bundle : bundle;
    s.self = s.self ? s.self : self;
    *f = (struct pool_fixture){.loop = loop_new()};
    f->pool = compiler_pool_new(f->loop, &s, on_ready, f);
    ck_assert_int_eq(f->ready_calls + f->down_calls, 0); /* never inside */
}

void pool_open_ready(struct pool_fixture *f, struct compiler_settings s)
{
    pool_open(f, s);
    turn_until(f->loop, f->ready);
}

static void on_closed(void *data)
{
    ((struct pool_fixture *)data)->closed = true;
}

void pool_shut(struct pool_fixture *f)
{
    compiler_pool_close(f->pool, on_closed, f);
    ck_assert(!f->closed);
    turn_until(f->loop, f->closed);
    compiler_pool_free(f->pool);
    loop_free(f->loop);
}

static void on_done(struct compiler_call *c)
{
    struct question *q = c->data;
    ck_assert(!q->starting);
    q->dones++;
    q->order = ++done_count;
    q->rc = c->rc;
    (void)snprintf(q->problem, sizeof q->problem, "%s", c->err.text);
    buf_add_slice(&q->reply, c->reply);
    if (q->then) {
        q->then(q);
    }
}

static void start(struct question *q, struct pool_fixture *f, struct compiler_call call)
{
    void (*then)(struct question *) = q->then;
    char text[sizeof q->text];
    memcpy(text, q->text, sizeof text);
    *q = (struct question){.call = call, .pool = f, .then = then};
    memcpy(q->text, text, sizeof text);
    q->call.done = on_done;
    q->call.data = q;
    q->starting = true;
    compiler_call_start(f->pool, &q->call);
    q->starting = false;
}

void question_start(struct question *q, struct pool_fixture *f, const char *load_id,
                    struct ms timeout, const char *command)
{
    Kiln__Mc__Query m = KILN__MC__QUERY__INIT;
    auto_free char *id = xstrdup(load_id ? load_id : "");
    (void)snprintf(q->text, sizeof q->text, "%s", command);
    m.load_id = id;
    m.text = q->text;
    start(q, f,
          (struct compiler_call){
              .kind = "query", .load_id = load_id, .request = &m.base, .timeout = timeout});
}

const char *question_ask(struct question *q, struct pool_fixture *f, const char *load_id,
                         const char *command)
{
    question_fini(q);
    question_start(q, f, load_id, MS(PATIENCE), command);
    turn_until(f->loop, q->dones);
    return q->rc ? q->problem : buf_str(&q->reply);
}

void question_fini(struct question *q)
{
    buf_fini(&q->reply);
    *q = (struct question){.dones = 0};
}

static void fill(Kiln__Mc__Load *m, char *load_id, char *package)
{
    kiln__mc__load__init(m);
    m->load_id = load_id;
    m->package = package;
}

void question_load(struct question *q, struct pool_fixture *f, const char *load_id,
                   const char *package, struct ms timeout)
{
    Kiln__Mc__Load m;
    auto_free char *id = xstrdup(load_id);
    auto_free char *name = xstrdup(package);
    fill(&m, id, name);
    start(q, f, (struct compiler_call){.kind = "load", .request = &m.base, .timeout = timeout});
}

void pool_keep(struct pool_fixture *f, const char *load_id, const char *package)
{
    Kiln__Mc__Load m;
    auto_free char *id = xstrdup(load_id);
    auto_free char *name = xstrdup(package);
    fill(&m, id, name);
    size_t len = kiln__mc__load__get_packed_size(&m);
    auto_free uint8_t *packed = xmalloc(len);
    kiln__mc__load__pack(&m, packed);
    compiler_keep(f->pool, load_id, slice_make(packed, len));
}

int pool_child_pid(struct pool_fixture *f)
{
    struct question q = {.dones = 0};
    int pid = atoi(question_ask(&q, f, NULL, "pid"));
    ck_assert_msg(pid > 1, "%s", q.problem);
    question_fini(&q);
    return pid;
}

struct compiler_stats pool_stats(const struct pool_fixture *f)
{
    struct compiler_stats s;
    compiler_pool_stats(f->pool, &s);
    return s;
}
