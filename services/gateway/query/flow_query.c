/* Flow: one query. COMPILE (cache or child, under what may be read from tables), CONNECT, EXECUTE
 * (rows are written as they come), ANSWER, END. A table that moved or went under the query is left
 * out and the query compiled again, before a byte is sent (protocol.md 7). */
#include "services/gateway/query/query.h"

#include "common/log/log.h"
#include "services/gateway/query/answer.h"

enum { COMPILE, CONNECT, EXECUTE, ANSWER, END };
enum { TRIES = 2 }; /* compiles again: without what is known broken, then without any table */

struct query {
    struct flow flow;
    struct gw_work work;
    struct gw_worker *w;
    struct http_req *r;
    struct gw_package *p; /* counted */
    const struct gw_view *view;
    const char *model; /* lives with the request */
    struct gw_ask ask;
    struct ms since;
    /* COMPILE */
    struct decide_left_out *left_out, *broken;
    size_t n_left_out, n_broken;
    unsigned tries;
    struct gw_cache_wait wait;
    struct loop_task cancelled;
    struct gw_compiled *compiled; /* counted */
    /* CONNECT, EXECUTE */
    struct gw_conn_get conn;
    struct wh *wh; /* held */
    struct wh_op op;
    struct wh_query wq;
    struct wh_sink sink;
    struct wh_receipt *receipts;          /* one per hit */
    char correlation[GW_CORRELATION_CAP]; /* of a tagged statement */
    struct result_writer writer;
    struct buf body;
    struct err err; /* what the answer will be; code 0: the result */
    struct err row_err;
};

static struct query *query_of(struct flow *f)
{
    return container_of(f, struct query, flow);
}

static enum flow_next failed(struct query *q, const struct err *e)
{
    q->err = *e;
    gw_query_error(q->w, &q->err);
    return flow_goto(&q->flow, ANSWER);
}

static enum flow_next wait_failed(struct query *q)
{
    q->flow.err.code = q->flow.rc;
    return failed(q, &q->flow.err);
}

/* ---- COMPILE ---- */
static void on_compiled(struct gw_cache_wait *w)
{
    struct query *q = w->data;
    flow_resume(&q->flow, w->rc, &w->err);
}

static void on_cancelled(struct loop_task *t)
{
    struct query *q = t->data;
    flow_resume(&q->flow, ERR_CANCELLED, NULL);
}

static void cancel_compile(struct flow *f)
{
    struct query *q = query_of(f);
    gw_cache_leave(&q->wait);
    loop_defer(q->w->loop, &q->cancelled);
}

static enum flow_next step_compile(struct flow *f)
{
    struct query *q = query_of(f);
    if (f->entered) {
        q->left_out = decide_leave_out(&q->view->facts, gw_decide_now(q->w), q->broken, q->n_broken,
                                       &f->arena, &q->n_left_out);
        struct gw_compile_ask ask = {q->p, q->model, &q->ask, q->left_out, q->n_left_out};
        q->wait = (struct gw_cache_wait){.done = on_compiled, .data = q};
        if (gw_compile_get(q->w, &ask, &q->wait, &q->compiled) == GW_CACHE_HIT) {
            return flow_goto(f, CONNECT);
        }
        return FLOW_WAIT;
    }
    if (f->rc) {
        return wait_failed(q);
    }
    q->compiled = q->wait.value;
    q->wait.value = NULL;
    return flow_goto(f, CONNECT);
}

/* ---- CONNECT ---- */
static void on_connection(struct gw_conn_get *c)
{
    struct query *q = c->data;
    q->wh = c->rc ? NULL : c->wh;
    flow_resume(&q->flow, c->rc, &c->err);
}

static enum flow_next step_connect(struct flow *f)
{
    struct query *q = query_of(f);
    if (f->entered) {
        q->conn = (struct gw_conn_get){.environment = q->p->environment,
                                       .name = q->compiled->connection,
                                       .package = q->p,
                                       .done = on_connection,
                                       .data = q};
        gw_conn_get_start(q->w, &q->conn);
        return FLOW_WAIT;
    }
    return f->rc ? wait_failed(q) : flow_goto(f, EXECUTE);
}

