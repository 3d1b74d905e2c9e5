/* Flow: one SQL statement of a caller. CONNECT, EXECUTE, ANSWER, END. The warehouse itself makes
 * JSON of the rows, so that every type is exact; the transaction is read-only and rolled back, so
 * that nothing of the statement stays behind in a pooled session. */
#include "services/gateway/core/sql_shape.h"
#include "services/gateway/query/answer.h"
#include "services/gateway/query/query.h"

enum { CONNECT, EXECUTE, ANSWER, END };

struct sql_query {
    struct flow flow;
    struct gw_work work;
    struct gw_worker *w;
    struct http_req *r;
    const char *environment, *connection; /* live with the request */
    struct slice core;                    /* the statement; in the flow's arena */
    int64_t limit;
    struct gw_tag_ask tag;
    char correlation[GW_CORRELATION_CAP];
    struct ms since;
    struct gw_conn_get conn;
    struct wh *wh; /* held */
    struct wh_op op;
    struct wh_query wq;
    struct wh_sink sink;
    uint64_t rows;
    struct buf body;
    struct err err, row_err;
};

static struct sql_query *query_of(struct flow *f)
{
    return container_of(f, struct sql_query, flow);
}

static enum flow_next failed(struct sql_query *q, int rc, const struct err *e)
{
    q->err = *e;
    q->err.code = rc;
    gw_query_error(q->w, &q->err);
    return flow_goto(&q->flow, ANSWER);
}

static void on_connection(struct gw_conn_get *c)
{
    struct sql_query *q = c->data;
    q->wh = c->rc ? NULL : c->wh;
    flow_resume(&q->flow, c->rc, &c->err);
}

static enum flow_next step_connect(struct flow *f)
{
    struct sql_query *q = query_of(f);
    if (f->entered) {
        q->conn = (struct gw_conn_get){
            .environment = q->environment, .name = q->connection, .done = on_connection, .data = q};
        gw_conn_get_start(q->w, &q->conn);
        return FLOW_WAIT;
    }
    return f->rc ? failed(q, f->rc, &f->err) : flow_goto(f, EXECUTE);
}

static int on_row(void *data, const struct slice *cells)
{
    struct sql_query *q = data;
    if (q->rows++ > 0) {
        buf_add_char(&q->body, ',');
    }
    result_escape_compact(&q->body, cells[0]);
    return gw_check_caps(q->w, q->rows, q->body.len, &q->row_err);
}

static void on_executed(struct wh_op *op)
{
    struct sql_query *q = op->data;
    flow_resume(&q->flow, op->rc, &op->err);
}

static void cancel_execute(struct flow *f)
{
    struct sql_query *q = query_of(f);
    q->wh->ops->cancel(&q->op);
}

static void set_tag(struct sql_query *q)
{
    const struct gw_tag_about about = {.class_name = q->tag.class_name,
                                       .environment = q->environment};
    const char *tag =
        gw_is_tagged(q->w->g) ? gw_tag_text(&q->flow.arena, &q->tag.said, &about) : NULL;
    gw_tag_statement(&q->wq, tag, q->correlation);
}

static enum flow_next step_execute(struct flow *f)
{
    struct sql_query *q = query_of(f);
    if (f->entered) {
        buf_add_slice(&q->body, SLICE("{\"data\":\"{\\\"rows\\\":["));
        q->sink = (struct wh_sink){.data = q, .on_row = on_row};
        bool is_duckdb = q->wh->ops->cls == WH_CLASS_BY_BINDING; /* makes JSON of rows by itself */
        q->wq = (struct wh_query){.sql = is_duckdb ? sql_limited(&f->arena, q->core, q->limit)
                                                   : sql_rows_as_json(&f->arena, q->core, q->limit),
                                  .json_rows = is_duckdb,
                                  .read_only = true,
                                  .roll_back = true};
        set_tag(q);
        q->op = (struct wh_op){.wh = q->wh,
                               .arena = &f->arena,
                               .timeout = gw_time_left(q->w, q->since),
                               .data = q,
                               .done = on_executed};
        q->wh->ops->query(&q->op, &q->wq, &q->sink);
        return FLOW_WAIT;
    }
    if (q->row_err.code) {
        return failed(q, q->row_err.code, &q->row_err);
    }
    return f->rc ? failed(q, f->rc, &f->err) : flow_goto(f, ANSWER);
}

