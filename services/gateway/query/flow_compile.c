/* Flow: POST models/{path}/compile. CHECK in the compiler; what its text needs of the warehouse's
 * catalog is asked for (CONNECT, DESCRIBE, one table or SQL block at a time) and the text checked
 * again. Nothing of it stays: the loaded package never learns of it. */
#include "services/gateway/query/query.h"

enum { CHECK, CONNECT, DESCRIBE, ANSWER, END };
enum {
    ROUNDS = 12,
    NEEDS_MAX = 200
}; /* a block's text holds its parent's, so needs come in rounds */

/* What the compiler lacks: a table or a block, one of the two is set. */
struct need {
    Kiln__Mc__Table *table;
    Kiln__Mc__Sql *sql;
};

struct compile_flow {
    struct flow flow;
    struct gw_work work;
    struct gw_worker *w;
    struct http_req *r;
    struct gw_package *p; /* counted */
    const char *model;    /* lives with the request */
    Kiln__Mc__Check request;
    struct gw_compiling compiling;
    const char *reply_kind;
    struct slice reply;
    Kiln__Mc__Checked *checked; /* freed at the end */
    struct need needs[NEEDS_MAX];
    size_t n_needs, at; /* known ones before `at` */
    unsigned rounds;
    struct gw_conn_get conn;
    struct wh *wh; /* held */
    struct wh_op op;
    const char *path;
    struct err err;
};

static struct compile_flow *compile_of(struct flow *f)
{
    return container_of(f, struct compile_flow, flow);
}

static enum flow_next failed(struct compile_flow *c, int rc, const struct err *e)
{
    c->err = *e;
    c->err.code = rc;
    return flow_goto(&c->flow, ANSWER);
}

/* ---- CHECK ---- */
static void on_checked(struct compiler_call *call)
{
    struct compile_flow *c = call->data;
    struct arena *a = &c->flow.arena;
    struct err e = {0};
    c->reply_kind = arena_strdup(a, call->reply_kind);
    c->reply = slice_make(call->reply.len ? arena_slice(a, call->reply) : NULL, call->reply.len);
    gw_compile_error(call, &e);
    flow_resume(&c->flow, e.code, &e);
}

static void cancel_check(struct flow *f)
{
    gw_compiling_cancel(&compile_of(f)->compiling);
}

static void start_check(struct compile_flow *c)
{
    struct arena *a = &c->flow.arena;
    c->request.tables = arena_zalloc(a, (c->n_needs + 1) * sizeof(*c->request.tables));
    c->request.sqls = arena_zalloc(a, (c->n_needs + 1) * sizeof(*c->request.sqls));
    c->request.n_tables = c->request.n_sqls = 0;
    for (size_t i = 0; i < c->n_needs; i++) {
        if (c->needs[i].table) {
            c->request.tables[c->request.n_tables++] = c->needs[i].table;
        } else {
            c->request.sqls[c->request.n_sqls++] = c->needs[i].sql;
        }
    }
    c->compiling.call = (struct compiler_call){.kind = "check",
                                               .load_id = c->p->load_id,
                                               .request = &c->request.base,
                                               .timeout = MS(GW_COMPILE_MS),
                                               .done = on_checked,
                                               .data = c};
    gw_compiling_start(c->w, &c->compiling);
}

static int add_needs(struct compile_flow *c, const Kiln__Mc__Needs *m, struct err *e)
{
    struct arena *a = &c->flow.arena;
    if (c->rounds++ == ROUNDS || c->n_needs + m->n_tables + m->n_sqls > NEEDS_MAX) {
        return err_set(e, ERR_COMPILE,
                       "the text needs more than %d tables and SQL blocks that the package does "
                       "not know, or nests them too deeply: publish it instead",
                       NEEDS_MAX);
    }
    for (size_t i = 0; i < m->n_tables; i++) {
        Kiln__Mc__Table *t = arena_alloc(a, sizeof(*t));
        kiln__mc__table__init(t);
        t->connection = arena_strdup(a, m->tables[i]->connection);
        t->path = arena_strdup(a, m->tables[i]->path);
        c->needs[c->n_needs++] = (struct need){.table = t};
    }
    for (size_t i = 0; i < m->n_sqls; i++) {
        Kiln__Mc__Sql *s = arena_alloc(a, sizeof(*s));
        kiln__mc__sql__init(s);
        s->connection = arena_strdup(a, m->sqls[i]->connection);
        s->sql = arena_strdup(a, m->sqls[i]->sql);
        c->needs[c->n_needs++] = (struct need){.sql = s};
    }
    return 0;
}