/* ---- EXECUTE ---- */
static int on_row(void *data, const struct slice *cells)
{
    struct query *q = data;
    struct result_writer *w = &q->writer;
    int rc = result_row(w, cells[0], &q->row_err);
    return rc ? rc : gw_check_caps(q->w, w->rows, q->body.len, &q->row_err);
}

static void on_executed(struct wh_op *op)
{
    struct query *q = op->data;
    flow_resume(&q->flow, op->rc, &op->err);
}

static void cancel_execute(struct flow *f)
{
    struct query *q = query_of(f);
    q->wh->ops->cancel(&q->op);
}

static void fill_receipts(struct query *q)
{
    const struct gw_compiled *c = q->compiled;
    q->receipts = arena_zalloc(&q->flow.arena, (c->n_hits + 1) * sizeof(*q->receipts));
    for (size_t i = 0; i < c->n_hits; i++) {
        const struct gw_binding *b = gw_package_binding(q->p, c->used[i].build_id);
        must(b); /* only what is bound was offered */
        q->receipts[i] =
            (struct wh_receipt){.name = b->name, .build_id = b->build_id, .root = b->root};
    }
}

/* What the request says makes the comment another one each time: such a statement is not kept. */
static void set_tag(struct query *q)
{
    const struct gw_compiled *c = q->compiled;
    const struct gw_tag_ask *ask = &q->ask.tag;
    const char *tag = c->tag;
    q->wq.prepare_as = c->prepare_as;
    if (gw_is_tagged(q->w->g) && (ask->said.n > 0 || ask->class_name)) {
        struct gw_properties all = ask->said;
        if (c->said) {
            gw_properties_put_all(&all, &q->flow.arena, c->said);
        }
        const struct gw_tag_about about = {.class_name = ask->class_name,
                                           .environment = q->p->environment,
                                           .package = q->p->name,
                                           .model = q->model,
                                           .source = c->source};
        tag = gw_tag_text(&q->flow.arena, &all, &about);
        q->wq.prepare_as = tag ? NULL : c->prepare_as;
    }
    gw_tag_statement(&q->wq, tag, q->correlation);
}

static enum flow_next execute(struct query *q)
{
    const struct gw_compiled *c = q->compiled;
    fill_receipts(q);
    err_clear(&q->row_err);
    buf_clear(&q->body);
    buf_add_slice(&q->body, SLICE("{\"result\":\""));
    result_writer_init(&q->writer, c->schema, q->ask.is_compact ? RESULT_COMPACT : RESULT_FULL,
                       &q->body);
    result_begin(&q->writer, c->head);
    q->sink = (struct wh_sink){.data = q, .on_row = on_row};
    q->wq = (struct wh_query){.sql = c->sql,
                              .baked = q->receipts,
                              .n_baked = c->n_hits,
                              .read_only = true,
                              .json_rows = q->wh->ops->cls == WH_CLASS_BY_BINDING};
    set_tag(q);
    q->op = (struct wh_op){.wh = q->wh,
                           .arena = &q->flow.arena,
                           .timeout = gw_time_left(q->w, q->since),
                           .data = q,
                           .done = on_executed};
    q->wh->ops->query(&q->op, &q->wq, &q->sink);
    return FLOW_WAIT;
}

/* By its name, or, by binding, by the folder of its files. */
static bool names_table(const struct err *e, const struct wh_receipt *r)
{
    char name[160];
    snprintf(name, sizeof(name), "\"%s.%s\"", r->name.schema, r->name.table);
    return strstr(e->text, name) || (r->generation && strstr(e->text, r->generation));
}

/* Whose fault a failed query is: the named table's, else every table's that did not agree. False:
 * all of them agreed, so it is the query's own. */