static enum flow_next step_answer(struct flow *f)
{
    static const struct http_header json_type = {SLICE("Content-Type"),
                                                 SLICE("application/json; charset=utf-8")};
    struct sql_query *q = query_of(f);
    http_on_gone(q->r, NULL, NULL);
    if (q->err.code) {
        gw_reply_error(q->r, q->err.code, err_text(&q->err));
        return flow_goto(f, END);
    }
    buf_addf(&q->body, "],\\\"totalRows\\\":%llu}\"", (unsigned long long)q->rows);
    gw_add_correlation(&q->body, q->wq.correlation);
    buf_add_char(&q->body, '}');
    http_reply_buf(q->r, 200, &json_type, 1, &q->body);
    return flow_goto(f, END);
}

static enum flow_next step_end(struct flow *f)
{
    struct sql_query *q = query_of(f);
    if (q->wh) {
        gw_conn_put(q->w, q->wh);
    }
    buf_fini(&q->body);
    gw_slot_give(q->w);
    return FLOW_END;
}

static void on_end(struct flow *f)
{
    struct sql_query *q = query_of(f);
    gw_work_end(q->w, &q->work);
    free(q);
}

static const struct flow_step steps[] = {
    [CONNECT] = {.name = "CONNECT",
                 .run = step_connect,
                 .to = FLOW_TO(EXECUTE) | FLOW_TO(ANSWER),
                 .says = "the warehouse's pool of sessions",
                 .shielded = true},
    [EXECUTE] = {.name = "EXECUTE",
                 .run = step_execute,
                 .to = FLOW_TO(ANSWER),
                 .cancel = cancel_execute,
                 .says = "read-only, rolled back"},
    [ANSWER] = {.name = "ANSWER", .run = step_answer, .to = FLOW_TO(END), .says = "rows as text"},
    [END] = {.name = "END", .run = step_end, .says = "give everything back"},
};
const struct flow_type flow_sql_type = {"sql_query", steps, ARRAY_LEN(steps)};

static void on_gone(struct http_req *r, void *data)
{
    struct sql_query *q = data;
    (void)r;
    flow_cancel(&q->flow);
}

/* `options` is an object, or one as JSON text: {"rowLimit": n}. */
static int row_limit(const json_t *body, int64_t *out, struct err *e)
{
    json_t *options = json_incref(json_object_get(body, "options"));
    *out = 0;
    if (json_is_string(options)) {
        json_t *text = options;
        options = json_parse(slice_of(json_string_value(text)), NULL);
        json_decref(text);
    }
    const json_t *limit = json_object_get(options, "rowLimit");
    int rc = 0;
    if (limit && (!json_is_integer(limit) || json_integer_value(limit) < 1)) {
        rc = err_set(e, ERR_INVALID, "'options.rowLimit' must be a whole number above 0");
    } else {
        *out = json_integer_value(limit);
    }
    json_decref(options);
    return rc;
}

static int read_statement(struct http_req *r, struct sql_query *q, struct err *e)
{
    struct arena *a = &q->flow.arena;
    const char *text = NULL;
    struct slice core;
    json_t *body = gw_body_object(r, e);
    if (!body) {
        return e->code;
    }
    int rc = gw_body_str(body, "sqlStatement", &text, e);
    rc = rc ? rc : row_limit(body, &q->limit, e);
    rc = rc ? rc : gw_tag_read(body, a, &q->tag, e);
    if (rc == 0 && !text) {
        rc = err_set(e, ERR_INVALID, "'sqlStatement' is missing");
    } else if (rc == 0 && strlen(text) > GW_TEXT_MAX) {
        rc = err_set(e, ERR_INVALID, "the statement is longer than %d bytes: shorten it",
                     GW_TEXT_MAX);
    } else if (rc == 0 && !sql_is_select(slice_of(text), &core)) {
        rc =
            err_set(e, ERR_INVALID, "only one SELECT, WITH, VALUES or TABLE statement is run here");
    }
    if (rc == 0) {
        q->core = slice_make(arena_dup(a, core.p, core.len), core.len);
    }
    json_decref(body);
    return rc;
}

void gw_sql_query_handle(struct gw_worker *w, struct http_req *r, const char *environment,
                         const char *connection)
{
    struct sql_query *q = xcalloc(1, sizeof(*q));
    struct err e = {0};
    int rc = read_statement(r, q, &e);
    rc = rc ? rc : gw_slot_take(w, &e);
    if (rc) {
        arena_fini(&q->flow.arena);
        free(q);
        gw_reply_error(r, rc, err_text(&e));
        return;
    }
    q->w = w;
    q->r = r;
    q->environment = environment;
    q->connection = connection;
    q->since = loop_now(w->loop);
    q->flow.on_end = on_end;
    gw_work_begin(w, &q->work, &q->flow);
    flow_start(&q->flow, &flow_sql_type, loop_flows(w->loop), NULL);
    http_on_gone(r, on_gone, q);
}
