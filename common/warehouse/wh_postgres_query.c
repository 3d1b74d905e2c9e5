/* Served queries: one pipelined round trip. With baked tables it is the receipt's transaction of
 * protocol.md 7: lock, fence rows, query; rows reach the sink only after every fence row agreed. */
#include "common/warehouse/wh_postgres.h"

/* op->impl points at `o`, whose flow is never started: there is one wait. */
struct op_query {
    struct wh_pg_op o;
    struct wh_query *q;
    struct wh_sink *sink;
    size_t fence_at, n_fences; /* statements that read fence rows */
    size_t query_at;
    int sink_rc;
};

static void add(struct op_query *q, const char *sql, const char *prepare_as)
{
    q->o.stmts[q->o.n_stmts++] = (struct pgc_stmt){.sql = sql, .prepare_as = prepare_as};
}

/* Every query passes here: texts are put together without format strings. */
static const char *concat(struct arena *a, const char *head, const char *middle, const char *tail)
{
    size_t n_head = strlen(head), n_middle = strlen(middle), n_tail = strlen(tail);
    char *text = arena_alloc(a, n_head + n_middle + n_tail + 1);
    memcpy(text, head, n_head);
    memcpy(text + n_head, middle, n_middle);
    memcpy(text + n_head + n_middle, tail, n_tail + 1);
    return text;
}

/* Before the snapshot: it keeps a swap out, so that the row describes exactly what the query reads.
 */
static void add_lock(struct op_query *q)
{
    struct arena *a = q->o.arena;
    const char *tables = wh_name_quoted(a, &q->q->baked[0].name);
    for (size_t i = 1; i < q->q->n_baked; i++) {
        tables = concat(a, tables, ", ", wh_name_quoted(a, &q->q->baked[i].name));
    }
    add(q, concat(a, "LOCK TABLE ", tables, " IN ACCESS SHARE MODE"),
        concat(a, "kiln lock ", tables, ""));
}

static bool is_first_of_schema(const struct wh_query *q, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (strcmp(q->baked[k].name.schema, q->baked[i].name.schema) == 0) {
            return false;
        }
    }
    return true;
}

/* The fence rows of one schema's tables. */
static void add_fence(struct op_query *q, const char *schema)
{
    struct arena *a = q->o.arena;
    const char **keys = arena_alloc(a, q->q->n_baked * sizeof *keys);
    size_t n = 0;
    for (size_t i = 0; i < q->q->n_baked; i++) {
        if (strcmp(q->q->baked[i].name.schema, schema) == 0) {
            keys[n++] = q->q->baked[i].name.table;
        }
    }
    const char **params = arena_alloc(a, 2 * sizeof *params);
    params[0] = wh_pg_array(a, keys, n);
    params[1] = schema;
    struct wh_name fence = {.schema = schema, .table = "kiln_fence"};
    const char *sql = concat(
        a,
        "SELECT f.target, f.build_id, f.generation, f.published, (extract(epoch FROM f.data_as_of) "
        "* 1000000)::bigint, (f.relid = to_regclass(format('%I.%I', $2::text, f.target))::oid) IS "
        "TRUE FROM ",
        wh_name_quoted(a, &fence), " f WHERE f.target = ANY($1::text[])");
    add(q, sql, concat(a, "kiln fence ", schema, ""));
    q->o.stmts[q->o.n_stmts - 1].params = params;
    q->o.stmts[q->o.n_stmts - 1].n_params = 2;
    q->n_fences++;
}

/* Until the end of the transaction, and after the lock, for it takes the snapshot. A setting, as in
 * the comment it would make every run another statement. */
static void add_correlation(struct op_query *q)
{
    const char **params = arena_alloc(q->o.arena, sizeof *params);
    params[0] = concat(q->o.arena, "kiln ", q->q->correlation, "");
    add(q, "SELECT set_config('application_name', $1::text, true)", "kiln correlation");
    q->o.stmts[q->o.n_stmts - 1].params = params;
    q->o.stmts[q->o.n_stmts - 1].n_params = 1;
}

static void add_all(struct op_query *q)
{
    struct wh_query *wq = q->q;
    q->o.stmts = arena_alloc(q->o.arena, (wq->n_baked + 5) * sizeof *q->o.stmts);
    bool in_transaction = wq->n_baked > 0 || wq->read_only;
    if (wq->n_baked > 0) {
        add(q, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "kiln begin receipt");
        add_lock(q);
    } else if (in_transaction) {
        add(q, "BEGIN READ ONLY", "kiln begin");
    }
    q->fence_at = q->o.n_stmts;
    for (size_t i = 0; i < wq->n_baked; i++) {
        if (is_first_of_schema(wq, i)) {
            add_fence(q, wq->baked[i].name.schema);
        }
    }
    if (wq->correlation && in_transaction) {
        add_correlation(q);
    }
    q->query_at = q->o.n_stmts;
    add(q, concat(q->o.arena, wh_pg_tag(q->o.arena, wq->tag), wq->sql, ""),
        arena_strdup(q->o.arena, wq->prepare_as));
    q->o.stmts[q->query_at].stream = true;
    if (in_transaction) {
        add(q, wq->roll_back ? "ROLLBACK" : "COMMIT",
            wq->roll_back ? "kiln rollback" : "kiln commit");
    }
}