static bool find_broken(struct query *q, enum reason why)
{
    size_t n_before = q->n_broken;
    const struct gw_compiled *c = q->compiled;
    bool one_is_named = false;
    for (size_t i = 0; i < c->n_hits; i++) {
        one_is_named = one_is_named || names_table(&q->op.err, &q->receipts[i]);
    }
    struct decide_left_out *list =
        arena_alloc(&q->flow.arena, (n_before + q->view->facts.n_bindings) * sizeof(*list));
    for (size_t i = 0; i < n_before; i++) {
        list[i] = q->broken[i];
    }
    for (size_t i = 0; i < q->view->facts.n_bindings; i++) {
        const struct gw_binding *b = q->view->bound[i];
        for (size_t k = 0; k < c->n_hits; k++) {
            const struct wh_receipt *r = &q->receipts[k];
            bool is_bad = why == REASON_table_missing && one_is_named && q->tries == 0
                              ? names_table(&q->op.err, r)
                              : !r->ok;
            if (is_bad && strcmp(b->build_id, r->build_id) == 0) {
                list[q->n_broken++] =
                    (struct decide_left_out){i, r->out_of_reach ? REASON_root_not_reachable : why};
            }
        }
    }
    q->broken = list;
    return q->n_broken > n_before;
}

static const struct wh_receipt *receipt_of(const struct query *q, const struct gw_binding *b)
{
    for (size_t i = 0; i < q->compiled->n_hits; i++) {
        if (strcmp(q->receipts[i].build_id, b->build_id) == 0) {
            return &q->receipts[i];
        }
    }
    must(!"what is broken was used");
    return NULL;
}

static void tell_broken(struct query *q, size_t from)
{
    for (size_t i = from; i < q->n_broken; i++) {
        const struct gw_binding *b = q->view->bound[q->broken[i].binding];
        const char *code = reason_code(q->broken[i].why);
        bool is_reached = !receipt_of(q, b)->out_of_reach;
        log_warn("query.broken", "environment=%s package=%s source=%s table=%s reason=%s",
                 q->p->environment, q->p->name, log_q(b->source_id), log_q(b->physical), code);
        if (is_reached) {
            gw_tell_broken(q->w, q->p, b, code);
        }
    }
}

/* True when the query is to be compiled again without the tables that failed it. */
static bool goes_live(struct query *q)
{
    int rc = q->op.rc;
    size_t n_before = q->n_broken;
    if ((rc != ERR_STORE_MOVED && rc != ERR_WH_MISSING) || q->compiled->n_hits == 0 ||
        q->tries >= TRIES || q->writer.rows > 0) {
        return false;
    }
    enum reason why = rc == ERR_STORE_MOVED ? REASON_binding_superseded : REASON_table_missing;
    if (!find_broken(q, why)) {
        return false;
    }
    tell_broken(q, n_before);
    q->tries++;
    return true;
}

static void put_back(struct query *q)
{
    if (q->wh) {
        gw_conn_put(q->w, q->wh);
        q->wh = NULL;
    }
    gw_compiled_unref(q->compiled);
    q->compiled = NULL;
}

static enum flow_next step_execute(struct flow *f)
{
    struct query *q = query_of(f);
    if (f->entered) {
        return execute(q);
    }
    if (f->rc && goes_live(q)) {
        result_writer_fini(&q->writer);
        put_back(q);
        return flow_goto(f, COMPILE);
    }
    if (q->row_err.code) {
        return failed(q, &q->row_err);
    }
    return f->rc ? wait_failed(q) : flow_goto(f, ANSWER);
}

/* ---- ANSWER ---- */
static void make_receipt(struct query *q, struct decide_receipt *out)
{
    const struct gw_compiled *c = q->compiled;
    struct arena *a = &q->flow.arena;
    struct decide_used *used = arena_alloc(a, (c->n_used + 1) * sizeof(*used));
    for (size_t i = 0; i < c->n_used; i++) {
        used[i] = c->used[i];
        if (i < c->n_hits) { /* the fence row that the query itself saw says more than a mirror */
            used[i].generation = q->receipts[i].generation;
            used[i].data_as_of_us = q->receipts[i].data_as_of_us;
        }
    }
    struct decide_query d = {.used = used,
                             .n_used = c->n_used,
                             .left_out = q->left_out,
                             .n_left_out = q->n_left_out,
                             .is_live_mode = q->ask.is_live,
                             .is_flagged = c->is_flagged,
                             .given_refused = c->given_refused};
    /* By binding, the rows may be of a newer set than the one it was compiled under. */
    uint64_t epoch = c->n_hits > 0 && q->wq.epoch ? q->wq.epoch : q->p->epoch;
    decide_receipt_make(&q->view->facts, &d, epoch, a, out);
}

