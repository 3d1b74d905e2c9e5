#include "gateway_query_fixture.h"

#include "services/gateway/binder/binder.h"

struct gateway_fixture fx;

/* ---- the binder's side ---- */
struct gw_package *gw_package_ref(struct gw_package *p)
{
    p->refs++;
    return p;
}

void gw_package_unref(struct gw_package *p)
{
    must(p->refs-- > 1);
}

const struct gw_binding *gw_package_binding(const struct gw_package *p, const char *build_id)
{
    return map_get(&p->by_build, slice_of(build_id));
}

void gw_tell_broken(struct gw_worker *w, struct gw_package *p, const struct gw_binding *b,
                    const char *code)
{
    (void)w;
    (void)p;
    fx.n_broken++;
    snprintf(fx.broken, sizeof(fx.broken), "%s %s", b->source_name, code);
}

void binder_misses_root(struct gateway *g, const struct gw_package *p, const char *text)
{
    (void)g;
    (void)p;
    must(!text);
}

struct deferred_get {
    struct loop_task task;
    struct gw_conn_get *q;
};

static void on_get(struct loop_task *t)
{
    struct deferred_get *d = container_of(t, struct deferred_get, task);
    struct gw_conn_get *q = d->q;
    q->rc = fx.connect_rc;
    q->wh = q->rc ? NULL : &fx.wh;
    fx.n_held += q->rc == 0;
    if (q->rc) {
        err_set(&q->err, q->rc, "connection '%s' does not work", q->name);
    }
    free(d);
    q->done(q);
}

void gw_conn_get_start(struct gw_worker *w, struct gw_conn_get *q)
{
    struct deferred_get *d = xcalloc(1, sizeof(*d));
    d->q = q;
    loop_task_init(&d->task, on_get, d);
    loop_defer(w->loop, &d->task);
}

void gw_conn_put(struct gw_worker *w, struct wh *wh)
{
    (void)w;
    must(wh == &fx.wh && fx.n_held-- > 0);
}

/* ---- the compiler ---- */
struct answer {
    struct loop_task task;
    struct compiler_call *call;
    int rc;
};

static struct slice pack(const ProtobufCMessage *m, struct buf *out)
{
    buf_reserve(out, protobuf_c_message_get_packed_size(m));
    out->len = protobuf_c_message_pack(m, (uint8_t *)out->p);
    return buf_slice(out);
}

static void answer_query(struct compiler_call *c, struct buf *out)
{
    const struct asked *a = &fx.asked[fx.n_asked - 1];
    Kiln__Mc__Compiled m = KILN__MC__COMPILED__INIT;
    static char *a_b[2] = {"aaa", "bbb"};
    static char *ids[2] = {"a@mpkg://p/m.malloy", "b@mpkg://p/m.malloy"};
    char *sources[2];
    char *hits[2];
    char *misses[2];
    bool offered[2] = {a->offers_a, a->offers_b};
    for (int hit = 1; hit >= 0; hit--) {
        for (int i = 0; i < 2; i++) {
            if (offered[i] == hit) {
                sources[m.n_persist_sources++] = ids[i];
                *(hit ? &hits[m.n_hits++] : &misses[m.n_misses++]) = a_b[i];
            }
        }
    }
    m.hits = hits;
    m.misses = misses;
    m.persist_sources = sources;
    m.sql = "SELECT 1";
    m.connection = "pg";
    m.head_json = "{\"schema\":{},\"data\":";
    m.tail_json = ",\"sql\":\"SELECT 1\"}";
    m.schema_json = "[{\"name\":\"n\",\"type\":{\"kind\":\"number_type\"}}]";
    m.row_limit = fx.row_limit;
    m.flagged = true;
    m.source = "daily";
    Kiln__Mc__FreeText team = KILN__MC__FREE_TEXT__INIT;
    Kiln__Mc__FreeText *said[] = {&team};
    team.key = "team";
    team.value = bus_str(fx.team);
    m.n_query_metadata = fx.team ? 1 : 0;
    m.query_metadata = said;
    c->reply_kind = "compiled";
    c->reply = pack(&m.base, out);
}

