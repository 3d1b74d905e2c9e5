/* A pipeline on its way: sent in one go, answers taken one command after the other up to the sync.
 */
#include "common/pgc/pgc_pq.h"

static void add_slot(struct pgc_pq *q, enum pgc_pq_slot_kind kind, size_t stmt,
                     struct pgc_prepared *preparing)
{
    if (q->n_slots == q->cap_slots) {
        q->cap_slots = q->cap_slots ? q->cap_slots * 2 : 8;
        q->slots = xrealloc(q->slots, q->cap_slots * sizeof *q->slots);
    }
    q->slots[q->n_slots++] =
        (struct pgc_pq_slot){.kind = kind, .stmt = stmt, .preparing = preparing};
}

static int send_prepared(struct pgc_pq *q, const struct pgc_stmt *s, size_t at)
{
    struct pgc_prepared *p = pgc_prepared_find(&q->c->prepared, s->prepare_as, s->sql);
    if (!p) {
        p = pgc_prepared_new(&q->c->prepared, s->prepare_as, s->sql);
        add_slot(q, PGC_PQ_PREPARE, at, p);
        if (!PQsendPrepare(q->pg, p->server_name, s->sql, 0, NULL)) {
            return -1;
        }
    }
    add_slot(q, PGC_PQ_EXEC, at, NULL);
    return PQsendQueryPrepared(q->pg, p->server_name, s->n_params, s->params, NULL, NULL, s->binary)
               ? 0
               : -1;
}

static int send_plain(struct pgc_pq *q, const struct pgc_stmt *s, size_t at)
{
    add_slot(q, PGC_PQ_EXEC, at, NULL);
    return PQsendQueryParams(q->pg, s->sql, s->n_params, NULL, s->params, NULL, NULL, s->binary)
               ? 0
               : -1;
}

static int send_describe(struct pgc_pq *q, const struct pgc_stmt *s, size_t at)
{
    add_slot(q, PGC_PQ_PREPARE, at, NULL);
    add_slot(q, PGC_PQ_DESCRIBE, at, NULL);
    bool sent = PQsendPrepare(q->pg, "", s->sql, 0, NULL) && PQsendDescribePrepared(q->pg, "");
    return sent ? 0 : -1;
}

static int send_one(struct pgc_pq *q, const struct pgc_work *w, size_t at)
{
    const struct pgc_stmt *s = &w->stmts[at];
    if (w->describe) {
        return send_describe(q, s, at);
    }
    int rc = s->prepare_as ? send_prepared(q, s, at) : send_plain(q, s, at);
    if (rc == 0 && s->flush && !PQsendFlushRequest(q->pg)) {
        return -1;
    }
    return rc;
}

static void enter_slot(struct pgc_pq *q)
{
    if (q->at < q->n_slots && q->slots[q->at].kind == PGC_PQ_EXEC &&
        q->work->stmts[q->slots[q->at].stmt].stream) {
        (void)PQsetSingleRowMode(q->pg); /* refused only after an error, when no rows come */
    }
}

void pgc_pq_batch_drop(struct pgc_pq *q)
{
    for (size_t i = q->at; i < q->n_slots; i++) {
        if (q->slots[i].preparing) {
            pgc_prepared_free(q->slots[i].preparing);
        }
    }
    loop_task_cancel(&q->send_fail);
    q->work = NULL;
    q->n_slots = q->at = 0;
}

static void batch_end(struct pgc_pq *q)
{
    pgc_pq_batch_drop(q);
    pgc_conn_work_done(q->c); /* last: may close this session */
}

static void lost(struct pgc_pq *q)
{
    auto_buf struct buf line = {0};
    if (q->pg) {
        pgc_pq_flatten(PQerrorMessage(q->pg), &line);
    }
    q->is_dead = true;
    pgc_pq_watch_drop(q);
    struct pgc_work *w = q->work;
    if (!w) {
        pgc_conn_lost_idle(q->c);
        return;
    }
    w->unknown_outcome = q->flushed;
    if (w->rc == 0) {
        bool answered = w->answered;
        pgc_work_error(q->c, w, q->at < q->n_slots ? q->slots[q->at].stmt : w->n, ERR_WH_LOST, "",
                       line.len > 0 ? buf_str(&line) : "the server closed the connection");
        w->answered = answered;
    }
    batch_end(q);
}

static void add_field(const PGresult *res, int field, const char *label, struct buf *out)
{
    const char *text = PQresultErrorField(res, field);
    if (text) {
        buf_add_str(out, label);
        pgc_pq_flatten(text, out);
    }
}

static void on_error(struct pgc_pq *q, const struct pgc_pq_slot *slot, const PGresult *res)
{
    auto_buf struct buf line = {0};
    const char *primary = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
    const char *severity = PQresultErrorField(res, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *sqlstate = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    if (!primary) {
        return; /* libpq's own "connection lost": lost() words it */
    }
    pgc_pq_flatten(primary, &line);
    add_field(res, PG_DIAG_MESSAGE_DETAIL, " (", &line);
    if (PQresultErrorField(res, PG_DIAG_MESSAGE_DETAIL)) {
        buf_add_char(&line, ')');
    }
    add_field(res, PG_DIAG_MESSAGE_HINT, " Hint: ", &line);
    bool answered = q->work->answered;
    pgc_work_error(q->c, q->work, slot->stmt, pgc_code_of(sqlstate ? sqlstate : ""),
                   sqlstate ? sqlstate : "", buf_str(&line));
    if (severity && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0)) {
        q->is_dead = true;
        q->work->answered = answered; /* a farewell answers nothing */
    }
}