static void read_row(struct op_query *q, const struct pgc_result *r, size_t row, const char *schema)
{
    for (size_t i = 0; i < q->q->n_baked; i++) {
        struct wh_receipt *baked = &q->q->baked[i];
        if (strcmp(baked->name.schema, schema) != 0 ||
            !slice_is(pgc_cell(r, row, 0), baked->name.table)) {
            continue;
        }
        const char *build_id = pgc_text(r, row, 1);
        baked->generation = wh_pg_copy(&q->o, r, row, 2);
        baked->published = (uint64_t)pgc_i64(r, row, 3);
        baked->data_as_of_us = pgc_i64(r, row, 4);
        baked->ok = pgc_bool(r, row, 5) && baked->published > 0 && build_id &&
                    strcmp(build_id, baked->build_id) == 0;
    }
}

static int on_result(struct pgc_batch *b, size_t stmt, const struct pgc_result *r)
{
    struct op_query *q = b->data;
    if (stmt < q->fence_at || stmt >= q->fence_at + q->n_fences) {
        return 0;
    }
    for (size_t i = 0; i < pgc_rows(r); i++) {
        read_row(q, r, i, b->stmts[stmt].params[1]);
    }
    if (stmt + 1 < q->fence_at + q->n_fences) {
        return 0;
    }
    for (size_t i = 0; i < q->q->n_baked; i++) {
        if (!q->q->baked[i].ok) {
            return ERR_STORE_MOVED;
        }
    }
    return 0;
}

static void on_columns(struct pgc_batch *b, size_t stmt, const struct pgc_result *r)
{
    (void)stmt;
    struct op_query *q = b->data;
    struct wh_columns *cols = &q->o.op->facts.columns;
    wh_pg_columns_of(q->o.arena, q->o.pg, r, cols);
    if (q->sink->on_columns) {
        q->sink_rc = q->sink->on_columns(q->sink->data, cols);
    }
}

static enum pgc_row_next on_row(struct pgc_batch *b, size_t stmt, const struct slice *cells)
{
    (void)stmt;
    struct op_query *q = b->data;
    if (q->sink_rc == 0) {
        q->sink_rc = q->sink->on_row(q->sink->data, cells);
        q->o.op->facts.rows += q->sink_rc == 0;
    }
    return q->sink_rc < 0 ? PGC_ROW_STOP : PGC_ROW_MORE;
}

static void name_the_moved(struct op_query *q, struct err *e)
{
    for (size_t i = 0; i < q->q->n_baked; i++) {
        if (!q->q->baked[i].ok) {
            err_set(e, ERR_STORE_MOVED,
                    "connection '%s': %s no longer holds the result that the query was compiled "
                    "against",
                    q->o.pg->name, wh_name_quoted(q->o.arena, &q->q->baked[i].name));
            return;
        }
    }
}

static void on_done(struct pgc_batch *b)
{
    struct op_query *q = b->data;
    struct wh_op *op = q->o.op;
    struct wh_pg *pg = q->o.pg;
    op->rc = b->rc;
    op->err = b->err;
    if (q->sink_rc < 0) {
        op->rc = err_set(&op->err, q->sink_rc, "connection '%s': the reader of the rows stopped",
                         pg->name);
    } else if (op->rc == ERR_STORE_MOVED) {
        name_the_moved(q, &op->err);
    }
    op->impl = NULL;
    pgc_batch_fini(b);
    free(q);
    op->done(op);
    wh_pg_op_ended(pg);
}

void wh_pg_query(struct wh_op *op, struct wh_query *wq, struct wh_sink *sink)
{
    struct op_query *q = xcalloc(1, sizeof *q);
    must(!op->impl && op->done && op->arena && sink->on_row);
    q->o.op = op;
    q->o.pg = op->wh->impl;
    q->o.arena = op->arena;
    q->o.stage = "querying";
    q->q = wq;
    q->sink = sink;
    q->o.pg->ops++;
    op->impl = &q->o;
    op->rc = 0;
    op->facts = (struct wh_facts){0};
    err_clear(&op->err);
    for (size_t i = 0; i < wq->n_baked; i++) {
        wq->baked[i].ok = false;
    }
    add_all(q);
    q->o.batch = (struct pgc_batch){.stmts = q->o.stmts,
                                    .n = q->o.n_stmts,
                                    .timeout = op->timeout,
                                    .read_only = wq->read_only,
                                    .on_columns = on_columns,
                                    .on_row = on_row,
                                    .on_result = on_result,
                                    .done = on_done,
                                    .data = q};
    pgc_batch_start(q->o.pg->pool, &q->o.batch);
}