static void answer_check(struct compiler_call *c, struct buf *out)
{
    if (fx.asks_needs && fx.n_asked == 1) {
        Kiln__Mc__Table t = KILN__MC__TABLE__INIT;
        Kiln__Mc__Sql s = KILN__MC__SQL__INIT;
        Kiln__Mc__Needs m = KILN__MC__NEEDS__INIT;
        t.connection = s.connection = "pg";
        t.path = "public.new";
        s.sql = "select 1";
        m.tables = (Kiln__Mc__Table *[]){&t};
        m.sqls = (Kiln__Mc__Sql *[]){&s};
        m.n_tables = m.n_sqls = 1;
        c->reply_kind = "needs";
        c->reply = pack(&m.base, out);
        return;
    }
    Kiln__Mc__Problem p = KILN__MC__PROBLEM__INIT;
    Kiln__Mc__Checked m = KILN__MC__CHECKED__INIT;
    p.severity = "warn";
    p.message = "careful";
    p.line = 2;
    m.ok = true;
    m.sql = "SELECT 2";
    m.problems = (Kiln__Mc__Problem *[]){&p};
    m.n_problems = 1;
    c->reply_kind = "checked";
    c->reply = pack(&m.base, out);
}

static void answer_error(struct compiler_call *c, struct buf *out)
{
    Kiln__Mc__Problem p[2] = {KILN__MC__PROBLEM__INIT, KILN__MC__PROBLEM__INIT};
    Kiln__Mc__Frame f = KILN__MC__FRAME__INIT;
    p[0].severity = p[1].severity = "error";
    p[0].path = "m.malloy";
    p[0].line = 2;
    p[0].message = "first";
    p[1].message = "second";
    f.kind = "error";
    f.error_code = bus_str(fx.error_code);
    f.error_text = "the whole";
    f.problems = (Kiln__Mc__Problem *[]){&p[0], &p[1]};
    f.n_problems = 2;
    c->rc = err_set(&c->err, ERR_COMPILE, "the whole");
    c->frame = pack(&f.base, out);
}

static void on_answer(struct loop_task *t)
{
    struct answer *a = container_of(t, struct answer, task);
    struct compiler_call *c = a->call;
    auto_buf struct buf out = {0};
    c->rc = a->rc;
    if (a->rc) {
        err_set(&c->err, a->rc, "cancelled");
    } else if (fx.error_code) {
        answer_error(c, &out);
    } else if (strcmp(c->kind, "query") == 0) {
        answer_query(c, &out);
    } else if (strcmp(c->kind, "check") == 0) {
        answer_check(c, &out);
    } else {
        Kiln__Mc__ModelInfo m = KILN__MC__MODEL_INFO__INIT;
        m.json = "{\"type\":\"source\"}";
        c->reply = pack(&m.base, &out);
    }
    free(a);
    c->done(c);
}

static void answer_later(struct compiler_call *c, int rc)
{
    struct answer *a = xcalloc(1, sizeof(*a));
    a->call = c;
    a->rc = rc;
    loop_task_init(&a->task, on_answer, a);
    loop_defer(fx.loop, &a->task);
}

static void note_manifest(struct asked *a, Kiln__Mc__ManifestEntry *const *list, size_t n)
{
    a->n_manifest = n;
    for (size_t i = 0; i < n; i++) {
        a->offers_a = a->offers_a || strcmp(list[i]->build_id, "aaa") == 0;
        a->offers_b = a->offers_b || strcmp(list[i]->build_id, "bbb") == 0;
    }
}

void compiler_call_start(struct compiler_pool *p, struct compiler_call *c)
{
    (void)p;
    must(fx.n_asked < ASKED_MAX);
    struct asked *a = &fx.asked[fx.n_asked++];
    snprintf(a->kind, sizeof(a->kind), "%s", c->kind);
    if (strcmp(c->kind, "query") == 0) {
        const Kiln__Mc__Query *q = (const void *)c->request;
        note_manifest(a, q->manifest, q->n_manifest);
        snprintf(a->text, sizeof(a->text), "%s|%s|%s|%s", q->text, q->source_name, q->query_name,
                 q->givens_json);
    } else if (strcmp(c->kind, "check") == 0) {
        const Kiln__Mc__Check *q = (const void *)c->request;
        note_manifest(a, q->manifest, q->n_manifest);
        a->n_tables = q->n_tables;
        a->n_sqls = q->n_sqls;
        snprintf(a->text, sizeof(a->text), "%s", q->source);
    }
    if (fx.holds_compiler) {
        fx.held_call = c;
        return;
    }
    answer_later(c, 0);
}

void compiler_call_cancel(struct compiler_call *c)
{
    if (fx.held_call == c) {
        fx.held_call = NULL;
        answer_later(c, ERR_CANCELLED);
    }
}