static enum flow_next step_answer(struct flow *f)
{
    struct query *q = query_of(f);
    struct gw_part *part = q->w->query_half;
    int64_t took = ms_sub(loop_now(q->w->loop), q->since).v;
    http_on_gone(q->r, NULL, NULL);
    if (q->err.code == 0) {
        result_end(&q->writer, q->compiled->tail);
        q->err.code = gw_check_caps(q->w, 0, q->body.len, &q->err);
    }
    if (q->err.code) {
        metric_add(part->served[3], 1);
        gw_reply_error(q->r, q->err.code, err_text(&q->err));
        return flow_goto(f, END);
    }
    struct decide_receipt receipt;
    make_receipt(q, &receipt);
    metric_add(part->served[receipt.served], 1);
    metric_observe(part->took_ms, (double)took);
    struct gw_answer a = {.receipt = &receipt,
                          .row_limit = q->compiled->row_limit,
                          .limit_added = q->compiled->limit_added,
                          .took_ms = took,
                          .correlation = q->wq.correlation,
                          .is_deprecated = q->ask.uses_filters};
    gw_answer_send(q->r, &a, &q->body);
    return flow_goto(f, END);
}

static enum flow_next step_end(struct flow *f)
{
    struct query *q = query_of(f);
    result_writer_fini(&q->writer);
    buf_fini(&q->body);
    put_back(q);
    gw_package_unref(q->p);
    gw_slot_give(q->w);
    return FLOW_END;
}

static void on_end(struct flow *f)
{
    struct query *q = query_of(f);
    gw_work_end(q->w, &q->work);
    free(q);
}

static const struct flow_step steps[] = {
    [COMPILE] = {.name = "COMPILE",
                 .run = step_compile,
                 .to = FLOW_TO(CONNECT) | FLOW_TO(ANSWER),
                 .cancel = cancel_compile,
                 .says = "from the cache, or by the compiler child"},
    [CONNECT] = {.name = "CONNECT",
                 .run = step_connect,
                 .to = FLOW_TO(EXECUTE) | FLOW_TO(ANSWER),
                 .says = "the warehouse's pool of sessions",
                 .shielded = true},
    [EXECUTE] = {.name = "EXECUTE",
                 .run = step_execute,
                 .to = FLOW_TO(COMPILE) | FLOW_TO(ANSWER),
                 .cancel = cancel_execute,
                 .says = "rows and receipt in one transaction"},
    [ANSWER] = {.name = "ANSWER",
                .run = step_answer,
                .to = FLOW_TO(END),
                .says = "result and receipt, or the error"},
    [END] = {.name = "END", .run = step_end, .says = "give everything back"},
};
const struct flow_type flow_query_type = {"query", steps, ARRAY_LEN(steps)};

static void on_gone(struct http_req *r, void *data)
{
    struct query *q = data;
    (void)r;
    flow_cancel(&q->flow);
}

void gw_query_handle(struct gw_worker *w, struct http_req *r, struct gw_package *p,
                     const char *model)
{
    struct query *q = xcalloc(1, sizeof(*q));
    struct err e = {0};
    int rc = gw_ask_read(r, &q->flow.arena, &q->ask, &e);
    rc = rc ? rc : gw_slot_take(w, &e);
    if (rc) {
        arena_fini(&q->flow.arena);
        free(q);
        gw_reply_error(r, rc, err_text(&e));
        return;
    }
    q->w = w;
    q->r = r;
    q->p = gw_package_ref(p);
    q->view = p->view;
    q->model = model;
    q->since = loop_now(w->loop);
    q->flow.on_end = on_end;
    loop_task_init(&q->cancelled, on_cancelled, q);
    gw_work_begin(w, &q->work, &q->flow);
    flow_start(&q->flow, &flow_query_type, loop_flows(w->loop), NULL);
    http_on_gone(r, on_gone, q);
}