static int take_needs(struct compile_flow *c, struct err *e)
{
    Kiln__Mc__Needs *m = kiln__mc__needs__unpack(NULL, c->reply.len, (const uint8_t *)c->reply.p);
    if (!m) {
        return err_set(e, ERR_INTERNAL, "the Malloy compiler's answer does not decode");
    }
    int rc = add_needs(c, m, e);
    kiln__mc__needs__free_unpacked(m, NULL);
    return rc;
}

static enum flow_next step_check(struct flow *f)
{
    struct compile_flow *c = compile_of(f);
    struct err e = {0};
    if (f->entered) {
        start_check(c);
        return FLOW_WAIT;
    }
    if (f->rc) {
        return failed(c, f->rc, &f->err);
    }
    if (strcmp(c->reply_kind, "needs") == 0) {
        int rc = take_needs(c, &e);
        return rc ? failed(c, rc, &e) : flow_goto(f, CONNECT);
    }
    c->checked = kiln__mc__checked__unpack(NULL, c->reply.len, (const uint8_t *)c->reply.p);
    if (!c->checked) {
        err_set(&e, ERR_INTERNAL, "the Malloy compiler's answer does not decode");
        return failed(c, ERR_INTERNAL, &e);
    }
    return flow_goto(f, ANSWER);
}

/* ---- CONNECT, DESCRIBE: one need after the other ---- */
/* A need that cannot be met is told to the compiler, who knows the place in the text. */
static void set_error(struct compile_flow *c, const char *text)
{
    struct need *n = &c->needs[c->at];
    char *copy = arena_strdup(&c->flow.arena, text);
    if (n->table) {
        n->table->error = copy;
    } else {
        n->sql->error = copy;
    }
}

static enum flow_next next_need(struct compile_flow *c)
{
    c->at++;
    if (c->wh) {
        gw_conn_put(c->w, c->wh);
        c->wh = NULL;
    }
    return flow_goto(&c->flow, c->at < c->n_needs ? CONNECT : CHECK);
}

static void on_connection(struct gw_conn_get *q)
{
    struct compile_flow *c = q->data;
    c->wh = q->rc ? NULL : q->wh;
    flow_resume(&c->flow, q->rc, &q->err);
}

static enum flow_next step_connect(struct flow *f)
{
    struct compile_flow *c = compile_of(f);
    const struct need *n = &c->needs[c->at];
    if (f->entered) {
        c->conn = (struct gw_conn_get){.environment = c->p->environment,
                                       .name = n->table ? n->table->connection : n->sql->connection,
                                       .package = c->p,
                                       .done = on_connection,
                                       .data = c};
        gw_conn_get_start(c->w, &c->conn);
        return FLOW_WAIT;
    }
    if (f->rc == 0) {
        return flow_goto(f, DESCRIBE);
    }
    set_error(c, err_text(&f->err));
    return next_need(c);
}

static void on_described(struct wh_op *op)
{
    struct compile_flow *c = op->data;
    flow_resume(&c->flow, op->rc, &op->err);
}

static void cancel_describe(struct flow *f)
{
    struct compile_flow *c = compile_of(f);
    c->wh->ops->cancel(&c->op);
}

static Kiln__Mc__Col **columns_of(struct arena *a, const struct wh_columns *in)
{
    Kiln__Mc__Col **list = arena_zalloc(a, (in->n + 1) * sizeof(*list));
    for (size_t i = 0; i < in->n; i++) {
        list[i] = arena_alloc(a, sizeof(**list));
        kiln__mc__col__init(list[i]);
        list[i]->name = bus_str(in->items[i].name);
        list[i]->data_type = bus_str(in->items[i].data_type);
        list[i]->element_type = bus_str(in->items[i].element_type);
    }
    return list;
}