void fixture_release_call(void)
{
    struct compiler_call *c = fx.held_call;
    fx.held_call = NULL;
    fx.holds_compiler = false;
    answer_later(c, 0);
}

/* ---- the warehouse ---- */
struct result {
    struct loop_task task;
    struct wh_op *op;
    struct wh_query *q;
    struct wh_sink *sink;
};

static void on_result(struct loop_task *t)
{
    struct result *r = container_of(t, struct result, task);
    struct wh_op *op = r->op;
    for (size_t i = 0; i < r->q->n_baked; i++) {
        r->q->baked[i].ok = fx.query_fails == 0 || fx.receipts_agree;
        r->q->baked[i].generation = "G7";
    }
    if (fx.query_fails > 0) {
        fx.query_fails--;
        op->rc = err_set(&op->err, fx.query_rc, "%s", fx.query_text ? fx.query_text : "no");
    }
    for (size_t i = 0; i < fx.n_rows && op->rc == 0; i++) {
        struct slice cell = SLICE("{\"n\":1.50}");
        op->rc = r->sink->on_row(r->sink->data, &cell);
    }
    free(r);
    op->done(op);
}

static void fake_query(struct wh_op *op, struct wh_query *q, struct wh_sink *sink)
{
    fx.n_queries++;
    fx.last_n_baked = q->n_baked;
    fx.last_rolls_back = q->roll_back;
    snprintf(fx.last_tag, sizeof(fx.last_tag), "%s", q->tag ? q->tag : "");
    snprintf(fx.last_correlation, sizeof(fx.last_correlation), "%s",
             q->correlation ? q->correlation : "");
    snprintf(fx.last_prepared, sizeof(fx.last_prepared), "%s", q->prepare_as ? q->prepare_as : "");
    must(q->read_only);
    if (fx.holds_warehouse) {
        fx.held_op = op;
        return;
    }
    struct result *r = xcalloc(1, sizeof(*r));
    *r = (struct result){.op = op, .q = q, .sink = sink};
    loop_task_init(&r->task, on_result, r);
    loop_defer(fx.loop, &r->task);
}

struct ended {
    struct loop_task task;
    struct wh_op *op;
};

static void on_ended(struct loop_task *t)
{
    struct ended *e = container_of(t, struct ended, task);
    struct wh_op *op = e->op;
    free(e);
    op->done(op);
}

static void end_later(struct wh_op *op, int rc)
{
    struct ended *e = xcalloc(1, sizeof(*e));
    e->op = op;
    op->rc = rc;
    loop_task_init(&e->task, on_ended, e);
    loop_defer(fx.loop, &e->task);
}

static void fake_cancel(struct wh_op *op)
{
    if (fx.held_op == op) {
        fx.n_cancels++;
        fx.held_op = NULL;
        end_later(op, ERR_CANCELLED);
    }
}

static void fake_tables(struct wh_op *op, const char *const *paths, size_t n)
{
    static struct wh_column columns[] = {{"id", "integer", NULL, false}};
    static struct wh_columns schema = {columns, 1};
    static const char *no_error;
    must(n == 1 && strcmp(paths[0], "public.new") == 0);
    op->facts.schemas = &schema;
    op->facts.schema_errors = &no_error;
    op->facts.n_schemas = 1;
    end_later(op, 0);
}

static void fake_describe(struct wh_op *op, const char *sql)
{
    must(strcmp(sql, "select 1") == 0);
    err_set(&op->err, ERR_WH_SQL, "no such column");
    end_later(op, ERR_WH_SQL);
}

static const struct wh_ops fake_ops = {.name = "fake",
                                       .query = fake_query,
                                       .cancel = fake_cancel,
                                       .catalog_tables = fake_tables,
                                       .describe = fake_describe};

/* ---- the whole ---- */
static void on_request(void *data, struct http_req *r)
{
    struct slice path = http_path(r);
    (void)data;
    if (slice_is(path, "/query")) {
        gw_query_handle(&fx.w, r, &fx.package, "m.malloy");
    } else if (slice_is(path, "/other")) {
        gw_query_handle(&fx.other, r, &fx.package, "m.malloy");
    } else if (slice_is(path, "/compile")) {
        gw_compile_handle(&fx.w, r, &fx.package, "m.malloy");
    } else if (slice_is(path, "/model")) {
        gw_model_handle(&fx.w, r, &fx.package, "m.malloy");
    } else if (slice_is(path, "/sql")) {
        gw_sql_query_handle(&fx.w, r, "dev", "pg");
    } else {
        gw_connection_test_handle(&fx.w, r);
    }
}