static void on_single_row(struct pgc_pq *q, struct pgc_pq_slot *slot, PGresult *res)
{
    if (!slot->has_columns) {
        slot->has_columns = true;
        struct pgc_result *r = pgc_pq_result(res);
        pgc_work_columns(q->c, q->work, slot->stmt, r);
        free(r);
    }
    size_t n = (size_t)PQnfields(res);
    if (n > q->cap_cells) {
        q->cap_cells = n;
        q->cells = xrealloc(q->cells, n * sizeof *q->cells);
    }
    for (size_t i = 0; i < n; i++) {
        q->cells[i] = PQgetisnull(res, 0, (int)i) ? SLICE_NONE
                                                  : slice_make(PQgetvalue(res, 0, (int)i),
                                                               (size_t)PQgetlength(res, 0, (int)i));
    }
    pgc_work_row(q->c, q->work, slot->stmt, q->cells);
    PQclear(res);
}

static void on_well(struct pgc_pq *q, struct pgc_pq_slot *slot, PGresult *res)
{
    if (slot->kind == PGC_PQ_PREPARE) {
        if (slot->preparing) {
            pgc_prepared_keep(&q->c->prepared, slot->preparing);
            slot->preparing = NULL;
        }
        PQclear(res);
        return;
    }
    struct pgc_result *r = pgc_pq_result(res);
    if (q->work->stmts[slot->stmt].stream && !slot->has_columns) {
        slot->has_columns = true;
        pgc_work_columns(q->c, q->work, slot->stmt, r);
    }
    pgc_work_result(q->c, q->work, slot->stmt, r);
}

static void on_copy(struct pgc_pq *q, const struct pgc_pq_slot *slot)
{
    pgc_work_error(q->c, q->work, slot->stmt, ERR_UNSUPPORTED, "", "COPY is not supported here");
    lost(q);
}

/* Takes one result; false when the batch is over. */
static bool take(struct pgc_pq *q, PGresult *res)
{
    ExecStatusType status = PQresultStatus(res);
    if (status == PGRES_PIPELINE_SYNC) {
        PQclear(res);
        q->at = q->n_slots;
        batch_end(q);
        return false;
    }
    must(q->at < q->n_slots);
    struct pgc_pq_slot *slot = &q->slots[q->at];
    switch (status) {
    case PGRES_SINGLE_TUPLE:
        on_single_row(q, slot, res);
        return true;
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
    case PGRES_EMPTY_QUERY:
        on_well(q, slot, res);
        return true;
    case PGRES_COPY_IN:
    case PGRES_COPY_OUT:
    case PGRES_COPY_BOTH:
        PQclear(res);
        on_copy(q, slot);
        return false;
    case PGRES_FATAL_ERROR:
    case PGRES_BAD_RESPONSE:
        on_error(q, slot, res);
        break;
    case PGRES_PIPELINE_ABORTED:
    case PGRES_NONFATAL_ERROR:
    case PGRES_PIPELINE_SYNC:
        break;
    }
    PQclear(res);
    return true;
}

static void next_slot(struct pgc_pq *q)
{
    struct pgc_pq_slot *slot = &q->slots[q->at];
    if (slot->preparing) {
        pgc_prepared_free(slot->preparing);
        slot->preparing = NULL;
    }
    q->at++;
    enter_slot(q);
}

static void take_results(struct pgc_pq *q)
{
    bool after_null = false;
    while (q->work && !PQisBusy(q->pg)) {
        PGresult *res = PQgetResult(q->pg);
        if (res) {
            after_null = false;
            if (!take(q, res)) {
                return;
            }
            continue;
        }
        if (q->is_dead || PQstatus(q->pg) == CONNECTION_BAD || after_null) {
            lost(q);
            return;
        }
        after_null = true;
        if (q->at < q->n_slots) {
            next_slot(q);
        }
    }
}

static int flush_more(struct pgc_pq *q)
{
    if (!q->flushed) {
        int left = PQflush(q->pg);
        if (left < 0) {
            return -1;
        }
        q->flushed = left == 0;
    }
    pgc_pq_watch_set(q, q->flushed ? UV_READABLE : UV_READABLE | UV_WRITABLE);
    return 0;
}

void pgc_pq_batch_on_socket(struct pgc_pq *q, int status, int events)
{
    (void)events;
    if (!q->pg || q->is_dead || status < 0) {
        lost(q);
        return;
    }
    bool read_well = PQconsumeInput(q->pg) == 1;
    if (!q->work) {
        if (read_well) {
            (void)PQisBusy(q->pg);
        }
        if (!read_well || q->is_dead) {
            lost(q);
        }
        return;
    }
    take_results(q);
    if (!q->work) {
        return;
    }
    if (!read_well || flush_more(q) < 0) {
        lost(q);
    }
}

void pgc_pq_run(struct pgc_conn *c, struct pgc_work *w)
{
    struct pgc_pq *q = c->drv;
    must(!q->work);
    q->work = w;
    q->n_slots = q->at = 0;
    q->flushed = false;
    bool sent = q->pg && !q->is_dead;
    for (size_t i = 0; sent && i < w->n; i++) {
        sent = send_one(q, w, i) == 0;
    }
    sent = sent && PQpipelineSync(q->pg) == 1;
    if (!sent || flush_more(q) < 0) {
        loop_defer(c->pool->loop, &q->send_fail);
        return;
    }
    enter_slot(q);
}