static void take_columns(struct compile_flow *c)
{
    struct need *n = &c->needs[c->at];
    const struct wh_facts *facts = &c->op.facts;
    if (n->sql) {
        n->sql->columns = columns_of(&c->flow.arena, &facts->columns);
        n->sql->n_columns = facts->columns.n;
    } else if (facts->n_schemas == 0 || facts->schemas[0].n == 0) {
        const char *why = facts->n_schemas ? facts->schema_errors[0] : NULL;
        set_error(c, why ? why : "the table does not exist");
    } else {
        n->table->columns = columns_of(&c->flow.arena, &facts->schemas[0]);
        n->table->n_columns = facts->schemas[0].n;
    }
}

static enum flow_next step_describe(struct flow *f)
{
    struct compile_flow *c = compile_of(f);
    const struct need *n = &c->needs[c->at];
    if (f->entered) {
        c->op = (struct wh_op){.wh = c->wh, .arena = &f->arena, .data = c, .done = on_described};
        if (n->table) {
            c->path = n->table->path;
            c->wh->ops->catalog_tables(&c->op, &c->path, 1);
        } else {
            c->wh->ops->describe(&c->op, n->sql->sql);
        }
        return FLOW_WAIT;
    }
    if (f->rc == ERR_CANCELLED) {
        return failed(c, f->rc, &f->err);
    }
    if (f->rc) {
        set_error(c, err_text(&f->err));
    } else {
        take_columns(c);
    }
    return next_need(c);
}

/* ---- ANSWER ---- */
static void add_problem(struct buf *out, const Kiln__Mc__Problem *p, const char *model)
{
    buf_add_slice(out, SLICE("{\"message\":"));
    jsonw_str(out, slice_of(p->message));
    buf_add_slice(out, SLICE(",\"severity\":"));
    jsonw_str(out, slice_of(p->severity));
    buf_add_slice(out, SLICE(",\"code\":"));
    jsonw_str(out, slice_of(p->code));
    buf_add_slice(out, SLICE(",\"at\":{\"url\":"));
    jsonw_str(out, slice_of(p->path[0] ? p->path : model));
    buf_addf(out,
             ",\"range\":{\"start\":{\"line\":%u,\"character\":%u},"
             "\"end\":{\"line\":%u,\"character\":%u}}}}",
             p->line, p->character, p->end_line, p->end_character);
}

static void print_checked(struct compile_flow *c, struct buf *out)
{
    const Kiln__Mc__Checked *m = c->checked;
    buf_addf(out, "{\"status\":\"%s\",\"problems\":[", m->ok ? "success" : "error");
    for (size_t i = 0; i < m->n_problems; i++) {
        if (i > 0) {
            buf_add_char(out, ',');
        }
        add_problem(out, m->problems[i], c->model);
    }
    buf_add_char(out, ']');
    if (m->sql[0]) {
        buf_add_slice(out, SLICE(",\"sql\":"));
        jsonw_str(out, slice_of(m->sql));
    }
    buf_add_char(out, '}');
}

static enum flow_next step_answer(struct flow *f)
{
    struct compile_flow *c = compile_of(f);
    http_on_gone(c->r, NULL, NULL);
    if (c->err.code) {
        gw_reply_error(c->r, c->err.code, err_text(&c->err));
    } else {
        auto_buf struct buf body = {0};
        print_checked(c, &body);
        http_reply_json(c->r, 200, buf_slice(&body));
    }
    return flow_goto(f, END);
}

static enum flow_next step_end(struct flow *f)
{
    struct compile_flow *c = compile_of(f);
    if (c->wh) {
        gw_conn_put(c->w, c->wh);
    }
    kiln__mc__checked__free_unpacked(c->checked, NULL);
    gw_package_unref(c->p);
    return FLOW_END;
}

static void on_end(struct flow *f)
{
    struct compile_flow *c = compile_of(f);
    gw_work_end(c->w, &c->work);
    free(c);
}