static void package_init(void)
{
    static const char *const names[] = {"a", "b"};
    struct gw_package *p = &fx.package;
    arena_init(&p->arena);
    map_init(&p->by_build);
    p->refs = 1;
    p->epoch = 41;
    p->environment = "dev";
    p->name = "shop";
    p->package_json = "{}";
    snprintf(p->load_id, sizeof(p->load_id), "load");
    p->bindings = fx.bindings;
    p->sources = fx.sources;
    p->n_bindings = p->n_sources = 2;
    for (size_t i = 0; i < 2; i++) {
        const char *id = arena_printf(&p->arena, "%s@mpkg://p/m.malloy", names[i]);
        const char *build = i ? "bbb" : "aaa";
        fx.bindings[i] = (struct gw_binding){.source_id = id,
                                             .source_name = names[i],
                                             .build_id = build,
                                             .connection = "pg",
                                             .physical = i ? "\"s\".\"b\"" : "\"s\".\"a\"",
                                             .name = {"s", names[i]},
                                             .generation = "G1"};
        fx.sources[i] = (struct gw_source){
            .source_id = id, .name = names[i], .build_id = build, .connection = "pg"};
        ck_assert_ptr_null(map_put(&p->by_build, slice_of(build), &fx.bindings[i]));
    }
}

void fixture_open(void)
{
    struct err e;
    fx = (struct gateway_fixture){.loop = loop_new(), .n_rows = 1, .row_limit = 1000};
    fx.set = (struct gw_settings){.max_query_rows = 100,
                                  .default_row_limit = 1000,
                                  .max_response_bytes = 5000,
                                  .query_timeout_ms = 4000,
                                  .max_concurrent_queries = 2,
                                  .query_cache_entries = 16};
    fx.g.loop = fx.w.loop = fx.other.loop = fx.loop;
    fx.g.set = &fx.set;
    fx.w.g = fx.other.g = &fx.g;
    map_init(&fx.g.compiling);
    fx.wh.ops = &fake_ops;
    package_init();
    gw_view_make(&fx.package);
    gw_query_open(&fx.w);
    gw_query_open(&fx.other);
    struct http_handler h = {.on_request = on_request};
    fx.server = http_server_new(fx.loop, NULL, &h);
    ck_assert_int_eq(http_server_listen(fx.server, "127.0.0.1:0", &e), 0);
    client_connect(&fx.c, http_server_port(fx.server));
}

static void on_over(void *data)
{
    (void)data;
    fx.over = true;
}

void on_fixture_closed(struct gw_worker *w)
{
    *(w == &fx.w ? &fx.closed : &fx.closed_other) = true;
}

void fixture_shut(void)
{
    client_close(&fx.c);
    http_server_close(fx.server, MS(1000), on_over, NULL);
    turn_until(fx.loop, fx.over);
    if (fx.w.query_half) {
        gw_query_close(&fx.w, on_fixture_closed);
    }
    gw_query_close(&fx.other, on_fixture_closed);
    turn_until(fx.loop, fx.closed && fx.closed_other);
    http_server_free(fx.server);
    ck_assert_uint_eq(fx.package.refs, 1);
    ck_assert_uint_eq(map_len(&fx.g.compiling), 0);
    map_fini(&fx.g.compiling);
    map_fini(&fx.package.by_build);
    arena_fini(&fx.package.arena);
    metrics_reset();
    loop_free(fx.loop);
}

void fixture_send(struct client *c, const char *path, const char *headers, const char *body)
{
    auto_free char *text =
        xasprintf("POST /%s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %zu\r\n\r\n%s", path, headers,
                  strlen(body), body);
    buf_clear(&c->in);
    client_send(c, text);
}

void fixture_ask(const char *path, const char *headers, const char *body)
{
    fixture_send(&fx.c, path, headers, body);
    turn_until(fx.loop, client_has(&fx.c, "\r\n\r\n") && client_has(&fx.c, "}"));
}

void expect_answer(const char *text)
{
    ck_assert_msg(client_has(&fx.c, text), "no '%s' in: %s", text, buf_str(&fx.c.in));
}

void expect_idle(void)
{
    turn_until(fx.loop,
               fx.g.queries_running == 0 && fx.n_held == 0 && list_empty(&fx.w.query_half->works));
    ck_assert(fx.package.refs == 1 || !list_empty(&fx.w.query_half->compiles));
}