static const struct flow_step steps[] = {
    [CHECK] = {.name = "CHECK",
               .run = step_check,
               .to = FLOW_TO(CONNECT) | FLOW_TO(ANSWER),
               .cancel = cancel_check,
               .says = "the compiler child, under the tables in force"},
    [CONNECT] = {.name = "CONNECT",
                 .run = step_connect,
                 .to = FLOW_TO(CONNECT) | FLOW_TO(DESCRIBE) | FLOW_TO(CHECK),
                 .says = "the warehouse's pool of sessions",
                 .shielded = true},
    [DESCRIBE] = {.name = "DESCRIBE",
                  .run = step_describe,
                  .to = FLOW_TO(CONNECT) | FLOW_TO(CHECK) | FLOW_TO(ANSWER),
                  .cancel = cancel_describe,
                  .says = "columns of a table or SQL block"},
    [ANSWER] = {.name = "ANSWER", .run = step_answer, .to = FLOW_TO(END), .says = "problems, SQL"},
    [END] = {.name = "END", .run = step_end, .says = "give everything back"},
};
const struct flow_type flow_compile_type = {"compile", steps, ARRAY_LEN(steps)};

static void on_gone(struct http_req *r, void *data)
{
    struct compile_flow *c = data;
    (void)r;
    flow_cancel(&c->flow);
}

/* ---- the request ---- */
static int read_body(struct compile_flow *c, const json_t *body, struct err *e)
{
    struct arena *a = &c->flow.arena;
    const char *source = NULL;
    const char *scope = NULL;
    const json_t *givens = json_object_get(body, "givens");
    int rc = gw_refuse_version(c->r, body, e);
    rc = rc ? rc : gw_body_str(body, "source", &source, e);
    rc = rc ? rc : gw_body_str(body, "scope", &scope, e);
    if (rc) {
        return rc;
    }
    if (!source) {
        return err_set(e, ERR_INVALID, "'source' is missing: send the text to compile");
    }
    if (scope && strcmp(scope, "append") != 0 && strcmp(scope, "file") != 0 &&
        strcmp(scope, "package") != 0) {
        return err_set(e, ERR_INVALID, "'scope' must be append, file or package");
    }
    if (givens && !json_is_null(givens) && !json_is_object(givens)) {
        return err_set(e, ERR_INVALID, "'givens' must be an object of name and value");
    }
    kiln__mc__check__init(&c->request);
    c->request.load_id = c->p->load_id;
    c->request.model = bus_str(c->model);
    c->request.source = arena_strdup(a, source);
    c->request.scope = arena_strdup(a, scope ? scope : "append");
    c->request.include_sql = json_flag(body, "includeSql", false);
    if (json_object_size(givens) > 0) {
        auto_free char *text = json_text(givens);
        c->request.givens_json = arena_strdup(a, text);
    }
    return 0;
}

static void offer_tables(struct compile_flow *c)
{
    const struct gw_view *v = c->p->view;
    struct arena *a = &c->flow.arena;
    size_t n_left_out = 0;
    struct decide_left_out *left_out =
        decide_leave_out(&v->facts, gw_decide_now(c->w), NULL, 0, a, &n_left_out);
    c->request.manifest =
        gw_manifest_make(a, v, false, left_out, n_left_out, &c->request.n_manifest);
}

void gw_compile_handle(struct gw_worker *w, struct http_req *r, struct gw_package *p,
                       const char *model)
{
    struct compile_flow *c = xcalloc(1, sizeof(*c));
    struct err e = {0};
    c->w = w;
    c->r = r;
    c->p = p;
    c->model = model;
    json_t *body = gw_body_object(r, &e);
    int rc = body ? read_body(c, body, &e) : e.code;
    json_decref(body);
    if (rc) {
        arena_fini(&c->flow.arena);
        free(c);
        gw_reply_error(r, rc, err_text(&e));
        return;
    }
    c->p = gw_package_ref(p);
    offer_tables(c);
    c->flow.on_end = on_end;
    gw_work_begin(w, &c->work, &c->flow);
    flow_start(&c->flow, &flow_compile_type, loop_flows(w->loop), NULL);
    http_on_gone(r, on_gone, c);
}
